/* journal/format.c: blocks, round headers, directories and entries to bytes and back.
 *
 *     block:  magic | crc32c | journal id | cycle | lsn | number | count | version | kind |
 *             payload size | 8 words payload ..  with the last 8 bytes of each 512-byte sector
 *             replaced by a stamp (cycle, lsn)
 *
 * The words that the stamps displace lie in the header. A sector is the unit that a disk writes
 * whole; the stamps tell, sector by sector, which write a damaged block's pieces come from. A block
 * that still holds a sector of an older write, or one of zeros, was never written whole: its round
 * was torn by a crash and was never acknowledged as durable. A block whose sectors all bear the
 * new stamp and yet fails its checksum was damaged afterwards. */
#include "journal/format.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"

static const uint8_t block_magic[4] = {'H', 'R', 'J', 'B'};
static const uint8_t round_magic[4] = {'H', 'R', 'J', 'R'};

enum { BLOCK_WORDS_AT = 48, STAMP_BYTES = 8 };

static_assert(BLOCK_WORDS_AT + JOURNAL_SECTORS_COUNT * STAMP_BYTES == JOURNAL_BLOCK_HEADER_BYTES,
              "header ends with the words");
static_assert(JOURNAL_BLOCK_HEADER_BYTES + JOURNAL_BLOCK_PAYLOAD_BYTES == JOURNAL_BLOCK_BYTES,
              "a block is header and payload");
static_assert(JOURNAL_SECTOR_BYTES * JOURNAL_SECTORS_COUNT == JOURNAL_BLOCK_BYTES,
              "a block is whole sectors");
static_assert(JOURNAL_BLOCK_HEADER_BYTES < JOURNAL_SECTOR_BYTES - STAMP_BYTES,
              "no stamp inside the header");
static_assert(JOURNAL_BLOCK_PAYLOAD_BYTES % JOURNAL_ENTRY_ALIGNMENT == 0,
              "entries stay aligned across blocks");

static uint8_t *block_stamp(uint8_t *block, uint32_t sector)
{
    return block + (sector + 1) * JOURNAL_SECTOR_BYTES - STAMP_BYTES;
}

/* A block that a write or read astray brought to another place fails it, whole as it is. */
static uint32_t block_crc(const uint8_t *block, uint64_t place)
{
    uint8_t seed[8];
    bytes_put_u64(seed, place);
    return crc32c_extend(crc32c(seed, sizeof seed), block + 8, JOURNAL_BLOCK_BYTES - 8);
}

void journal_block_seal(uint8_t *block, const struct journal_block *fields)
{
    assert(fields->extent_cycle > 0);
    assert(fields->number < fields->blocks_count);
    assert(fields->payload_bytes <= JOURNAL_BLOCK_PAYLOAD_BYTES);

    memcpy(block, block_magic, 4);
    bytes_put_u64(block + 8, fields->journal_id);
    bytes_put_u64(block + 16, fields->extent_cycle);
    bytes_put_u64(block + 24, fields->lsn);
    bytes_put_u32(block + 32, fields->number);
    bytes_put_u32(block + 36, fields->blocks_count);
    bytes_put_u16(block + 40, JOURNAL_VERSION);
    bytes_put_u16(block + 42, fields->kind);
    bytes_put_u32(block + 44, fields->payload_bytes);
    for (uint32_t sector = 0; sector < JOURNAL_SECTORS_COUNT; sector++) {
        uint8_t *stamp = block_stamp(block, sector);
        memcpy(block + BLOCK_WORDS_AT + sector * STAMP_BYTES, stamp, STAMP_BYTES);
        bytes_put_u32(stamp, (uint32_t)fields->extent_cycle);
        bytes_put_u32(stamp + 4, (uint32_t)fields->lsn);
    }
    bytes_put_u32(block + 4, block_crc(block, fields->place));
}

uint32_t journal_block_payload_bytes(const uint8_t *block)
{
    return bytes_get_u32(block + 44);
}

int journal_block_get(const uint8_t *block, uint64_t journal_id, uint64_t place,
                      struct journal_block *fields)
{
    if (memcmp(block, block_magic, 4) != 0) return 0;
    if (bytes_get_u64(block + 8) != journal_id) return 0;
    if (bytes_get_u32(block + 4) != block_crc(block, place)) return 0;
    if (bytes_get_u16(block + 40) != JOURNAL_VERSION) return 0;
    *fields = (struct journal_block){
        .journal_id = journal_id,
        .place = place,
        .extent_cycle = bytes_get_u64(block + 16),
        .lsn = bytes_get_u64(block + 24),
        .number = bytes_get_u32(block + 32),
        .blocks_count = bytes_get_u32(block + 36),
        .payload_bytes = journal_block_payload_bytes(block),
        .kind = bytes_get_u16(block + 42),
    };
    if (fields->extent_cycle == 0 || fields->number >= fields->blocks_count) return 0;
    /* No journal gets that far: one that continued from there would wrap. */
    if (fields->extent_cycle > INT64_MAX || fields->lsn > INT64_MAX) return 0;
    return fields->payload_bytes <= JOURNAL_BLOCK_PAYLOAD_BYTES;
}

