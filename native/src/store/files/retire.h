/* store/files/retire.h: partitions whose topic is gone leave the shard: the hands of
 * store/files/replica_removal.h.
 *
 *     topic gone -> doomed replicas wait in a queue -> every flush takes each as far as it goes
 *
 * The tombstone goes through the control ring, which has room when the data ring is full and the
 * disk too: deleting is how a full disk is helped. It is put only when nothing of the replica can
 * come behind it. It stays live, appended again like a stopped replica's entries, until no file is
 * left; a start that finds it goes on.
 *
 * One replica at a time lists and unlinks; one that fails gives the turn to the next. */
#ifndef STORE_FILES_RETIRE_H
#define STORE_FILES_RETIRE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"
#include "foundation/status.h"
#include "store/files/replica_removal.h"

struct arena;
struct file_request;
struct journal_entry;
struct replica;
struct retiring;
struct store;

/* What a replica keeps for it; store/files/retire.c's alone. */
struct replica_retire {
    struct replica_removal removal; /* its phase is NONE while the replica lives */
    struct queue_link link;
};

size_t retire_memory_bytes(void);
struct retiring *retire_make(struct arena *arena);

/* The topic's row is gone, by the tables of metadata op `op`. */
void retire_topic(struct store *store, uint64_t topic, uint64_t op);
/* Every replica that leaves, as far as it goes. */
void retire_step(struct store *store);
void retire_done(struct store *store, const struct file_request *done);
/* All that could move has: what is left waits for its next attempt. */
int retire_rest(const struct store *store);
uint64_t retire_count(const struct retiring *retiring);

/* The tombstone is durable. */
void retire_tombstone_durable(struct replica *replica);
/* A start found it: files may still be there. */
enum status retire_found(struct store *store, const struct journal_entry *entry,
                         uint64_t extent_cycle);

/* Nothing is taken or served any more. */
int retire_leaves(const struct replica *replica);
/* .. and its tombstone is still to come; stands behind all of its entries. */
int retire_waits_for_tombstone(const struct replica *replica);
int retire_has_tombstone(const struct replica *replica);
/* .. and its folder is being emptied. */
int retire_lists(const struct replica *replica);
void retire_forget(struct store *store, struct replica *replica);

void retire_invariants(const struct store *store);

#endif
