#include "host/metadata.h"

#include <string.h>

#include "foundation/assert.h"
#include "host/node.h"
#include "host/ring.h"
#include "host/state.h"
#include "service/pendings.h"
#include "service/service.h"
#include "service/shard_queues.h"

static void fail(struct host *host, enum status status)
{
    host_fail(host, status);
}

void host_metadata_start(struct host *host)
{
    struct metadata_host *metadata = &host->metadata;
    assert(host->index == 0);
    assert(metadata->phase == METADATA_NONE);
    const uint8_t *snapshot = NULL;
    size_t size = 0;
    uint64_t op = 0;
    store_metadata_recovery(host->store, &op, &snapshot, &size, &metadata->last_recovered_op);
    if (size > ENGINE_FRAME_SIZE_MAX - sizeof(struct engine_frame)) {
        fail(host, STATUS_CHECKPOINT_DAMAGED);
        return;
    }
    metadata->phase = METADATA_RESTORING;
    metadata->op = op;
    host->counters.snapshot_bytes = size;
    struct engine_frame frame = {.kind = ENGINE_METADATA_RESTORE, .arg0 = op};
    struct host_body body = {.data = snapshot, .size = size};
    host_post_surely(host, &frame, &body);
}

static enum status tables_take(struct host *host, uint64_t op, const uint8_t *delta, size_t size)
{
    enum status status = tables_apply(host->tables, delta, size);
    if (status != STATUS_OK) return status;
    return store_tables_apply(host->store, op, delta, size);
}

void host_metadata_tables(struct host *host, const struct shard_frame *frame)
{
    const struct frame_tables *tables = &frame->tables;
    enum status status = tables_take(host, tables->op, tables->delta, (size_t)tables->size);
    if (status != STATUS_OK) fail(host, status);
    struct shard_frame answer = {.kind = FRAME_TABLES_DONE, .token = frame->token};
    shard_queues_post(host->service, &answer, frame->source, QUEUE_REPLY);
}

/* All shards have it. */
static void spread_done(struct host *host)
{
    struct metadata_host *metadata = &host->metadata;
    assert(metadata->phase == METADATA_SPREADING);
    enum status status = STATUS_OK;
    if (!metadata->restoring) {
        status = store_metadata_applied(host->store, metadata->op, metadata->result,
                                        metadata->result_size);
    }
    buffer_give(host->pool, metadata->result);
    buffer_give(host->pool, metadata->delta);
    metadata->result = NULL;
    metadata->delta = NULL;
    metadata->restoring = 0;
    metadata->applied_op = metadata->op;
    metadata->phase = METADATA_IDLE;
    if (status != STATUS_OK) fail(host, status);
}

void host_metadata_spread(struct host *host)
{
    struct metadata_host *metadata = &host->metadata;
    assert(metadata->acks_missing > 0);
    metadata->acks_missing--;
    if (metadata->acks_missing == 0) spread_done(host);
}

static void spread(struct host *host, const uint8_t *delta, size_t size)
{
    struct metadata_host *metadata = &host->metadata;
    metadata->phase = METADATA_SPREADING;
    enum status status = tables_take(host, metadata->op, delta, size);
    if (status != STATUS_OK) {
        fail(host, status);
        return;
    }
    if (size == 0 || host->shards_count == 1) {
        spread_done(host);
        return;
    }
    metadata->delta = buffer_take(host->pool, size);
    if (metadata->delta == NULL) {
        fail(host, STATUS_NO_MEMORY);
        return;
    }
    memcpy(metadata->delta, delta, size);
    metadata->acks_missing = (uint16_t)(host->shards_count - 1);
    for (uint16_t target = 1; target < host->shards_count; target++) {
        struct shard_frame frame = {
            .kind = FRAME_TABLES,
            .tables = {.op = metadata->op, .delta = metadata->delta, .size = size},
        };
        shard_queues_post(host->service, &frame, target, QUEUE_MAIN);
    }
}

static void applied(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                    size_t size)
{
    struct metadata_host *metadata = &host->metadata;
    uint64_t result_size = frame->arg1;
    uint64_t padded = (result_size + 7) & ~(uint64_t)7;
    if (metadata->phase != METADATA_APPLYING || frame->arg0 != metadata->op || result_size > size) {
        fail(host, STATUS_INVALID);
        return;
    }
    if (padded > size) padded = size;
    metadata->result_size = (size_t)result_size;
    metadata->result = buffer_take(host->pool, (size_t)result_size);
    if (metadata->result == NULL) {
        fail(host, STATUS_NO_MEMORY);
        return;
    }
    memcpy(metadata->result, body, (size_t)result_size);
    spread(host, body + padded, size - (size_t)padded);
}

