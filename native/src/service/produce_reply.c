#include "service/produce_reply.h"

#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/methods.h"
#include "service/state.h"
#include "wire/proto_messages.h"

static void produce_error(struct call *call, uint64_t request, const struct grpc_failure *failure)
{
    grpc_failure_count(call, failure->error);
    struct proto_error error;
    grpc_failure_proto(failure, &error);
    struct proto_produce_reply reply = {.request = request, .error = &error};
    uint8_t message[PROTO_PRODUCE_REPLY_SIZE_MAX];
    grpc_reply_small(call, message, proto_encode_produce_reply(&reply, message));
}

void produce_refuse(struct call *call, uint64_t number, const struct grpc_failure *failure)
{
    if (!is_method(call, METHOD_PRODUCE_STREAM))
        grpc_finish(call, failure);
    else if (!call->finished)
        produce_error(call, number, failure);
}

static void produce_reply(struct call *call, uint64_t request, const struct frame_outcome *outcome)
{
    struct proto_produce_reply reply = {
        .request = request,
        .base_offset = outcome->base_offset,
        .record_count = outcome->record_count,
        .persisted = outcome->persisted,
        .replicas = outcome->replicas,
        .duplicate = outcome->duplicate,
        .append_time_us = outcome->append_time_us,
    };
    uint8_t message[PROTO_PRODUCE_REPLY_SIZE_MAX];
    grpc_reply_small(call, message, proto_encode_produce_reply(&reply, message));
    if (is_method(call, METHOD_PRODUCE)) grpc_finish_ok(call);
}

static void publish_reply(struct call *call, uint32_t partition,
                          const struct frame_outcome *outcome)
{
    struct proto_publish_reply reply = {
        .partition = partition,
        .base_offset = outcome->base_offset,
        .message_count = outcome->record_count,
        .persisted = outcome->persisted,
        .replicas = outcome->replicas,
        .duplicate = outcome->duplicate,
        .append_time_us = outcome->append_time_us,
    };
    uint8_t message[PROTO_PUBLISH_REPLY_SIZE_MAX];
    grpc_reply_small(call, message, proto_encode_publish_reply(&reply, message));
    grpc_finish_ok(call);
}

void produce_end(struct call *call)
{
    if (work_of(call)->pending_count == 0) grpc_finish_ok(call);
}

void produce_outcome(struct call *call, uint64_t number, const struct frame_outcome *outcome)
{
    if (outcome->status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(outcome->status);
        failure.expected = outcome->expected;
        produce_refuse(call, number, &failure);
    } else if (is_method(call, METHOD_PUBLISH)) {
        publish_reply(call, (uint32_t)number, outcome);
    } else {
        produce_reply(call, number, outcome);
    }
    if (is_method(call, METHOD_PRODUCE_STREAM) && call->stream.half_closed) produce_end(call);
}
