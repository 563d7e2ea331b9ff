/* store/round.h: gathered entries go into rounds: one is in flight, the next gathers.
 *
 *     gathered --round_start--> in flight --sync, round_synced--> durable, taken with round_next
 *
 * Owns what enters a round and in which order. Refuses to know what durable entries mean: the turn
 * asks the replicas (store/turn.c).
 *
 * Three rings feed a round: control (checkpoints, abstentions, what is appended again) first, since
 * it makes room; then metadata, then data. Within a ring the order is the order of acceptance. Only
 * control entries may open one of the two reserved extents (J6). */
#ifndef STORE_ROUND_H
#define STORE_ROUND_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct file_request;
struct prepare_ring;
struct ring_slot;
struct rounds;
struct store;

size_t rounds_memory_bytes(void);
struct rounds *rounds_make(struct arena *arena);

/* Start a round if none is in flight and something waits for one. */
void round_start(struct store *store);
/* Something is gathered; a start would do something now. */
int round_pending(const struct store *store);
int round_has_work(const struct store *store);
/* The next round goes even if nothing is gathered: it says what is durable. */
void round_want_witness(struct store *store);
/* An idle shard's witness round, a while after the last one with entries. */
void round_tick(struct store *store);

/* The round in flight is durable; then its entries, one by one: NULL = none of the ring is left. */
void round_synced(struct store *store);
struct ring_slot *round_next(struct prepare_ring *ring, uint64_t *position);

/* A start has written its own. */
void round_recovered(struct store *store);

void rounds_invariants(const struct store *store);

#endif