static void submit(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                   size_t size)
{
    struct pending values = {.kind = PENDING_HOST, .number = frame->arg0, .host_kind = frame->kind};
    uint64_t token = pending_take(host->service, &values);
    enum status status = STATUS_BUSY;
    if (token != 0) {
        status = store_metadata_submit(host->store, body, size, token);
        if (status == STATUS_OK) return;
        pending_give(host->service, pending_find(host->service, token));
    }
    host_reply(host, frame->arg0, node_result(status), NULL, 0);
}

void host_metadata_frame(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                         size_t size)
{
    struct metadata_host *metadata = &host->metadata;
    assert(host->index == 0);
    switch (frame->kind) {
    case ENGINE_METADATA_SUBMIT: submit(host, frame, body, size); return;
    case ENGINE_METADATA_APPLIED: applied(host, frame, body, size); return;
    case ENGINE_METADATA_RESTORED:
        if (metadata->phase != METADATA_RESTORING || frame->arg0 != metadata->op) {
            fail(host, STATUS_INVALID);
            return;
        }
        metadata->restoring = 1;
        spread(host, body, size);
        return;
    case ENGINE_METADATA_SNAPSHOT_IS: {
        if (metadata->phase != METADATA_SNAPSHOTTING || frame->arg0 != metadata->op) {
            fail(host, STATUS_INVALID);
            return;
        }
        metadata->phase = METADATA_IDLE;
        if (size > 0) host->counters.snapshot_bytes = size;
        /* A snapshot that cannot be stored now is asked for again; the ops it would cover are still
         * there. */
        if (store_metadata_snapshot(host->store, frame->arg0, body, size) != STATUS_OK) {
            host->counters.snapshots_refused++;
            metadata->snapshot_retry_ns =
                host->now->monotonic_ns + host->snapshot_retry_ms * UINT64_C(1000000);
        }
        return;
    }
    default: unreachable();
    }
}

static void ready(struct host *host)
{
    struct metadata_host *metadata = &host->metadata;
    store_metadata_recovered(host->store);
    store_tables_complete(host->store, metadata->applied_op);
    metadata->ready = 1;
    service_ready(host->service);
    for (uint16_t target = 1; target < host->shards_count; target++) {
        struct shard_frame frame = {.kind = FRAME_READY, .token = metadata->applied_op};
        shard_queues_post(host->service, &frame, target, QUEUE_MAIN);
    }
    struct engine_frame frame = {.kind = ENGINE_METADATA_READY,
                                 .arg0 = metadata->last_recovered_op};
    host_post_surely(host, &frame, NULL);
}

void host_metadata_pump(struct host *host)
{
    struct metadata_host *metadata = &host->metadata;
    if (metadata->phase != METADATA_IDLE) return;
    if (!metadata->ready && metadata->applied_op >= metadata->last_recovered_op) ready(host);
    uint64_t op = 0;
    /* Between two ops the host's machine is exactly at the last one: the only moment for its
     * snapshot. */
    int may_ask = metadata->ready && host->now->monotonic_ns >= metadata->snapshot_retry_ns;
    if (may_ask && store_metadata_snapshot_due(host->store, &op) && op == metadata->applied_op) {
        metadata->phase = METADATA_SNAPSHOTTING;
        metadata->op = op;
        struct engine_frame frame = {.kind = ENGINE_METADATA_SNAPSHOT, .arg0 = op};
        host_post_surely(host, &frame, NULL);
        return;
    }
    int64_t append_time_us = 0;
    const uint8_t *command = NULL;
    size_t size = 0;
    if (!store_metadata_next(host->store, &op, &append_time_us, &command, &size)) return;
    metadata->phase = METADATA_APPLYING;
    metadata->op = op;
    struct engine_frame frame = {
        .kind = ENGINE_METADATA_APPLY, .arg0 = op, .arg1 = (uint64_t)append_time_us};
    struct host_body body = {.data = command, .size = size};
    host_post_surely(host, &frame, &body);
}

int host_metadata_invariants(const struct host *host)
{
    const struct metadata_host *metadata = &host->metadata;
    ergo(host->index != 0, metadata->phase == METADATA_NONE);
    ergo(metadata->acks_missing > 0, metadata->phase == METADATA_SPREADING);
    ergo(metadata->restoring, metadata->phase == METADATA_SPREADING);
    ergo(metadata->delta != NULL, metadata->acks_missing > 0);
    ergo(metadata->phase == METADATA_IDLE, metadata->applied_op == metadata->op);
    ergo(metadata->phase == METADATA_IDLE, metadata->result == NULL);
    ergo(metadata->ready, metadata->applied_op >= metadata->last_recovered_op);
    return 1;
}
