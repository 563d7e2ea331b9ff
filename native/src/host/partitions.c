#include "host/partitions.h"

#include <string.h>

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "foundation/limits.h"
#include "host/node.h"
#include "host/ring.h"
#include "host/state.h"
#include "service/pendings.h"

enum {
    PRINCIPAL_NODE = 2, /* the node itself: internal publish */
    METERS_PER_TURN = 64,
    TRIMS_PER_TURN = 64,
};

static uint64_t host_pending(struct host *host, const struct engine_frame *frame)
{
    struct pending values = {.kind = PENDING_HOST, .number = frame->arg0, .host_kind = frame->kind};
    return pending_take(host->service, &values);
}

static void describe(struct host *host, uint64_t cookie, const struct engine_partition_id *id)
{
    struct engine_partition_state state = {0};
    enum status status = store_describe(host->store, id, &state);
    host_reply(host, cookie, node_result(status), &state, status == STATUS_OK ? sizeof state : 0);
}

static enum status publish(struct host *host, const struct engine_partition_id *id,
                           const uint8_t *batch, size_t size, uint64_t token)
{
    struct store_produce produce = {
        .id = *id,
        .batch = batch,
        .batch_size = size,
        .principal = PRINCIPAL_NODE,
        .message_bytes_max = BATCH_CLIENT_BYTES_MAX,
        .token = token,
    };
    return store_produce(host->store, &produce);
}

static enum status fence(struct host *host, const struct engine_partition_id *id,
                         const uint8_t *body, size_t size, uint64_t token)
{
    struct engine_group_fence wanted;
    if (size != sizeof wanted) return STATUS_INVALID;
    memcpy(&wanted, body, sizeof wanted);
    return store_group_fence(host->store, id, &wanted, token);
}

static enum status seal(struct host *host, const struct engine_partition_id *id,
                        const uint8_t *body, size_t size, uint64_t token)
{
    struct engine_seal wanted;
    if (size != sizeof wanted) return STATUS_INVALID;
    memcpy(&wanted, body, sizeof wanted);
    return store_seal(host->store, id, wanted.intent_op, token);
}

static enum status purge(struct host *host, const struct engine_partition_id *id,
                         const uint8_t *body, size_t size, uint64_t token)
{
    struct engine_purge wanted;
    if (size != sizeof wanted) return STATUS_INVALID;
    memcpy(&wanted, body, sizeof wanted);
    return store_purge(host->store, id, &wanted, token);
}

static enum status hold(struct host *host, const struct engine_partition_id *id,
                        const uint8_t *body, size_t size, uint64_t token)
{
    struct engine_hold wanted;
    if (size != sizeof wanted) return STATUS_INVALID;
    memcpy(&wanted, body, sizeof wanted);
    return store_hold(host->store, id, &wanted, token);
}

static enum status ask(struct host *host, uint32_t kind, const struct engine_partition_id *id,
                       const uint8_t *body, size_t size, uint64_t token)
{
    switch (kind) {
    case ENGINE_PUBLISH: return publish(host, id, body, size, token);
    case ENGINE_GROUP_FENCE: return fence(host, id, body, size, token);
    case ENGINE_SEAL: return seal(host, id, body, size, token);
    case ENGINE_PURGE: return purge(host, id, body, size, token);
    case ENGINE_HOLD: return hold(host, id, body, size, token);
    default: assert(kind == ENGINE_METER_FLUSH); return store_meter_flush(host->store, id, token);
    }
}

void host_partition_frame(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                          size_t size)
{
    struct engine_partition_id id;
    assert(size >= sizeof id);
    memcpy(&id, body, sizeof id);
    assert(owner_of(id.topic, id.partition, host->shards_count) == host->index);
    body += sizeof id;
    size -= sizeof id;
    if (frame->kind == ENGINE_METER_ACK) {
        /* A partition that is gone needs no ack. */
        (void)store_meter_ack(host->store, &id, frame->arg1);
        return;
    }
    if (frame->kind == ENGINE_TRIM_ACK) {
        (void)store_trim_ack(host->store, &id, frame->arg1);
        return;
    }
    if (frame->kind == ENGINE_DESCRIBE) {
        describe(host, frame->arg0, &id);
        return;
    }
    uint64_t token = host_pending(host, frame);
    enum status status = STATUS_BUSY;
    if (token != 0) {
        status = ask(host, frame->kind, &id, body, size, token);
        if (status == STATUS_OK) return;
        pending_give(host->service, pending_find(host->service, token));
    }
    host_reply(host, frame->arg0, node_result(status), NULL, 0);
}

void host_outcome(struct host *host, struct pending *pending, const struct store_outcome *outcome)
{
    assert(pending->kind == PENDING_HOST);
    uint64_t cookie = pending->number;
    uint32_t kind = pending->host_kind;
    pending_give(host->service, pending);
    enum engine_result result = node_result(outcome->status);
    if (kind == ENGINE_PUBLISH) {
        int stored = outcome->status == STATUS_OK || outcome->status == STATUS_ALREADY_COMMITTED;
        if (stored && (outcome->duplicate || outcome->status != STATUS_OK))
            result = ENGINE_RESULT_DUPLICATE;
        uint64_t base_offset = outcome->base_offset;
        host_reply(host, cookie, result, &base_offset, stored ? sizeof base_offset : 0);
    } else if (kind == ENGINE_GROUP_FENCE) {
        host_reply(host, cookie, result, &outcome->group, sizeof outcome->group);
    } else if (kind == ENGINE_SEAL) {
        int known = outcome->status == STATUS_OK;
        host_reply(host, cookie, result, &outcome->sealed, known ? sizeof outcome->sealed : 0);
    } else if (kind == ENGINE_PURGE || kind == ENGINE_HOLD) {
        host_reply(host, cookie, result, &outcome->retained, sizeof outcome->retained);
    } else if (kind == ENGINE_METER_FLUSH) {
        uint64_t body[2] = {outcome->base_offset, outcome->expected};
        host_reply(host, cookie, result, body, sizeof body);
    } else {
        assert(kind == ENGINE_METADATA_SUBMIT);
        host_reply(host, cookie, result, outcome->body, outcome->body_size);
    }
}

void host_meters(struct host *host)
{
    struct engine_meter_close close;
    struct engine_meter_sum sums[METER_SUMS_MAX];
    for (int left = METERS_PER_TURN; left > 0; left--) {
        if (!host_empty(host)) return;
        if (!store_meter_next(host->store, &close, sums, METER_SUMS_MAX)) return;
        assert(close.sums_count <= METER_SUMS_MAX);
        struct engine_frame frame = {.kind = ENGINE_METER_CLOSE};
        struct host_body body = {
            .data = &close,
            .size = sizeof close,
            .tail = sums,
            .tail_size = close.sums_count * sizeof sums[0],
        };
        host->counters.meter_frames++;
        host_post_surely(host, &frame, &body);
    }
}

void host_trims(struct host *host)
{
    struct engine_trimmed trimmed;
    for (int left = TRIMS_PER_TURN; left > 0; left--) {
        if (!host_empty(host)) return;
        if (!store_trimmed_next(host->store, &trimmed)) return;
        struct engine_frame frame = {.kind = ENGINE_TRIMMED};
        const struct host_body body = {.data = &trimmed, .size = sizeof trimmed};
        host_post_surely(host, &frame, &body);
    }
}
