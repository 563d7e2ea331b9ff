/* store/calls.c: what callers may ask of a partition besides its records: what a consumer group
 * does in its log, and what the shard sees of it.
 *
 * Owns the answers that need no operation. Refuses to decide about groups: the partition does when
 * it applies (partition/partition.h). */
#include <string.h>

#include "foundation/assert.h"
#include "store/accounting/retention.h"
#include "store/admit.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/state.h"

static enum status call_op(struct store *store, const struct engine_partition_id *id,
                           enum partition_op operation, const uint8_t *body, size_t size,
                           uint64_t token)
{
    struct replica *replica;
    enum status status = registry_open(store, id, &replica);
    if (status != STATUS_OK) return status;
    status = admit_op(store, size);
    if (status != STATUS_OK) return status;
    propose_op(store, replica, (uint16_t)operation, body, size, token, 1);
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
    return call_op(store, id, PARTITION_COMMIT_OFFSET, body, sizeof body, token);
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
    return call_op(store, id, operation, body, sizeof body, token);
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
        if (registry_topic(store, id->topic)->flags & ENGINE_TOPIC_CLOSING) state->state = 4;
        return STATUS_OK;
    }
    state->log_start = replica->state.log_start;
    state->high_watermark = state->log_end = replica->state.next_offset;
    state->bytes = partition_bytes(&replica->state);
    state->cumulative_bytes = replica->state.cumulative_bytes;
    state->held = replica->state.retention.held != 0;
    state->held_from = replica->state.retention.held_from_offset;
    state->hold_intent_op = replica->state.retention.hold_intent_op;
    state->held_bytes = store_retention_held(replica);
    const struct segment *oldest = partition_segment(&replica->state, 0);
    if (oldest) {
        state->oldest_us = oldest->min_time_us;
        state->newest_us = replica->state.append_time_us;
    }
    state->expires_us = store_retention_expires_us(replica);
    if (partition_sealed(&replica->state)) state->state = 4;
    if (replica->vsr.status == VSR_DAMAGED || replica->corrupt) state->state = 3;
    if (state->state != 3 && replica->unknown_op != 0) state->state = 5;
    return STATUS_OK;
}
