/* service/publish.c: names, partition and batch of a Publish; from there on it is a Produce
 * (produce_submit). Who may not write is refused before a message is looked at. */
#include "service/publish.h"

#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/names.h"
#include "service/produce.h"
#include "service/state.h"
#include "wire/message_batch.h"

static struct grpc_failure failure_error(enum grpc_error error)
{
    return (struct grpc_failure){.error = error};
}

/* The topic, if the caller may write to it. The partition is judged when it is named. */
static struct grpc_failure publish_topic(const struct call *call,
                                         const struct proto_publish_request *request,
                                         const struct table_topic **topic)
{
    const struct tables *tables = service_of(call)->tables;
    struct grpc_failure failure =
        topic_by_name(tables, &call->caller, &request->project, &request->topic, topic);
    if (failure.error != GRPC_ERROR_NONE) return failure;
    struct engine_partition_id id = {
        .topic = (*topic)->topic,
        .created_revision = (*topic)->created_revision,
        .partition = request->has_partition ? request->partition : 0,
    };
    return failure_error(access_check(tables, &call->caller, &id, ENGINE_VERB_PRODUCE, topic));
}

static uint32_t publish_partition(struct service *service, const struct table_topic *topic,
                                  const struct proto_publish_request *request,
                                  const struct message_batch *batch)
{
    if (request->has_partition) return request->partition;
    if (batch->has_key) return batch->partition;
    return tables_turn(service->tables, topic->topic);
}

void publish_message(struct call *call, struct grpc_message *message)
{
    struct service *service = service_of(call);
    struct proto_publish_request request;
    if (proto_decode_publish(message->data, message->size, &request) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    const struct table_topic *topic;
    struct grpc_failure failure = publish_topic(call, &request, &topic);
    /* A repetition must meet its first attempt: after the partitions were increased a key, and at
     * once a turn, would lead it to another one. */
    if (failure.error == GRPC_ERROR_NONE && request.producer_id.size != 0 && !request.has_partition)
        failure = failure_error(GRPC_ERROR_PARTITION_REQUIRED);
    struct message_batch batch = {0};
    if (failure.error == GRPC_ERROR_NONE) {
        enum status status =
            message_batch_measure(&request, service->now->wall_us, topic->partitions_count,
                                  topic->message_bytes_max, &batch);
        if (status != STATUS_OK) failure = grpc_failure_of(status);
    }
    uint8_t *part = NULL;
    if (failure.error == GRPC_ERROR_NONE) {
        part = buffer_take(service->pool, message_batch_bytes(&batch));
        if (part == NULL) failure = failure_error(GRPC_ERROR_MEMORY_EXHAUSTED);
    }
    if (failure.error != GRPC_ERROR_NONE) {
        grpc_finish(call, &failure);
        return;
    }
    message_batch_write(&request, &batch, part);
    attribution_request(call, topic);
    struct store_produce produce = {
        .id = {.topic = topic->topic,
               .created_revision = topic->created_revision,
               .partition = publish_partition(service, topic, &request, &batch)},
        .batch = part,
        .batch_size = message_batch_bytes(&batch),
        .principal = call->caller.principal,
        .message_bytes_max = topic->message_bytes_max,
    };
    produce_submit(call, &produce, produce.id.partition, &part);
    buffer_give(service->pool, part);
}
