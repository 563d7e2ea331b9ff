/* store/admit.c: what callers may ask of a partition: checked, admitted, prepared. Nothing is
 * answered from here that is not already durable, but refusals. */
#include "store/state.h"

/* A refusal that carries data, or a duplicate: an outcome at once. */
static void store_call_answer(struct store *store, const struct replica *replica, uint64_t token,
                              const struct partition_admission *admission)
{
    struct store_outcome outcome = {
        .token = token,
        .status = admission->status,
        .base_offset = admission->base_offset,
        .expected = admission->expected,
        .record_count = admission->record_count,
        .duplicate = admission->duplicate,
        .append_time_us = admission->append_time_us,
    };
    if (admission->status == STATUS_OUT_OF_SEQUENCE) store->statistics.out_of_sequence++;
    if (admission->duplicate) store->statistics.duplicates++;
    outbox_answer_now(store->outbox, replica, &outcome);
}

static int store_call_has_data(const struct partition_admission *admission)
{
    switch (admission->status) {
    case STATUS_ALREADY_COMMITTED:
    case STATUS_OUT_OF_SEQUENCE:
    case STATUS_SESSION_EXPIRED:
    case STATUS_PRODUCER_FENCED: return 1;
    default: return admission->status == STATUS_OK && admission->duplicate;
    }
}

enum status store_produce(struct store *store, const struct store_produce *request)
{
    struct batch_client client;
    enum status status = batch_check_client(request->batch, request->batch_size,
                                            request->message_bytes_max, &client);
    if (status != STATUS_OK) return status;
    struct replica *replica;
    status = registry_open(store, &request->id, &replica);
    if (status != STATUS_OK) return status;
    if (replica->corrupt) return STATUS_CORRUPT;
    const struct store_topic *topic = store_topic_find(store, replica->topic);
    /* Commits, fences, seals, metadata and usage need no more room than the journal has already:
     * they go on, so that groups read and topics can be deleted. */
    if (store->storage_full && !(topic->flags & ENGINE_TOPIC_SYSTEM)) {
        store->statistics.refused_full++;
        return STATUS_STORAGE_FULL;
    }
    status = store_admit_op(store, BATCH_SERVER_HEADER_BYTES + request->batch_size);
    if (status != STATUS_OK) return status;

    replica->state.segment_next = topic->segment_limit;
    replica->state.now_us = store_clock_us(store);
    replica->state.closing = (topic->flags & ENGINE_TOPIC_CLOSING) != 0;
    if (!replica->state.closing) {
        status = store_producers_share(store, replica, &client);
        if (status != STATUS_OK) return status;
    }
    struct partition_admission admission =
        partition_admit_batch(&replica->state, &client, request->principal);
    if (store_call_has_data(&admission)) {
        store_call_answer(store, replica, request->token, &admission);
        return STATUS_OK;
    }
    if (admission.status == STATUS_SEGMENT_POOL_FULL) store_retention_relieve(store);
    if (admission.status != STATUS_OK) return admission.status;
    store_prepare_batch(store, replica, request, &client);
    return STATUS_OK;
}

static enum status store_call_op(struct store *store, const struct engine_partition_id *id,
                                 enum partition_op operation, const uint8_t *body, size_t size,
                                 uint64_t token)
{
    struct replica *replica;
    enum status status = registry_open(store, id, &replica);
    if (status != STATUS_OK) return status;
    status = store_admit_op(store, size);
    if (status != STATUS_OK) return status;
    store_prepare_op(store, &store->data, replica, (uint16_t)operation, body, size, token, 1);
    return STATUS_OK;
}

enum status store_commit_offset(struct store *store, const struct engine_partition_id *id,
                                uint64_t group, uint64_t generation, uint64_t offset,
                                uint64_t token)
{
    const struct partition_commit commit = {
        .group = group, .generation = generation, .offset = offset};
    uint8_t body[PARTITION_COMMIT_BYTES];
    partition_encode_commit(&commit, body);
    return store_call_op(store, id, PARTITION_COMMIT_OFFSET, body, sizeof body, token);
}

enum status store_group_fence(struct store *store, const struct engine_partition_id *id,
                              const struct engine_group_fence *fence, uint64_t token)
{
    const struct partition_fence own = {
        .group = fence->group, .generation = fence->generation, .intent_op = fence->intent_op};
    if (fence->kind != ENGINE_FENCE_FREEZE && fence->kind != ENGINE_FENCE_CLOSE)
        return STATUS_INVALID;
    uint8_t body[PARTITION_FENCE_BYTES];
    partition_encode_fence(&own, body);
    enum partition_op operation =
        fence->kind == ENGINE_FENCE_FREEZE ? PARTITION_FREEZE : PARTITION_CLOSE;
    return store_call_op(store, id, operation, body, sizeof body, token);
}

enum status store_group_state(struct store *store, const struct engine_partition_id *id,
                              uint64_t number, struct engine_group_state *state)
{
    struct replica *replica;
    memset(state, 0, sizeof *state);
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (!replica) return STATUS_OK;
    struct group_state own;
    if (partition_group_state(&replica->state, number, &own) != STATUS_OK) return STATUS_OK;
    state->generation = own.generation;
    state->committed = own.committed;
    state->has_committed = own.has_committed;
    state->closed = own.closed;
    return STATUS_OK;
}

enum status store_describe(struct store *store, const struct engine_partition_id *id,
                           struct engine_partition_state *state)
{
    struct replica *replica;
    memset(state, 0, sizeof *state);
    state->state = 1;
    enum status status = registry_lookup(store, id, &replica);
    if (status == STATUS_DAMAGED) {
        state->state = 3;
        return STATUS_OK;
    }
    if (status != STATUS_OK) return status;
    if (!replica) {
        /* Without operations and closing: as good as sealed, none can come. */
        if (store_topic_find(store, id->topic)->flags & ENGINE_TOPIC_CLOSING) state->state = 4;
        return STATUS_OK;
    }
    state->log_start = replica->state.log_start;
    state->high_watermark = state->log_end = replica->state.next_offset;
    state->bytes = partition_bytes(&replica->state);
    state->cumulative_bytes = replica->state.cumulative_bytes;
    state->held = replica->state.retention.held != 0;
    state->held_from = replica->state.retention.held_from_offset;
    state->hold_intent_op = replica->state.retention.hold_intent_op;
    state->held_bytes = replica->held_bytes;
    const struct segment *oldest = partition_segment(&replica->state, 0);
    if (oldest) {
        state->oldest_us = oldest->min_time_us;
        state->newest_us = replica->state.append_time_us;
    }
    if (replica->expiry_at != 0 && replica->expiry_us > 0) state->expires_us = replica->expiry_us;
    if (partition_sealed(&replica->state)) state->state = 4;
    if (replica->vsr.status == VSR_DAMAGED || replica->corrupt) state->state = 3;
    if (state->state != 3 && replica->unknown_op != 0) state->state = 5;
    return STATUS_OK;
}
