#include "service/commit_offsets.h"

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/pendings.h"
#include "service/state.h"

void commit_offsets_message(struct call *call, struct grpc_message *message)
{
    struct service *service = service_of(call);
    struct proto_commit_request request;
    if (proto_decode_commit(message->data, message->size, &request) != STATUS_OK
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
    if (error == GRPC_ERROR_NONE) attribution_request(call, topic);
    uint64_t token = error == GRPC_ERROR_NONE ? pending_of_call(call, PENDING_COMMIT, 0) : 0;
    if (error == GRPC_ERROR_NONE && token == 0) error = GRPC_ERROR_BUSY;
    if (error != GRPC_ERROR_NONE) {
        grpc_finish_error(call, error);
        return;
    }
    enum status status;
    uint16_t owner = owner_of(id.topic, id.partition, service->shards_count);
    if (owner == service->index) {
        status = store_commit_offset(service->store, &id, request.group, request.generation,
                                     request.offset, token);
    } else {
        struct shard_frame frame = {
            .kind = FRAME_COMMIT,
            .token = token,
            .commit = {.id = id,
                       .group = request.group,
                       .generation = request.generation,
                       .offset = request.offset},
        };
        status = shard_queues_try(service, &frame, owner) ? STATUS_OK : STATUS_BUSY;
    }
    if (status == STATUS_OK) {
        work_of(call)->pending_count++;
        return;
    }
    pending_give(service, pending_find(service, token));
    struct grpc_failure failure = grpc_failure_of(status);
    grpc_finish(call, &failure);
}

void commit_offsets_remote(struct service *service, const struct shard_frame *frame)
{
    struct pending values = {
        .kind = PENDING_REMOTE,
        .remote_kind = PENDING_COMMIT,
        .shard = frame->source,
        .number = frame->token,
    };
    uint64_t token = pending_take(service, &values);
    enum status status = STATUS_BUSY;
    if (token != 0) {
        const struct frame_commit *commit = &frame->commit;
        status = store_commit_offset(service->store, &commit->id, commit->group, commit->generation,
                                     commit->offset, token);
        if (status == STATUS_OK) return;
        pending_give(service, pending_find(service, token));
    }
    struct shard_frame answer = {
        .kind = FRAME_OUTCOME, .token = frame->token, .outcome = {.status = status}};
    shard_queues_post(service, &answer, frame->source, QUEUE_REPLY);
}

void commit_offsets_outcome(struct call *call, const struct frame_outcome *outcome)
{
    if (outcome->status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(outcome->status);
        grpc_finish(call, &failure);
        return;
    }
    uint8_t message[16];
    grpc_reply_small(call, message, proto_encode_commit_reply(outcome->base_offset, message));
    grpc_finish_ok(call);
}
