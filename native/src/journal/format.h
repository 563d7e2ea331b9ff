/* journal/format.h: the bytes of the journal. Drawn in docs/internals/journal.md, frozen by golden
 * files.
 *
 * A file of two header blocks and then extents; an extent is one header block and then rounds; a
 * round is whole blocks; a block is a header and payload; the payloads of a round end to end are a
 * round header, two directories and entries. */
#ifndef JOURNAL_FORMAT_H
#define JOURNAL_FORMAT_H

#include <stdint.h>

enum journal_format {
    JOURNAL_VERSION = 1,
    JOURNAL_BLOCK_BYTES = 4096,
    JOURNAL_SECTOR_BYTES = 512,
    JOURNAL_SECTORS_COUNT = 8,
    JOURNAL_BLOCK_HEADER_BYTES = 112,
    JOURNAL_BLOCK_PAYLOAD_BYTES = 3984, /* the rest of a block */
    JOURNAL_FILE_HEADER_BYTES = 8192,   /* two blocks with the same contents */
    JOURNAL_ROUND_HEADER_BYTES = 80,
    JOURNAL_DIRECTORY_ITEM_BYTES = 64,
    JOURNAL_ENTRY_HEADER_BYTES = 64,
    JOURNAL_ENTRY_ALIGNMENT = 8,
};

enum journal_block_kind {
    JOURNAL_BLOCK_FILE = 1,
    JOURNAL_BLOCK_EXTENT = 2,
    JOURNAL_BLOCK_ROUND = 3,
};

enum journal_entry_kind {
    JOURNAL_PREPARE = 1,
    JOURNAL_CHECKPOINT = 2,
    JOURNAL_VIEW_STATE = 3,
    JOURNAL_TAIL_CLOSED = 4,
    JOURNAL_ABSTAIN = 5,
    JOURNAL_SUFFIX_INSTALLED = 6,
    JOURNAL_METADATA_FLOOR = 7,
    JOURNAL_FORGET = 8, /* the replica left this node: nothing of it is live */
    JOURNAL_ENTRY_KIND_LAST = JOURNAL_FORGET, /* what comes behind is of a newer release */
};

struct journal_block {
    uint64_t journal_id;
    uint64_t place; /* where in the file it belongs; in its checksum alone (J10) */
    uint64_t extent_cycle;
    uint64_t lsn;
    uint32_t number;
    uint32_t blocks_count;
    uint32_t payload_bytes;
    uint16_t kind;
};

struct journal_entry {
    uint32_t size; /* header and body, without padding */
    uint16_t kind;
    uint16_t version; /* as it was read; what is put has ours */
    uint32_t partition;
    uint64_t topic;
    uint64_t created_revision;
    uint64_t op;
    uint64_t log_view;
    uint64_t origin_lsn; /* 0 until its first round is formed */
    uint32_t tenure;
    uint32_t epoch;
};

struct journal_directory_item {
    uint64_t topic;
    uint64_t created_revision;
    uint32_t partition;
    uint32_t kinds; /* bit n = an entry of kind n */
    uint64_t op_first;
    uint64_t op_last;
    uint64_t commit;      /* known committed when the round was begun (V3) */
    uint8_t checksum[16]; /* of the last prepare */
};

struct journal_round {
    uint64_t lsn;
    uint64_t previous_lsn;
    uint64_t before_previous_lsn; /* distinguishes two missing rounds from one */
    uint64_t witness;
    uint64_t previous_chain;
    uint64_t extent_cycle_oldest; /* extents of older cycles are dead */
    uint64_t payload_bytes;
    uint32_t own_count;
    uint32_t previous_count;
    uint32_t entries_count;
};

/* A block in memory whose payload is in place (zero beyond it): stamp the sectors, write the header
 * and the checksum. */
void journal_block_seal(uint8_t *block, const struct journal_block *fields);

/* Verify a block as read at `place` of the file. 0 = not a valid block of this journal, or one that
 * belongs elsewhere. */
int journal_block_get(const uint8_t *block, uint64_t journal_id, uint64_t place,
                      struct journal_block *fields);

/* Of a valid block. */
uint32_t journal_block_payload_bytes(const uint8_t *block);

/* What the round that begins with this valid block says was the last before it. */
uint64_t journal_block_previous_lsn(const uint8_t *block);

/* Put the displaced words back: the payload of a verified block is whole again, the block fails its
 * checksum from now. */
void journal_block_restore(uint8_t *block);

/* Does a damaged block prove that a write of (cycle, lsn) did not reach all of it? (J2) */
int journal_block_is_older(const uint8_t *block, uint64_t extent_cycle, uint64_t lsn);
/* Has a write of this cycle and a higher lsn left a sector in it, whole or not? */
int journal_block_is_newer(const uint8_t *block, uint64_t extent_cycle, uint64_t lsn);

void journal_entry_put(uint8_t *at, const struct journal_entry *entry); /* all but the checksum */
void journal_entry_seal(uint8_t *at); /* the checksum; origin_lsn is outside it */
void journal_entry_set_origin(uint8_t *at, uint64_t lsn);
/* 1 = intact; a version above ours may mean something else (J13). */
int journal_entry_get(const uint8_t *at, uint64_t available, struct journal_entry *entry);
/* Of an entry that was put here, or found intact before. */
void journal_entry_read(const uint8_t *at, struct journal_entry *entry);

/* The header's fields, then each directory item in order, then the checksum over all of them. */
void journal_round_put(uint8_t *at, const struct journal_round *round, uint32_t *crc);
uint32_t journal_round_extend(uint32_t crc, const uint8_t *item);
void journal_round_seal_head(uint8_t *at, uint32_t crc);
int journal_round_get(const uint8_t *at, uint64_t available, struct journal_round *round);
void journal_directory_put(uint8_t *at, const struct journal_directory_item *item);
void journal_directory_get(const uint8_t *at, struct journal_directory_item *item);

#endif
