/* store/turn.c: the pump's turn: what completed, what became durable, what is committed, what
 * starts next.
 *
 *     round durable --each entry, in order--> vsr_step(PERSISTED) --> committed list
 *                        '-- an entry of this shard alone: it counts from now on
 *     committed list --> execute_committed --> answers
 *
 * Owns the order of these calls; none of them calls another. Nothing that depends on a round leaves
 * before its sync completed (J). */
#include "store/turn.h"

#include "foundation/assert.h"
#include "store/accounting/producer_quota.h"
#include "store/accounting/retention.h"
#include "store/accounting/shard_records.h"
#include "store/accounting/usage_windows.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_file.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/metadata.h"
#include "store/clock.h"
#include "store/execute.h"
#include "store/files/open_files.h"
#include "store/files/requests.h"
#include "store/files/retire.h"
#include "store/files/segment_writer.h"
#include "store/files/trim.h"
#include "store/registry.h"
#include "store/round.h"
#include "store/state.h"

/* What its log says of the replica: ops that this made committed, and what stands between them. */
static void turn_log_durable(struct store *store, struct replica *replica,
                             const struct ring_slot *slot, uint64_t position)
{
    live_entries_add(store, replica, slot->entry_bytes);
    if (slot->kind == JOURNAL_PREPARE) {
        const struct vsr_event event = {.kind = VSR_PERSISTED, .op = slot->op};
        struct vsr_update update;
        vsr_step(&replica->vsr, &event, &update);
        /* The ring is in order, and of one member: what became durable is what is committed. */
        assert(update.committed.count == 1);
        assert(update.committed.first == slot->op);
    }
    committed_add(store->committed, position);
}

/* Checkpoints, tombstones and what the journal says of no replica: they are this shard's own. */
static void turn_own_durable(struct store *store, struct replica *replica,
                             const struct ring_slot *slot, uint64_t extent_cycle)
{
    switch ((enum journal_entry_kind)slot->kind) {
    case JOURNAL_CHECKPOINT:
        if (replica->is_metadata)
            metadata_snapshot_durable(store, slot);
        else
            checkpoint_durable(store, replica, slot);
        break;
    case JOURNAL_FORGET:
        /* From here on the tombstone alone must live. */
        retire_tombstone_durable(replica);
        live_entries_pin(store, replica, extent_cycle);
        break;
    case JOURNAL_ABSTAIN: break;
    case JOURNAL_PREPARE:
    case JOURNAL_VIEW_STATE:
    case JOURNAL_TAIL_CLOSED:
    case JOURNAL_SUFFIX_INSTALLED:
    case JOURNAL_METADATA_FLOOR: unreachable();
    }
}

static void turn_entry_durable(struct store *store, struct ring_slot *slot, uint64_t position)
{
    uint64_t extent_cycle = store->journal.extent_cycle;
    int logged =
        !slot->reappended && (slot->kind == JOURNAL_PREPARE || slot->kind == JOURNAL_VIEW_STATE);
    if (!logged) slot->state = RING_SLOT_DONE;
    if (slot->replica == UINT32_MAX) {
        shard_records_pin(store, extent_cycle);
        return;
    }
    struct replica *replica = registry_at(store, slot->replica);
    /* A copy says nothing new, and its replica may have gone meanwhile. */
    if (slot->reappended) return;
    assert(replica->used);
    if (slot->kind != JOURNAL_CHECKPOINT) live_entries_pin_first(store, replica, extent_cycle);
    if (logged)
        turn_log_durable(store, replica, slot, position);
    else
        turn_own_durable(store, replica, slot, extent_cycle);
}

static void turn_ring_durable(struct store *store, struct prepare_ring *ring)
{
    struct ring_slot *slot;
    uint64_t position;
    store->committed->count = 0;
    while ((slot = round_next(ring, &position)) != NULL) turn_entry_durable(store, slot, position);
    execute_committed(store, ring, store->committed);
    prepare_ring_settle(ring);
}

static void turn_round_done(struct store *store, enum status status)
{
    if (status != STATUS_OK) {
        store_fail(store, status);
        return;
    }
    round_synced(store);
    turn_ring_durable(store, &store->control_ring);
    turn_ring_durable(store, &store->metadata_ring);
    turn_ring_durable(store, &store->data_ring);
    checkpoint_files_witnessed(store);
}

void store_complete(struct store *store, struct io_request *request)
{
    if (request->kind == REQUEST_ROUND) {
        turn_round_done(store, request->status);
        store_invariants(store);
        return;
    }
    struct file_request *done = requests_of(store->requests, request);
    switch ((enum file_request_kind)request->kind) {
    case REQUEST_CONTROL: open_files_done(store, done); break;
    case REQUEST_BEGIN:
    case REQUEST_BATCHES:
    case REQUEST_FOOTER:
    case REQUEST_SEAL_SYNC: segment_writer_done(store, done); break;
    case REQUEST_CHECKPOINT_SYNC: checkpoint_sync_done(store, done); break;
    case REQUEST_CHECKPOINT_READ: checkpoint_read_done(store, done); break;
    case REQUEST_FILE_STEP:
    case REQUEST_FILE_DONE: checkpoint_file_step_done(store, done); break;
    case REQUEST_REMOVE: retire_done(store, done); break;
    case REQUEST_TRIM: trim_done(store, done); break;
    case REQUEST_ROUND: unreachable();
    }
    requests_return(store->requests, done);
    store_invariants(store);
}

void turn_completions(struct store *store)
{
    assert(store->recovering);
    struct file_request *finished;
    while ((finished = requests_finished(store->requests)) != NULL)
        store_complete(store, &finished->request);
}

void store_tick(struct store *store, struct store_now now)
{
    store->now = now;
    store_clock_tick(store->clock, &now);
    requests_tick(store);
    checkpoint_files_tick(store);
    usage_windows_tick(store);
    producer_quota_tick(store);
    store_retention_tick(store);
    round_tick(store);
    store_invariants(store);
}

void store_flush(struct store *store, struct store_now now)
{
    store->now = now;
    if (store->failed != STATUS_OK) return;
    checkpoint_step(store);
    trims_step(store);
    retire_step(store);
    round_start(store);
    segment_writer_step(store);
    store_invariants(store);
}

int store_idle(const struct store *store)
{
    return !store->journal.writing && requests_in_flight(store->requests) == 0
           && !round_pending(store) && segment_writer_waiting(store->segment_writer) == 0
           && retire_rest(store) && trims_rest(store) && checkpoint_rests(store);
}

int store_stuck(const struct store *store)
{
    return requests_disk_is_full(store) && requests_in_flight(store->requests) == 0
           && !store->journal.writing && !round_pending(store);
}

int store_work(const struct store *store)
{
    int writes = segment_writer_waiting(store->segment_writer) > 0 && !requests_disk_is_full(store);
    return store->failed == STATUS_OK
           && (round_has_work(store) || writes || checkpoint_has_work(store));
}
