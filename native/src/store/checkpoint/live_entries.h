/* store/checkpoint/live_entries.h: which extents of the journal hold entries that are still needed,
 * of whom, and how many bytes of them there are (J6).
 *
 * A replica's pin is the oldest cycle of an extent that may hold a live entry of it. While an
 * extent is given back its replicas either leave (their live entries are appended again) or are
 * released to a checkpoint under way, whose entry will pin them anew. */
#ifndef STORE_CHECKPOINT_LIVE_ENTRIES_H
#define STORE_CHECKPOINT_LIVE_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"

struct arena;
struct live_entries;
struct replica;
struct store;

/* What a replica keeps for it; store/checkpoint/live_entries.c's alone. */
struct replica_live {
    uint64_t pin; /* cycle; 0 = none */
    uint64_t bytes;
    struct queue_link link;
};

size_t live_entries_memory_bytes(uint32_t extents_count);
struct live_entries *live_entries_make(struct arena *arena, uint32_t extents_count);

void live_entries_pin(struct store *store, struct replica *replica, uint64_t extent_cycle);
/* Unless something older pins it. */
void live_entries_pin_first(struct store *store, struct replica *replica, uint64_t extent_cycle);
int live_entries_pinned(const struct replica *replica);

void live_entries_add(struct store *store, struct replica *replica, uint64_t bytes);
/* `before` of its bytes are dead: `bytes` stand for them. */
void live_entries_replace(struct store *store, struct replica *replica, uint64_t before,
                          uint64_t bytes);
/* Up to so many of its bytes are dead. */
void live_entries_drop(struct store *store, struct replica *replica, uint64_t bytes);
uint64_t live_entries_bytes(const struct store *store);
uint64_t live_entries_bytes_of(const struct replica *replica);

/* An extent is given back: a replica that it pins; NULL = none. */
struct replica *live_entries_oldest(const struct store *store, uint64_t extent_cycle);
void live_entries_release(struct store *store, struct replica *replica);
void live_entries_leave(struct store *store, struct replica *replica);
int live_entries_leaves(const struct store *store, const struct replica *replica);
/* One that leaves; NULL = none. */
struct replica *live_entries_leaving(const struct store *store);

/* A start: an entry lies in the extent of this cycle, or does unless an older one does; then,
 * after the last, what of it lives. */
void live_entries_found(struct replica *replica, uint64_t extent_cycle);
void live_entries_found_first(struct replica *replica, uint64_t extent_cycle);
void live_entries_found_oldest(struct replica *replica, uint64_t extent_cycle);
void live_entries_recovered(struct store *store, struct replica *replica);

void live_entries_forget(struct store *store, struct replica *replica);

void live_entries_invariants(const struct store *store);

#endif
