/* shard/sweep.c: what nobody's message would ever bring up: keys that were revoked or expired under
 * a call that waits, messages that never become whole, answers that nobody takes, connections that
 * say nothing or are too old.
 *
 * A ProduceStream is judged at its next message (grpc/server.c), so that its answers that are still
 * to come reach whoever was allowed to produce them. */
#include "shard/sweep.h"

#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/consume.h"
#include "shard/shard.h"

static uint64_t ms_ns(uint32_t ms)
{
    return ms * UINT64_C(1000000);
}

static uint64_t message_deadline_ns(const struct shard *shard, const struct call *call)
{
    uint64_t latest_ns = call->message_since_ns + ms_ns(shard->limits.message_ms);
    if (call->deadline_ns != 0 && call->deadline_ns < latest_ns) return call->deadline_ns;
    return latest_ns;
}

/* A message is on its way, or the only one has not begun: every other call waits for us or for the
 * host. */
static int message_awaited(const struct call *call)
{
    if (call->message != NULL) return 1;
    if (call->method == METHOD_HOST || call->method == METHOD_PRODUCE_STREAM) return 0;
    return call->messages_count == 0;
}

/* Answers wait and the client takes none of them. The connection's own stall is another matter: it
 * says nothing about this call. */
static int replies_stalled(const struct shard *shard, const struct call *call)
{
    if (call->replies_head == NULL || call->connection->write_armed) return 0;
    return shard->now.monotonic_ns - call->replies_ns >= ms_ns(shard->limits.stall_ms);
}

static void sweep_call(struct shard *shard, struct call *call)
{
    if (call->connection == NULL || !call->started) return;
    if (replies_stalled(shard, call)) {
        shard->counters.replies_stalled++;
        (void)nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE,
                                        call->stream_id, NGHTTP2_ENHANCE_YOUR_CALM);
        call->replies_ns = shard->now.monotonic_ns;
        http2_mark_dirty(call->connection);
        return;
    }
    if (call->finished) return;
    if (call->method == METHOD_HOST || call->method == METHOD_FETCH
        || call->method == METHOD_FETCH_MESSAGES || call->method == METHOD_CONSUME) {
        enum grpc_error error = grpc_credentials_again(call);
        if (error != GRPC_ERROR_NONE) {
            shard->counters.access_ended++;
            grpc_finish_error(call, error);
            return;
        }
    }
    if (call->method == METHOD_CONSUME) stream_consume_again(call);
    if (!message_awaited(call)) return;
    /* We keep its window back: that it sends nothing is our doing. */
    if (call->window_owed > HTTP2_STREAM_WINDOW / 2 || call->held_link.queue != NULL) return;
    if (shard->now.monotonic_ns < message_deadline_ns(shard, call)) return;
    shard->counters.messages_late++;
    struct grpc_failure failure = {
        .error = GRPC_ERROR_DEADLINE_EXCEEDED,
        .detail = "the message did not arrive whole in time; nothing of it was stored",
    };
    grpc_finish(call, &failure);
}

static int carries_call(const struct connection *connection)
{
    queue_each(&connection->calls, link)
    {
        if (queue_element(link, struct call, connection_link)->started) return 1;
    }
    return 0;
}

/* They must not all come back at the same moment: up to an eighth earlier, by their slot. */
static uint64_t age_ns(const struct shard *shard, const struct connection *connection)
{
    uint64_t most_ns = ms_ns(shard->limits.age_ms);
    return most_ns - most_ns / 8 * (connection->index % 64) / 64;
}

/* The counter of why it must go; NULL = it stays. */
static uint64_t *connection_verdict(struct shard *shard, struct connection *connection)
{
    uint64_t now_ns = shard->now.monotonic_ns;
    if (connection->write_armed && now_ns - connection->written_ns >= ms_ns(shard->limits.stall_ms))
        return &shard->counters.connections_stalled;
    uint64_t age_max_ns = age_ns(shard, connection);
    if (now_ns - connection->opened_ns >= age_max_ns) {
        /* Calls in progress may end, new ones go to a new connection. */
        http2_goaway(connection);
        if (now_ns - connection->opened_ns >= age_max_ns + ms_ns(shard->limits.age_grace_ms))
            return &shard->counters.connections_aged;
    }
    if (carries_call(connection)) return NULL;
    uint64_t quiet_ns = now_ns - connection->active_ns;
    if (!connection->authenticated && quiet_ns >= ms_ns(shard->limits.silence_ms))
        return &shard->counters.connections_silent;
    if (quiet_ns >= ms_ns(shard->limits.idle_ms)) return &shard->counters.connections_idle;
    return NULL;
}

static void sweep_connection(struct shard *shard, struct connection *connection)
{
    if (!connection->open || connection->closing) return;
    uint64_t *counter = connection_verdict(shard, connection);
    if (counter == NULL) return;
    (*counter)++;
    http2_abandon(connection, NGHTTP2_NO_ERROR);
}

void shard_sweep(struct shard *shard)
{
    uint32_t revision = shard->tables.grants.revision;
    if (revision == shard->sweep_revision && shard->now.monotonic_ns < shard->sweep_ns) return;
    shard->sweep_revision = revision;
    shard->sweep_ns = shard->now.monotonic_ns + ms_ns(shard->sweep_ms);
    if (shard->connections_count == 0) return;
    for (uint32_t index = 0; index < SHARD_CALLS_COUNT_MAX; index++)
        sweep_call(shard, &shard->calls[index]);
    for (uint32_t index = 0; index < SHARD_CONNECTIONS_COUNT_MAX; index++)
        sweep_connection(shard, &shard->connections[index]);
}
