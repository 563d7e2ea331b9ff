/* store/seal.c: the end of a partition's log (T3): nothing new behind SEAL, then the last window.
 *
 *     store_seal -> SEAL in the ring -> applied -> METER_CLOSE in the ring -> applied -> outcome
 *                            '-- nothing open, or never metered ------------------> outcome
 *
 * The last close can be proposed only when SEAL was applied: what stands before it in the log is
 * part of the window. One seal of a partition is under way at a time; every step is repeatable, so
 * whoever is told BUSY, or crashes, asks again. Refuses to decide when a topic is deleted. */
#include "store/state.h"

static void store_seal_answer(struct store *store, struct replica *replica, enum status status)
{
    struct store_outcome outcome = {.token = replica->seal_token, .status = status};
    assert(replica->sealing);
    if (status == STATUS_OK) {
        assert(partition_sealed(&replica->state));
        assert(replica->state.meter.open_count == 0);
        outcome.sealed.log_end = replica->state.next_offset;
        outcome.sealed.meter_sequence = replica->state.meter.sequence;
        outcome.sealed.meter_acked = partition_meter_acked(&replica->state);
        outcome.sealed.trim_sequence = replica->state.retention.sequence;
        outcome.sealed.trim_acked = retention_acked(&replica->state.retention);
    }
    replica->sealing = 0;
    outbox_answer(store->outbox, replica, &outcome);
}

/* As far as it goes without waiting. */
void store_seal_advance(struct store *store, struct replica *replica)
{
    if (!replica->sealing || !partition_sealed(&replica->state) || replica->meter_busy) return;
    if (replica->state.meter.open_count == 0) {
        store_seal_answer(store, replica, STATUS_OK);
        return;
    }
    enum status status = store_meter_propose(store, replica, 1, 0, 0);
    /* Not due though something is open: all closes are unacknowledged. */
    if (status == STATUS_NOT_FOUND) status = STATUS_BUSY;
    if (status != STATUS_OK) store_seal_answer(store, replica, status);
}

void store_seal_executed(struct store *store, struct replica *replica, enum status status)
{
    if (!replica->sealing) return; /* proposed before the last restart */
    if (status != STATUS_OK)
        store_seal_answer(store, replica, status);
    else
        store_seal_advance(store, replica);
}

static enum status store_seal_empty(struct store *store, const struct engine_partition_id *id,
                                    uint64_t token)
{
    const struct store_topic *topic = store_topic_find(store, id->topic);
    if (!(topic->flags & ENGINE_TOPIC_CLOSING)) return STATUS_INVALID;
    struct store_outcome outcome = {.token = token, .status = STATUS_OK};
    outbox_answer_now(store->outbox, NULL, &outcome);
    return STATUS_OK;
}

enum status store_seal(struct store *store, const struct engine_partition_id *id,
                       uint64_t intent_op, uint64_t token)
{
    struct replica *replica;
    if (intent_op == 0) return STATUS_INVALID;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (!replica) return store_seal_empty(store, id, token);
    if (replica->vsr.status == VSR_DAMAGED) {
        store->statistics.refused_damaged++;
        return STATUS_DAMAGED;
    }
    if (replica->sealing) return STATUS_BUSY;
    status = store_admit_op(store, PARTITION_SEAL_BYTES);
    if (status != STATUS_OK) return status;
    if (replica->state.seal_intent_op != intent_op) {
        const struct partition_seal seal = {.intent_op = intent_op};
        uint8_t body[PARTITION_SEAL_BYTES];
        partition_encode_seal(&seal, body);
        store_prepare_op(store, &store->data, replica, PARTITION_SEAL, body, sizeof body, 0, 0);
    }
    replica->sealing = 1;
    replica->seal_token = token;
    outbox_accept(store->outbox);
    if (replica->state.seal_intent_op == intent_op) store_seal_advance(store, replica);
    return STATUS_OK;
}
