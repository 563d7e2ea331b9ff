#include "store/round.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/files/requests.h"
#include "store/registry.h"
#include "store/state.h"

#define WITNESS_AFTER_NS UINT64_C(20000000) /* not in the way of the next request */

struct rounds {
    struct file_request request; /* of the one in flight */
    uint64_t at_ns;              /* when the last one was durable */
    uint8_t witness_due;         /* the last one had entries */
    uint8_t witness_now;
};

size_t rounds_memory_bytes(void)
{
    return arena_size(sizeof(struct rounds));
}

struct rounds *rounds_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct rounds));
}

static int ring_pending(const struct prepare_ring *ring)
{
    uint64_t position = prepare_ring_skip(ring, ring->rounded, ring->head);
    if (position == ring->head) return 0;
    return prepare_ring_at(ring, position)->state == RING_SLOT_READY;
}

int round_pending(const struct store *store)
{
    return ring_pending(&store->control_ring) || ring_pending(&store->metadata_ring)
           || ring_pending(&store->data_ring);
}

static struct journal_mark *round_mark(struct store *store, const struct ring_slot *slot,
                                       struct journal_mark *unowned)
{
    if (slot->replica == UINT32_MAX) return unowned;
    struct replica *replica = registry_at(store, slot->replica);
    replica->mark.commit = replica->vsr.commit_max;
    return &replica->mark;
}

/* Take what fits of one ring. 0 = the round is full. */
static int round_take(struct store *store, struct prepare_ring *ring, struct journal_mark *unowned,
                      int spare)
{
    struct journal *journal = &store->journal;
    for (;;) {
        ring->rounded = prepare_ring_skip(ring, ring->rounded, ring->head);
        if (ring->rounded == ring->head) return 1;
        struct ring_slot *slot = prepare_ring_at(ring, ring->rounded);
        if (slot->state != RING_SLOT_READY) return 1;
        uint8_t *entry = ring_slot_entry(slot);
        uint32_t size = slot->entry_bytes;
        if (!journal->open) {
            if (!journal_round_begin(journal, size)) return 0;
            if (journal->opens_extent && !spare
                && journal_extents_free(journal) <= JOURNAL_EXTENTS_RESERVED) {
                journal_round_cancel(journal);
                return 0;
            }
        } else if (journal->opens_extent && !spare
                   && journal_extents_free(journal) <= JOURNAL_EXTENTS_RESERVED) {
            return 0;
        }
        if (!journal_round_add(journal, entry, round_mark(store, slot, unowned))) return 0;
        slot->state = RING_SLOT_ROUNDED;
        ring->rounded += slot->size;
    }
}

void round_start(struct store *store)
{
    struct journal *journal = &store->journal;
    if (journal->writing || store->failed != STATUS_OK) return;
    struct journal_mark unowned = {0};
    if (round_pending(store)) {
        if (round_take(store, &store->control_ring, &unowned, 1)
            && round_take(store, &store->metadata_ring, &unowned, 0)) {
            (void)round_take(store, &store->data_ring, &unowned, 0);
        }
    } else if (store->rounds->witness_now) {
        if (!journal_round_begin(journal, 0)) return;
    }
    if (!journal->open) return;

    store->rounds->witness_due = journal->items_count > 0;
    store->rounds->witness_now = 0;
    struct journal_write write;
    journal_round_seal(journal, &write);
    struct io_request *request = &store->rounds->request.request;
    memset(request, 0, sizeof *request);
    request->operation = IO_WRITE_SYNC;
    request->file = STORE_SLOT_JOURNAL;
    request->buffer = write.buffer;
    request->offset = write.offset;
    request->size = write.size;
    request->kind = REQUEST_ROUND;
    store->statistics.rounds++;
    store->statistics.syncs++;
    store->statistics.round_bytes += write.size;
    requests_send(store, &store->rounds->request);
}

void round_synced(struct store *store)
{
    journal_round_synced(&store->journal);
    store->rounds->at_ns = store->now.monotonic_ns;
}

struct ring_slot *round_next(struct prepare_ring *ring, uint64_t *position)
{
    ring->durable = prepare_ring_skip(ring, ring->durable, ring->rounded);
    if (ring->durable == ring->rounded) return NULL;
    *position = ring->durable;
    struct ring_slot *slot = prepare_ring_at(ring, ring->durable);
    assert(slot->state == RING_SLOT_ROUNDED);
    ring->durable += slot->size;
    return slot;
}

int round_has_work(const struct store *store)
{
    return !store->journal.writing && (round_pending(store) || store->rounds->witness_now);
}

void round_want_witness(struct store *store)
{
    store->rounds->witness_now = 1;
}

void round_tick(struct store *store)
{
    struct rounds *rounds = store->rounds;
    int idle = !store->journal.writing && !round_pending(store);
    if (rounds->witness_due && idle && store->now.monotonic_ns - rounds->at_ns >= WITNESS_AFTER_NS)
        rounds->witness_now = 1;
}

void round_recovered(struct store *store)
{
    store->rounds->witness_due = 0;
}

void rounds_invariants(const struct store *store)
{
    const struct prepare_ring *rings[] = {&store->control_ring, &store->metadata_ring,
                                          &store->data_ring};
    for (uint32_t index = 0; index < 3; index++) {
        prepare_ring_invariants(rings[index]);
        const struct prepare_ring *ring = rings[index];
        uint64_t durable = prepare_ring_skip(ring, ring->durable, ring->rounded);
        ergo(!store->journal.writing, durable == ring->rounded);
    }
    assert(!store->journal.open);
}
