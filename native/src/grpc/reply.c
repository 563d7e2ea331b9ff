/* grpc/reply.c: replies on their way out: the queue of a call, DATA frames, status trailers. The
 * one place that submits to nghttp2 for a call, so that exactly one terminal status can leave. */
#include <nghttp2/nghttp2.h>
#include <string.h>

#include "foundation/assert.h"
#include "grpc/reply_budget.h"
#include "grpc/server.h"
#include "host/calls.h"
#include "service/consume.h"
#include "service/queue.h"
#include "shard/shard.h"

#define HEADER(header_name, header_value, header_value_size)                    \
    {(uint8_t *)(uintptr_t)(header_name), (uint8_t *)(uintptr_t)(header_value), \
     sizeof(header_name) - 1, header_value_size,                                \
     NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}

/* Values made here are copied by nghttp2. */
#define HEADER_MADE(header_name, header_value, header_value_size)                \
    {(uint8_t *)(uintptr_t)(header_name), header_value, sizeof(header_name) - 1, \
     header_value_size, NGHTTP2_NV_FLAG_NO_COPY_NAME}

static const char *const codes[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                    "9", "10", "11", "12", "13", "14", "15", "16"};

enum { TRAILERS_COUNT_MAX = 3, RESPONSE_COUNT = 2, HOST_STATUS_SIZE_MAX = 8192 };

struct trailers {
    nghttp2_nv entries[RESPONSE_COUNT + TRAILERS_COUNT_MAX];
    size_t count;
    uint8_t message[GRPC_TRAILER_SIZE_MAX];
    uint8_t details[HOST_STATUS_SIZE_MAX / 3 * 4 + 8];
};

struct reply *grpc_reply_make(struct shard *shard, size_t size)
{
    uint8_t *buffer = buffer_take(&shard->pool, sizeof(struct reply) + GRPC_PREFIX_SIZE + size);
    if (buffer == NULL) return NULL;
    struct reply *reply = (struct reply *)(void *)buffer;
    *reply = (struct reply){
        .data = buffer + sizeof(struct reply),
        .size = (uint32_t)(GRPC_PREFIX_SIZE + size),
        .references = 1,
        .owner = shard->index,
    };
    reply->data[0] = 0;
    reply->data[1] = (uint8_t)(size >> 24);
    reply->data[2] = (uint8_t)(size >> 16);
    reply->data[3] = (uint8_t)(size >> 8);
    reply->data[4] = (uint8_t)size;
    return reply;
}

void grpc_reply_release(struct shard *shard, struct reply *reply)
{
    assert(reply->references > 0);
    reply->references--;
    if (reply->references > 0) return;
    if (reply->payer.topic != 0) shard->counters.egress_unsent += reply->body_bytes;
    if (reply->connection != NULL) stream_consume_sent(reply);
    if (reply->owner == shard->index) {
        grpc_reply_give(shard, reply);
        return;
    }
    struct shard_frame frame = {.kind = FRAME_RELEASE, .released = reply};
    queues_post(shard, &frame, reply->owner, QUEUE_REPLY);
}

void grpc_reply_sent(struct shard *shard, struct reply *reply)
{
    tally_add(&shard->tally, &reply->payer, TALLY_EGRESS_BYTES, reply->body_bytes);
    shard->counters.egress_bytes += reply->body_bytes;
    reply->payer.topic = 0;
    grpc_reply_release(shard, reply);
}

void grpc_reply_give(struct shard *shard, struct reply *reply)
{
    assert(reply->owner == shard->index);
    if (reply->charged != 0) reply_budget_refund(shard, reply);
    buffer_give(&shard->pool, reply);
}

static void reply_pop(struct call *call)
{
    struct reply *reply = call->replies_head;
    assert(reply->taken == reply->size);
    call->replies_head = reply->next;
    if (call->replies_head == NULL) call->replies_tail = NULL;
    assert(call->replies_bytes >= reply->size);
    call->replies_bytes -= reply->size;
    if (call->method == METHOD_HOST) host_call_credit(call, reply->size - GRPC_PREFIX_SIZE);
    if (reply->payer.topic != 0)
        http2_output_follow(call->connection, reply);
    else
        grpc_reply_release(call->connection->shard, reply);
    if (call->method == METHOD_CONSUME) stream_consume_ready(call);
    if (call->method == METHOD_PRODUCE_STREAM) produce_queue_read(call);
}

void grpc_reply_drop(struct call *call)
{
    while (call->replies_head != NULL) {
        struct reply *reply = call->replies_head;
        call->replies_head = reply->next;
        grpc_reply_release(call->connection->shard, reply);
    }
    call->replies_tail = NULL;
    call->replies_bytes = 0;
}

static void trailers_add(struct trailers *trailers, nghttp2_nv entry)
{
    assert(trailers->count < sizeof trailers->entries / sizeof trailers->entries[0]);
    trailers->entries[trailers->count++] = entry;
}

