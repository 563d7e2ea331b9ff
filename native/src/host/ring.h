/* host/ring.h: the shard's side of the two rings between it and the Python host.
 *
 * Nothing waits for the host: what finds the ring full is kept in order in the pool and goes out
 * when there is room. Only ENGINE_OPEN is refused instead (HOST_BUSY), which is what bounds the
 * rest. */
#ifndef HOST_RING_H
#define HOST_RING_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"

struct arena;
struct host;

enum { HOST_RING_BYTES = 16777216 }; /* each way; holds the largest frame */

struct host_body {
    const void *data;
    size_t size;
    const void *tail;
    size_t tail_size;
};

size_t host_ring_memory_bytes(void);
/* 0 = no memory. */
int host_ring_make(struct host *host, struct arena *arena);
int host_ring_invariants(const struct host *host);

/* Size and shard of the frame are filled in. 1 = in the ring; 0 = full or others wait before it. */
int host_try(struct host *host, struct engine_frame *frame, const struct host_body *body);
/* Kept if the ring is full. STATUS_NO_MEMORY: the pool is full, the frame is lost, which the caller
 * answers for. */
enum status host_post(struct host *host, struct engine_frame *frame, const struct host_body *body);
/* A frame that must not be lost: without memory for it the node stops. */
void host_post_surely(struct host *host, struct engine_frame *frame, const struct host_body *body);
/* This shard cannot go on: the host is notified, and the whole node stops. */
void host_fail(struct host *host, enum status status);
/* Everything the host sent. */
void host_receive(struct host *host);
/* The backlog into the room that there is; raise the host's wake if anything was posted. */
void host_flush(struct host *host);
/* 1 = no frame waits for room. */
int host_empty(const struct host *host);
/* 1 = the host sent something. */
int host_arrived(const struct host *host);

/* The answer to a request of the host. */
void host_reply(struct host *host, uint64_t cookie, enum engine_result result, const void *body,
                size_t size);

/* By the host's thread: whole frames from the front into `target`; the bytes. *left: 1 = there are
 * more. */
size_t host_take(struct host *host, uint8_t *target, size_t size, int *left);
/* By one of the host's threads at a time. 0 = the ring is full. */
int host_give(struct host *host, const struct engine_frame *frame, const uint8_t *body);

#endif
