/* store/round.c: gathered entries go into rounds: one is in flight, the next gathers.
 *
 *     gathered --round_start--> in flight --sync, round_synced--> durable, taken with round_next
 *
 * Owns what enters a round and in which order. Refuses to know what durable entries mean: the turn
 * asks the replicas (store/turn.c).
 *
 * Three rings feed a round: control (checkpoints, abstentions, what is appended again) first, since
 * it makes room; then metadata, then data. Within a ring the order is the order of acceptance. Only
 * control entries may open one of the two reserved extents (J6). */
#include "store/state.h"

static int ring_pending(const struct prepare_ring *ring)
{
    uint64_t position = prepare_ring_skip(ring, ring->rounded, ring->head);
    if (position == ring->head) return 0;
    return prepare_ring_at(ring, position)->state == RING_SLOT_READY;
}

int round_pending(const struct store *store)
{
    return ring_pending(&store->control) || ring_pending(&store->metadata)
           || ring_pending(&store->data);
}

static struct journal_mark *round_mark(struct store *store, const struct ring_slot *slot,
                                       struct journal_mark *nobody)
{
    return slot->replica == UINT32_MAX ? nobody : &store->replicas[slot->replica].mark;
}

/* Take what fits of one ring. 0 = the round is full. */
static int round_take(struct store *store, struct prepare_ring *ring, struct journal_mark *nobody,
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
        if (!journal_round_add(journal, entry, round_mark(store, slot, nobody))) return 0;
        slot->state = RING_SLOT_ROUNDED;
        ring->rounded += slot->size;
    }
}

/* Start a round if none is in flight and something waits for one. */
void round_start(struct store *store)
{
    struct journal *journal = &store->journal;
    if (journal->writing || store->failed != STATUS_OK) return;
    struct journal_mark nobody = {0};
    if (round_pending(store)) {
        if (round_take(store, &store->control, &nobody, 1)
            && round_take(store, &store->metadata, &nobody, 0)) {
            (void)round_take(store, &store->data, &nobody, 0);
        }
    } else if (store->witness_now) {
        if (!journal_round_begin(journal, 0)) return;
    }
    if (!journal->open) return;

    store->witness_due = journal->items_count > 0;
    store->witness_now = 0;
    struct journal_write write;
    journal_round_seal(journal, &write);
    struct io_request *request = &store->round.request;
    memset(request, 0, sizeof *request);
    request->operation = IO_WRITE_SYNC;
    request->file = STORE_SLOT_JOURNAL;
    request->buffer = write.buffer;
    request->offset = write.offset;
    request->size = write.size;
    request->kind = STORE_IO_ROUND;
    store->statistics.rounds++;
    store->statistics.syncs++;
    store->statistics.round_bytes += write.size;
    store_io_send(store, &store->round);
}

void round_synced(struct store *store)
{
    journal_round_synced(&store->journal);
    store->round_at_ns = store->now.monotonic_ns;
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
