/* http2/sweep.c: connections that have lost their right to stay, looked over now and then: those
 * that are silent, idle or old, and those whose socket takes nothing. */
#include "foundation/assert.h"
#include "http2/state.h"

static uint64_t ms_ns(uint32_t ms)
{
    return ms * UINT64_C(1000000);
}

static int carries_stream(const struct http2_connection *connection)
{
    queue_each(&connection->streams, link)
    {
        if (queue_element(link, struct http2_stream, link)->started) return 1;
    }
    return 0;
}

/* They must not all come back at the same moment: up to an eighth earlier, by their slot. */
static uint64_t age_ns(const struct http2_connection *connection)
{
    uint64_t most_ns = ms_ns(connection->http2->limits.age_ms);
    return most_ns - most_ns / 8 * (connection->index % 64) / 64;
}

void http2_goaway(struct http2_connection *connection)
{
    if (connection->goaway_sent || !connection->open) return;
    connection->goaway_sent = 1;
    int32_t last = nghttp2_session_get_last_proc_stream_id(connection->session);
    (void)nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR,
                                NULL, 0);
    http2_mark_dirty(connection);
}

/* The counter of why it must go; NULL = it stays. */
static uint64_t *connection_verdict(struct http2_connection *connection)
{
    struct http2 *http2 = connection->http2;
    const struct http2_limits *limits = &http2->limits;
    struct http2_counters *counters = &http2->counters;
    uint64_t now_ns = *http2->now_ns;
    if (connection->write_armed && now_ns - connection->written_ns >= ms_ns(limits->stall_ms))
        return &counters->connections_stalled;
    uint64_t age_max_ns = age_ns(connection);
    if (now_ns - connection->opened_ns >= age_max_ns) {
        /* Streams in progress may end, new ones go to a new connection. */
        http2_goaway(connection);
        if (now_ns - connection->opened_ns >= age_max_ns + ms_ns(limits->age_grace_ms))
            return &counters->connections_aged;
    }
    if (carries_stream(connection)) return NULL;
    uint64_t quiet_ns = now_ns - connection->active_ns;
    if (!connection->trusted && quiet_ns >= ms_ns(limits->silence_ms))
        return &counters->connections_silent;
    if (quiet_ns >= ms_ns(limits->idle_ms)) return &counters->connections_idle;
    return NULL;
}

void http2_sweep(struct http2 *http2)
{
    for (uint32_t index = 0; index < HTTP2_CONNECTIONS_COUNT_MAX; index++) {
        struct http2_connection *connection = &http2->connections[index];
        if (!connection->open || connection->closing) continue;
        uint64_t *counter = connection_verdict(connection);
        if (counter == NULL) continue;
        (*counter)++;
        http2_abandon(connection, NGHTTP2_NO_ERROR);
    }
}

void http2_drain(struct http2 *http2)
{
    for (uint32_t index = 0; index < HTTP2_CONNECTIONS_COUNT_MAX; index++)
        http2_goaway(&http2->connections[index]);
}