static void trailers_failure(struct trailers *trailers, const struct grpc_failure *failure)
{
    struct proto_error error;
    grpc_failure_proto(failure, &error);
    uint32_t code = (uint32_t)grpc_error_entry(failure->error)->grpc_code;
    uint8_t status[PROTO_STATUS_SIZE_MAX];
    size_t status_size = proto_encode_status(code, &error, status);
    size_t message_size = grpc_percent_encode((const uint8_t *)error.message, strlen(error.message),
                                              trailers->message, sizeof trailers->message);
    size_t details_size = grpc_base64(status, status_size, trailers->details);
    trailers_add(trailers, (nghttp2_nv)HEADER("grpc-status", codes[code], strlen(codes[code])));
    trailers_add(trailers,
                 (nghttp2_nv)HEADER_MADE("grpc-message", trailers->message, message_size));
    trailers_add(trailers, (nghttp2_nv)HEADER_MADE("grpc-status-details-bin", trailers->details,
                                                   details_size));
}

static void trailers_host(struct trailers *trailers, const struct call *call)
{
    uint32_t code =
        call->host_grpc_code <= GRPC_UNAUTHENTICATED ? call->host_grpc_code : GRPC_UNKNOWN;
    trailers_add(trailers, (nghttp2_nv)HEADER("grpc-status", codes[code], strlen(codes[code])));
    if (call->host_status_size == 0) return;
    struct proto_bytes text = proto_status_message(call->host_status, call->host_status_size);
    if (text.size > 0) {
        size_t size =
            grpc_percent_encode(text.data, text.size, trailers->message, sizeof trailers->message);
        trailers_add(trailers, (nghttp2_nv)HEADER_MADE("grpc-message", trailers->message, size));
    }
    size_t size = grpc_base64(call->host_status, call->host_status_size, trailers->details);
    trailers_add(trailers,
                 (nghttp2_nv)HEADER_MADE("grpc-status-details-bin", trailers->details, size));
}

static void trailers_make(struct trailers *trailers, const struct call *call)
{
    assert(call->finished);
    if (call->failure.error != GRPC_ERROR_NONE) {
        trailers_failure(trailers, &call->failure);
    } else {
        trailers_host(trailers, call);
    }
}

static void response_headers(nghttp2_nv *entries)
{
    entries[0] = (nghttp2_nv)HEADER(":status", "200", 3);
    entries[1] = (nghttp2_nv)HEADER("content-type", "application/grpc", 16);
}

/* Small replies are gathered into one DATA frame; a large one goes out where it lies. */
static ssize_t read_replies(struct call *call, uint8_t *buffer, size_t length, uint32_t *flags)
{
    size_t written = 0;
    while (call->replies_head != NULL && written < length) {
        struct reply *reply = call->replies_head;
        size_t left = reply->size - reply->taken;
        if (left >= HTTP2_REFERENCE_SIZE_MIN) {
            if (written > 0) break;
            *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
            return (ssize_t)(left < length ? left : length);
        }
        size_t taken = left < length - written ? left : length - written;
        memcpy(buffer + written, reply->data + reply->taken, taken);
        reply->taken += (uint32_t)taken;
        written += taken;
        call->replies_ns = call->connection->shard->now.monotonic_ns;
        if (reply->taken == reply->size) reply_pop(call);
    }
    return (ssize_t)written;
}

static ssize_t on_read(nghttp2_session *session, int32_t stream_id, uint8_t *buffer, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)user;
    struct call *call = source->ptr;
    assert(call->stream_id == stream_id);
    ssize_t size = read_replies(call, buffer, length, flags);
    /* With a reference the reply is still in the queue: its end comes with the next frame. */
    if (call->replies_head != NULL) return size;
    if (!call->finished) {
        if (size > 0) return size;
        call->deferred = 1;
        return NGHTTP2_ERR_DEFERRED;
    }
    struct trailers trailers;
    trailers.count = 0;
    trailers_make(&trailers, call);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    int failed = nghttp2_submit_trailer(session, stream_id, trailers.entries, trailers.count);
    if (failed == 0) return size;
    http2_output_unframed(call->connection);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

void grpc_reply_send(struct call *call, const uint8_t header[9], size_t size)
{
    struct reply *reply = call->replies_head;
    assert(reply != NULL);
    assert(reply->size - reply->taken >= size);
    (void)http2_output_data(call->connection, header, reply, reply->data + reply->taken, size);
    reply->taken += (uint32_t)size;
    call->replies_ns = call->connection->shard->now.monotonic_ns;
    if (reply->taken == reply->size) reply_pop(call);
}

