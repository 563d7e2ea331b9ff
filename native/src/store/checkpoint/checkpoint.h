/* store/checkpoint/checkpoint.h: an extent is given back once nothing in it is needed (J6, J7).
 *
 *     collect --> writes --> syncs --> (file) --> round --> collect .. --> read, append again -->
 *     witness --> free
 *
 * collect   replicas whose oldest live entry is in the extent: a checkpoint is encoded into the
 *           control ring, in a reserved slot
 * writes    until all batches that it covers are in segment files
 * syncs     one sync per dirty segment and folder, all in one batch
 * round     the entries become durable
 * read      replicas whose live entries are smaller than a checkpoint, or that must not have one
 *           (damaged; metadata's, whose snapshots come from the host): the extent is read and what
 *           lives is appended with its origin (J5)
 * witness   a later round is durable, which says that the extent is dead: recovery can no longer
 *           lose the entries to a torn tail, nor look for them where they were */
#ifndef STORE_CHECKPOINT_CHECKPOINT_H
#define STORE_CHECKPOINT_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"
#include "journal/entry_bodies.h"

struct arena;
struct checkpoint;
struct file_request;
struct replica;
struct ring_slot;
struct store;

enum { CHECKPOINT_BYTES_MAX = 4194304 /* a partition's, in a file */ };

size_t checkpoint_memory_bytes(void);
struct checkpoint *checkpoint_make(struct arena *arena);

/* As far as possible without waiting. */
void checkpoint_step(struct store *store);
/* None is under way or asked for. */
int checkpoint_rests(const struct store *store);
/* A step would do something now. */
int checkpoint_has_work(const struct store *store);

void checkpoint_sync_done(struct store *store, const struct file_request *done);
void checkpoint_read_done(struct store *store, const struct file_request *done);
void checkpoint_file_durable(struct store *store);
void checkpoint_durable(struct store *store, struct replica *replica, const struct ring_slot *slot);

/* An entry that names a checkpoint of what the replica has executed. */
struct entry_checkpoint checkpoint_entry(const struct replica *replica, int is_file,
                                         uint64_t encoded_bytes, const uint8_t digest[16]);
/* One of those under way is in a file of this name. */
int checkpoint_names_file(const struct store *store, const uint8_t digest[16]);

/* One that is being made: it can still be taken out again; it, or copies of its replica's entries,
 * go to the journal. */
int checkpoint_is_under_way(const struct replica *replica);
int checkpoint_can_withdraw(const struct store *store, const struct replica *replica);
int checkpoint_appends(const struct store *store, const struct replica *replica);
/* The replica's topic is gone: its checkpoint would wait for writes that a full disk refuses, and
 * stand in the way of the tombstone. */
void checkpoint_withdraw(struct store *store, struct replica *replica);

void checkpoint_invariants(const struct store *store);

#endif
