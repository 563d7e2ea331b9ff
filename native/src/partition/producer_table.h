/* partition/producer_table.h: what a partition remembers of its producers, so that a repeated
 * batch is stored once.
 *
 * Per producer: its epoch, the next sequence and its last PRODUCER_DEPTH batches (sequence,
 * offset). The table's decisions depend on applied operations only, so every replica decides alike
 * (P1, P2). Beside it, in the same entries, stands what only the primary knows: admitted batches
 * that are not applied yet (`unresolved`). That part is never in a checkpoint or digest.
 *
 * Entries come from a pool of the shard and are listed by last use, the newest first: the tail
 * holds both the next to expire and the next to be evicted at the cap. A table holds at most
 * PARTITION_PRODUCERS_MAX remembered entries and as many again that are only admitted. */
#ifndef PARTITION_PRODUCER_TABLE_H
#define PARTITION_PRODUCER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/limits.h"
#include "foundation/status.h"

struct arena;
struct bytes_reader;
struct bytes_writer;

struct producer_id {
    uint8_t bytes[BATCH_PRODUCER_ID_BYTES];
};

/* What a batch says about its producer. */
struct producer_batch {
    struct producer_id producer;
    uint32_t epoch;
    uint32_t record_count;
    uint64_t base_sequence;
};

struct producer_remembered {
    uint64_t base_sequence;
    uint64_t base_offset;
    int64_t append_time_us;
    uint32_t record_count;
    uint32_t reserved;
};

struct producer_entry {
    struct producer_entry *newer;
    struct producer_entry *older;
    struct producer_id producer;
    uint32_t epoch;
    uint8_t remembered_count; /* 0 = admitted only */
    uint8_t remembered_next;  /* ring position of the next to be written */
    uint16_t unresolved;      /* primary only */
    uint32_t admitted_epoch;  /* primary only, while unresolved > 0 */
    uint32_t reserved;
    uint64_t next_sequence;
    uint64_t admitted_sequence; /* primary only: next_sequence once all unresolved are applied */
    int64_t used_us;            /* append time of the last batch */
    struct producer_remembered remembered[PRODUCER_DEPTH];
};

/* Entries of the whole shard. */
struct producer_pool {
    struct producer_entry *free;
    uint32_t free_count;
    uint32_t count;
    uint32_t reserve; /* not for admission: a replay begins with partitions of different ages, and
                         may hold at once what was never held at once */
    uint32_t reserved;
};

struct producer_table {
    struct producer_pool *pool;
    struct producer_entry *newest;
    struct producer_entry *oldest;
    uint32_t remembered_count; /* entries with remembered batches */
    uint32_t admitted_count;   /* entries without */
};

struct producer_decision {
    /* OK, ALREADY_COMMITTED, OUT_OF_SEQUENCE, SESSION_EXPIRED, PRODUCER_FENCED, .. */
    enum status status;
    uint8_t duplicate; /* status OK: stored before, at base_offset */
    uint64_t base_offset;
    uint64_t expected;      /* OUT_OF_SEQUENCE */
    int64_t append_time_us; /* duplicate: of the stored batch */
};

size_t producer_pool_bytes(uint32_t entries_count, uint32_t reserve_count);
enum status producer_pool_init(struct producer_pool *pool, struct arena *arena,
                               uint32_t entries_count, uint32_t reserve_count);

void producer_table_init(struct producer_table *table, struct producer_pool *pool);
/* All entries go back to the pool. */
void producer_table_deinit(struct producer_table *table);

/* Admission, on the primary, before a batch is prepared. OK without duplicate: counts as unresolved
 * until producer_table_apply of the same batch, or producer_table_cancel. TOO_MANY_IN_FLIGHT: P1.
 * PRODUCERS_FULL: no entry left. */
struct producer_decision producer_table_admit(struct producer_table *table,
                                              const struct producer_batch *batch);
void producer_table_cancel(struct producer_table *table, const struct producer_batch *batch);

/* The decision at apply, after producer_table_expire. OK without duplicate: remembered under
 * `next_offset`. NO_MEMORY: the pool is smaller than what was admitted; the caller must stop
 * applying. A batch without producer id is always OK. */
struct producer_decision producer_table_apply(struct producer_table *table,
                                              const struct producer_batch *batch,
                                              uint64_t next_offset, int64_t append_time_us);
/* The batch was refused at apply for another reason than its sequence: it is not unresolved any
 * more. */
void producer_table_refuse(struct producer_table *table, const struct producer_batch *batch);
/* P2: forget producers unheard for PRODUCER_EXPIRY_HOURS, judged by the append time of the
 * operation being applied, so that every replica forgets at the same operation. Comes before any
 * decision at apply. */
void producer_table_expire(struct producer_table *table, int64_t append_time_us);
/* 1 = batches of this producer are on their way to the log: what becomes of them is not known. */
int producer_table_unresolved(const struct producer_table *table,
                              const struct producer_id *producer);
/* At apply of EXPIRE_PRODUCERS: forget those last used up to then. */
void producer_table_forget_until(struct producer_table *table, int64_t used_until_us);
/* 1 = there is one of those. */
int producer_table_idle(const struct producer_table *table, int64_t used_until_us);
/* 1 = it has an entry, or needs none: its batch takes no room. */
int producer_table_knows(const struct producer_table *table, const struct producer_id *producer);
/* What apply would decide, without doing it. */
struct producer_decision producer_table_decide(const struct producer_table *table,
                                               const struct producer_batch *batch);

size_t producer_table_encoded_bytes(const struct producer_table *table);
void producer_table_encode(const struct producer_table *table, struct bytes_writer *writer);
enum status producer_table_decode(struct producer_table *table, struct bytes_reader *reader);

/* 1; checked builds look after every step of the shard. */
int producer_table_invariants(const struct producer_table *table);

#endif
