/* store/files/trim.h: segment files that their log no longer names leave the disk.
 *
 *     NONE -> WAITING -> LISTING -> UNLINKING -> SYNCING -> NONE
 *                ^ '---- a file had to stay, or something failed: later, again ----'
 *
 * A trim is decided in the log; here only follows what it means for files. What to remove is never
 * remembered: the folder is listed, and every segment below the log's first one goes. So it may be
 * done again at any time, and a start that finds a log trimmed ever does.
 *
 * A start begins at the last checkpoint. Sealed segments that this one names may be absent, since
 * the trim behind it tells why; the one that is active in it must be there: replayed batches are
 * appended to it. So that file, and one that batches still wait to be written to, stays until a
 * later checkpoint, which is asked for after a minute. While a checkpoint is being made nothing
 * is unlinked: it is not known yet which of the two a start will find.
 *
 * One replica at a time, removals of store/files/retire.h included: they share the list of
 * names. */
#ifndef STORE_FILES_TRIM_H
#define STORE_FILES_TRIM_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"

struct arena;
struct file_request;
struct replica;
struct store;
struct trims;

enum trim_phase {
    TRIM_NONE = 0,
    TRIM_WAITING,
    TRIM_LISTING,
    TRIM_UNLINKING,
    TRIM_SYNCING,
    TRIM_PHASES_COUNT,
};

/* What a replica keeps for it; store/files/trim.c's alone. */
struct replica_trim {
    uint8_t phase;  /* enum trim_phase */
    uint8_t failed; /* some request of this phase */
    uint8_t again;  /* the log was trimmed since the last list */
    uint8_t kept;   /* a file had to stay for now */
    uint8_t pauses; /* since something last went well */
    uint32_t flights;
    uint64_t retry_ns;
    uint64_t asked_ns; /* when a checkpoint was last asked for */
    struct queue_link link;
};

size_t trims_memory_bytes(void);
struct trims *trims_make(struct arena *arena);

/* The log was trimmed. */
void trim_begin(struct store *store, struct replica *replica);
/* Every replica with files to remove, as far as it goes. */
void trims_step(struct store *store);
void trim_done(struct store *store, const struct file_request *done);
/* All that could go has: what is left waits for a checkpoint or its next attempt. */
int trims_rest(const struct store *store);
uint64_t trims_count(const struct trims *trims);

/* Requests are in flight for it. */
int trim_in_flight(const struct replica *replica);
/* A file waits for a checkpoint that does not name it. */
int trim_kept(const struct replica *replica);
void trim_forget(struct store *store, struct replica *replica);

void trims_invariants(const struct store *store);

#endif
