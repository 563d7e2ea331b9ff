/* journal/journal.c: rounds are made here and extents given out. The layout is drawn in
 * journal/format.c.
 *
 * What is durable before what: a round's entries are copied into the buffer only after the previous
 * round's sync completed, so the witness of each round is the lsn before it. An extent's header
 * goes out in the same write as its first round. */
#include "journal/journal.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "journal/entry_bodies.h"

static_assert(JOURNAL_EXTENTS_MIN > JOURNAL_EXTENTS_RESERVED + 2,
              "one extent is written while another is released");

static uint32_t journal_directory_limit(const struct journal_config *config)
{
    /* Two directories may take a quarter of an extent: a tiny journal names fewer replicas a
     * round. */
    uint64_t limit = journal_extent_payload_bytes(config) / 8 / JOURNAL_DIRECTORY_ITEM_BYTES;
    if (limit < 1) limit = 1;
    return limit < JOURNAL_DIRECTORY_MAX ? (uint32_t)limit : JOURNAL_DIRECTORY_MAX;
}

uint64_t journal_memory_bytes(const struct journal_config *config)
{
    uint64_t directories =
        2 * (uint64_t)journal_directory_limit(config) * sizeof(struct journal_directory_item);
    uint64_t items = (uint64_t)JOURNAL_ROUND_ENTRIES_MAX * sizeof(struct journal_item);
    uint64_t buffer = ((uint64_t)config->round_blocks_max + 1) * JOURNAL_BLOCK_BYTES;
    return arena_size(directories) + arena_size(items) + buffer + 2 * ARENA_PAGE_BYTES;
}

void journal_init(struct journal *journal, const struct journal_config *config, struct arena *arena)
{
    assert(config->extents_count >= JOURNAL_EXTENTS_MIN);
    assert(config->extents_count <= JOURNAL_EXTENTS_MAX);
    assert(config->extent_blocks >= 8);
    assert(config->round_blocks_max < config->extent_blocks);

    *journal = (struct journal){
        .config = *config, .lsn_next = 1, .extent_cycle_oldest = 1, .extent_cycle_kept = 1};
    journal->directory_max = journal_directory_limit(config);
    journal->items = arena_take(arena, JOURNAL_ROUND_ENTRIES_MAX * sizeof(struct journal_item));
    journal->own =
        arena_take(arena, journal->directory_max * sizeof(struct journal_directory_item));
    journal->previous =
        arena_take(arena, journal->directory_max * sizeof(struct journal_directory_item));
    journal->buffer = arena_take_aligned(
        arena, ((size_t)config->round_blocks_max + 1) * JOURNAL_BLOCK_BYTES, ARENA_PAGE_BYTES);
    assert(journal->items && journal->own && journal->previous && journal->buffer);
    journal_extents_count(journal);
}

uint64_t journal_file_bytes(const struct journal_config *config)
{
    return journal_extent_offset(config, config->extents_count);
}

uint64_t journal_extent_offset(const struct journal_config *config, uint32_t extent)
{
    assert(extent <= config->extents_count);
    return JOURNAL_FILE_HEADER_BYTES
           + (uint64_t)extent * config->extent_blocks * JOURNAL_BLOCK_BYTES;
}

uint64_t journal_extent_payload_bytes(const struct journal_config *config)
{
    return ((uint64_t)config->extent_blocks - 1) * JOURNAL_BLOCK_PAYLOAD_BYTES;
}

uint32_t journal_entry_bytes_max(const struct journal_config *config)
{
    uint64_t payload = (uint64_t)config->round_blocks_max * JOURNAL_BLOCK_PAYLOAD_BYTES;
    uint64_t overhead =
        JOURNAL_ROUND_HEADER_BYTES
        + ((uint64_t)journal_directory_limit(config) + 1) * JOURNAL_DIRECTORY_ITEM_BYTES;
    assert(payload > overhead + JOURNAL_ENTRY_HEADER_BYTES);
    return (uint32_t)((payload - overhead) & ~(uint64_t)(JOURNAL_ENTRY_ALIGNMENT - 1));
}