uint64_t journal_block_previous_lsn(const uint8_t *block)
{
    static_assert(JOURNAL_BLOCK_HEADER_BYTES + 40 <= JOURNAL_SECTOR_BYTES - STAMP_BYTES,
                  "no stamp displaces it");
    return bytes_get_u64(block + JOURNAL_BLOCK_HEADER_BYTES + 32);
}

void journal_block_restore(uint8_t *block)
{
    for (uint32_t sector = 0; sector < JOURNAL_SECTORS_COUNT; sector++) {
        memcpy(block_stamp(block, sector), block + BLOCK_WORDS_AT + sector * STAMP_BYTES,
               STAMP_BYTES);
    }
}

int journal_block_is_older(const uint8_t *block, uint64_t extent_cycle, uint64_t lsn)
{
    for (uint32_t sector = 0; sector < JOURNAL_SECTORS_COUNT; sector++) {
        const uint8_t *begin = block + sector * JOURNAL_SECTOR_BYTES;
        const uint8_t *stamp = begin + JOURNAL_SECTOR_BYTES - STAMP_BYTES;
        uint32_t stamp_extent_cycle = bytes_get_u32(stamp);
        if (bytes_all_zero(begin, JOURNAL_SECTOR_BYTES)) return 1;
        if (stamp_extent_cycle == 0) continue;
        if (stamp_extent_cycle < (uint32_t)extent_cycle) return 1;
        if (stamp_extent_cycle == (uint32_t)extent_cycle) {
            /* The same extent, before it: what an earlier torn round left behind. The low halves
             * wrap; within one extent they are near each other. */
            if ((int32_t)(bytes_get_u32(stamp + 4) - (uint32_t)lsn) < 0) return 1;
        }
    }
    return 0;
}

int journal_block_is_newer(const uint8_t *block, uint64_t extent_cycle, uint64_t lsn)
{
    for (uint32_t sector = 0; sector < JOURNAL_SECTORS_COUNT; sector++) {
        const uint8_t *stamp = block + (sector + 1) * JOURNAL_SECTOR_BYTES - STAMP_BYTES;
        if (bytes_get_u32(stamp) != (uint32_t)extent_cycle) continue;
        if ((int32_t)(bytes_get_u32(stamp + 4) - (uint32_t)lsn) > 0) return 1;
    }
    return 0;
}

void journal_entry_put(uint8_t *at, const struct journal_entry *entry)
{
    assert(entry->size >= JOURNAL_ENTRY_HEADER_BYTES);
    bytes_put_u32(at, entry->size);
    bytes_put_u32(at + 4, 0);
    bytes_put_u64(at + 8, entry->origin_lsn);
    bytes_put_u64(at + 16, entry->topic);
    bytes_put_u64(at + 24, entry->created_revision);
    bytes_put_u64(at + 32, entry->op);
    bytes_put_u64(at + 40, entry->log_view);
    bytes_put_u32(at + 48, entry->partition);
    bytes_put_u16(at + 52, entry->kind);
    bytes_put_u16(at + 54, JOURNAL_VERSION);
    bytes_put_u32(at + 56, entry->tenure);
    bytes_put_u32(at + 60, entry->epoch);
}

void journal_entry_seal(uint8_t *at)
{
    uint32_t size = bytes_get_u32(at);
    assert(size >= JOURNAL_ENTRY_HEADER_BYTES);
    bytes_put_u32(at + 4, crc32c(at + 16, size - 16));
}

void journal_entry_set_origin(uint8_t *at, uint64_t lsn)
{
    if (bytes_get_u64(at + 8) == 0) bytes_put_u64(at + 8, lsn);
}

void journal_entry_read(const uint8_t *at, struct journal_entry *entry)
{
    *entry = (struct journal_entry){
        .size = bytes_get_u32(at),
        .kind = bytes_get_u16(at + 52),
        .version = bytes_get_u16(at + 54),
        .partition = bytes_get_u32(at + 48),
        .topic = bytes_get_u64(at + 16),
        .created_revision = bytes_get_u64(at + 24),
        .op = bytes_get_u64(at + 32),
        .log_view = bytes_get_u64(at + 40),
        .origin_lsn = bytes_get_u64(at + 8),
        .tenure = bytes_get_u32(at + 56),
        .epoch = bytes_get_u32(at + 60),
    };
}

