/* grpc/reply.c: answers of a call: its replies, its one status, and the trailers that say it. */
#include <string.h>

#include "foundation/assert.h"
#include "foundation/buffer_pool.h"
#include "grpc/state.h"

#define FIELD(field_name, field_value, field_value_size)                                 \
    ((struct http2_field){(const uint8_t *)(field_name), (const uint8_t *)(field_value), \
                          sizeof(field_name) - 1, field_value_size, 1})

/* Values made here are copied by the transport. */
#define FIELD_MADE(field_name, field_value, field_value_size)                                 \
    ((struct http2_field){(const uint8_t *)(field_name), field_value, sizeof(field_name) - 1, \
                          field_value_size, 0})

static const char *const codes[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                    "9", "10", "11", "12", "13", "14", "15", "16"};

enum { TRAILERS_COUNT_MAX = 3, RESPONSE_COUNT = 2, STATUS_SIZE_MAX = 8192 };

struct trailers {
    struct http2_field fields[RESPONSE_COUNT + TRAILERS_COUNT_MAX];
    size_t count;
    uint8_t message[GRPC_TRAILER_SIZE_MAX];
    uint8_t details[STATUS_SIZE_MAX / 3 * 4 + 8];
};

struct reply *grpc_reply_make(struct grpc_server *server, size_t size)
{
    uint8_t *buffer = buffer_take(server->pool, sizeof(struct reply) + GRPC_PREFIX_SIZE + size);
    if (buffer == NULL) return NULL;
    struct reply *reply = (struct reply *)(void *)buffer;
    uint8_t *data = buffer + sizeof(struct reply);
    *reply = (struct reply){
        .body = {.data = data, .size = (uint32_t)(GRPC_PREFIX_SIZE + size), .references = 1},
        .owner = server->shard,
    };
    data[0] = 0;
    data[1] = (uint8_t)(size >> 24);
    data[2] = (uint8_t)(size >> 16);
    data[3] = (uint8_t)(size >> 8);
    data[4] = (uint8_t)size;
    return reply;
}

static struct reply *reply_of(struct http2_body *body)
{
    return (struct reply *)(void *)body;
}

void grpc_reply_released(void *owner, struct http2_body *body)
{
    struct grpc_server *server = owner;
    struct reply *reply = reply_of(body);
    if (reply->attribution.topic != 0) server->counters.egress_unsent += reply->payload_bytes;
    if (reply->pushed != NULL) reply_share_return(server, reply);
    if (reply->owner == server->shard)
        grpc_reply_give(server, reply);
    else
        server->hooks.give_back(server->hooks.context, reply);
}

void grpc_reply_release(struct grpc_server *server, struct reply *reply)
{
    http2_body_release(server->http2, &reply->body);
}

void grpc_reply_sent(void *owner, struct http2_body *body)
{
    struct grpc_server *server = owner;
    struct reply *reply = reply_of(body);
    tally_add(server->tally, &reply->attribution, TALLY_EGRESS_BYTES, reply->payload_bytes);
    server->counters.egress_bytes += reply->payload_bytes;
    reply->attribution.topic = 0;
}

void grpc_reply_give(struct grpc_server *server, struct reply *reply)
{
    assert(reply->owner == server->shard);
    if (reply->charged != 0) reply_budget_refund(server, reply);
    buffer_give(server->pool, reply);
}

void grpc_writable(struct http2_stream *stream, uint32_t size)
{
    struct call *call = call_of(stream);
    assert(size >= GRPC_PREFIX_SIZE);
    if (call->method->writable != NULL) call->method->writable(call, size - GRPC_PREFIX_SIZE);
}

static void trailers_add(struct trailers *trailers, struct http2_field field)
{
    assert(trailers->count < sizeof trailers->fields / sizeof trailers->fields[0]);
    trailers->fields[trailers->count++] = field;
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
    trailers_add(trailers, FIELD("grpc-status", codes[code], strlen(codes[code])));
    trailers_add(trailers, FIELD_MADE("grpc-message", trailers->message, message_size));
    trailers_add(trailers, FIELD_MADE("grpc-status-details-bin", trailers->details, details_size));
}

static void trailers_status(struct trailers *trailers, const struct call *call)
{
    uint32_t code = call->status_code;
    trailers_add(trailers, FIELD("grpc-status", codes[code], strlen(codes[code])));
    if (call->status_size == 0) return;
    struct proto_bytes text = proto_status_message(call->status, call->status_size);
    if (text.size > 0) {
        size_t size =
            grpc_percent_encode(text.data, text.size, trailers->message, sizeof trailers->message);
        trailers_add(trailers, FIELD_MADE("grpc-message", trailers->message, size));
    }
    size_t size = grpc_base64(call->status, call->status_size, trailers->details);
    trailers_add(trailers, FIELD_MADE("grpc-status-details-bin", trailers->details, size));
}

