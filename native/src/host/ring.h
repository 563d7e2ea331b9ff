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

struct shard;

struct host_waiting {
    struct host_waiting *next;
    uint64_t body_size;
    struct engine_frame frame;
};

struct host_body {
    const void *data;
    size_t size;
    const void *tail;
    size_t tail_size;
};

/* Size and shard of the frame are filled in. 1 = in the ring; 0 = full or others wait before it. */
int host_try(struct shard *shard, struct engine_frame *frame, const struct host_body *body);
/* Kept if the ring is full. STATUS_NO_MEMORY: the pool is full, the frame is lost, which the caller
 * answers for. */
enum status host_post(struct shard *shard, struct engine_frame *frame,
                      const struct host_body *body);
/* A frame that must not be lost: without memory for it the node stops. */
void host_post_surely(struct shard *shard, struct engine_frame *frame,
                      const struct host_body *body);
/* This shard cannot go on: the host is told, and the whole node stops. */
void host_fail(struct shard *shard, enum status status);
/* Everything the host sent. */
void host_receive(struct shard *shard);
/* The backlog into the room that there is; raise the host's wake if anything was posted. */
void host_flush(struct shard *shard);
int host_empty(const struct shard *shard);

/* The answer to a request of the host. */
void host_reply(struct shard *shard, uint64_t cookie, enum engine_result result, const void *body,
                size_t size);

#endif
