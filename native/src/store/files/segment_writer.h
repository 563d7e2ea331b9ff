/* store/files/segment_writer.h: executed batches go to segment files, in order, from the ring they
 * lie in (J8).
 *
 * One write of a replica is in flight at a time; what is executed meanwhile is gathered into the
 * next. A batch stays pinned in the ring until its write completed. Sealing writes the footer
 * behind the data and syncs the file; the active segment is synced when a checkpoint needs it.
 * Order within a replica: data, footer of the old segment, its sync, data of the new one. */
#ifndef STORE_FILES_SEGMENT_WRITER_H
#define STORE_FILES_SEGMENT_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"

struct arena;
struct file_request;
struct partition_result;
struct replica;
struct segment_writer;
struct store;

/* What a replica keeps for its segment files; store/files/segment_writer.c's alone. */
struct segment_writes {
    uint8_t busy; /* a write is in flight */
    uint8_t folder_made;
    uint8_t folder_dirty;  /* names in it since the last sync of the folder */
    uint8_t data_dirty;    /* bytes in the active segment since its last sync */
    uint8_t footer_failed; /* the footer before the sync in flight was not written */
    uint64_t newest;       /* batch in the ring: position + 1 */
    uint64_t first;        /* chain of batches to be written: position + 1; 0 = none */
    uint64_t last;
    uint64_t batches_executed;
    uint64_t batches_written;
    uint64_t segment; /* all batches below (segment, position) are in files */
    uint64_t position;
    struct queue_link link;
};

size_t segment_writer_memory_bytes(void);
struct segment_writer *segment_writer_make(struct arena *arena);

/* A batch was executed: it waits for its write. The headers of its entry are spent, a footer may
 * lie over them. */
void segment_writer_append(struct store *store, struct replica *replica, uint64_t position,
                           const struct partition_result *result);
/* One step for each replica that has something to write; what finds no place waits for the next
 * turn. */
void segment_writer_step(struct store *store);
/* One step of the replica that waits longest. 0 = none was possible. */
int segment_writer_step_one(struct store *store);
uint64_t segment_writer_waiting(const struct segment_writer *writer);
void segment_writer_done(struct store *store, struct file_request *done);

/* Syncs of what is dirty, as requests for a checkpoint; each is counted. 0 = not all were sent. */
int segment_writer_sync(struct store *store, struct replica *replica, uint32_t *syncs);

/* Of one replica: */
int segment_writer_busy(const struct replica *replica);
int segment_writer_has_batches(const struct replica *replica);
/* Batches executed so far, and whether so many are in files. */
uint64_t segment_writer_executed(const struct replica *replica);
int segment_writer_has_written(const struct replica *replica, uint64_t batches);
/* The newest batch that may still lie in the ring: position + 1; 0 = none. */
uint64_t segment_writer_newest(const struct replica *replica);
/* How far a segment of `end` bytes may be read. */
uint64_t segment_writer_readable(const struct replica *replica, uint64_t segment, uint64_t end);
/* The lowest segment that something is still to be written to; UINT64_MAX = none. */
uint64_t segment_writer_lowest(const struct store *store, const struct replica *replica);
/* A segment's file goes: no checkpoint syncs it any more, which would make it again. */
void segment_writer_removed(struct replica *replica, uint64_t segment);

/* The replica's folder: it could not be made, or not yet. */
int segment_writer_has_folder(const struct replica *replica);
void segment_writer_lost_folder(struct replica *replica);

/* A start found the folder, and in it the active segment. */
void segment_writer_found_folder(struct replica *replica);
void segment_writer_found(struct replica *replica, uint64_t segment, uint64_t bytes);

/* Drop the waiting batches of a forgotten replica, and give their room back to the ring. */
void segment_writer_discard(struct store *store, struct replica *replica);
void segment_writer_forget(struct store *store, struct replica *replica);

void segment_writer_invariants(const struct store *store);

#endif
