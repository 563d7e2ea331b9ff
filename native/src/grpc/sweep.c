/* grpc/sweep.c: calls that no message would ever bring up: keys that were revoked or expired
 * under a call that waits, messages that never become whole, answers that their client does not
 * take.
 *
 * A stream whose client may pause (ProduceStream) is judged at its next message (grpc/server.c), so
 * that its answers that are still to come reach the client that was allowed to produce them. */
#include "foundation/assert.h"
#include "grpc/state.h"

static uint64_t ms_ns(uint32_t ms)
{
    return ms * UINT64_C(1000000);
}

static uint64_t message_deadline_ns(const struct call *call)
{
    uint64_t latest_ns = call->message_since_ns + ms_ns(call->server->message_ms);
    if (call->deadline_ns != 0 && call->deadline_ns < latest_ns) return call->deadline_ns;
    return latest_ns;
}

/* A message is on its way, or the only one has not begun: every other call waits for us. */
static int message_awaited(const struct call *call)
{
    if (call->message != NULL) return 1;
    if (call->method->flags & GRPC_METHOD_QUIET) return 0;
    return call->messages_count == 0;
}

/* Answers wait and the client takes none of them. The connection's own stall is another matter: it
 * says nothing about this call. */
static int replies_stalled(const struct call *call)
{
    const struct http2_stream *stream = &call->stream;
    if (stream->bodies_head == NULL || http2_blocked(stream->connection)) return 0;
    uint64_t now_ns = call->server->now->monotonic_ns;
    return now_ns - stream->bodies_ns >= ms_ns(call->server->stall_ms);
}

static void sweep_message(struct call *call)
{
    if (!message_awaited(call)) return;
    /* We keep its window back: that it sends nothing is our doing. */
    if (call->window_owed > HTTP2_STREAM_WINDOW / 2 || call->window_withheld) return;
    if (call->server->now->monotonic_ns < message_deadline_ns(call)) return;
    call->server->counters.messages_late++;
    struct grpc_failure failure = {
        .error = GRPC_ERROR_DEADLINE_EXCEEDED,
        .detail = "the message did not arrive whole in time; nothing of it was stored",
    };
    grpc_finish(call, &failure);
}

static void sweep_call(struct call *call)
{
    struct grpc_counters *counters = &call->server->counters;
    if (replies_stalled(call)) {
        counters->replies_stalled++;
        http2_reset(&call->stream, HTTP2_CALM);
        return;
    }
    if (call->finished) return;
    enum grpc_error error = GRPC_ERROR_NONE;
    if (call->method->flags & GRPC_METHOD_WAITS) error = grpc_credentials_again(call);
    if (error != GRPC_ERROR_NONE) {
        counters->access_ended++;
        grpc_finish_error(call, error);
        return;
    }
    if (call->method->review != NULL) call->method->review(call);
    sweep_message(call);
}

void grpc_sweep(struct grpc_server *server)
{
    for (uint32_t index = 0; index < GRPC_CALLS_COUNT_MAX; index++) {
        struct call *call = grpc_call_at(server, index);
        if (call != NULL) sweep_call(call);
    }
}
