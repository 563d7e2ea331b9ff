#include "service/fetch_offsets.h"

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/pendings.h"
#include "service/state.h"

static void offsets_read(struct service *service, const struct engine_partition_id *id,
                         uint64_t group, struct frame_offsets *offsets)
{
    struct engine_group_state state = {0};
    struct engine_partition_state partition = {0};
    *offsets = (struct frame_offsets){.status = store_describe(service->store, id, &partition)};
    if (offsets->status != STATUS_OK) return;
    enum status status = store_group_state(service->store, id, group, &state);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        offsets->status = status;
        return;
    }
    offsets->found = status == STATUS_OK && state.has_committed;
    offsets->offset = state.committed;
    offsets->generation = state.generation;
    offsets->log_start = partition.log_start;
    offsets->high_watermark = partition.high_watermark;
}

static void offsets_answer(struct call *call, const struct frame_offsets *offsets)
{
    if (offsets->status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(offsets->status);
        grpc_finish(call, &failure);
        return;
    }
    uint64_t committed = offsets->found ? offsets->offset : 0;
    struct proto_offsets_reply reply = {
        .found = offsets->found,
        .offset = committed,
        .start = committed > offsets->log_start ? committed : offsets->log_start,
        .generation = offsets->generation,
        .log_start = offsets->log_start,
        .high_watermark = offsets->high_watermark,
    };
    uint8_t message[PROTO_OFFSETS_REPLY_SIZE_MAX];
    grpc_reply_small(call, message, proto_encode_offsets_reply(&reply, message));
    grpc_finish_ok(call);
}

void fetch_offsets_message(struct call *call, struct grpc_message *message)
{
    struct service *service = service_of(call);
    struct proto_commit_request request;
    if (proto_decode_fetch_offsets(message->data, message->size, &request) != STATUS_OK
        || request.group == 0) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    const struct engine_partition_id id = {.topic = request.topic,
                                           .created_revision = request.created_revision,
                                           .partition = request.partition};
    const struct table_topic *topic;
    enum grpc_error error =
        access_check(service->tables, &call->caller, &id, ENGINE_VERB_CONSUME, &topic);
    if (error != GRPC_ERROR_NONE) {
        grpc_finish_error(call, error);
        return;
    }
    attribution_request(call, topic);
    uint16_t owner = owner_of(id.topic, id.partition, service->shards_count);
    if (owner == service->index) {
        struct frame_offsets offsets;
        offsets_read(service, &id, request.group, &offsets);
        offsets_answer(call, &offsets);
        return;
    }
    struct shard_frame frame = {
        .kind = FRAME_FETCH_OFFSETS,
        .token = pending_of_call(call, PENDING_FETCH_OFFSETS, 0),
        .commit = {.id = id, .group = request.group},
    };
    if (frame.token != 0 && shard_queues_try(service, &frame, owner)) {
        work_of(call)->pending_count++;
        return;
    }
    if (frame.token != 0) pending_give(service, pending_find(service, frame.token));
    grpc_finish_error(call, GRPC_ERROR_BUSY);
}

void fetch_offsets_remote(struct service *service, const struct shard_frame *frame)
{
    struct shard_frame answer = {.kind = FRAME_OFFSETS, .token = frame->token};
    offsets_read(service, &frame->commit.id, frame->commit.group, &answer.offsets);
    shard_queues_post(service, &answer, frame->source, QUEUE_REPLY);
}

void fetch_offsets_answered(struct service *service, struct pending *pending,
                            const struct frame_offsets *offsets)
{
    struct call *call = pending_answered(service, pending);
    if (call != NULL) offsets_answer(call, offsets);
}
