/* journal/journal.h: one shard's journal: where the next round goes, what it holds, which
 * extents live.
 *
 * Owns the extents, log sequence numbers (lsn), the witness and the making of rounds. Knows nothing
 * of what entries mean and does no I/O: it describes the write that makes a round durable. One
 * round is in flight at a time (J).
 *
 *     journal_round_begin -> journal_round_add .. -> journal_round_seal -> [write, sync] ->
 *     journal_round_synced
 *
 * Extents live in order of their cycle: the oldest is freed first, the longest freed is reused
 * first, so an entry never outlives one that was written after it, unless it is appended again. */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"
#include "io/io.h"
#include "journal/format.h"

struct arena;

enum journal_limit {
    JOURNAL_EXTENTS_MAX = 4096,
    JOURNAL_EXTENTS_MIN = 6,
    JOURNAL_EXTENTS_RESERVED = 2,     /* J6: for re-append, view state, checkpoints, trims */
    JOURNAL_ROUND_ENTRIES_MAX = 8192, /* bounds the work between two syncs */
    JOURNAL_DIRECTORY_MAX = 4096,     /* replicas in one round */
    JOURNAL_DAMAGES_MAX =
        1024, /* named ranges of replicas that one recovery reports; more = the whole shard */
    JOURNAL_CLOSED_MAX = JOURNAL_DAMAGES_MAX, /* TailClosed ranges; more are found again */
};

struct journal_config {
    uint64_t id; /* of this journal: a block of another one is no block */
    uint32_t extents_count;
    uint32_t extent_blocks;
    uint32_t round_blocks_max;
};

/* Where a replica stands in the directory of the round being made; the caller keeps one each. */
struct journal_mark {
    uint64_t lsn;
    uint64_t commit; /* as its directory item says it */
    uint32_t index;
};

struct journal_item {
    uint8_t *entry;
    uint32_t size;
};

struct journal {
    struct journal_config config;
    uint64_t extent_cycles[JOURNAL_EXTENTS_MAX]; /* 0 = never used */
    /* Intact rounds in each extent, as found at the start and as written since, and whether its
     * header was intact: a later read that shows less has lied, or the disk lost something. */
    uint32_t rounds_counts[JOURNAL_EXTENTS_MAX];
    uint8_t headers_known[JOURNAL_EXTENTS_MAX];
    uint64_t extent_cycle;        /* of the extent appended to; 0 = none yet */
    uint64_t extent_cycle_oldest; /* live extents: extent_cycle_oldest..extent_cycle */
    /* Extents of older cycles may be written over: a synced round says that they are dead. */
    uint64_t extent_cycle_kept;
    uint32_t extents_free; /* that may be opened: admission asks for every batch */
    uint32_t extent;
    uint32_t block; /* next free block of it */
    uint64_t lsn_next;
    uint64_t lsn_previous; /* the last synced round; the next one's witness */
    uint64_t lsn_before_previous;
    uint64_t chain_previous;
    /* the round being made or written */
    int open;
    int writing;
    int opens_extent; /* the extent's header goes with it */
    uint32_t place_extent;
    uint32_t place_block;
    uint32_t place_blocks; /* at most */
    uint64_t place_extent_cycle;
    uint64_t place_oldest;  /* the extent_cycle_oldest that the round says */
    uint64_t payload_bytes; /* of the entries so far, padded */
    uint64_t chain;
    uint32_t blocks_count;
    uint32_t items_count;
    uint32_t own_count;
    uint32_t previous_count;
    uint32_t directory_max;
    struct journal_item *items;
    struct journal_directory_item *own;
    struct journal_directory_item *previous;
    uint8_t *buffer; /* page-aligned, round_blocks_max + 1 blocks */
};

/* What recovery found (journal/recovery.c). */
enum journal_damage_kind { JOURNAL_ABSENT = 1, JOURNAL_UNKNOWN = 2, JOURNAL_CORRUPT = 3 };

struct journal_damage {
    enum journal_damage_kind kind;
    uint64_t extent_cycle;
    uint64_t lsn_from; /* of the damaged rounds, both included */
    uint64_t lsn_to;
    int named; /* 1 = the replica below; 0 = any replica of the shard */
    struct journal_directory_item item;
};

