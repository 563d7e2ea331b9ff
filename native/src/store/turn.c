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

#include "store/execute.h"
#include "store/state.h"

/* Live in the extent that the round lies in. */
static void turn_lives(struct store *store, struct replica *replica, const struct ring_slot *slot)
{
    replica->live_bytes += slot->entry_bytes;
    store->live_bytes += slot->entry_bytes;
}

/* What its log says of the replica: ops that this made committed, and what stands between them. */
static void turn_log_durable(struct store *store, struct replica *replica,
                             const struct ring_slot *slot, uint64_t position)
{
    turn_lives(store, replica, slot);
    if (slot->kind == JOURNAL_PREPARE) {
        const struct vsr_event event = {.kind = VSR_PERSISTED, .op = slot->op};
        struct vsr_update update;
        vsr_step(&replica->vsr, &event, &update);
        /* The ring is in order, and of one member: what became durable is what is committed. */
        assert(update.committed.count == 1);
        assert(update.committed.first == slot->op);
    }
    committed_add(&store->committed, position);
}

/* Checkpoints, tombstones and what the journal says of no replica: they are this shard's own. */
static void turn_own_durable(struct store *store, struct replica *replica,
                             const struct ring_slot *slot, uint64_t generation)
{
    switch ((enum journal_entry_kind)slot->kind) {
    case JOURNAL_CHECKPOINT:
        if (replica == store->metadata_replica)
            store_snapshot_durable(store, slot);
        else
            store_checkpoint_durable(store, replica, slot);
        break;
    case JOURNAL_FORGET:
        /* From here on the tombstone alone must live. */
        replica_removal_forgotten(&replica->removal);
        replica_pin(store, replica, generation);
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
    uint64_t generation = store->journal.generation;
    int logged =
        !slot->reappended && (slot->kind == JOURNAL_PREPARE || slot->kind == JOURNAL_VIEW_STATE);
    if (!logged) slot->state = RING_SLOT_DONE;
    if (slot->replica == UINT32_MAX) {
        store_nobody_pin(store, generation);
        return;
    }
    assert(slot->replica < store->replicas_max);
    struct replica *replica = &store->replicas[slot->replica];
    /* A copy says nothing new, and its replica may have gone meanwhile. */
    if (slot->reappended) return;
    assert(replica->used);
    if (replica->pin == 0 && slot->kind != JOURNAL_CHECKPOINT)
        replica_pin(store, replica, generation);
    if (logged)
        turn_log_durable(store, replica, slot, position);
    else
        turn_own_durable(store, replica, slot, generation);
}

static void turn_ring_durable(struct store *store, struct prepare_ring *ring)
{
    struct ring_slot *slot;
    uint64_t position;
    store->committed.count = 0;
    while ((slot = round_next(ring, &position)) != NULL) turn_entry_durable(store, slot, position);
    execute_committed(store, ring, &store->committed);
    prepare_ring_settle(ring);
}

static void turn_round_done(struct store *store, enum status status)
{
    if (status != STATUS_OK) {
        store_fail(store, status);
        return;
    }
    round_synced(store);
    turn_ring_durable(store, &store->control);
    turn_ring_durable(store, &store->metadata);
    turn_ring_durable(store, &store->data);
    store_garbage_witnessed(store);
}

static void store_control_done(struct store *store, const struct store_io *io)
{
    enum status status = io->request.status;
    if (status == STATUS_OK) return;
    if (io->request.operation == IO_UNLINK || io->request.operation == IO_CLOSE)
        return; /* the next start sweeps */
    struct store_file *file = io->file != 0 ? &store->files[io->file - 1] : NULL;
    /* What follows a folder or file that could not be made finds none: all of it again later. */
    int follows = file && status == STATUS_FILE_NOT_FOUND
                  && (file->broken || !store->replicas[io->replica].folder_made);
    if (file) file->broken = 1;
    if (io->request.operation == IO_MKDIR) store->replicas[io->replica].folder_made = 0;
    if (status == STATUS_STORAGE_FULL || follows) {
        store->storage_full = 1;
        store->storage_retry_ns = store->now.monotonic_ns + STORE_RETRY_AFTER_NS;
        return;
    }
    store_fail(store, status);
}

static void store_blob_step_done(struct store *store, const struct store_io *io)
{
    uint32_t which = io->request.file - STORE_SLOT_CHECKPOINT;
    if (io->request.status == STATUS_STORAGE_FULL)
        store->blob_failed[which] = 1; /* what follows finds no open file: all of it again later */
    else if (io->request.status != STATUS_OK && !store->blob_failed[which])
        store_fail(store, io->request.status);
    if (io->request.kind == STORE_IO_BLOB_DONE && store->failed == STATUS_OK)
        store_blob_done(store, io->request.file);
}

void store_complete(struct store *store, struct io_request *request)
{
    if (request->kind == STORE_IO_ROUND) {
        turn_round_done(store, request->status);
        return;
    }
    assert(request->token < STORE_IOS_MAX);
    struct store_io *io = &store->ios[request->token];
    assert(request == &io->request);
    switch ((enum store_io_kind)request->kind) {
    case STORE_IO_CONTROL: store_control_done(store, io); break;
    case STORE_IO_BEGIN:
    case STORE_IO_BATCHES:
    case STORE_IO_FOOTER:
    case STORE_IO_SEAL_SYNC: store_segment_done(store, io); break;
    case STORE_IO_RELEASE_SYNC:
        store->release.syncs--;
        if (io->file != 0) store->files[io->file - 1].users--;
        if (request->status != STATUS_OK) store_fail(store, request->status);
        break;
    case STORE_IO_RELEASE_READ:
        if (request->status != STATUS_OK)
            store_fail(store, request->status);
        else
            store_release_read_done(store);
        break;
    case STORE_IO_BLOB:
    case STORE_IO_BLOB_DONE: store_blob_step_done(store, io); break;
    case STORE_IO_REMOVE: store_removal_done(store, io); break;
    case STORE_IO_TRIM: store_trim_done(store, io); break;
    case STORE_IO_ROUND: unreachable();
    }
    store_io_return(store, io);
}

void turn_completions(struct store *store)
{
    assert(store->recovering);
    while (store->finished_head) {
        struct store_io *io = store->finished_head;
        store->finished_head = io->next;
        if (!store->finished_head) store->finished_tail = NULL;
        store_complete(store, &io->request);
    }
}

void store_tick(struct store *store, struct store_now now)
{
    store->now = now;
    store_clock_tick(store->clock, &now);
    if (store->storage_full && now.monotonic_ns >= store->storage_retry_ns) store->storage_full = 0;
    for (uint32_t which = 0; which < 2; which++) {
        if (!store->blob_retry[which] || store->storage_full) continue;
        store->blob_retry[which] = 0;
        uint8_t *data = which == 0 ? store->blob : store->snapshot.buffer;
        (void)store_blob_write(store, STORE_SLOT_CHECKPOINT + which, store->blob_digest[which],
                               data, store->blob_size[which]);
    }
    store_meter_tick(store);
    store_producers_tick(store);
    store_retention_tick(store);
    int idle = !store->journal.writing && !round_pending(store);
    if (store->witness_due && idle
        && now.monotonic_ns - store->round_at_ns >= STORE_WITNESS_AFTER_NS)
        store->witness_now = 1;
}

void store_flush(struct store *store, struct store_now now)
{
    store->now = now;
    if (store->failed != STATUS_OK) return;
    store_release_step(store);
    store_trims_step(store);
    store_removals_step(store);
    round_start(store);
    store_segments_write(store);
}

int store_idle(const struct store *store)
{
    if (store->journal.writing || store->ios_in_flight > 0 || round_pending(store)) return 0;
    if (!queue_empty(&store->writes) || !store_removals_rest(store) || !store_trims_rest(store))
        return 0;
    return store->release.phase == STORE_RELEASE_IDLE && !store->release.all_after
           && !store_release_due(store);
}

int store_stuck(const struct store *store)
{
    return store->storage_full && store->ios_in_flight == 0 && !store->journal.writing
           && !round_pending(store);
}

int store_work(const struct store *store)
{
    if (store->failed != STATUS_OK) return 0;
    if (!store->journal.writing && (round_pending(store) || store->witness_now)) return 1;
    if (!queue_empty(&store->writes) && !store->storage_full) return 1;
    if (store->release.phase == STORE_RELEASE_IDLE)
        return store->release.all_after || store_release_due(store);
    return store->release.phase == STORE_RELEASE_WITNESS && !store->journal.writing;
}
