#include "host/calls.h"

#include <string.h>

#include "foundation/assert.h"
#include "grpc/server.h"
#include "host/ring.h"
#include "shard/shard.h"

/* Room that OPEN leaves in the ring for what calls in progress still have to say. */
enum { OPEN_RESERVE_BYTES = 1048576 };

static struct engine_frame call_frame(const struct call *call, enum engine_frame_kind kind)
{
    return (struct engine_frame){
        .kind = (uint16_t)kind, .slot = call->index, .slot_tag = call->slot_tag};
}

static int is_opened(const struct call *call)
{
    return shard_of(call)->calls_opened[call->index];
}

/* It lasts as long as its member, whose heartbeats the host watches. */
static int is_session(const struct call *call)
{
    static const char session[] = "/headrace.stream.v1.Groups/Session";
    return call->path_size == sizeof session - 1
           && memcmp(call->path, session, sizeof session - 1) == 0;
}

/* When the shard ends it without an answer; 0 = never. */
static uint64_t latest_ns(const struct call *call)
{
    const struct shard *shard = shard_of(call);
    if (is_session(call)) return call->deadline_ns;
    uint64_t cap_ns = shard->now.monotonic_ns + shard->limits.call_ms * UINT64_C(1000000);
    return call->deadline_ns != 0 && call->deadline_ns < cap_ns ? call->deadline_ns : cap_ns;
}

static void host_call_open(struct call *call)
{
    struct shard *shard = shard_of(call);
    struct engine_frame frame = call_frame(call, ENGINE_OPEN);
    frame.arg0 = call->deadline_ns;
    struct host_body body = {
        .data = &call->caller,
        .size = sizeof call->caller,
        .tail = call->path,
        .tail_size = call->path_size,
    };
    if (frame_ring_free(&shard->host_out) < OPEN_RESERVE_BYTES || !host_try(shard, &frame, &body)) {
        shard->counters.host_opens_refused++;
        grpc_finish_error(call, GRPC_ERROR_HOST_BUSY);
        return;
    }
    shard->calls_opened[call->index] = 1;
    uint64_t end_ns = latest_ns(call);
    if (end_ns != 0) grpc_deadline_set(call, end_ns);
}

static void host_call_message(struct call *call, struct grpc_message *message)
{
    if (!is_opened(call) || call->finished) return;
    struct engine_frame frame = call_frame(call, ENGINE_MESSAGE);
    struct host_body body = {.data = message->data, .size = message->size};
    if (host_post(shard_of(call), &frame, &body) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

static void host_call_half_close(struct call *call)
{
    if (!is_opened(call)) return;
    struct engine_frame frame = call_frame(call, ENGINE_HALF_CLOSE);
    if (host_post(shard_of(call), &frame, NULL) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

static void host_call_cancel(struct call *call)
{
    struct shard *shard = shard_of(call);
    if (!is_opened(call)) return;
    __atomic_store_n(&shard->calls_cancelled[call->index], call->slot_tag, __ATOMIC_RELEASE);
    __atomic_fetch_add(&shard->calls_cancelled_count, 1, __ATOMIC_ACQ_REL);
    shard->host_posted = 1;
    struct engine_frame frame = call_frame(call, ENGINE_CANCELLED);
    (void)host_try(shard, &frame, NULL);
}

static void host_call_writable(struct call *call, size_t size)
{
    if (!is_opened(call) || call->finished || size == 0) return;
    struct engine_frame frame = call_frame(call, ENGINE_CREDIT);
    frame.arg0 = size;
    /* Lost credit would stall the handler for ever: end the call instead. */
    if (host_post(shard_of(call), &frame, NULL) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

static void call_message(struct call *call, const uint8_t *body, size_t size)
{
    struct reply *reply = grpc_reply_make(shard_of(call)->grpc, size);
    if (reply == NULL) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
        return;
    }
    memcpy(reply->body.data + GRPC_PREFIX_SIZE, body, size);
    grpc_reply_queue(call, reply);
}

static void host_call_closed(struct call *call)
{
    shard_of(call)->calls_opened[call->index] = 0;
}

static int path_begins(const struct call *call, const char *prefix)
{
    size_t length = strlen(prefix);
    return call->path_size >= length && memcmp(call->path, prefix, length) == 0;
}

static enum grpc_error host_call_authorize(const struct call *call)
{
    /* Health.Watch, reflection and the like tell nothing about anybody's data: the host decides. */
    if (call->answer == GRANT_ANSWER_MISSING && !path_begins(call, "/headrace."))
        return GRPC_ERROR_NONE;
    enum grpc_error error = grpc_answer_error((enum grant_answer)call->answer);
    if (error == GRPC_ERROR_NONE && path_begins(call, "/headrace.node.")
        && !(call->caller.verbs & ENGINE_VERB_ADMIN))
        return GRPC_ERROR_PERMISSION_DENIED;
    return error;
}

const struct grpc_method host_method = {
    .path = "",
    .metric = "host",
    .message_size_max = CALL_HOST_MESSAGE_SIZE_MAX,
    .flags = GRPC_METHOD_STREAMS | GRPC_METHOD_QUIET | GRPC_METHOD_WAITS | GRPC_METHOD_CREDIT
             | GRPC_METHOD_CHARGED,
    .authorize = host_call_authorize,
    .open = host_call_open,
    .message = host_call_message,
    .end = host_call_half_close,
    .writable = host_call_writable,
    .cancelled = host_call_cancel,
    .closed = host_call_closed,
};

void host_call_frame(struct shard *shard, const struct engine_frame *frame, const uint8_t *body,
                     size_t size)
{
    struct call *call = grpc_call_find(shard->grpc, frame->slot, frame->slot_tag);
    if (call == NULL || !is_opened(call) || call->finished) {
        shard->counters.late_host_answers++;
        return;
    }
    switch (frame->kind) {
    case ENGINE_SEND_MESSAGE: call_message(call, body, size); return;
    case ENGINE_SEND_CREDIT: grpc_window_return(call, frame->arg0); return;
    case ENGINE_SEND_STATUS:
        grpc_finish_status(
            call, frame->arg0 <= GRPC_UNAUTHENTICATED ? (uint32_t)frame->arg0 : GRPC_UNKNOWN, body,
            size);
        return;
    default: unreachable();
    }
}