void journal_file_header_put(uint8_t *at, const struct journal_config *config)
{
    memset(at, 0, JOURNAL_FILE_HEADER_BYTES);
    for (uint32_t copy = 0; copy < 2; copy++) {
        uint8_t *block = at + copy * JOURNAL_BLOCK_BYTES;
        uint8_t *payload = block + JOURNAL_BLOCK_HEADER_BYTES;
        bytes_put_u32(payload, config->extents_count);
        bytes_put_u32(payload + 4, config->extent_blocks);
        const struct journal_block fields = {.journal_id = config->id,
                                             .place = copy * JOURNAL_BLOCK_BYTES,
                                             .extent_cycle = 1,
                                             .number = copy,
                                             .blocks_count = 2,
                                             .payload_bytes = 16,
                                             .kind = JOURNAL_BLOCK_FILE};
        journal_block_seal(block, &fields);
    }
}

int journal_file_header_get(uint8_t *at, uint64_t id, struct journal_config *config)
{
    for (uint32_t copy = 0; copy < 2; copy++) {
        struct journal_block fields;
        uint8_t *block = at + copy * JOURNAL_BLOCK_BYTES;
        if (!journal_block_get(block, id, copy * JOURNAL_BLOCK_BYTES, &fields)
            || fields.kind != JOURNAL_BLOCK_FILE)
            continue;
        journal_block_restore(block);
        config->id = id;
        config->extents_count = bytes_get_u32(block + JOURNAL_BLOCK_HEADER_BYTES);
        config->extent_blocks = bytes_get_u32(block + JOURNAL_BLOCK_HEADER_BYTES + 4);
        return 1;
    }
    return 0;
}

static int journal_is_kept(const struct journal *journal, uint32_t extent)
{
    uint64_t extent_cycle = journal->extent_cycles[extent];
    return extent_cycle != 0 && extent_cycle >= journal->extent_cycle_kept;
}

uint32_t journal_extents_free(const struct journal *journal)
{
    assert(journal->extents_free <= journal->config.extents_count);
    return journal->extents_free;
}

void journal_extents_count(struct journal *journal)
{
    journal->extents_free = 0;
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        if (!journal_is_kept(journal, extent)) journal->extents_free++;
    }
}

uint32_t journal_blocks_left(const struct journal *journal)
{
    if (journal->extent_cycle == 0) return 0;
    assert(journal->block <= journal->config.extent_blocks);
    return journal->config.extent_blocks - journal->block;
}

/* The extent freed longest ago. */
static int journal_extent_next(const struct journal *journal, uint32_t *found)
{
    int any = 0;
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        if (journal_is_kept(journal, extent)) continue;
        if (!any || journal->extent_cycles[extent] < journal->extent_cycles[*found])
            *found = extent;
        any = 1;
    }
    return any;
}

static uint64_t journal_round_payload(const struct journal *journal, uint32_t own_more,
                                      uint64_t entries_more)
{
    uint64_t directories = (uint64_t)journal->own_count + own_more + journal->previous_count;
    return JOURNAL_ROUND_HEADER_BYTES + directories * JOURNAL_DIRECTORY_ITEM_BYTES
           + journal->payload_bytes + entries_more;
}

int journal_round_begin(struct journal *journal, uint32_t size)
{
    assert(!journal->open);
    assert(!journal->writing);

    journal->items_count = 0;
    journal->own_count = 0;
    journal->payload_bytes = 0;
    uint64_t padded = bytes_round_up(size, JOURNAL_ENTRY_ALIGNMENT);
    uint64_t need = journal_round_payload(journal, size ? 1 : 0, padded);
    uint64_t blocks = (need + JOURNAL_BLOCK_PAYLOAD_BYTES - 1) / JOURNAL_BLOCK_PAYLOAD_BYTES;
    assert(blocks <= journal->config.round_blocks_max);

    uint32_t left = journal_blocks_left(journal);
    if (blocks <= left) {
        journal->opens_extent = 0;
        journal->place_extent = journal->extent;
        journal->place_block = journal->block;
        journal->place_extent_cycle = journal->extent_cycle;
    } else {
        uint32_t next = 0;
        if (!journal_extent_next(journal, &next)) return 0;
        journal->opens_extent = 1;
        journal->place_extent = next;
        journal->place_block = 1;
        journal->place_extent_cycle = journal->extent_cycle + 1;
        left = journal->config.extent_blocks - 1;
    }
    journal->place_blocks =
        left < journal->config.round_blocks_max ? left : journal->config.round_blocks_max;
    journal->open = 1;
    return 1;
}

