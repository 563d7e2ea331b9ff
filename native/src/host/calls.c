#include "host/calls.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "host/ring.h"
#include "host/state.h"

/* Room that OPEN leaves in the ring for what calls in progress still have to say. */
enum { OPEN_RESERVE_BYTES = 1048576 };

size_t host_calls_memory_bytes(void)
{
    return arena_size(sizeof(uint32_t) * GRPC_CALLS_COUNT_MAX)
           + arena_size(sizeof(uint8_t) * GRPC_CALLS_COUNT_MAX);
}

int host_calls_make(struct host *host, struct arena *arena)
{
    host->calls_cancelled = arena_take(arena, sizeof(uint32_t) * GRPC_CALLS_COUNT_MAX);
    host->calls_opened = arena_take(arena, sizeof(uint8_t) * GRPC_CALLS_COUNT_MAX);
    return host->calls_cancelled && host->calls_opened;
}

int host_calls_invariants(const struct host *host)
{
    const uint8_t *opened = host->calls_opened;
    const uint8_t *end = opened + GRPC_CALLS_COUNT_MAX;
    for (const uint8_t *at = opened; (at = memchr(at, 1, (size_t)(end - at))) != NULL; at++) {
        const struct call *call = grpc_call_at(host->grpc, (uint32_t)(at - opened));
        assert(call != NULL);
        assert(call->method == &host_method);
        assert(call->context == host);
    }
    return 1;
}

static struct engine_frame call_frame(const struct call *call, enum engine_frame_kind kind)
{
    return (struct engine_frame){
        .kind = (uint16_t)kind, .slot = call->index, .slot_tag = call->slot_tag};
}

static int is_opened(const struct call *call)
{
    return host_of(call)->calls_opened[call->index];
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
    const struct host *host = host_of(call);
    if (is_session(call)) return call->deadline_ns;
    uint64_t cap_ns = host->now->monotonic_ns + host->call_ms * UINT64_C(1000000);
    return call->deadline_ns != 0 && call->deadline_ns < cap_ns ? call->deadline_ns : cap_ns;
}

static void host_call_open(struct call *call)
{
    struct host *host = host_of(call);
    struct engine_frame frame = call_frame(call, ENGINE_OPEN);
    frame.arg0 = call->deadline_ns;
    struct host_body body = {
        .data = &call->caller,
        .size = sizeof call->caller,
        .tail = call->path,
        .tail_size = call->path_size,
    };
    if (frame_ring_free(&host->out) < OPEN_RESERVE_BYTES || !host_try(host, &frame, &body)) {
        host->counters.host_opens_refused++;
        grpc_finish_error(call, GRPC_ERROR_HOST_BUSY);
        return;
    }
    host->calls_opened[call->index] = 1;
    uint64_t end_ns = latest_ns(call);
    if (end_ns != 0) grpc_deadline_set(call, end_ns);
}

static void host_call_message(struct call *call, struct grpc_message *message)
{
    if (!is_opened(call) || call->finished) return;
    struct engine_frame frame = call_frame(call, ENGINE_MESSAGE);
    struct host_body body = {.data = message->data, .size = message->size};
    if (host_post(host_of(call), &frame, &body) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

static void host_call_half_close(struct call *call)
{
    if (!is_opened(call)) return;
    struct engine_frame frame = call_frame(call, ENGINE_HALF_CLOSE);
    if (host_post(host_of(call), &frame, NULL) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

static void host_call_cancel(struct call *call)
{
    struct host *host = host_of(call);
    if (!is_opened(call)) return;
    __atomic_store_n(&host->calls_cancelled[call->index], call->slot_tag, __ATOMIC_RELEASE);
    __atomic_fetch_add(&host->calls_cancelled_count, 1, __ATOMIC_ACQ_REL);
    host->posted = 1;
    struct engine_frame frame = call_frame(call, ENGINE_CANCELLED);
    (void)host_try(host, &frame, NULL);
}

static void host_call_writable(struct call *call, size_t size)
{
    if (!is_opened(call) || call->finished || size == 0) return;
    struct engine_frame frame = call_frame(call, ENGINE_CREDIT);
    frame.arg0 = size;
    /* Lost credit would stall the handler for ever: end the call instead. */
    if (host_post(host_of(call), &frame, NULL) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
    }
}

static void call_message(struct call *call, const uint8_t *body, size_t size)
{
    struct reply *reply = grpc_reply_make(host_of(call)->grpc, size);
    if (reply == NULL) {
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
        return;
    }
    memcpy(reply->body.data + GRPC_PREFIX_SIZE, body, size);
    grpc_reply_queue(call, reply);
}

static void host_call_closed(struct call *call)
{
    host_of(call)->calls_opened[call->index] = 0;
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

void host_call_frame(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                     size_t size)
{
    struct call *call = grpc_call_find(host->grpc, frame->slot, frame->slot_tag);
    if (call == NULL || !is_opened(call) || call->finished) {
        host->counters.late_host_answers++;
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

size_t host_calls_cancelled_take(struct host *host, uint32_t *seen, struct engine_frame *calls,
                                 size_t count)
{
    size_t found = 0;
    uint32_t flags = __atomic_load_n(&host->calls_cancelled_count, __ATOMIC_ACQUIRE);
    if (flags == *seen) return 0;
    uint32_t slot = 0;
    for (; slot < GRPC_CALLS_COUNT_MAX && found < count; slot++) {
        if (__atomic_load_n(&host->calls_cancelled[slot], __ATOMIC_RELAXED) == 0) continue;
        uint32_t tag = __atomic_exchange_n(&host->calls_cancelled[slot], 0, __ATOMIC_ACQ_REL);
        if (tag == 0) continue;
        calls[found++] = (struct engine_frame){
            .size = sizeof(struct engine_frame),
            .kind = ENGINE_CANCELLED,
            .shard = host->index,
            .slot = slot,
            .slot_tag = tag,
        };
    }
    /* All seen, unless the caller's array ended first. */
    if (slot == GRPC_CALLS_COUNT_MAX) *seen = flags;
    return found;
}