int journal_entry_get(const uint8_t *at, uint64_t available, struct journal_entry *entry)
{
    if (available < JOURNAL_ENTRY_HEADER_BYTES) return 0;
    uint32_t size = bytes_get_u32(at);
    if (size < JOURNAL_ENTRY_HEADER_BYTES || size > available) return 0;
    if (bytes_get_u16(at + 54) < JOURNAL_VERSION) return 0;
    if (bytes_get_u32(at + 4) != crc32c(at + 16, size - 16)) return 0;
    journal_entry_read(at, entry);
    return 1;
}

void journal_round_put(uint8_t *at, const struct journal_round *round, uint32_t *crc)
{
    assert(round->lsn > round->previous_lsn);
    assert(round->previous_lsn >= round->witness);
    memcpy(at, round_magic, 4);
    bytes_put_u16(at + 8, JOURNAL_VERSION);
    bytes_put_u16(at + 10, 0);
    bytes_put_u32(at + 12, round->own_count);
    bytes_put_u32(at + 16, round->previous_count);
    bytes_put_u32(at + 20, round->entries_count);
    bytes_put_u64(at + 24, round->lsn);
    bytes_put_u64(at + 32, round->previous_lsn);
    bytes_put_u64(at + 40, round->witness);
    bytes_put_u64(at + 48, round->previous_chain);
    bytes_put_u64(at + 56, round->payload_bytes);
    bytes_put_u64(at + 64, round->extent_cycle_oldest);
    bytes_put_u64(at + 72, round->before_previous_lsn);
    *crc = crc32c(at + 8, JOURNAL_ROUND_HEADER_BYTES - 8);
}

uint32_t journal_round_extend(uint32_t crc, const uint8_t *item)
{
    return crc32c_extend(crc, item, JOURNAL_DIRECTORY_ITEM_BYTES);
}

void journal_round_seal_head(uint8_t *at, uint32_t crc)
{
    bytes_put_u32(at + 4, crc);
}

int journal_round_get(const uint8_t *at, uint64_t available, struct journal_round *round)
{
    if (available < JOURNAL_ROUND_HEADER_BYTES) return 0;
    if (memcmp(at, round_magic, 4) != 0 || bytes_get_u16(at + 8) != JOURNAL_VERSION) return 0;
    *round = (struct journal_round){
        .lsn = bytes_get_u64(at + 24),
        .previous_lsn = bytes_get_u64(at + 32),
        .witness = bytes_get_u64(at + 40),
        .previous_chain = bytes_get_u64(at + 48),
        .extent_cycle_oldest = bytes_get_u64(at + 64),
        .before_previous_lsn = bytes_get_u64(at + 72),
        .payload_bytes = bytes_get_u64(at + 56),
        .own_count = bytes_get_u32(at + 12),
        .previous_count = bytes_get_u32(at + 16),
        .entries_count = bytes_get_u32(at + 20),
    };
    /* A checksum that holds proves who wrote a round, not that it makes sense: going by one that
     * contradicts its own order would move the journal's end. */
    if (round->lsn <= round->previous_lsn || round->witness > round->previous_lsn) return 0;
    if (round->before_previous_lsn > round->previous_lsn) return 0;
    uint64_t directories =
        ((uint64_t)round->own_count + round->previous_count) * JOURNAL_DIRECTORY_ITEM_BYTES;
    if (directories > available - JOURNAL_ROUND_HEADER_BYTES) return 0;
    return bytes_get_u32(at + 4) == crc32c(at + 8, JOURNAL_ROUND_HEADER_BYTES - 8 + directories);
}

void journal_directory_put(uint8_t *at, const struct journal_directory_item *item)
{
    bytes_put_u64(at, item->topic);
    bytes_put_u64(at + 8, item->created_revision);
    bytes_put_u32(at + 16, item->partition);
    bytes_put_u32(at + 20, item->kinds);
    bytes_put_u64(at + 24, item->op_first);
    bytes_put_u64(at + 32, item->op_last);
    bytes_put_u64(at + 40, item->commit);
    memcpy(at + 48, item->checksum, 16);
}

void journal_directory_get(const uint8_t *at, struct journal_directory_item *item)
{
    item->topic = bytes_get_u64(at);
    item->created_revision = bytes_get_u64(at + 8);
    item->partition = bytes_get_u32(at + 16);
    item->kinds = bytes_get_u32(at + 20);
    item->op_first = bytes_get_u64(at + 24);
    item->op_last = bytes_get_u64(at + 32);
    item->commit = bytes_get_u64(at + 40);
    memcpy(item->checksum, at + 48, 16);
}
