/* store/prepare_ring.c: see store/prepare_ring.h. */
#include "store/prepare_ring.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "journal/entry_bodies.h"
#include "journal/format.h"

static_assert(sizeof(struct ring_slot) == RING_SLOT_HEADER_BYTES, "a header is two cache lines");
static_assert(RING_SLOT_HEADER_BYTES % RING_SLOT_ALIGNMENT == 0, "entries are aligned");

void prepare_ring_init(struct prepare_ring *ring, uint8_t *memory, uint64_t size)
{
    assert(size > 0 && size % RING_SLOT_ALIGNMENT == 0);
    *ring = (struct prepare_ring){.memory = memory, .size = size};
}

void prepare_ring_invariants(const struct prepare_ring *ring)
{
    assert(ring->tail <= ring->settled);
    assert(ring->settled <= ring->durable);
    assert(ring->durable <= ring->rounded);
    assert(ring->rounded <= ring->head);
    assert(ring->head - ring->tail <= ring->size);
}

static uint64_t prepare_ring_need(uint64_t entry_size)
{
    return bytes_round_up(RING_SLOT_HEADER_BYTES + entry_size, RING_SLOT_ALIGNMENT);
}

/* What the slot takes, the pad before it included. */
static uint64_t prepare_ring_total(const struct prepare_ring *ring, uint64_t need)
{
    uint64_t left = ring->size - ring->head % ring->size;
    return left < need ? left + need : need;
}

int prepare_ring_fits(const struct prepare_ring *ring, uint64_t entry_size)
{
    uint64_t total = prepare_ring_total(ring, prepare_ring_need(entry_size));
    return ring->head + total - ring->settled <= ring->size;
}

struct ring_slot *prepare_ring_at(const struct prepare_ring *ring, uint64_t position)
{
    assert(position < ring->head);
    assert(position >= ring->tail);
    return (struct ring_slot *)(void *)(ring->memory + position % ring->size);
}

struct ring_slot *prepare_ring_reserve(struct prepare_ring *ring, uint16_t kind,
                                       uint32_t entry_bytes, uint64_t *position)
{
    assert(prepare_ring_fits(ring, entry_bytes));
    uint64_t need = prepare_ring_need(entry_bytes);
    uint64_t total = prepare_ring_total(ring, need);
    uint64_t head = ring->head + total;
    if (head > ring->size && ring->tail < head - ring->size) ring->tail = head - ring->size;
    if (total > need) {
        struct ring_slot *pad =
            (struct ring_slot *)(void *)(ring->memory + ring->head % ring->size);
        memset(pad, 0, RING_SLOT_ALIGNMENT);
        pad->size = (uint32_t)(total - need);
        pad->state = RING_SLOT_PAD;
    }
    *position = head - need;
    ring->head = head;
    struct ring_slot *slot = prepare_ring_at(ring, *position);
    memset(slot, 0, sizeof *slot);
    slot->size = (uint32_t)need;
    slot->state = RING_SLOT_RESERVED;
    slot->kind = kind;
    slot->entry_bytes = entry_bytes;
    prepare_ring_invariants(ring);
    return slot;
}

uint8_t *ring_slot_entry(struct ring_slot *slot)
{
    return (uint8_t *)slot + RING_SLOT_HEADER_BYTES;
}

uint8_t *ring_slot_body(struct ring_slot *slot)
{
    return ring_slot_entry(slot) + JOURNAL_ENTRY_HEADER_BYTES;
}

uint8_t *ring_slot_payload(struct ring_slot *slot)
{
    assert(slot->kind == JOURNAL_PREPARE);
    return ring_slot_body(slot) + ENTRY_PREPARE_BYTES;
}

uint64_t prepare_ring_skip(const struct prepare_ring *ring, uint64_t position, uint64_t end)
{
    while (position < end) {
        const struct ring_slot *slot = prepare_ring_at(ring, position);
        if (slot->state != RING_SLOT_PAD) break;
        position += slot->size;
    }
    return position;
}

void prepare_ring_settle(struct prepare_ring *ring)
{
    while (ring->settled < ring->durable) {
        const struct ring_slot *slot = prepare_ring_at(ring, ring->settled);
        if (slot->state != RING_SLOT_DONE && slot->state != RING_SLOT_PAD) break;
        ring->settled += slot->size;
    }
    prepare_ring_invariants(ring);
}
