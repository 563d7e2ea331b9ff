/* store/accounting/shard_records.h: what the journal says of no replica alone: how far the
 * metadata's effects went (V8), and what damage that names no replica may have taken (J4).
 *
 * Such entries never die: of each kind the newest is live, in which extent it lies is kept by
 * cycle, and giving an extent back appends them again. Recovery meets dead extents too; what
 * only they tell is said again. */
#ifndef STORE_ACCOUNTING_SHARD_RECORDS_H
#define STORE_ACCOUNTING_SHARD_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct journal_entry;
struct shard_records;
struct store;

#define SHARD_RECORDS_TOPIC UINT64_MAX /* of their entries */

size_t shard_records_memory_bytes(uint32_t extents_count);
struct shard_records *shard_records_make(struct arena *arena, uint32_t extents_count);

/* One that became durable in the extent, or was found there. */
void shard_records_pin(struct store *store, uint64_t extent_cycle);
void shard_records_unpin(struct store *store, uint64_t extent_cycle);
int shard_records_pinned(const struct store *store, uint64_t extent_cycle);
int shard_records_are_live(const struct store *store, const struct journal_entry *entry);

/* Metadata that is found with less than `op` executed has lost commands: said unless it was. */
void shard_records_floor(struct store *store, uint64_t op);
/* Damage that names no replica was found. */
void shard_records_damaged(struct store *store);
/* The tables of `op` are about to come. 0 = no room now. */
int shard_records_settle(struct store *store, uint64_t op);
/* 1 = a topic created at this metadata op may have been there, whatever the journal shows. */
int shard_records_unseen(const struct store *store, uint64_t created_revision);

/* Recovery: an entry in an extent of this cycle; then, after the last. */
void shard_records_found(struct store *store, const struct journal_entry *entry,
                         uint64_t extent_cycle);
void shard_records_recovered(struct store *store);

void shard_records_invariants(const struct store *store);

#endif
