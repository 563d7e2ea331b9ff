/* store/accounting/shard_records.h: what the journal says of no replica alone: how far the
 * metadata's effects went (V8), and what damage that names nobody may have taken (J4).
 *
 * Such entries never die: of each kind the newest is live, in which extent it lies is kept by
 * generation, and giving an extent back appends them again. Recovery meets dead extents too; what
 * only they tell is said again. */
#ifndef STORE_ACCOUNTING_SHARD_RECORDS_H
#define STORE_ACCOUNTING_SHARD_RECORDS_H

#include <stdint.h>

struct arena;
struct journal_entry;
struct store;

struct store_nobody {
    uint8_t *pins;       /* by generation mod extents: 1 = such entries lie there */
    uint64_t floor_op;   /* in the journal, or on its way */
    uint64_t floor_seen; /* generation of the newest entry that says so, as recovery found it */
    /* Damage that names nobody may have taken the only round of a partition: topics up to this
     * metadata op of which the journal shows nothing are stopped like the others. */
    uint64_t unseen_op;     /* 0 = none */
    uint64_t unseen_seen;   /* generation of the newest entry of it, as recovery found it */
    uint64_t unseen_lsn;    /* where that one was first appended */
    uint8_t unseen_pending; /* damage since then: the op is that of the first tables to come */
};

void store_nobody_make(struct store *store, struct arena *arena);
/* One that became durable in the extent, or was found there. */
void store_nobody_pin(struct store *store, uint64_t generation);
void store_nobody_unpin(struct store *store, uint64_t generation);
int store_nobody_pinned(const struct store *store, uint64_t generation);
int store_nobody_is_live(const struct store *store, const struct journal_entry *entry);

/* Metadata that is found with less than `op` executed has lost commands. */
void store_floor_entry(struct store *store, uint64_t op);
/* Damage that names nobody was found. */
void store_unseen_found(struct store *store);
/* The tables of `op` are about to come. 0 = no room now. */
int store_unseen_settle(struct store *store, uint64_t op);
/* 1 = a topic created at this metadata op may have been there, whatever the journal shows. */
int store_unseen(const struct store *store, uint64_t created_revision);

/* Recovery: an entry in an extent of this generation; then, after the last. */
void store_nobody_found(struct store *store, const struct journal_entry *entry,
                        uint64_t generation);
void store_nobody_recovered(struct store *store);

#endif
