#include "foundation/ring.h"

#include <string.h>

#include "engine.h"
#include "foundation/assert.h"

_Static_assert(sizeof(struct ring_end) == RING_CACHE_LINE,
               "the two ends must not share a cache line");
_Static_assert(sizeof(struct engine_frame) == ENGINE_FRAME_HEADER_SIZE,
               "a frame's header is 32 bytes");

enum { FRAME_ALIGNMENT = 8 };

static uint64_t position_acquire(const struct ring_end *end)
{
    return __atomic_load_n(&end->position, __ATOMIC_ACQUIRE);
}

static void position_release(struct ring_end *end, uint64_t position)
{
    __atomic_store_n(&end->position, position, __ATOMIC_RELEASE);
}

size_t ring_bytes(uint32_t slot_size, uint32_t capacity)
{
    return (size_t)slot_size * capacity;
}

void ring_init(struct ring *ring, uint8_t *slots, uint32_t slot_size, uint32_t capacity)
{
    assert(slots != NULL);
    assert(slot_size > 0);
    assert(capacity > 0);
    assert((capacity & (capacity - 1)) == 0);
    *ring = (struct ring){.slots = slots, .slot_size = slot_size, .capacity = capacity};
}

int ring_push(struct ring *ring, const void *slot)
{
    uint64_t position = ring->producer.position;
    if (position - ring->producer.other_seen == ring->capacity) {
        ring->producer.other_seen = position_acquire(&ring->consumer);
        if (position - ring->producer.other_seen == ring->capacity) return 0;
    }
    assert(position - ring->producer.other_seen < ring->capacity);
    size_t place = (size_t)(position & (ring->capacity - 1)) * ring->slot_size;
    memcpy(ring->slots + place, slot, ring->slot_size);
    position_release(&ring->producer, position + 1);
    checked(ring_invariants(ring));
    return 1;
}

int ring_pop(struct ring *ring, void *slot)
{
    uint64_t position = ring->consumer.position;
    if (position == ring->consumer.other_seen) {
        ring->consumer.other_seen = position_acquire(&ring->producer);
        if (position == ring->consumer.other_seen) return 0;
    }
    assert(position < ring->consumer.other_seen);
    size_t place = (size_t)(position & (ring->capacity - 1)) * ring->slot_size;
    memcpy(slot, ring->slots + place, ring->slot_size);
    position_release(&ring->consumer, position + 1);
    checked(ring_invariants(ring));
    return 1;
}

uint32_t ring_used(const struct ring *ring)
{
    uint64_t consumed = position_acquire(&ring->consumer);
    uint64_t produced = position_acquire(&ring->producer);
    assert(produced - consumed <= ring->capacity);
    return (uint32_t)(produced - consumed);
}

void frame_ring_init(struct frame_ring *ring, uint8_t *bytes, uint64_t capacity)
{
    assert(bytes != NULL);
    assert(capacity >= FRAME_ALIGNMENT);
    assert((capacity & (capacity - 1)) == 0);
    *ring = (struct frame_ring){.bytes = bytes, .capacity = capacity};
}

uint64_t frame_padded(uint32_t size)
{
    return ((uint64_t)size + FRAME_ALIGNMENT - 1) & ~(uint64_t)(FRAME_ALIGNMENT - 1);
}

uint64_t frame_ring_free(struct frame_ring *ring)
{
    ring->producer.other_seen = position_acquire(&ring->consumer);
    uint64_t used = ring->producer.position - ring->producer.other_seen;
    assert(used <= ring->capacity);
    return ring->capacity - used;
}

/* Copy into the ring at a position, around its end if need be. */
static void frame_ring_write(struct frame_ring *ring, uint64_t position, const void *source,
                             size_t size)
{
    if (size == 0) return;
    uint64_t place = position & (ring->capacity - 1);
    size_t first = size;
    if (place + size > ring->capacity) first = (size_t)(ring->capacity - place);
    memcpy(ring->bytes + place, source, first);
    if (first < size) memcpy(ring->bytes, (const uint8_t *)source + first, size - first);
}

static void frame_ring_read(const struct frame_ring *ring, uint64_t position, void *target,
                            size_t size)
{
    uint64_t place = position & (ring->capacity - 1);
    size_t first = size;
    if (place + size > ring->capacity) first = (size_t)(ring->capacity - place);
    memcpy(target, ring->bytes + place, first);
    if (first < size) memcpy((uint8_t *)target + first, ring->bytes, size - first);
}

int frame_ring_push(struct frame_ring *ring, const struct engine_frame *frame, const void *body,
                    size_t body_size, const void *tail, size_t tail_size)
{
    assert(frame->size == sizeof *frame + body_size + tail_size);
    assert(frame->size <= ENGINE_FRAME_SIZE_MAX);

    uint64_t padded = frame_padded(frame->size);
    uint64_t position = ring->producer.position;
    if (ring->capacity - (position - ring->producer.other_seen) < padded) {
        if (frame_ring_free(ring) < padded) return 0;
    }
    static const uint8_t zeros[FRAME_ALIGNMENT];
    uint64_t at = position;
    frame_ring_write(ring, at, frame, sizeof *frame);
    at += sizeof *frame;
    frame_ring_write(ring, at, body, body_size);
    at += body_size;
    frame_ring_write(ring, at, tail, tail_size);
    at += tail_size;
    frame_ring_write(ring, at, zeros, (size_t)(position + padded - at));
    position_release(&ring->producer, position + padded);
    checked(frame_ring_invariants(ring));
    return 1;
}

int frame_ring_peek(struct frame_ring *ring, struct engine_frame *frame)
{
    uint64_t position = ring->consumer.position;
    if (position == ring->consumer.other_seen) {
        ring->consumer.other_seen = position_acquire(&ring->producer);
        if (position == ring->consumer.other_seen) return 0;
    }
    frame_ring_read(ring, position, frame, sizeof *frame);
    assert(frame->size >= sizeof *frame);
    assert(position + frame_padded(frame->size) <= ring->consumer.other_seen);
    return 1;
}

size_t frame_ring_take(struct frame_ring *ring, uint8_t *target, size_t size)
{
    size_t taken = 0;
    uint64_t position = ring->consumer.position;
    struct engine_frame frame;
    while (frame_ring_peek(ring, &frame)) {
        uint64_t padded = frame_padded(frame.size);
        if (padded > size - taken) break;
        frame_ring_read(ring, position, target + taken, (size_t)padded);
        taken += (size_t)padded;
        position += padded;
        /* Positions are published once a frame: a producer that waits for room sees it at once. */
        position_release(&ring->consumer, position);
    }
    checked(frame_ring_invariants(ring));
    return taken;
}

static int ends_invariants(const struct ring_end *producer, const struct ring_end *consumer,
                           uint64_t capacity)
{
    /* Each side reads the other's position before its own can pass it. */
    uint64_t consumed = position_acquire(consumer);
    uint64_t produced = position_acquire(producer);
    assert(capacity > 0 && (capacity & (capacity - 1)) == 0);
    assert(consumed <= produced);
    return 1;
}

int ring_invariants(const struct ring *ring)
{
    assert(ring->slots != NULL && ring->slot_size > 0);
    return ends_invariants(&ring->producer, &ring->consumer, ring->capacity);
}

int frame_ring_invariants(const struct frame_ring *ring)
{
    assert(ring->bytes != NULL);
    assert(position_acquire(&ring->consumer) % FRAME_ALIGNMENT == 0);
    assert(position_acquire(&ring->producer) % FRAME_ALIGNMENT == 0);
    return ends_invariants(&ring->producer, &ring->consumer, ring->capacity);
}