static void trailers_make(struct trailers *trailers, const struct call *call)
{
    assert(call->finished);
    if (call->failure.error != GRPC_ERROR_NONE) {
        trailers_failure(trailers, &call->failure);
    } else {
        trailers_status(trailers, call);
    }
}

static void response_fields(struct trailers *trailers)
{
    trailers_add(trailers, FIELD(":status", "200", 3));
    trailers_add(trailers, FIELD("content-type", "application/grpc", 16));
}

int grpc_fields(struct http2_stream *stream, enum http2_block block)
{
    struct trailers trailers;
    trailers.count = 0;
    if (block != HTTP2_BLOCK_TRAILERS) response_fields(&trailers);
    if (block != HTTP2_BLOCK_RESPONSE) trailers_make(&trailers, call_of(stream));
    return http2_submit(stream, block, trailers.fields, trailers.count);
}

/* 0 = the call's principal has as many unread answers as it may. */
static int charge(const struct call *call, struct reply *reply)
{
    struct grpc_server *server = call->server;
    if (!(call->method->flags & GRPC_METHOD_CHARGED)) return 1;
    size_t size = reply->body.size - GRPC_PREFIX_SIZE;
    if (!reply_budget_room(server, REPLY_ANSWERS, call->caller.principal, size)) return 0;
    reply_budget_charge(server, REPLY_ANSWERS, reply, call->caller.principal);
    return 1;
}

void grpc_reply_queue(struct call *call, struct reply *reply)
{
    assert(reply->body.next == NULL);
    if (call->finished) {
        grpc_reply_release(call->server, reply);
        return;
    }
    if (!charge(call, reply)) {
        call->server->counters.answers_refused++;
        grpc_reply_release(call->server, reply);
        struct grpc_failure failure = grpc_failure_of(STATUS_REPLIES_FULL);
        grpc_finish(call, &failure);
        return;
    }
    reply->body.followed = reply->attribution.topic != 0;
    http2_send(&call->stream, &reply->body);
    if (call->stream.bodies_bytes > CALL_QUEUED_BYTES_MAX)
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
}

void grpc_reply_small(struct call *call, const uint8_t *message, size_t size)
{
    if (call->finished) return;
    struct reply *reply = grpc_reply_make(call->server, size);
    if (reply == NULL) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
        return;
    }
    memcpy(reply->body.data + GRPC_PREFIX_SIZE, message, size);
    grpc_reply_queue(call, reply);
}

void grpc_window_return(struct call *call, uint64_t size)
{
    uint32_t owed = call->window_owed;
    uint32_t given = size < owed ? (uint32_t)size : owed;
    if (given == 0) return;
    call->window_owed -= given;
    http2_window_return(&call->stream, given);
}

static void finish(struct call *call)
{
    assert(!call->finished);
    call->finished = 1;
    grpc_message_drop(call);
    grpc_window_return(call, UINT64_MAX);
    http2_finish(&call->stream);
}

void grpc_finish_ok(struct call *call)
{
    if (call->finished) return;
    finish(call);
}

void grpc_failure_count(struct call *call, enum grpc_error error)
{
    assert(error > GRPC_ERROR_NONE);
    call->server->counters.failures_by_error[error]++;
}

void grpc_finish(struct call *call, const struct grpc_failure *failure)
{
    if (call->finished) return;
    grpc_failure_count(call, failure->error);
    if (call->method != NULL && call->method->cancelled != NULL) call->method->cancelled(call);
    call->failure = *failure;
    finish(call);
}

void grpc_finish_error(struct call *call, enum grpc_error error)
{
    struct grpc_failure failure = {.error = error};
    grpc_finish(call, &failure);
}

void grpc_finish_status(struct call *call, uint32_t code, const uint8_t *status, size_t size)
{
    if (call->finished) return;
    call->status_code = (uint8_t)(code <= GRPC_UNAUTHENTICATED ? code : GRPC_UNKNOWN);
    if (size > 0 && size <= STATUS_SIZE_MAX) {
        call->status = buffer_take(call->server->pool, size);
        if (call->status != NULL) {
            memcpy(call->status, status, size);
            call->status_size = (uint32_t)size;
        }
    }
    finish(call);
}
