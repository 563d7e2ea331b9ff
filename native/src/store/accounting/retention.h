/* store/accounting/retention.h: what policies, purges and holds propose to a partition's log, and
 * the evidence that trims leave.
 *
 * Replicas with something that will expire lie in a heap by when: a tick looks at its head only. A
 * replica is looked at when a segment begins, when its policy, a hold or an acknowledgement changed
 * something, and when the oldest of its segments comes of age: never because time passes. Nothing
 * is looked at while the clock is not believed (C1, C2).
 *
 * An event is handed out until it is acknowledged, again every five seconds, like a closed window:
 * an acknowledgement lost in a restart costs a repetition, never the evidence. Refuses to remove
 * files: store/files/trim.h does, after the log has decided. */
#ifndef STORE_ACCOUNTING_RETENTION_H
#define STORE_ACCOUNTING_RETENTION_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"
#include "partition/partition.h"

struct arena;
struct replica;
struct store;
struct store_outcome;
struct store_retention;
struct store_topic;

/* What a replica keeps for it; store/accounting/retention.c's alone. */
struct replica_retention {
    uint8_t trim_busy;   /* a TRIM of the policy is in flight */
    int64_t expiry_us;   /* when its policy is looked at */
    uint32_t heap_at;    /* in the heap, index + 1; 0 = not in it */
    uint64_t held_bytes; /* that it would have taken */
    struct queue_link events_link;
    uint64_t events_at_ns;
    uint64_t events_handed;
};

size_t store_retention_memory_bytes(uint32_t replicas_max);
struct store_retention *store_retention_make(struct arena *arena, uint32_t replicas_max);

/* Something changed: its policy is looked at soon. */
void store_retention_touch(struct store *store, struct replica *replica);
/* The topic's policy did. */
void store_retention_policy(struct store *store, const struct store_topic *topic);
void store_retention_tick(struct store *store);
/* No chunk of segments is free: what trims gave back is, once checkpoints have them. */
void store_retention_relieve(struct store *store);

/* A TRIM or SET_HOLD was executed. */
void store_retention_executed(struct store *store, struct replica *replica,
                              const struct partition_result *result, enum partition_op operation,
                              struct store_outcome *outcome);
/* Found by a start: unacknowledged events. */
void store_retention_recovered(struct store *store, struct replica *replica);
void store_retention_forget(struct store *store, struct replica *replica);

/* Of one replica, as of the last look: what its policy would have taken were it not held, and when
 * it is looked at again; 0 = not before an append. */
uint64_t store_retention_held(const struct replica *replica);
int64_t store_retention_expires_us(const struct replica *replica);

void store_retention_invariants(const struct store *store);

#endif
