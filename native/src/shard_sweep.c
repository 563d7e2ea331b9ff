/* shard_sweep.c: what nobody's message would ever bring up: keys that were revoked or expired under
 * a call that waits, messages that never become whole, connections that say nothing.
 *
 * A ProduceStream is judged at its next message (grpc_server.c), so that its answers that are still
 * to come reach whoever was allowed to produce them. */
#include "shard_sweep.h"

#include "assert.h"
#include "grpc_server.h"
#include "shard.h"
#include "stream_consume.h"

static uint64_t message_deadline_ns(const struct call *call)
{
    uint64_t latest_ns = call->message_since_ns + SHARD_MESSAGE_MS_MAX * UINT64_C(1000000);
    if (call->deadline_ns != 0 && call->deadline_ns < latest_ns) return call->deadline_ns;
    return latest_ns;
}

static void sweep_call(struct shard *shard, struct call *call)
{
    if (call->connection == NULL || !call->started || call->finished) return;
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
    if (call->message == NULL) return;
    /* We keep its window back: that it sends nothing is our doing. */
    if (call->window_owed > HTTP2_STREAM_WINDOW / 2 || call->held_link.queue != NULL) return;
    if (shard->now.monotonic_ns < message_deadline_ns(call)) return;
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

static void sweep_connection(struct shard *shard, struct connection *connection)
{
    if (!connection->open || connection->closing || connection->authenticated) return;
    if (carries_call(connection)) return;
    uint64_t silence_ns = shard->now.monotonic_ns - connection->active_ns;
    if (silence_ns < SHARD_SILENCE_MS_MAX * UINT64_C(1000000)) return;
    shard->counters.connections_silent++;
    http2_abandon(connection, NGHTTP2_NO_ERROR);
}

void shard_sweep(struct shard *shard)
{
    uint32_t revision = shard->tables.grants.revision;
    if (revision == shard->sweep_revision && shard->now.monotonic_ns < shard->sweep_ns) return;
    shard->sweep_revision = revision;
    shard->sweep_ns = shard->now.monotonic_ns + SHARD_SWEEP_MS * UINT64_C(1000000);
    if (shard->connections_count == 0) return;
    for (uint32_t index = 0; index < SHARD_CALLS_COUNT_MAX; index++)
        sweep_call(shard, &shard->calls[index]);
    for (uint32_t index = 0; index < SHARD_CONNECTIONS_COUNT_MAX; index++)
        sweep_connection(shard, &shard->connections[index]);
}
