/* store/propose.h: entries are made here, in the memory of a ring, from where rounds, segments and
 * fetches take them.
 *
 * Owns the bytes of what the shard writes into its journal until the round takes them, and that
 * what a log depends on stands in it: its view state, its configuration. Refuses to decide whether
 * there is room: the caller has asked store/admit.h. */
#ifndef STORE_PROPOSE_H
#define STORE_PROPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "journal/entry_bodies.h"
#include "journal/format.h"
#include "segment/segment.h"

struct batch_client;
struct prepare_ring;
struct replica;
struct ring_slot;
struct store;
struct store_produce;

/* An entry of the replica at `op`, with so many bytes behind its header. */
struct journal_entry propose_entry(const struct replica *replica, uint16_t kind, uint64_t op,
                                   uint64_t body_bytes);
/* Its slot, reserved: the caller writes the body, then calls propose_ready. `replica` = NULL: of
 * the whole shard. */
struct ring_slot *propose_begin(struct store *store, struct prepare_ring *ring,
                                const struct replica *replica, const struct journal_entry *entry,
                                uint64_t *position);
void propose_ready(struct ring_slot *slot);

/* The replica's next operation; `waits`: somebody waits for the outcome of `token`. */
void propose_op(struct store *store, struct replica *replica, uint16_t operation,
                const uint8_t *body, size_t size, uint64_t token, int waits);
void propose_batch(struct store *store, struct replica *replica,
                   const struct store_produce *request, const struct batch_client *client);

/* The replica is stopped: every start after this one remembers it (J4). */
void propose_abstention(struct store *store, const struct replica *replica);

#endif
