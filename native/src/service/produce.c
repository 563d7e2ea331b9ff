#include "service/produce.h"

#include <string.h>

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/pendings.h"
#include "service/produce_reply.h"
#include "service/state.h"
#include "wire/proto_messages.h"

/* Unanswered messages of one ProduceStream: beyond it BUSY. */
enum { PRODUCE_STREAM_PENDINGS_MAX = 16384 };

/* To the shard that owns the partition: the message is lent until the outcome. */
static enum status produce_forward(struct service *service, const struct store_produce *produce,
                                   uint16_t owner, uint8_t **owned)
{
    uint8_t *batch = *owned;
    if (batch == NULL) batch = buffer_take(service->pool, produce->batch_size);
    enum status status = batch == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    if (status == STATUS_OK) {
        if (*owned == NULL) memcpy(batch, produce->batch, produce->batch_size);
        struct shard_frame frame = {
            .kind = FRAME_PRODUCE,
            .token = produce->token,
            .produce =
                {
                    .id = produce->id,
                    .batch = *owned == NULL ? batch : produce->batch,
                    .batch_size = produce->batch_size,
                    .principal = produce->principal,
                    .message_bytes_max = produce->message_bytes_max,
                },
        };
        if (!shard_queues_try(service, &frame, owner)) status = STATUS_BUSY;
    }
    if (status == STATUS_OK) {
        service->counters.produce_forwarded++;
        pending_find(service, produce->token)->loan = batch;
        *owned = NULL;
    } else if (*owned == NULL) {
        buffer_give(service->pool, batch);
    }
    return status;
}

void produce_submit(struct call *call, struct store_produce *produce, uint64_t number,
                    uint8_t **owned)
{
    struct service *service = service_of(call);
    struct call_work *work = work_of(call);
    enum status status = STATUS_BUSY;
    if (work->pending_count < PRODUCE_STREAM_PENDINGS_MAX)
        produce->token = pending_of_call(call, PENDING_PRODUCE, number);
    if (produce->token != 0) {
        uint16_t owner = owner_of(produce->id.topic, produce->id.partition, service->shards_count);
        status = owner == service->index ? produce_queue_offer(service, produce, 0, owned)
                                         : produce_forward(service, produce, owner, owned);
        if (status == STATUS_OK)
            work->pending_count++;
        else
            pending_give(service, pending_find(service, produce->token));
    }
    if (status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(status);
        produce_refuse(call, number, &failure);
    }
}

static void produce_decoded(struct call *call, const struct proto_produce_request *request,
                            uint8_t **owned)
{
    struct store_produce produce = {
        .id = {.topic = request->topic,
               .created_revision = request->created_revision,
               .partition = request->partition},
        .batch = request->batch.data,
        .batch_size = request->batch.size,
        .principal = call->caller.principal,
    };
    const struct table_topic *topic;
    struct grpc_failure failure = {.error = access_check(service_of(call)->tables, &call->caller,
                                                         &produce.id, ENGINE_VERB_PRODUCE, &topic)};
    if (failure.error == GRPC_ERROR_NONE && request->batch.size == 0)
        failure.error = GRPC_ERROR_INVALID_BATCH;
    if (failure.error == GRPC_ERROR_NONE) {
        produce.message_bytes_max = topic->message_bytes_max;
        attribution_request(call, topic);
        produce_submit(call, &produce, request->request, owned);
    } else {
        produce_refuse(call, request->request, &failure);
    }
}

void produce_message(struct call *call, struct grpc_message *message)
{
    struct proto_produce_request request;
    if (proto_decode_produce(message->data, message->size, &request) == STATUS_OK)
        produce_decoded(call, &request, &message->buffer);
    else
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
}

void produce_remote(struct service *service, const struct shard_frame *frame)
{
    struct pending values = {
        .kind = PENDING_REMOTE,
        .remote_kind = PENDING_PRODUCE,
        .shard = frame->source,
        .number = frame->token,
    };
    struct store_produce produce = {
        .id = frame->produce.id,
        .batch = frame->produce.batch,
        .batch_size = (size_t)frame->produce.batch_size,
        .principal = frame->produce.principal,
        .message_bytes_max = frame->produce.message_bytes_max,
        .token = pending_take(service, &values),
    };
    uint8_t *nothing = NULL;
    enum status status = STATUS_BUSY;
    if (produce.token != 0) status = produce_queue_offer(service, &produce, 1, &nothing);
    if (status != STATUS_OK) {
        if (produce.token != 0) pending_give(service, pending_find(service, produce.token));
        struct shard_frame answer = {
            .kind = FRAME_OUTCOME, .token = frame->token, .outcome = {.status = status}};
        shard_queues_post(service, &answer, frame->source, QUEUE_REPLY);
    }
}
