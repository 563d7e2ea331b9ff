/* store/files/requests.h: I/O requests of the shard that are in flight, and whether its disk has
 * room.
 *
 *     requests_take -> filled -> requests_send -> [carried out] -> store_complete ->
 *     requests_return
 *
 * A start carries each out at once and completes it when it drives the store (turn_completions):
 * nothing is ever completed inside of a send. A disk that was full is asked again after a while;
 * until then writers wait. Owns the requests' memory. Refuses to know what they are for. */
#ifndef STORE_FILES_REQUESTS_H
#define STORE_FILES_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "io/io.h"
#include "segment/segment.h"

struct arena;
struct requests;
struct store;

enum store_slot {
    STORE_SLOT_JOURNAL = 0,
    STORE_SLOT_CHECKPOINT = 1,
    STORE_SLOT_SNAPSHOT = 2,
    STORE_SLOT_FILES = 3, /* segment files from here */
};

enum { REQUESTS_MAX = 512 /* in flight, but the round's */ };

enum file_request_kind {
    REQUEST_ROUND = 1,
    REQUEST_CONTROL, /* open, close, mkdir, truncate, unlink */
    REQUEST_BEGIN,   /* an empty file for a segment */
    REQUEST_BATCHES,
    REQUEST_FOOTER,
    REQUEST_SEAL_SYNC,
    REQUEST_CHECKPOINT_SYNC,
    REQUEST_CHECKPOINT_READ,
    REQUEST_FILE_STEP, /* all but the last request of a checkpoint file */
    REQUEST_FILE_DONE,
    REQUEST_REMOVE, /* files and folder of a replica whose topic is gone */
    REQUEST_TRIM,   /* segment files of a replica that lives */
};

struct file_request {
    struct io_request request;
    struct file_request *next; /* in the free list, or of those that finished */
    uint32_t replica;
    uint32_t file;    /* of files/open_files.h; 0 = none */
    uint32_t batches; /* of a segment write */
    uint8_t footer[SEGMENT_FOOTER_BYTES];
};

size_t requests_memory_bytes(void);
struct requests *requests_make(struct arena *arena);

/* NULL = none is free: later. */
struct file_request *requests_take(struct requests *requests, enum file_request_kind kind,
                                   enum io_operation operation);
void requests_return(struct requests *requests, struct file_request *request);
void requests_send(struct store *store, struct file_request *request);
/* A start carried it out; NULL = none is left. */
struct file_request *requests_finished(struct requests *requests);
/* The one that a completion is of. */
struct file_request *requests_of(struct requests *requests, struct io_request *request);

int requests_fit(const struct requests *requests, uint32_t count);
uint32_t requests_in_flight(const struct requests *requests);

/* Recovery only: carried out now, answered in the request. */
enum status requests_perform(struct store *store, struct io_request *request);

/* The disk said that it is full. */
void requests_disk_full(struct store *store);
int requests_disk_is_full(const struct store *store);
void requests_tick(struct store *store);

void requests_invariants(const struct requests *requests);

#endif
