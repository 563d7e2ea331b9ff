#include "service/methods.h"

#include "service/commit_offsets.h"
#include "service/consume.h"
#include "service/fetch/fetch.h"
#include "service/fetch/fetch_messages.h"
#include "service/fetch_offsets.h"
#include "service/health.h"
#include "service/list_offsets.h"
#include "service/produce.h"
#include "service/produce_queue.h"
#include "service/produce_reply.h"
#include "service/publish.h"
#include "service/ready_queue.h"

#define STREAM "/headrace.stream.v1.Stream/"

static void consume_writable(struct call *call, size_t size)
{
    (void)size;
    consume_ready(call);
}

const struct grpc_method service_methods[METHODS_COUNT] = {
    [METHOD_PRODUCE] = {.path = STREAM "Produce",
                        .metric = "Produce",
                        .message_size_max = CALL_MESSAGE_SIZE_MAX,
                        .message = produce_message,
                        .closed = work_forget},
    [METHOD_PRODUCE_STREAM] = {.path = STREAM "ProduceStream",
                               .metric = "ProduceStream",
                               .message_size_max = CALL_MESSAGE_SIZE_MAX,
                               .flags =
                                   GRPC_METHOD_STREAMS | GRPC_METHOD_QUIET | GRPC_METHOD_CHARGED,
                               .message = produce_message,
                               .end = produce_end,
                               .withhold = produce_queue_withhold,
                               .writable = produce_queue_read,
                               .closed = work_forget},
    [METHOD_FETCH] = {.path = STREAM "Fetch",
                      .metric = "Fetch",
                      .message_size_max = CALL_HOST_MESSAGE_SIZE_MAX,
                      .flags = GRPC_METHOD_WAITS,
                      .message = fetch_message,
                      .closed = work_forget},
    [METHOD_COMMIT_OFFSETS] = {.path = STREAM "CommitOffsets",
                               .metric = "CommitOffsets",
                               .message_size_max = CALL_HOST_MESSAGE_SIZE_MAX,
                               .message = commit_offsets_message,
                               .closed = work_forget},
    [METHOD_FETCH_OFFSETS] = {.path = STREAM "FetchOffsets",
                              .metric = "FetchOffsets",
                              .message_size_max = CALL_HOST_MESSAGE_SIZE_MAX,
                              .message = fetch_offsets_message,
                              .closed = work_forget},
    [METHOD_HEALTH_CHECK] = {.path = "/grpc.health.v1.Health/Check",
                             .metric = "HealthCheck",
                             .message_size_max = CALL_HOST_MESSAGE_SIZE_MAX,
                             .flags = GRPC_METHOD_OPEN,
                             .message = health_check,
                             .closed = work_forget},
    [METHOD_PUBLISH] = {.path = STREAM "Publish",
                        .metric = "Publish",
                        .message_size_max = CALL_MESSAGE_SIZE_MAX,
                        .message = publish_message,
                        .closed = work_forget},
    [METHOD_FETCH_MESSAGES] = {.path = STREAM "FetchMessages",
                               .metric = "FetchMessages",
                               .message_size_max = CALL_HOST_MESSAGE_SIZE_MAX,
                               .flags = GRPC_METHOD_WAITS,
                               .message = fetch_messages_message,
                               .closed = work_forget},
    [METHOD_CONSUME] = {.path = STREAM "Consume",
                        .metric = "Consume",
                        .message_size_max = CALL_HOST_MESSAGE_SIZE_MAX,
                        .flags = GRPC_METHOD_STREAMS | GRPC_METHOD_WAITS,
                        .message = consume_message,
                        .end = consume_ready,
                        .writable = consume_writable,
                        .review = consume_again,
                        .closed = work_forget},
    [METHOD_LIST_OFFSETS] = {.path = STREAM "ListOffsets",
                             .metric = "ListOffsets",
                             .message_size_max = CALL_HOST_MESSAGE_SIZE_MAX,
                             .message = list_offsets_message,
                             .closed = work_forget},
};