static void respond(struct call *call)
{
    assert(!call->responded);
    call->responded = 1;
    nghttp2_session *session = call->connection->session;
    int failed;
    if (call->replies_head == NULL && call->finished) {
        struct trailers trailers;
        response_headers(trailers.entries);
        trailers.count = RESPONSE_COUNT;
        trailers_make(&trailers, call);
        failed = nghttp2_submit_response(session, call->stream_id, trailers.entries, trailers.count,
                                         NULL);
    } else {
        nghttp2_nv entries[RESPONSE_COUNT];
        response_headers(entries);
        nghttp2_data_provider provider = {.source.ptr = call, .read_callback = on_read};
        failed =
            nghttp2_submit_response(session, call->stream_id, entries, RESPONSE_COUNT, &provider);
    }
    /* No memory for an answer: the connection cannot be used any more. */
    if (failed != 0) http2_mark_closing(call->connection);
}

static void advance(struct call *call)
{
    if (!call->responded) {
        respond(call);
    } else if (call->deferred) {
        call->deferred = 0;
        (void)nghttp2_session_resume_data(call->connection->session, call->stream_id);
    }
    http2_mark_dirty(call->connection);
}

/* 0 = the call's principal has as many unread answers as it may. */
static int charge(const struct call *call, struct reply *reply)
{
    struct shard *shard = call->connection->shard;
    if (call->method != METHOD_HOST && call->method != METHOD_PRODUCE_STREAM) return 1;
    size_t size = reply->size - GRPC_PREFIX_SIZE;
    if (!reply_budget_room(shard, REPLY_ANSWERS, call->caller.principal, size)) return 0;
    reply_budget_charge(shard, REPLY_ANSWERS, reply, call->caller.principal);
    return 1;
}

void grpc_reply_queue(struct call *call, struct reply *reply)
{
    assert(reply->next == NULL);
    if (call->finished) {
        grpc_reply_release(call->connection->shard, reply);
        return;
    }
    if (!charge(call, reply)) {
        call->connection->shard->counters.answers_refused++;
        grpc_reply_release(call->connection->shard, reply);
        struct grpc_failure failure = grpc_failure_of(STATUS_REPLIES_FULL);
        grpc_finish(call, &failure);
        return;
    }
    if (call->replies_tail != NULL) {
        call->replies_tail->next = reply;
    } else {
        call->replies_head = reply;
        call->replies_ns = call->connection->shard->now.monotonic_ns;
    }
    call->replies_tail = reply;
    call->replies_bytes += reply->size;
    if (call->replies_bytes > CALL_QUEUED_BYTES_MAX) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
        return;
    }
    advance(call);
}

void grpc_reply_small(struct call *call, const uint8_t *message, size_t size)
{
    if (call->finished) return;
    struct reply *reply = grpc_reply_make(call->connection->shard, size);
    if (reply == NULL) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
        return;
    }
    memcpy(reply->data + GRPC_PREFIX_SIZE, message, size);
    grpc_reply_queue(call, reply);
}

void grpc_window_return(struct call *call)
{
    struct shard *shard = call->connection->shard;
    if (call->held_link.queue != NULL) queue_remove(&shard->produce_held, &call->held_link);
    if (call->window_owed == 0) return;
    (void)nghttp2_session_consume_stream(call->connection->session, call->stream_id,
                                         call->window_owed);
    call->window_owed = 0;
    http2_mark_dirty(call->connection);
}

static void finish(struct call *call)
{
    assert(!call->finished);
    call->finished = 1;
    if (call->fetch_index != 0 || call->fetch_pending != 0) {
        assert(call->method == METHOD_FETCH || call->method == METHOD_FETCH_MESSAGES
               || call->method == METHOD_CONSUME || call->method == METHOD_LIST_OFFSETS);
    }
    grpc_message_drop(call);
    grpc_window_return(call);
    advance(call);
}

void grpc_finish_ok(struct call *call)
{
    if (call->finished) return;
    finish(call);
}

void grpc_finish(struct call *call, const struct grpc_failure *failure)
{
    if (call->finished) return;
    assert(failure->error > GRPC_ERROR_NONE);
    call->connection->shard->counters.failures_by_error[failure->error]++;
    if (call->host_opened) host_call_cancel(call);
    call->failure = *failure;
    finish(call);
}

void grpc_finish_error(struct call *call, enum grpc_error error)
{
    struct grpc_failure failure = {.error = error};
    grpc_finish(call, &failure);
}

void grpc_finish_host(struct call *call, uint32_t code, const uint8_t *status, size_t size)
{
    if (call->finished) return;
    call->host_grpc_code = code;
    if (size > 0 && size <= HOST_STATUS_SIZE_MAX) {
        call->host_status = buffer_take(&call->connection->shard->pool, size);
        if (call->host_status != NULL) {
            memcpy(call->host_status, status, size);
            call->host_status_size = (uint32_t)size;
        }
    }
    finish(call);
}
