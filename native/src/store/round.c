/* store/round.c: gathered entries go into a round; when it is durable they are executed, in order.
 *
 *     gathered --round_start--> in flight --sync--> persisted (our PrepareOk) --quorum--> committed
 *     --executed--> answered
 *
 * Three rings feed a round: control (checkpoints, abstentions, what is appended again) first, since
 * it makes room; then metadata, then data. Within a ring the order is the order of acceptance. Only
 * control entries may open one of the two reserved extents (J6). */
#include "store/state.h"

static int store_ring_pending(const struct store_ring *ring)
{
    uint64_t position = store_ring_skip(ring, ring->rounded, ring->head);
    if (position == ring->head) return 0;
    return store_ring_at(ring, position)->state == STORE_RECORD_READY;
}

int store_round_pending(const struct store *store)
{
    return store_ring_pending(&store->control) || store_ring_pending(&store->metadata)
           || store_ring_pending(&store->data);
}

static struct journal_mark *store_mark(struct store *store, const struct store_record *record,
                                       struct journal_mark *nobody)
{
    return record->group == UINT32_MAX ? nobody : &store->groups[record->group].mark;
}

/* Take what fits of one ring. 0 = the round is full. */
static int store_round_take(struct store *store, struct store_ring *ring,
                            struct journal_mark *nobody, int spare)
{
    struct journal *journal = &store->journal;
    for (;;) {
        ring->rounded = store_ring_skip(ring, ring->rounded, ring->head);
        if (ring->rounded == ring->head) return 1;
        struct store_record *record = store_ring_at(ring, ring->rounded);
        if (record->state != STORE_RECORD_READY) return 1;
        uint8_t *entry = store_record_entry(record);
        uint32_t size = bytes_get_u32(entry);
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
        int is_prepare = bytes_get_u16(entry + 52) == JOURNAL_PREPARE;
        const uint8_t *checksum = is_prepare ? entry + JOURNAL_ENTRY_HEADER_BYTES : NULL;
        if (!journal_round_add(journal, entry, store_mark(store, record, nobody), checksum))
            return 0;
        record->state = STORE_RECORD_ROUNDED;
        ring->rounded += record->size;
    }
}

