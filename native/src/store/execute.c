#include "store/execute.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/accounting/producer_quota.h"
#include "store/accounting/retention.h"
#include "store/accounting/storage_meter.h"
#include "store/accounting/usage_windows.h"
#include "store/files/segment_writer.h"
#include "store/outbox.h"
#include "store/registry.h"
#include "store/seal.h"
#include "store/state.h"

size_t committed_memory_bytes(void)
{
    return arena_size(sizeof(struct committed));
}

struct committed *committed_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct committed));
}

void committed_add(struct committed *committed, uint64_t position)
{
    assert(committed->count < COMMITTED_MAX);
    committed->positions[committed->count++] = position;
}

static void execute_batch(struct store *store, struct replica *replica, struct ring_slot *slot,
                          uint64_t position, const struct partition_result *result)
{
    if (result->append) {
        store->statistics.produce_batches++;
        store->statistics.produce_bytes += slot->batch_bytes;
        store->statistics.produce_records += result->record_count;
        segment_writer_append(store, replica, position, result);
        outbox_advance(store->outbox, replica);
        usage_windows_appended(store, replica);
        storage_meter_add(store, replica, slot->batch_bytes);
        if (result->place.opened) store_retention_touch(store, replica);
    } else if (result->duplicate) {
        store->statistics.duplicates++;
    }
}

/* What the shard does about an operation that its partition has applied. */
static void execute_result(struct store *store, struct replica *replica, struct ring_slot *slot,
                           uint64_t position, const struct partition_result *result)
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
    switch ((enum partition_op)slot->operation) {
    case PARTITION_BATCH: execute_batch(store, replica, slot, position, result); break;
    case PARTITION_COMMIT_OFFSET: outcome.base_offset = result->group.committed; break;
    case PARTITION_IN_FLIGHT: outbox_advance(store->outbox, replica); break;
    case PARTITION_FREEZE:
    case PARTITION_CLOSE: outbox_advance(store->outbox, replica); break;
    case PARTITION_METER_CLOSE:
        usage_windows_closed(store, replica);
        outcome.status = STATUS_OK;
        outcome.base_offset = replica->state.meter.sequence;
        outcome.expected = replica->state.meter.acked_here;
        break;
    case PARTITION_EXPIRE_PRODUCERS: producer_quota_expired(replica); break;
    case PARTITION_CONFIGURE: break;
    case PARTITION_TRIM:
    case PARTITION_SET_HOLD:
        store_retention_executed(store, replica, result, (enum partition_op)slot->operation,
                                 &outcome);
        break;
    case PARTITION_SEAL:
        outbox_advance(store->outbox,
                       replica); /* group fetches that wait learn that it is closed */
        seal_executed(store, replica, result->status);
        break;
    }
    if (!slot->outcome) return;
    outcome.token = slot->token;
    outbox_answer(store->outbox, replica, &outcome);
}

static void execute_prepare(struct store *store, struct replica *replica, struct ring_slot *slot,
                            uint64_t position)
{
    uint8_t *entry = ring_slot_entry(slot);
    struct entry_prepare prepare;
    vsr_prepare_read(entry + JOURNAL_ENTRY_HEADER_BYTES, &prepare);
    assert(prepare.op == slot->op);
    slot->state = RING_SLOT_DONE;
    uint8_t *body = entry + JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES;
    if (prepare.operation == VSR_OPERATION_METADATA) {
        slot->state = RING_SLOT_EXECUTED; /* the host executes it (store/checkpoint/metadata.h) */
        return;
    }
    struct partition_result result = {0};
    enum status status =
        partition_apply(&replica->state, prepare.op, (enum partition_op)prepare.operation,
                        prepare.append_time_us, body, prepare.payload_bytes, &result);
    if (status != STATUS_OK) {
        /* The replica cannot go on: a newer release wrote the op, or pools are too small. */
        store_fail(store, status);
        return;
    }
    struct vsr_event event = {
        .kind = VSR_EXECUTED, .op = prepare.op, .time_us = prepare.append_time_us};
    memcpy(event.checksum, prepare.checksum, 16);
    struct vsr_update update;
    vsr_step(&replica->vsr, &event, &update);
    execute_result(store, replica, slot, position, &result);
}

/* What is executed lies durable in the ring, each slot once, in the order of the log. */
static int committed_invariants(const struct prepare_ring *ring, const struct committed *committed)
{
    assert(committed->count <= COMMITTED_MAX);
    for (uint32_t index = 0; index < committed->count; index++) {
        uint64_t position = committed->positions[index];
        assert(position >= ring->settled);
        assert(position < ring->durable);
        ergo(index > 0, committed->positions[index - (index > 0)] < position);
        assert(prepare_ring_at(ring, position)->state == RING_SLOT_ROUNDED);
    }
    return 1;
}

void execute_committed(struct store *store, struct prepare_ring *ring,
                       const struct committed *committed)
{
    checked(committed_invariants(ring, committed));
    for (uint32_t index = 0; index < committed->count; index++) {
        uint64_t position = committed->positions[index];
        struct ring_slot *slot = prepare_ring_at(ring, position);
        struct replica *replica = registry_at(store, slot->replica);
        if (slot->kind == JOURNAL_PREPARE) {
            execute_prepare(store, replica, slot, position);
            continue;
        }
        assert(slot->kind == JOURNAL_VIEW_STATE);
        slot->state = RING_SLOT_DONE;
    }
}