struct journal_report {
    uint64_t lsn_before_last;
    uint64_t lsn_last; /* last intact round; 0 = none */
    uint64_t lsn_seen; /* highest of any valid block */
    uint64_t witness;
    uint64_t extent_cycle_oldest;
    uint64_t last_offset; /* where the last round lies: J3 rewrites it */
    uint32_t last_blocks;
    uint32_t last_entries;
    uint32_t unopened; /* extent behind the last round, whose first one never completed, + 1 */
    uint64_t rounds_count;
    uint64_t entries_count;
    uint32_t damages_count;
    int overflow; /* more damages than fit: the whole shard */
    struct journal_damage damages[JOURNAL_DAMAGES_MAX];
    uint32_t closed_count; /* TailClosed: damage that an earlier recovery has dealt with */
    uint64_t closed_from[JOURNAL_CLOSED_MAX];
    uint64_t closed_to[JOURNAL_CLOSED_MAX];
};

/* An entry as recovery shows it: borrowed until the visitor returns; the visitor may change the
 * body. */
typedef enum status journal_visitor(void *context, uint8_t *bytes,
                                    const struct journal_entry *entry, uint64_t extent_cycle,
                                    uint64_t lsn);

uint64_t journal_memory_bytes(const struct journal_config *config);
void journal_init(struct journal *journal, const struct journal_config *config,
                  struct arena *arena);

uint64_t journal_file_bytes(const struct journal_config *config);
uint64_t journal_extent_offset(const struct journal_config *config, uint32_t extent);
uint64_t journal_extent_payload_bytes(const struct journal_config *config);
uint32_t journal_entry_bytes_max(const struct journal_config *config);

/* A new journal's first two blocks. */
void journal_file_header_put(uint8_t *at, const struct journal_config *config);
int journal_file_header_get(uint8_t *at, uint64_t id, struct journal_config *config);

/* That may be opened. */
uint32_t journal_extents_free(const struct journal *journal);
/* After a change of which extents there are to keep: count them. */
void journal_extents_count(struct journal *journal);

/* Blocks until the end of the current extent. */
uint32_t journal_blocks_left(const struct journal *journal);

/* Begin a round whose first entry has `size` bytes (0 = a witness round). 0 = no extent is free. */
int journal_round_begin(struct journal *journal, uint32_t size);

/* The entry stays in place until the round is sealed; its origin is set then. 0 = the round is
 * full. */
int journal_round_add(struct journal *journal, uint8_t *entry, struct journal_mark *mark);

/* Nothing was added: as if it had not begun. */
void journal_round_cancel(struct journal *journal);

struct journal_write {
    uint8_t *buffer;
    uint64_t offset;
    uint64_t size;
    uint64_t lsn;
};
void journal_round_seal(struct journal *journal, struct journal_write *write);
void journal_round_synced(struct journal *journal);

/* All entries of older cycles than this are dead, and rounds begun from now on say so. Their
 * extents may be opened once such a round is durable: a torn opening must not look like damage to
 * an extent that still lives. */
void journal_free_below(struct journal *journal, uint64_t extent_cycle);

/* 1; checked builds look after every step of the shard. */
int journal_invariants(const struct journal *journal);

/* 0 = no extent says that it holds this cycle: damage. */
int journal_holds(const struct journal *journal, uint64_t extent_cycle);

/* The extent that holds a cycle. */
uint32_t journal_extent_of(const struct journal *journal, uint64_t extent_cycle);

/* Walk all live rounds in order. `buffer` holds an extent. With a report this is the first walk: it
 * classifies (J2) and sets the journal's position; without, entries only. JOURNAL_DAMAGED: it
 * contradicts itself, or two reads of it differ: nothing may be concluded from either. */
enum status journal_scan(struct journal *journal, struct io *io, uint32_t file, uint8_t *buffer,
                         struct journal_report *report, journal_visitor *visitor, void *context);

/* The rounds of one extent already in `buffer`. JOURNAL_DAMAGED: not all that were there before. */
enum status journal_scan_extent(struct journal *journal, uint64_t extent_cycle, uint8_t *buffer,
                                journal_visitor *visitor, void *context);

/* Zeros, durably, over a round behind the last one that never completed. Were the next round torn
 * over its remains, nothing could tell the sectors of both from damage to a durable round (J2).
 * Buffer as above. */
enum status journal_clear_tail(const struct journal *journal, struct io *io, uint32_t file,
                               uint8_t *buffer, const struct journal_report *report);

/* J3: write the last round again, durably. Buffer as above. */
enum status journal_rewrite_last(struct journal *journal, struct io *io, uint32_t file,
                                 uint8_t *buffer, const struct journal_report *report);

#endif