void journal_round_cancel(struct journal *journal)
{
    assert(journal->open);
    assert(journal->items_count == 0);
    journal->open = 0;
}

int journal_round_add(struct journal *journal, uint8_t *entry, struct journal_mark *mark)
{
    assert(journal->open);
    struct journal_entry header;
    journal_entry_read(entry, &header);
    uint32_t size = header.size;
    uint64_t padded = bytes_round_up(size, JOURNAL_ENTRY_ALIGNMENT);
    int fresh = mark->lsn != journal->lsn_next;
    uint64_t payload = journal_round_payload(journal, fresh ? 1 : 0, padded);
    if (payload > (uint64_t)journal->place_blocks * JOURNAL_BLOCK_PAYLOAD_BYTES) return 0;
    if (journal->items_count == JOURNAL_ROUND_ENTRIES_MAX) return 0;
    if (fresh && journal->own_count == journal->directory_max) return 0;

    uint64_t op = header.op;
    if (fresh) {
        mark->lsn = journal->lsn_next;
        mark->index = journal->own_count++;
        journal->own[mark->index] = (struct journal_directory_item){
            .topic = header.topic,
            .created_revision = header.created_revision,
            .partition = header.partition,
            .op_first = op,
            .op_last = op,
            .commit = mark->commit,
        };
    }
    struct journal_directory_item *item = &journal->own[mark->index];
    assert(item->topic == header.topic);
    item->kinds |= 1u << header.kind;
    if (op < item->op_first) item->op_first = op;
    if (op > item->op_last) item->op_last = op;
    ergo(header.kind == JOURNAL_PREPARE, size >= JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES);
    if (header.kind == JOURNAL_PREPARE)
        memcpy(item->checksum, entry_prepare_checksum(entry + JOURNAL_ENTRY_HEADER_BYTES), 16);
    journal->items[journal->items_count++] = (struct journal_item){.entry = entry, .size = size};
    journal->payload_bytes += padded;
    return 1;
}

/* Append to the payload area, stepping over block headers. `at` counts payload bytes. */
static void journal_round_copy(uint8_t *blocks, uint64_t at, const uint8_t *source, uint64_t size)
{
    while (size > 0) {
        uint64_t within = at % JOURNAL_BLOCK_PAYLOAD_BYTES;
        uint64_t room = JOURNAL_BLOCK_PAYLOAD_BYTES - within;
        uint64_t part = size < room ? size : room;
        uint8_t *block = blocks + at / JOURNAL_BLOCK_PAYLOAD_BYTES * JOURNAL_BLOCK_BYTES;
        memcpy(block + JOURNAL_BLOCK_HEADER_BYTES + within, source, part);
        at += part;
        source += part;
        size -= part;
    }
}

/* Round header and both directories, in the caller's scratch order: header bytes first, then items
 * one by one. */
