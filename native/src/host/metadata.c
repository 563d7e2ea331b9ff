#include "host/metadata.h"

#include <string.h>

#include "foundation/assert.h"
#include "host/node.h"
#include "host/ring.h"
#include "shard/shard.h"

static void fail(struct shard *shard, enum status status)
{
    host_fail(shard, status);
}

void host_metadata_start(struct shard *shard)
{
    struct metadata_host *metadata = &shard->metadata;
    assert(shard->index == 0);
    assert(metadata->phase == METADATA_NONE);
    const uint8_t *snapshot = NULL;
    size_t size = 0;
    uint64_t op = 0;
    store_metadata_recovery(shard->store, &op, &snapshot, &size, &metadata->last_recovered_op);
    if (size > ENGINE_FRAME_SIZE_MAX - sizeof(struct engine_frame)) {
        fail(shard, STATUS_CHECKPOINT_DAMAGED);
        return;
    }
    metadata->phase = METADATA_RESTORING;
    metadata->op = op;
    metadata->snapshot_bytes = size;
    struct engine_frame frame = {.kind = ENGINE_METADATA_RESTORE, .arg0 = op};
    struct host_body body = {.data = snapshot, .size = size};
    host_post_surely(shard, &frame, &body);
}

static enum status tables_take(struct shard *shard, uint64_t op, const uint8_t *delta, size_t size)
{
    enum status status = tables_apply(&shard->tables, delta, size);
    if (status != STATUS_OK) return status;
    return store_tables_apply(shard->store, op, delta, size);
}

void host_metadata_tables(struct shard *shard, const struct shard_frame *frame)
{
    const struct frame_tables *tables = &frame->tables;
    enum status status = tables_take(shard, tables->op, tables->delta, (size_t)tables->size);
    if (status != STATUS_OK) fail(shard, status);
    struct shard_frame answer = {.kind = FRAME_TABLES_DONE, .token = frame->token};
    queues_post(shard, &answer, frame->source, QUEUE_REPLY);
}

/* All shards have it. */
static void spread_done(struct shard *shard)
{
    struct metadata_host *metadata = &shard->metadata;
    assert(metadata->phase == METADATA_SPREADING);
    enum status status = STATUS_OK;
    if (!metadata->restoring) {
        status = store_metadata_applied(shard->store, metadata->op, metadata->result,
                                        metadata->result_size);
    }
    buffer_give(&shard->pool, metadata->result);
    buffer_give(&shard->pool, metadata->delta);
    metadata->result = NULL;
    metadata->delta = NULL;
    metadata->restoring = 0;
    metadata->applied_op = metadata->op;
    metadata->phase = METADATA_IDLE;
    if (status != STATUS_OK) fail(shard, status);
}

void host_metadata_spread(struct shard *shard)
{
    struct metadata_host *metadata = &shard->metadata;
    assert(metadata->acks_missing > 0);
    metadata->acks_missing--;
    if (metadata->acks_missing == 0) spread_done(shard);
}

static void spread(struct shard *shard, const uint8_t *delta, size_t size)
{
    struct metadata_host *metadata = &shard->metadata;
    metadata->phase = METADATA_SPREADING;
    enum status status = tables_take(shard, metadata->op, delta, size);
    if (status != STATUS_OK) {
        fail(shard, status);
        return;
    }
    if (size == 0 || shard->shards_count == 1) {
        spread_done(shard);
        return;
    }
    metadata->delta = buffer_take(&shard->pool, size);
    if (metadata->delta == NULL) {
        fail(shard, STATUS_NO_MEMORY);
        return;
    }
    memcpy(metadata->delta, delta, size);
    metadata->acks_missing = (uint16_t)(shard->shards_count - 1);
    for (uint16_t target = 1; target < shard->shards_count; target++) {
        struct shard_frame frame = {
            .kind = FRAME_TABLES,
            .tables = {.op = metadata->op, .delta = metadata->delta, .size = size},
        };
        queues_post(shard, &frame, target, QUEUE_MAIN);
    }
}

static void applied(struct shard *shard, const struct engine_frame *frame, const uint8_t *body,
                    size_t size)
{
    struct metadata_host *metadata = &shard->metadata;
    uint64_t result_size = frame->arg1;
    uint64_t padded = (result_size + 7) & ~(uint64_t)7;
    if (metadata->phase != METADATA_APPLYING || frame->arg0 != metadata->op || result_size > size) {
        fail(shard, STATUS_INVALID);
        return;
    }
    if (padded > size) padded = size;
    metadata->result_size = (size_t)result_size;
    metadata->result = buffer_take(&shard->pool, (size_t)result_size);
    if (metadata->result == NULL) {
        fail(shard, STATUS_NO_MEMORY);
        return;
    }
    memcpy(metadata->result, body, (size_t)result_size);
    spread(shard, body + padded, size - (size_t)padded);
}