/* Start a round if none is in flight and something waits for one. */
void store_round_start(struct store *store)
{
    struct journal *journal = &store->journal;
    if (journal->writing || store->failed != STATUS_OK) return;
    struct journal_mark nobody = {0};
    if (store_round_pending(store)) {
        if (store_round_take(store, &store->control, &nobody, 1)
            && store_round_take(store, &store->metadata, &nobody, 0)) {
            (void)store_round_take(store, &store->data, &nobody, 0);
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

static void store_answer(struct store *store, const struct store_record *record,
                         struct store_outcome *outcome)
{
    if (!record->outcome) return;
    outcome->token = record->token;
    outcome->persisted = 1;
    outcome->replicas = 1;
    assert(store->accepted > 0);
    store->accepted--;
    store_outcome_push(store, outcome);
}

static void store_execute_result(struct store *store, struct store_group *group,
                                 struct store_record *record, uint64_t position,
                                 const struct partition_result *result)
{
    struct store_outcome outcome = {
        .status = result->status,
        .base_offset = result->base_offset,
        .expected = result->expected,
        .record_count = result->record_count,
        .duplicate = result->duplicate,
        .append_time_us = result->append_time_us,
    };
    outcome.group.generation = result->group.generation;
    outcome.group.committed = result->group.committed;
    outcome.group.has_committed = result->group.has_committed;
    outcome.group.closed = result->group.closed;
    switch ((enum partition_op)record->operation) {
    case PARTITION_BATCH:
        if (result->append) {
            store->statistics.produce_batches++;
            store->statistics.produce_bytes += record->batch_bytes;
            store->statistics.produce_records += result->record_count;
            store_batch_queue(store, group, record, position, result);
            store_advance_push(store, group);
            store_meter_appended(store, group);
            store_stored_add(store, group, record->batch_bytes);
            if (result->place.opened) store_retention_touch(store, group);
        } else if (result->duplicate) {
            store->statistics.duplicates++;
        }
        break;
    case PARTITION_COMMIT_OFFSET: outcome.base_offset = result->group.committed; break;
    case PARTITION_IN_FLIGHT: store_advance_push(store, group); break;
    case PARTITION_FREEZE:
    case PARTITION_CLOSE: store_advance_push(store, group); break;
    case PARTITION_METER_CLOSE:
        store_meter_closed(store, group, result->status);
        outcome.status = STATUS_OK;
        outcome.base_offset = group->state.meter.sequence;
        outcome.expected = group->state.meter.acked_here;
        break;
    case PARTITION_EXPIRE_PRODUCERS: group->expire_busy = 0; break;
    case PARTITION_TRIM:
    case PARTITION_SET_HOLD:
        store_retention_executed(store, group, result, (enum partition_op)record->operation,
                                 &outcome);
        break;
    case PARTITION_SEAL:
        store_advance_push(store, group); /* group fetches that wait learn that it is closed */
        store_seal_executed(store, group, result->status);
        break;
    }
    store_answer(store, record, &outcome);
}

void store_execute_prepare(struct store *store, struct store_group *group,
                           struct store_record *record, uint64_t position)
{
    uint8_t *entry = store_record_entry(record);
    struct vsr_prepare prepare;
    int intact = vsr_prepare_decode(entry + JOURNAL_ENTRY_HEADER_BYTES, &prepare);
    assert(intact);
    record->state = STORE_RECORD_DONE;
    uint8_t *body = entry + JOURNAL_ENTRY_HEADER_BYTES + VSR_PREPARE_HEADER_BYTES;
    if (prepare.operation == VSR_OPERATION_METADATA) {
        record->state = STORE_RECORD_EXECUTED;
        return;
    }
    struct partition_result result = {0};
    enum status status =
        partition_apply(&group->state, prepare.op, (enum partition_op)prepare.operation,
                        prepare.append_time_us, body, prepare.payload_bytes, &result);
    if (status != STATUS_OK) {
        /* This replica cannot go on with the group: a newer release wrote the op, or pools are too
         * small. */
        store_fail(store, status);
        return;
    }
    struct vsr_event event = {
        .kind = VSR_EXECUTED, .op = prepare.op, .time_us = prepare.append_time_us};
    memcpy(event.checksum, prepare.checksum, 16);
    struct vsr_update update;
    vsr_step(&group->vsr, &event, &update);
    store_execute_result(store, group, record, position, &result);
}

/* One durable entry. `generation` is of the extent it lies in. */
void store_execute(struct store *store, struct store_ring *ring, uint64_t position,
                   uint64_t generation)
{
    struct store_record *record = store_ring_at(ring, position);
    uint8_t *entry = store_record_entry(record);
    uint32_t size = bytes_get_u32(entry);
    uint16_t kind = bytes_get_u16(entry + 52);
    record->state = STORE_RECORD_DONE;
    int nobody = bytes_get_u64(entry + 16) == STORE_NOBODY;
    if (nobody || kind == JOURNAL_METADATA_FLOOR || kind == JOURNAL_TAIL_CLOSED) {
        store_nobody_pin(store, generation);
        return;
    }
    assert(record->group < store->groups_max);
    struct store_group *group = &store->groups[record->group];
    if (!group->used) return; /* appended again for a group that has gone meanwhile */
    if (kind == JOURNAL_CHECKPOINT && record->operation != STORE_REAPPENDED) {
        if (group == store->metadata_group)
            store_snapshot_executed(store, record);
        else
            store_checkpoint_executed(store, group, record);
        return;
    }
    if (record->operation == STORE_REAPPENDED) return;
    if (group->pin == 0) store_group_pin(store, group, generation);
    switch ((enum journal_entry_kind)kind) {
    case JOURNAL_PREPARE: {
        group->live_bytes += size;
        store->live_bytes += size;
        const struct vsr_event event = {.kind = VSR_PERSISTED, .op = record->op};
        struct vsr_update update;
        vsr_step(&group->vsr, &event, &update);
        assert(update.execute);
        store_execute_prepare(store, group, record, position);
        break;
    }
    case JOURNAL_VIEW_STATE:
        group->live_bytes += size;
        store->live_bytes += size;
        store_view_state_limit(&group->state.config, entry + JOURNAL_ENTRY_HEADER_BYTES);
        break;
    case JOURNAL_FORGET:
        /* From here on the tombstone alone must live. */
        reconcile_forgotten(&group->removal);
        store_group_pin(store, group, generation);
        break;
    case JOURNAL_ABSTAIN: break;
    case JOURNAL_CHECKPOINT:
    case JOURNAL_TAIL_CLOSED:
    case JOURNAL_SUFFIX_INSTALLED:
    case JOURNAL_METADATA_FLOOR: unreachable();
    }
}

static void store_round_execute(struct store *store, struct store_ring *ring)
{
    while (ring->durable < ring->rounded) {
        ring->durable = store_ring_skip(ring, ring->durable, ring->rounded);
        if (ring->durable == ring->rounded) break;
        uint64_t position = ring->durable;
        ring->durable += store_ring_at(ring, position)->size;
        store_execute(store, ring, position, store->journal.generation);
    }
    store_ring_settle(ring);
}

/* The round's sync completed: only now may anything that depends on it leave. */
void store_round_done(struct store *store, enum status status)
{
    if (status != STATUS_OK) {
        store_fail(store, status);
        return;
    }
    journal_round_synced(&store->journal);
    store->round_at_ns = store->now.monotonic_ns;
    store_round_execute(store, &store->control);
    store_round_execute(store, &store->metadata);
    store_round_execute(store, &store->data);
    store_garbage_witnessed(store);
}