static uint64_t journal_round_copy_head(struct journal *journal, uint8_t *blocks, uint64_t payload)
{
    uint8_t bytes[JOURNAL_DIRECTORY_ITEM_BYTES];
    uint64_t at = JOURNAL_ROUND_HEADER_BYTES;
    uint32_t crc = 0;
    const struct journal_round round = {
        .lsn = journal->lsn_next,
        .previous_lsn = journal->lsn_previous,
        .before_previous_lsn = journal->lsn_before_previous,
        .witness = journal->lsn_previous,
        .previous_chain = journal->chain_previous,
        .extent_cycle_oldest = journal->extent_cycle_oldest,
        .payload_bytes = payload,
        .own_count = journal->own_count,
        .previous_count = journal->previous_count,
        .entries_count = journal->items_count,
    };
    uint8_t head[JOURNAL_ROUND_HEADER_BYTES];
    journal_round_put(head, &round, &crc);
    for (uint32_t index = 0; index < journal->own_count + journal->previous_count; index++) {
        const struct journal_directory_item *item =
            index < journal->own_count ? &journal->own[index]
                                       : &journal->previous[index - journal->own_count];
        journal_directory_put(bytes, item);
        crc = journal_round_extend(crc, bytes);
        journal_round_copy(blocks, at, bytes, sizeof bytes);
        at += sizeof bytes;
    }
    journal_round_seal_head(head, crc);
    journal_round_copy(blocks, 0, head, sizeof head);
    return at;
}

static void journal_round_clear(uint8_t *blocks, uint32_t count, uint64_t payload)
{
    uint64_t used = payload % JOURNAL_BLOCK_PAYLOAD_BYTES;
    if (used == 0) return;
    uint8_t *last = blocks + (uint64_t)(count - 1) * JOURNAL_BLOCK_BYTES;
    memset(last + JOURNAL_BLOCK_HEADER_BYTES + used, 0, JOURNAL_BLOCK_PAYLOAD_BYTES - used);
}

void journal_round_seal(struct journal *journal, struct journal_write *write)
{
    assert(journal->open);
    assert(!journal->writing);

    uint64_t payload = journal_round_payload(journal, 0, 0);
    uint32_t count =
        (uint32_t)((payload + JOURNAL_BLOCK_PAYLOAD_BYTES - 1) / JOURNAL_BLOCK_PAYLOAD_BYTES);
    assert(count <= journal->place_blocks);
    uint8_t *blocks = journal->buffer + JOURNAL_BLOCK_BYTES;
    journal_round_clear(blocks, count, payload);
    uint64_t at = journal_round_copy_head(journal, blocks, payload);
    for (uint32_t index = 0; index < journal->items_count; index++) {
        const struct journal_item *item = &journal->items[index];
        static const uint8_t zeros[JOURNAL_ENTRY_ALIGNMENT];
        journal_entry_set_origin(item->entry, journal->lsn_next);
        journal_round_copy(blocks, at, item->entry, item->size);
        at += item->size;
        uint64_t padding = bytes_round_up(at, JOURNAL_ENTRY_ALIGNMENT) - at;
        journal_round_copy(blocks, at, zeros, padding);
        at += padding;
    }
    assert(at == payload);

    struct journal_block fields = {.journal_id = journal->config.id,
                                   .extent_cycle = journal->place_extent_cycle,
                                   .lsn = journal->lsn_next,
                                   .blocks_count = count,
                                   .kind = JOURNAL_BLOCK_ROUND};
    uint64_t offset = journal_extent_offset(&journal->config, journal->place_extent)
                      + (uint64_t)journal->place_block * JOURNAL_BLOCK_BYTES;
    uint64_t chain = 0;
    for (uint32_t number = 0; number < count; number++) {
        uint64_t left = payload - (uint64_t)number * JOURNAL_BLOCK_PAYLOAD_BYTES;
        uint8_t *block = blocks + (uint64_t)number * JOURNAL_BLOCK_BYTES;
        fields.number = number;
        fields.place = offset + (uint64_t)number * JOURNAL_BLOCK_BYTES;
        fields.payload_bytes =
            left < JOURNAL_BLOCK_PAYLOAD_BYTES ? (uint32_t)left : JOURNAL_BLOCK_PAYLOAD_BYTES;
        journal_block_seal(block, &fields);
        chain = XXH3_64bits_withSeed(block + 4, 4, chain);
    }
    journal->chain = chain;
    journal->blocks_count = count;
    journal->place_oldest = journal->extent_cycle_oldest;

    write->lsn = journal->lsn_next;
    write->buffer = blocks;
    write->offset = offset;
    write->size = (uint64_t)count * JOURNAL_BLOCK_BYTES;
    if (journal->opens_extent) {
        memset(journal->buffer, 0, JOURNAL_BLOCK_BYTES);
        uint8_t *body = journal->buffer + JOURNAL_BLOCK_HEADER_BYTES;
        bytes_put_u32(body, journal->place_extent);
        const struct journal_block header = {.journal_id = journal->config.id,
                                             .place = offset - JOURNAL_BLOCK_BYTES,
                                             .extent_cycle = journal->place_extent_cycle,
                                             .lsn = journal->lsn_next,
                                             .blocks_count = 1,
                                             .payload_bytes = 8,
                                             .kind = JOURNAL_BLOCK_EXTENT};
        journal_block_seal(journal->buffer, &header);
        write->buffer -= JOURNAL_BLOCK_BYTES;
        write->offset -= JOURNAL_BLOCK_BYTES;
        write->size += JOURNAL_BLOCK_BYTES;
    }
    journal->open = 0;
    journal->writing = 1;
}