static void submit(struct shard *shard, const struct engine_frame *frame, const uint8_t *body,
                   size_t size)
{
    struct pending values = {.kind = PENDING_HOST, .number = frame->arg0, .host_kind = frame->kind};
    uint64_t token = pending_take(shard, &values);
    enum status status = STATUS_BUSY;
    if (token != 0) {
        status = store_metadata_submit(shard->store, body, size, token);
        if (status == STATUS_OK) return;
        pending_give(shard, pending_find(shard, token));
    }
    host_reply(shard, frame->arg0, node_result(status), NULL, 0);
}

void host_metadata_frame(struct shard *shard, const struct engine_frame *frame, const uint8_t *body,
                         size_t size)
{
    struct metadata_host *metadata = &shard->metadata;
    assert(shard->index == 0);
    switch (frame->kind) {
    case ENGINE_METADATA_SUBMIT: submit(shard, frame, body, size); return;
    case ENGINE_METADATA_APPLIED: applied(shard, frame, body, size); return;
    case ENGINE_METADATA_RESTORED:
        if (metadata->phase != METADATA_RESTORING || frame->arg0 != metadata->op) {
            fail(shard, STATUS_INVALID);
            return;
        }
        metadata->restoring = 1;
        spread(shard, body, size);
        return;
    case ENGINE_METADATA_SNAPSHOT_IS: {
        if (metadata->phase != METADATA_SNAPSHOTTING || frame->arg0 != metadata->op) {
            fail(shard, STATUS_INVALID);
            return;
        }
        metadata->phase = METADATA_IDLE;
        if (size > 0) metadata->snapshot_bytes = size;
        /* A snapshot that cannot be stored now is asked for again; the ops it would cover are still
         * there. */
        if (store_metadata_snapshot(shard->store, frame->arg0, body, size) != STATUS_OK) {
            metadata->snapshots_refused++;
            metadata->snapshot_retry_ns =
                shard->now.monotonic_ns + shard->limits.snapshot_retry_ms * UINT64_C(1000000);
        }
        return;
    }
    default: unreachable();
    }
}

static void ready(struct shard *shard)
{
    struct metadata_host *metadata = &shard->metadata;
    store_metadata_recovered(shard->store);
    store_tables_complete(shard->store, metadata->applied_op);
    metadata->ready = 1;
    shard->ready = 1;
    grpc_server_ready(shard->grpc);
    for (uint16_t target = 1; target < shard->shards_count; target++) {
        struct shard_frame frame = {.kind = FRAME_READY, .token = metadata->applied_op};
        queues_post(shard, &frame, target, QUEUE_MAIN);
    }
    struct engine_frame frame = {.kind = ENGINE_METADATA_READY,
                                 .arg0 = metadata->last_recovered_op};
    host_post_surely(shard, &frame, NULL);
}

void host_metadata_pump(struct shard *shard)
{
    struct metadata_host *metadata = &shard->metadata;
    if (metadata->phase != METADATA_IDLE) return;
    if (!metadata->ready && metadata->applied_op >= metadata->last_recovered_op) ready(shard);
    uint64_t op = 0;
    /* Between two ops the host's machine is exactly at the last one: the only moment for its
     * snapshot. */
    int may_ask = metadata->ready && shard->now.monotonic_ns >= metadata->snapshot_retry_ns;
    if (may_ask && store_metadata_snapshot_due(shard->store, &op) && op == metadata->applied_op) {
        metadata->phase = METADATA_SNAPSHOTTING;
        metadata->op = op;
        struct engine_frame frame = {.kind = ENGINE_METADATA_SNAPSHOT, .arg0 = op};
        host_post_surely(shard, &frame, NULL);
        return;
    }
    int64_t append_time_us = 0;
    const uint8_t *command = NULL;
    size_t size = 0;
    if (!store_metadata_next(shard->store, &op, &append_time_us, &command, &size)) return;
    metadata->phase = METADATA_APPLYING;
    metadata->op = op;
    struct engine_frame frame = {
        .kind = ENGINE_METADATA_APPLY, .arg0 = op, .arg1 = (uint64_t)append_time_us};
    struct host_body body = {.data = command, .size = size};
    host_post_surely(shard, &frame, &body);
}
