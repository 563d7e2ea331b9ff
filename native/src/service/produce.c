#include "service/produce.h"

#include <string.h>

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/methods.h"
#include "shard/shard.h"
#include "wire/proto_messages.h"

enum { HEALTH_SERVING = 1, HEALTH_NOT_SERVING = 2 };

static struct engine_partition_id partition_id(uint64_t topic, uint64_t created_revision,
                                               uint32_t partition)
{
    return (struct engine_partition_id){
        .topic = topic, .created_revision = created_revision, .partition = partition};
}

/* On a stream the error is a message and the stream lives on; a unary call ends with it. */
static void produce_fail(struct call *call, uint64_t request, const struct grpc_failure *failure)
{
    if (!is_method(call, METHOD_PRODUCE_STREAM)) {
        grpc_finish(call, failure);
        return;
    }
    if (call->finished) return;
    grpc_failure_count(call, failure->error);
    struct proto_error error;
    grpc_failure_proto(failure, &error);
    struct proto_produce_reply reply = {.request = request, .error = &error};
    uint8_t message[PROTO_PRODUCE_REPLY_SIZE_MAX];
    grpc_reply_small(call, message, proto_encode_produce_reply(&reply, message));
}

static void produce_fail_error(struct call *call, uint64_t request, enum grpc_error error)
{
    struct grpc_failure failure = {.error = error};
    produce_fail(call, request, &failure);
}

static void produce_fail_status(struct call *call, uint64_t request, enum status status)
{
    struct grpc_failure failure = grpc_failure_of(status);
    produce_fail(call, request, &failure);
}

static uint64_t call_pending(struct call *call, enum pending_kind kind, uint64_t number)
{
    struct pending values = {
        .kind = (uint8_t)kind,
        .call_index = call->index,
        .call_tag = call->slot_tag,
        .number = number,
    };
    return pending_take(shard_of(call), &values);
}

/* To the shard that owns the partition: the message is lent until the outcome. */
static void produce_forward(struct call *call, const struct store_produce *produce, uint16_t owner,
                            uint64_t request, uint8_t **owned)
{
    struct shard *shard = shard_of(call);
    struct pending *pending = pending_find(shard, produce->token);
    const uint8_t *batch = produce->batch;
    uint8_t *copy = NULL;
    if (*owned == NULL) {
        copy = buffer_take(&shard->pool, produce->batch_size);
        if (copy == NULL) {
            pending_give(shard, pending);
            produce_fail_error(call, request, GRPC_ERROR_MEMORY_EXHAUSTED);
            return;
        }
        memcpy(copy, produce->batch, produce->batch_size);
        batch = copy;
    }
    struct shard_frame frame = {
        .kind = FRAME_PRODUCE,
        .token = produce->token,
        .produce =
            {
                .id = produce->id,
                .batch = batch,
                .batch_size = produce->batch_size,
                .principal = produce->principal,
                .message_bytes_max = produce->message_bytes_max,
            },
    };
    if (!queues_try(shard, &frame, owner)) {
        buffer_give(&shard->pool, copy);
        pending_give(shard, pending);
        produce_fail_error(call, request, GRPC_ERROR_BUSY);
        return;
    }
    shard->counters.produce_forwarded++;
    pending->loan = copy != NULL ? copy : *owned;
    *owned = NULL;
    work_of(call)->pending_count++;
}

