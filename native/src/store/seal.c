/* store/seal.c: the end of a partition's log (T3): nothing new behind SEAL, then the last window.
 *
 *     store_seal -> SEAL in the ring -> applied -> METER_CLOSE in the ring -> applied -> outcome
 *                            '-- nothing open, or never metered ------------------> outcome
 *
 * The last close can be proposed only when SEAL was applied: what stands before it in the log is
 * part of the window. One seal of a partition is under way at a time; every step is repeatable, so
 * whoever is told BUSY, or crashes, asks again. Refuses to decide when a topic is deleted. */
#include "store/state.h"

static void store_seal_answer(struct store *store, struct store_group *group, enum status status)
{
    struct store_outcome outcome = {
        .token = group->seal_token, .status = status, .persisted = 1, .replicas = 1};
    assert(group->sealing);
    if (status == STATUS_OK) {
        assert(partition_sealed(&group->state));
        assert(group->state.meter.open_count == 0);
        outcome.sealed.log_end = group->state.next_offset;
        outcome.sealed.meter_sequence = group->state.meter.sequence;
        outcome.sealed.meter_acked = partition_meter_acked(&group->state);
        outcome.sealed.trim_sequence = group->state.retention.sequence;
        outcome.sealed.trim_acked = retention_acked(&group->state.retention);
    }
    group->sealing = 0;
    assert(store->accepted > 0);
    store->accepted--;
    store_outcome_push(store, &outcome);
}

/* As far as it goes without waiting. */
void store_seal_advance(struct store *store, struct store_group *group)
{
    if (!group->sealing || !partition_sealed(&group->state) || group->meter_busy) return;
    if (group->state.meter.open_count == 0) {
        store_seal_answer(store, group, STATUS_OK);
        return;
    }
    enum status status = store_meter_propose(store, group, 1, 0, 0);
    /* Not due though something is open: all closes are unacknowledged. */
    if (status == STATUS_NOT_FOUND) status = STATUS_BUSY;
    if (status != STATUS_OK) store_seal_answer(store, group, status);
}

void store_seal_executed(struct store *store, struct store_group *group, enum status status)
{
    if (!group->sealing) return; /* proposed before the last restart */
    if (status != STATUS_OK)
        store_seal_answer(store, group, status);
    else
        store_seal_advance(store, group);
}

static enum status store_seal_empty(struct store *store, const struct engine_partition_id *id,
                                    uint64_t token)
{
    const struct store_topic *topic = store_topic_find(store, id->topic);
    if (!(topic->flags & ENGINE_TOPIC_CLOSING)) return STATUS_INVALID;
    const struct store_outcome outcome = {
        .token = token, .status = STATUS_OK, .persisted = 1, .replicas = 1};
    store_outcome_push(store, &outcome);
    return STATUS_OK;
}

enum status store_seal(struct store *store, const struct engine_partition_id *id,
                       uint64_t intent_op, uint64_t token)
{
    struct store_group *group;
    if (intent_op == 0) return STATUS_INVALID;
    enum status status = store_group_lookup(store, id, &group);
    if (status != STATUS_OK) return status;
    if (!group) return store_seal_empty(store, id, token);
    if (group->vsr.status == VSR_DAMAGED) {
        store->statistics.refused_damaged++;
        return STATUS_DAMAGED;
    }
    if (group->sealing) return STATUS_BUSY;
    status = store_admit_op(store, PARTITION_SEAL_BYTES);
    if (status != STATUS_OK) return status;
    if (group->state.seal_intent_op != intent_op) {
        const struct partition_seal seal = {.intent_op = intent_op};
        uint8_t body[PARTITION_SEAL_BYTES];
        partition_encode_seal(&seal, body);
        store_prepare_op(store, &store->data, group, PARTITION_SEAL, body, sizeof body, 0, 0);
    }
    group->sealing = 1;
    group->seal_token = token;
    store->accepted++;
    if (group->state.seal_intent_op == intent_op) store_seal_advance(store, group);
    return STATUS_OK;
}