void journal_round_synced(struct journal *journal)
{
    assert(journal->writing);
    if (journal->opens_extent) {
        assert(journal->place_extent_cycle == journal->extent_cycle + 1);
        journal->extent_cycles[journal->place_extent] = journal->place_extent_cycle;
        journal->headers_known[journal->place_extent] = 1;
        journal->rounds_counts[journal->place_extent] = 0;
        journal->extent_cycle = journal->place_extent_cycle;
        journal->extent = journal->place_extent;
    }
    assert(journal->place_oldest >= journal->extent_cycle_kept);
    if (journal->opens_extent || journal->place_oldest > journal->extent_cycle_kept) {
        journal->extent_cycle_kept = journal->place_oldest;
        journal_extents_count(journal);
    }
    journal->rounds_counts[journal->extent]++;
    journal->block = journal->place_block + journal->blocks_count;
    journal->lsn_before_previous = journal->lsn_previous;
    journal->lsn_previous = journal->lsn_next++;
    journal->chain_previous = journal->chain;
    struct journal_directory_item *spent = journal->previous;
    journal->previous = journal->own;
    journal->previous_count = journal->own_count;
    journal->own = spent;
    journal->writing = 0;
}

void journal_free_below(struct journal *journal, uint64_t extent_cycle)
{
    assert(extent_cycle >= journal->extent_cycle_oldest);
    assert(extent_cycle <= journal->extent_cycle);
    journal->extent_cycle_oldest = extent_cycle;
}

int journal_holds(const struct journal *journal, uint64_t extent_cycle)
{
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        if (journal->extent_cycles[extent] == extent_cycle) return 1;
    }
    return 0;
}

uint32_t journal_extent_of(const struct journal *journal, uint64_t extent_cycle)
{
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        if (journal->extent_cycles[extent] == extent_cycle) return extent;
    }
    unreachable();
}

enum { EXTENTS_WALKED_MAX = 64 };

/* The extents that a larger journal has are counted when some are given back. */
static int extents_invariants(const struct journal *journal)
{
    if (journal->config.extents_count > EXTENTS_WALKED_MAX) return 1;
    uint32_t free = 0;
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        assert(journal->extent_cycles[extent] <= journal->extent_cycle);
        free += !journal_is_kept(journal, extent);
    }
    assert(free == journal->extents_free);
    return 1;
}

int journal_invariants(const struct journal *journal)
{
    assert(!(journal->open && journal->writing));
    assert(journal->lsn_previous < journal->lsn_next);
    assert(journal->lsn_before_previous <= journal->lsn_previous);
    assert(journal->extent_cycle_kept <= journal->extent_cycle_oldest);
    ergo(journal->extent_cycle != 0, journal->extent_cycle_oldest <= journal->extent_cycle);
    assert(journal->block <= journal->config.extent_blocks);
    assert(journal->items_count <= JOURNAL_ROUND_ENTRIES_MAX);
    assert(journal->own_count <= journal->directory_max);
    assert(journal->own_count <= journal->items_count);
    assert(journal->previous_count <= journal->directory_max);
    ergo(journal->extent_cycle != 0, journal->extent < journal->config.extents_count);
    return extents_invariants(journal);
}
