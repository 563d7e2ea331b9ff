/* store/prepare_ring.h: memory of prepares: one copy of each accepted client part, from its
 * acceptance until it is overwritten.
 *
 *     tail ....... settled ......... durable ......... rounded ....... head
 *      | hot tail   | to be written   | in the round    | gathered       |
 *      | evictable  | to segments     | in flight       | for the next   |
 *
 * Positions only grow; a position's place is position mod size. A slot is a 128-byte header of
 * ours and a journal entry, contiguous, so that one copy serves the round, the segment write and
 * fetches. Slots never wrap: a pad fills the end. */
#ifndef STORE_PREPARE_RING_H
#define STORE_PREPARE_RING_H

#include <stddef.h>
#include <stdint.h>

enum { RING_SLOT_HEADER_BYTES = 128, RING_SLOT_ALIGNMENT = 64 };

enum ring_slot_state {
    RING_SLOT_PAD = 1,
    RING_SLOT_RESERVED, /* reserved: may not enter a round yet */
    RING_SLOT_READY,    /* complete: the next round takes it */
    RING_SLOT_ROUNDED,  /* in the round in flight, or durable and not yet executed */
    RING_SLOT_EXECUTED, /* pinned: its bytes go to a segment, or metadata has it */
    RING_SLOT_DONE,
};

struct ring_slot {
    uint32_t size;    /* of the slot, aligned */
    uint32_t replica; /* index; UINT32_MAX = of the whole shard */
    uint8_t state;
    uint8_t outcome; /* 1 = somebody waits for its token */
    uint8_t
        /* before this batch a segment was sealed: its footer lies over the entry's headers */
        sealed;
    uint8_t opened; /* this batch begins a segment */
    uint32_t record_count;
    uint64_t token;
    uint64_t op;
    uint64_t previous; /* batch before it in the same replica: position + 1; 0 = none */
    uint64_t next;     /* batch after it that waits for its segment write; position + 1; 0 = none */
    uint64_t base_offset;
    uint64_t segment;  /* base offset of the segment it goes to */
    uint64_t position; /* in it */
    uint64_t sealed_segment;
    uint64_t sealed_bytes;
    uint32_t batch_bytes; /* stored batch, at the end of the entry */
    uint32_t operation;
    uint32_t entry_bytes;
    uint16_t kind;       /* of the entry: enum journal_entry_kind */
    uint16_t reappended; /* a copy of an older entry: it says nothing new */
    uint64_t spare[3];
};

struct prepare_ring {
    uint8_t *memory;
    uint64_t size;
    uint64_t tail;
    uint64_t settled;
    uint64_t durable;
    uint64_t rounded;
    uint64_t head;
};

void prepare_ring_init(struct prepare_ring *ring, uint8_t *memory, uint64_t size);

/* Would an entry of `entry_size` bytes fit now? */
int prepare_ring_fits(const struct prepare_ring *ring, uint64_t entry_size);

/* Room for an entry of this kind; the caller checked that it fits. Its state is RESERVED. */
struct ring_slot *prepare_ring_reserve(struct prepare_ring *ring, uint16_t kind,
                                       uint32_t entry_bytes, uint64_t *position);

struct ring_slot *prepare_ring_at(const struct prepare_ring *ring, uint64_t position);
uint8_t *ring_slot_entry(struct ring_slot *slot);
/* Behind the entry's header; of a prepare: its own header. */
uint8_t *ring_slot_body(struct ring_slot *slot);
/* Of a prepare: what the operation carries. */
uint8_t *ring_slot_payload(struct ring_slot *slot);

/* Step over pads. */
uint64_t prepare_ring_skip(const struct prepare_ring *ring, uint64_t position, uint64_t end);

/* Let go of what is done at the front. */
void prepare_ring_settle(struct prepare_ring *ring);

void prepare_ring_invariants(const struct prepare_ring *ring);

#endif
