/* store/seal.h: the end of a partition's log (T3): nothing new behind SEAL, then the last window.
 *
 *     store_seal -> SEAL in the ring -> executed -> METER_CLOSE in the ring -> executed -> outcome
 *                             '-- nothing open, or never metered --------------------> outcome
 *
 * The last close can be proposed only when SEAL was applied: what stands before it in the log is
 * part of the window. One seal of a partition is under way at a time; every step is repeatable, so
 * a caller that gets BUSY, or crashes, asks again. Refuses to decide when a topic is deleted. */
#ifndef STORE_SEAL_H
#define STORE_SEAL_H

#include <stdint.h>

#include "foundation/status.h"

struct replica;
struct store;

/* What a replica keeps for it; store/seal.c's alone. */
struct replica_seal {
    uint8_t waits; /* somebody does, for the seal and the last close */
    uint64_t token;
};

void seal_executed(struct store *store, struct replica *replica, enum status status);
/* As far as it goes without waiting. */
void seal_advance(struct store *store, struct replica *replica);

#endif
