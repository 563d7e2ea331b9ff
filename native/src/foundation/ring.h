/* foundation/ring.h: the only place where threads meet.
 *
 * Two bounded rings for one producer and one consumer each, without locks:
 *   struct ring        slots of one fixed size (commands between shards, I/O requests)
 *   struct frame_ring  frames of engine.h end to end (between a shard and the host)
 * A full ring refuses; nothing is overwritten and nothing waits. Who may have several producers
 * serialises them outside.
 *
 * Positions only grow; a position modulo the capacity (a power of two) is the place. The producer
 * publishes with a release store of its position, the consumer with a release store of its own, so
 * bytes are always written before they are seen and read before they are reused. Each side keeps a
 * stale copy of the other's position and refreshes it only when the copy says full or empty: in the
 * steady state the cache lines travel once a batch. */
#ifndef FOUNDATION_RING_H
#define FOUNDATION_RING_H

#include <stddef.h>
#include <stdint.h>

enum { RING_CACHE_LINE = 64 };

struct ring_end {
    uint64_t position;   /* mine, read by the other side */
    uint64_t other_seen; /* the other's, as last read */
    uint8_t padding[48]; /* RING_CACHE_LINE - 16: ends never share a line */
};

struct ring {
    struct ring_end producer;
    struct ring_end consumer;
    uint8_t *slots;
    uint32_t slot_size;
    uint32_t capacity; /* slots, a power of two */
    uint8_t padding[48];
};

/* Memory that ring_init needs at `slots`. */
size_t ring_bytes(uint32_t slot_size, uint32_t capacity);
void ring_init(struct ring *ring, uint8_t *slots, uint32_t slot_size, uint32_t capacity);

/* 1 = taken, 0 = full. */
int ring_push(struct ring *ring, const void *slot);
/* 1 = copied out, 0 = empty. */
int ring_pop(struct ring *ring, void *slot);
/* Slots in use, as the consumer sees them: exact for the consumer, a lower bound of the past for
 * others. */
uint32_t ring_used(const struct ring *ring);

struct engine_frame;

struct frame_ring {
    struct ring_end producer;
    struct ring_end consumer;
    uint8_t *bytes;
    uint64_t capacity; /* bytes, a power of two */
    uint8_t padding[48];
};

void frame_ring_init(struct frame_ring *ring, uint8_t *bytes, uint64_t capacity);

/* Bytes that a frame of `size` takes: padded to a multiple of 8. */
uint64_t frame_padded(uint32_t size);
/* Bytes that a producer may still write. */
uint64_t frame_ring_free(struct frame_ring *ring);
/* 1 = header and body are in; frame->size must be sizeof *frame + body_size + tail_size. 0 = full,
 * nothing written. */
int frame_ring_push(struct frame_ring *ring, const struct engine_frame *frame, const void *body,
                    size_t body_size, const void *tail, size_t tail_size);
/* Copy whole frames from the front into `target`. Returns the bytes; 0 = empty or the first frame
 * does not fit. */
size_t frame_ring_take(struct frame_ring *ring, uint8_t *target, size_t size);
/* 1 = the header of the first frame is in *frame. */
int frame_ring_peek(struct frame_ring *ring, struct engine_frame *frame);

/* 1; checked builds look after every change, from either side. */
int ring_invariants(const struct ring *ring);
int frame_ring_invariants(const struct frame_ring *ring);

#endif
