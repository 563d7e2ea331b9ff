/* store/prepare_ring.c: see store/prepare_ring.h. */
#include "store/prepare_ring.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "journal/entry_bodies.h"
#include "journal/format.h"

static_assert(sizeof(struct store_record) == STORE_RECORD_HEADER_BYTES,
              "a header is two cache lines");
static_assert(STORE_RECORD_HEADER_BYTES % STORE_RECORD_ALIGNMENT == 0, "entries are aligned");

void store_ring_init(struct store_ring *ring, uint8_t *memory, uint64_t size)
{
    assert(size > 0 && size % STORE_RECORD_ALIGNMENT == 0);
    *ring = (struct store_ring){.memory = memory, .size = size};
}

static void store_ring_order(const struct store_ring *ring)
{
    assert(ring->tail <= ring->settled);
    assert(ring->settled <= ring->durable);
    assert(ring->durable <= ring->rounded);
    assert(ring->rounded <= ring->head);
    assert(ring->head - ring->tail <= ring->size);
}

static uint64_t store_ring_need(uint64_t entry_size)
{
    return bytes_round_up(STORE_RECORD_HEADER_BYTES + entry_size, STORE_RECORD_ALIGNMENT);
}

/* What the record takes, the pad before it included. */
static uint64_t store_ring_total(const struct store_ring *ring, uint64_t need)
{
    uint64_t left = ring->size - ring->head % ring->size;
    return left < need ? left + need : need;
}

int store_ring_fits(const struct store_ring *ring, uint64_t entry_size)
{
    uint64_t total = store_ring_total(ring, store_ring_need(entry_size));
    return ring->head + total - ring->settled <= ring->size;
}

struct store_record *store_ring_at(const struct store_ring *ring, uint64_t position)
{
    assert(position < ring->head);
    assert(position >= ring->tail);
    return (struct store_record *)(void *)(ring->memory + position % ring->size);
}

struct store_record *store_ring_reserve(struct store_ring *ring, uint16_t kind,
                                        uint32_t entry_bytes, uint64_t *position)
{
    assert(store_ring_fits(ring, entry_bytes));
    uint64_t need = store_ring_need(entry_bytes);
    uint64_t total = store_ring_total(ring, need);
    uint64_t head = ring->head + total;
    if (head > ring->size && ring->tail < head - ring->size) ring->tail = head - ring->size;
    if (total > need) {
        struct store_record *pad =
            (struct store_record *)(void *)(ring->memory + ring->head % ring->size);
        memset(pad, 0, STORE_RECORD_ALIGNMENT);
        pad->size = (uint32_t)(total - need);
        pad->state = STORE_RECORD_PAD;
    }
    *position = head - need;
    ring->head = head;
    struct store_record *record = store_ring_at(ring, *position);
    memset(record, 0, sizeof *record);
    record->size = (uint32_t)need;
    record->state = STORE_RECORD_HELD;
    record->kind = kind;
    record->entry_bytes = entry_bytes;
    store_ring_order(ring);
    return record;
}

uint8_t *store_record_entry(struct store_record *record)
{
    return (uint8_t *)record + STORE_RECORD_HEADER_BYTES;
}

uint8_t *store_record_body(struct store_record *record)
{
    return store_record_entry(record) + JOURNAL_ENTRY_HEADER_BYTES;
}

uint8_t *store_record_payload(struct store_record *record)
{
    assert(record->kind == JOURNAL_PREPARE);
    return store_record_body(record) + ENTRY_PREPARE_BYTES;
}

uint64_t store_ring_skip(const struct store_ring *ring, uint64_t position, uint64_t end)
{
    while (position < end) {
        const struct store_record *record = store_ring_at(ring, position);
        if (record->state != STORE_RECORD_PAD) break;
        position += record->size;
    }
    return position;
}

void store_ring_settle(struct store_ring *ring)
{
    while (ring->settled < ring->durable) {
        const struct store_record *record = store_ring_at(ring, ring->settled);
        if (record->state != STORE_RECORD_DONE && record->state != STORE_RECORD_PAD) break;
        ring->settled += record->size;
    }
    store_ring_order(ring);
}
