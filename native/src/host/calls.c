#include "host/calls.h"

#include <nghttp2/nghttp2.h>
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
    const struct shard *shard = call->connection->shard;
    if (is_session(call)) return call->deadline_ns;
    uint64_t cap_ns = shard->now.monotonic_ns + shard->limits.call_ms * UINT64_C(1000000);
    return call->deadline_ns != 0 && call->deadline_ns < cap_ns ? call->deadline_ns : cap_ns;
}

void host_call_open(struct call *call)
{
    struct shard *shard = call->connection->shard;
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
    call->host_opened = 1;
    call->timer.kind = TIMER_CALL;
    uint64_t end_ns = latest_ns(call);
    if (end_ns != 0) timer_set(&shard->timers, &call->timer, end_ns);
}

void host_call_message(struct call *call, const uint8_t *message, size_t size)
{
    if (!call->host_opened || call->finished) return;
    struct engine_frame frame = call_frame(call, ENGINE_MESSAGE);
    struct host_body body = {.data = message, .size = size};
    if (host_post(call->connection->shard, &frame, &body) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

void host_call_half_close(struct call *call)
{
    if (!call->host_opened) return;
    struct engine_frame frame = call_frame(call, ENGINE_HALF_CLOSE);
    if (host_post(call->connection->shard, &frame, NULL) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

void host_call_cancel(struct call *call)
{
    assert(call->host_opened);
    struct shard *shard = call->connection->shard;
    __atomic_store_n(&shard->calls_cancelled[call->index], call->slot_tag, __ATOMIC_RELEASE);
    __atomic_fetch_add(&shard->calls_cancelled_count, 1, __ATOMIC_ACQ_REL);
    shard->host_posted = 1;
    struct engine_frame frame = call_frame(call, ENGINE_CANCELLED);
    (void)host_try(shard, &frame, NULL);
}

void host_call_credit(struct call *call, size_t size)
{
    if (!call->host_opened || call->finished || size == 0) return;
    struct engine_frame frame = call_frame(call, ENGINE_CREDIT);
    frame.arg0 = size;
    /* Lost credit would stall the handler for ever: end the call instead. */
    if (host_post(call->connection->shard, &frame, NULL) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

void host_call_timeout(struct shard *shard, struct timer *timer)
{
    struct call *call = queue_element(&timer->link, struct call, timer.link);
    assert(call->connection != NULL);
    if (call->finished) return;
    struct grpc_failure failure = {
        .error = GRPC_ERROR_DEADLINE_EXCEEDED,
        .hint = "see whether it was done, then repeat",
    };
    if (call->deadline_ns == 0 || call->deadline_ns > shard->now.monotonic_ns) {
        shard->counters.calls_late++;
        failure.detail = "the node did not answer within the time that it gives such a call";
    }
    grpc_finish(call, &failure);
}

static void call_message(struct call *call, const uint8_t *body, size_t size)
{
    struct reply *reply = grpc_reply_make(call->connection->shard, size);
    if (reply == NULL) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
        return;
    }
    memcpy(reply->data + GRPC_PREFIX_SIZE, body, size);
    grpc_reply_queue(call, reply);
}

static void call_credit(struct call *call, uint64_t bytes)
{
    uint32_t owed = call->window_owed;
    uint32_t given = bytes < owed ? (uint32_t)bytes : owed;
    if (given == 0) return;
    call->window_owed -= given;
    (void)nghttp2_session_consume_stream(call->connection->session, call->stream_id, given);
    http2_mark_dirty(call->connection);
}

void host_call_frame(struct shard *shard, const struct engine_frame *frame, const uint8_t *body,
                     size_t size)
{
    struct call *call = call_find(shard, frame->slot, frame->slot_tag);
    if (call == NULL || !call->host_opened || call->finished) {
        shard->counters.late_host_answers++;
        return;
    }
    switch (frame->kind) {
    case ENGINE_SEND_MESSAGE: call_message(call, body, size); return;
    case ENGINE_SEND_CREDIT: call_credit(call, frame->arg0); return;
    case ENGINE_SEND_STATUS:
        grpc_finish_host(call,
                         frame->arg0 <= GRPC_UNAUTHENTICATED ? (uint32_t)frame->arg0 : GRPC_UNKNOWN,
                         body, size);
        return;
    default: unreachable();
    }
}
