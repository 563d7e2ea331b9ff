/* store/execute.h: committed operations change the state of their partitions, and are answered.
 *
 * The list of what is committed is the only input: which members are durable, and what a quorum is,
 * was decided before (store/turn.c asks vsr/vsr.h). */
#ifndef STORE_EXECUTE_H
#define STORE_EXECUTE_H

#include <stddef.h>
#include <stdint.h>

#include "journal/journal.h"

struct arena;
struct prepare_ring;
struct store;

enum { COMMITTED_MAX = JOURNAL_ROUND_ENTRIES_MAX };

/* Entries of one ring, by position, in the order in which they take effect: operations, and
 * configurations, each of which stands before the first operation under it. */
struct committed {
    uint32_t count;
    uint64_t positions[COMMITTED_MAX];
};

size_t committed_memory_bytes(void);
struct committed *committed_make(struct arena *arena);
void committed_add(struct committed *committed, uint64_t position);
void execute_committed(struct store *store, struct prepare_ring *ring,
                       const struct committed *committed);

#endif