void stream_produce(struct call *call, struct grpc_message *message)
{
    struct shard *shard = shard_of(call);
    struct proto_produce_request request;
    if (proto_decode_produce(message->data, message->size, &request) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    struct store_produce produce = {
        .id = partition_id(request.topic, request.created_revision, request.partition),
        .batch = request.batch.data,
        .batch_size = request.batch.size,
        .principal = call->caller.principal,
    };
    const struct table_topic *topic;
    enum grpc_error error =
        stream_access(&shard->tables, &call->caller, &produce.id, ENGINE_VERB_PRODUCE, &topic);
    if (error == GRPC_ERROR_NONE && request.batch.size == 0) error = GRPC_ERROR_INVALID_BATCH;
    if (error != GRPC_ERROR_NONE) {
        produce_fail_error(call, request.request, error);
        return;
    }
    produce.message_bytes_max = topic->message_bytes_max;
    stream_payer_request(call, topic);
    stream_produce_submit(call, &produce, request.request, &message->buffer);
}

void stream_produce_submit(struct call *call, struct store_produce *produce, uint64_t number,
                           uint8_t **owned)
{
    struct shard *shard = shard_of(call);
    if (work_of(call)->pending_count < SHARD_STREAM_PENDINGS_MAX)
        produce->token = call_pending(call, PENDING_PRODUCE, number);
    if (produce->token == 0) {
        produce_fail_error(call, number, GRPC_ERROR_BUSY);
        return;
    }
    uint16_t owner = owner_of(produce->id.topic, produce->id.partition, shard->shards_count);
    if (owner != shard->index) {
        produce_forward(call, produce, owner, number, owned);
        return;
    }
    enum status status = produce_admit(shard, produce, 0, owned);
    if (status != STATUS_OK) {
        pending_give(shard, pending_find(shard, produce->token));
        produce_fail_status(call, number, status);
        return;
    }
    work_of(call)->pending_count++;
}

void stream_remote_produce(struct shard *shard, const struct shard_frame *frame)
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
        .token = pending_take(shard, &values),
    };
    enum status status = STATUS_BUSY;
    if (produce.token != 0) {
        uint8_t *nothing = NULL;
        status = produce_admit(shard, &produce, 1, &nothing);
        if (status == STATUS_OK) return;
        pending_give(shard, pending_find(shard, produce.token));
    }
    struct shard_frame answer = {
        .kind = FRAME_OUTCOME, .token = frame->token, .outcome = {.status = status}};
    queues_post(shard, &answer, frame->source, QUEUE_REPLY);
}

