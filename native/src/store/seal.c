#include "store/seal.h"

#include "foundation/assert.h"
#include "store/accounting/usage_windows.h"
#include "store/admit.h"
#include "store/outbox.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/state.h"

static void seal_answer(struct store *store, struct replica *replica, enum status status)
{
    struct store_outcome outcome = {.token = replica->seal.token, .status = status};
    assert(replica->seal.waits);
    if (status == STATUS_OK) {
        assert(partition_sealed(&replica->state));
        assert(replica->state.meter.open_count == 0);
        outcome.sealed.log_end = replica->state.next_offset;
        outcome.sealed.meter_sequence = replica->state.meter.sequence;
        outcome.sealed.meter_acked = partition_meter_acked(&replica->state);
        outcome.sealed.trim_sequence = replica->state.retention.sequence;
        outcome.sealed.trim_acked = retention_acked(&replica->state.retention);
    }
    replica->seal.waits = 0;
    outbox_answer(store->outbox, replica, &outcome);
}

void seal_advance(struct store *store, struct replica *replica)
{
    if (!replica->seal.waits || !partition_sealed(&replica->state) || usage_windows_busy(replica))
        return;
    if (replica->state.meter.open_count == 0) {
        seal_answer(store, replica, STATUS_OK);
        return;
    }
    enum status status = usage_windows_propose(store, replica, 1, 0, 0);
    /* Not due though something is open: all closes are unacknowledged. */
    if (status == STATUS_NOT_FOUND) status = STATUS_BUSY;
    if (status != STATUS_OK) seal_answer(store, replica, status);
}

void seal_executed(struct store *store, struct replica *replica, enum status status)
{
    if (!replica->seal.waits) return; /* proposed before the last restart */
    if (status != STATUS_OK)
        seal_answer(store, replica, status);
    else
        seal_advance(store, replica);
}

static enum status seal_empty(struct store *store, const struct engine_partition_id *id,
                              uint64_t token)
{
    const struct store_topic *topic = registry_topic(store, id->topic);
    if (!(topic->flags & ENGINE_TOPIC_CLOSING)) return STATUS_INVALID;
    enum status status = admit_answer(store);
    if (status != STATUS_OK) return status;
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
    if (!replica) return seal_empty(store, id, token);
    if (replica->vsr.status == VSR_DAMAGED) {
        store->statistics.refused_damaged++;
        return STATUS_DAMAGED;
    }
    if (replica->seal.waits) return STATUS_BUSY;
    status = admit_op(store, PARTITION_SEAL_BYTES);
    if (status != STATUS_OK) return status;
    if (replica->state.seal_intent_op != intent_op) {
        const struct partition_seal seal = {.intent_op = intent_op};
        uint8_t body[PARTITION_SEAL_BYTES];
        partition_encode_seal(&seal, body);
        propose_op(store, replica, PARTITION_SEAL, body, sizeof body, 0, 0);
    }
    replica->seal.waits = 1;
    replica->seal.token = token;
    outbox_accept(store->outbox);
    if (replica->state.seal_intent_op == intent_op) seal_advance(store, replica);
    return STATUS_OK;
}