void stream_commit(struct call *call, struct grpc_message *message)
{
    struct shard *shard = shard_of(call);
    struct proto_commit_request request;
    if (proto_decode_commit(message->data, message->size, &request) != STATUS_OK
        || request.group == 0) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    struct engine_partition_id id =
        partition_id(request.topic, request.created_revision, request.partition);
    const struct table_topic *topic;
    enum grpc_error error =
        stream_access(&shard->tables, &call->caller, &id, ENGINE_VERB_CONSUME, &topic);
    if (error == GRPC_ERROR_NONE) stream_payer_request(call, topic);
    uint64_t token = error == GRPC_ERROR_NONE ? call_pending(call, PENDING_COMMIT, 0) : 0;
    if (error == GRPC_ERROR_NONE && token == 0) error = GRPC_ERROR_BUSY;
    if (error != GRPC_ERROR_NONE) {
        grpc_finish_error(call, error);
        return;
    }
    enum status status;
    uint16_t owner = owner_of(id.topic, id.partition, shard->shards_count);
    if (owner == shard->index) {
        status = store_commit_offset(shard->store, &id, request.group, request.generation,
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
        status = queues_try(shard, &frame, owner) ? STATUS_OK : STATUS_BUSY;
    }
    if (status == STATUS_OK) {
        work_of(call)->pending_count++;
        return;
    }
    pending_give(shard, pending_find(shard, token));
    struct grpc_failure failure = grpc_failure_of(status);
    grpc_finish(call, &failure);
}

void stream_remote_commit(struct shard *shard, const struct shard_frame *frame)
{
    struct pending values = {
        .kind = PENDING_REMOTE,
        .remote_kind = PENDING_COMMIT,
        .shard = frame->source,
        .number = frame->token,
    };
    uint64_t token = pending_take(shard, &values);
    enum status status = STATUS_BUSY;
    if (token != 0) {
        const struct frame_commit *commit = &frame->commit;
        status = store_commit_offset(shard->store, &commit->id, commit->group, commit->generation,
                                     commit->offset, token);
        if (status == STATUS_OK) return;
        pending_give(shard, pending_find(shard, token));
    }
    struct shard_frame answer = {
        .kind = FRAME_OUTCOME, .token = frame->token, .outcome = {.status = status}};
    queues_post(shard, &answer, frame->source, QUEUE_REPLY);
}

static void offsets_read(struct shard *shard, const struct engine_partition_id *id, uint64_t group,
                         struct frame_offsets *offsets)
{
    struct engine_group_state state = {0};
    struct engine_partition_state partition = {0};
    *offsets = (struct frame_offsets){.status = store_describe(shard->store, id, &partition)};
    if (offsets->status != STATUS_OK) return;
    enum status status = store_group_state(shard->store, id, group, &state);
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

void stream_fetch_offsets(struct call *call, struct grpc_message *message)
{
    struct shard *shard = shard_of(call);
    struct proto_commit_request request;
    if (proto_decode_fetch_offsets(message->data, message->size, &request) != STATUS_OK
        || request.group == 0) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    struct engine_partition_id id =
        partition_id(request.topic, request.created_revision, request.partition);
    const struct table_topic *topic;
    enum grpc_error error =
        stream_access(&shard->tables, &call->caller, &id, ENGINE_VERB_CONSUME, &topic);
    if (error != GRPC_ERROR_NONE) {
        grpc_finish_error(call, error);
        return;
    }
    stream_payer_request(call, topic);
    uint16_t owner = owner_of(id.topic, id.partition, shard->shards_count);
    if (owner == shard->index) {
        struct frame_offsets offsets;
        offsets_read(shard, &id, request.group, &offsets);
        offsets_answer(call, &offsets);
        return;
    }
    struct shard_frame frame = {
        .kind = FRAME_FETCH_OFFSETS,
        .token = call_pending(call, PENDING_FETCH_OFFSETS, 0),
        .commit = {.id = id, .group = request.group},
    };
    if (frame.token != 0 && queues_try(shard, &frame, owner)) {
        work_of(call)->pending_count++;
        return;
    }
    if (frame.token != 0) pending_give(shard, pending_find(shard, frame.token));
    grpc_finish_error(call, GRPC_ERROR_BUSY);
}

void stream_remote_offsets(struct shard *shard, const struct shard_frame *frame)
{
    struct shard_frame answer = {.kind = FRAME_OFFSETS, .token = frame->token};
    offsets_read(shard, &frame->commit.id, frame->commit.group, &answer.offsets);
    queues_post(shard, &answer, frame->source, QUEUE_REPLY);
}

void stream_health(struct call *call, struct grpc_message *message)
{
    if (proto_check(message->data, message->size) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    const struct shard *shard = shard_of(call);
    uint64_t silence_ns = shard->now.monotonic_ns - shard->host_beat_ns;
    int host_alive =
        shard->host_beat_ns != 0 && silence_ns < shard->limits.host_beat_ms * UINT64_C(1000000);
    int serving = shard->ready && !shard->draining && host_alive;
    uint8_t reply[16];
    grpc_reply_small(call, reply,
                     proto_encode_health(serving ? HEALTH_SERVING : HEALTH_NOT_SERVING, reply));
    grpc_finish_ok(call);
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

static void produce_answer(struct call *call, uint64_t request, const struct frame_outcome *outcome)
{
    if (outcome->status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(outcome->status);
        failure.expected = outcome->expected;
        produce_fail(call, request, &failure);
        return;
    }
    if (is_method(call, METHOD_PUBLISH)) {
        publish_reply(call, (uint32_t)request, outcome);
        return;
    }
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

static void commit_answer(struct call *call, const struct frame_outcome *outcome)
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

void stream_produce_end(struct call *call)
{
    if (work_of(call)->pending_count == 0) grpc_finish_ok(call);
}

void stream_outcome(struct shard *shard, struct pending *pending,
                    const struct frame_outcome *outcome)
{
    struct call *call = grpc_call_find(shard->grpc, pending->call_index, pending->call_tag);
    struct pending done = *pending;
    buffer_give(&shard->pool, done.loan);
    pending_give(shard, pending);
    if (call == NULL) {
        shard->counters.late_outcomes++;
        return;
    }
    assert(work_of(call)->pending_count > 0);
    work_of(call)->pending_count--;
    if (done.kind == PENDING_COMMIT) {
        commit_answer(call, outcome);
        return;
    }
    assert(done.kind == PENDING_PRODUCE);
    produce_answer(call, done.number, outcome);
    if (is_method(call, METHOD_PRODUCE_STREAM) && call->stream.half_closed)
        stream_produce_end(call);
}

void stream_offsets(struct shard *shard, struct pending *pending,
                    const struct frame_offsets *offsets)
{
    struct call *call = grpc_call_find(shard->grpc, pending->call_index, pending->call_tag);
    pending_give(shard, pending);
    if (call == NULL) {
        shard->counters.late_outcomes++;
        return;
    }
    assert(work_of(call)->pending_count > 0);
    work_of(call)->pending_count--;
    offsets_answer(call, offsets);
}
