/* http2/guard.c: floods: frames that are cheap to send and dear to take (X30, X32, X34).
 *
 * Owns three allowances of each connection: resets, pings without streams, and all other frames
 * that carry no data. Each is one number, the time up to which it is used up: a frame moves it on
 * by the time one frame may take, and it may lie ahead of the clock by a burst. A client that goes
 * beyond gets ENHANCE_YOUR_CALM and is closed; other connections never notice. */
#include <string.h>

#include "foundation/assert.h"
#include "http2/state.h"

enum { QUIET_NS = 1000000000 };

static const uint64_t second_ns = UINT64_C(1000000000);

static int allowance_take(uint64_t *used_ns, uint64_t now_ns, uint64_t per_s, uint64_t burst)
{
    uint64_t interval_ns = second_ns / per_s;
    if (*used_ns < now_ns) *used_ns = now_ns;
    *used_ns += interval_ns;
    return *used_ns - now_ns <= burst * interval_ns;
}

static int resets_take(struct http2_connection *connection)
{
    return allowance_take(&connection->resets_ns, *connection->http2->now_ns, HTTP2_RESETS_PER_S,
                          HTTP2_RESETS_BURST);
}

static int frames_take(struct http2_connection *connection)
{
    return allowance_take(&connection->frames_ns, *connection->http2->now_ns, HTTP2_FRAMES_PER_S,
                          HTTP2_FRAMES_BURST);
}

static int pings_take(struct http2_connection *connection)
{
    uint64_t now_ns = *connection->http2->now_ns;
    if (!queue_empty(&connection->streams) || now_ns - connection->active_ns < QUIET_NS) return 1;
    return allowance_take(&connection->pings_ns, now_ns, HTTP2_PINGS_PER_S, HTTP2_PINGS_BURST);
}

static enum http2_flood frame_judge(struct http2_connection *connection, const nghttp2_frame *frame)
{
    switch (frame->hd.type) {
    case NGHTTP2_RST_STREAM: return resets_take(connection) ? HTTP2_FLOOD_NONE : HTTP2_FLOOD_RESETS;
    case NGHTTP2_PING:
        if (!pings_take(connection)) return HTTP2_FLOOD_PINGS;
        break;
    case NGHTTP2_DATA:
        if (frame->hd.length > 0 || frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
            return HTTP2_FLOOD_NONE;
        break;
    case NGHTTP2_HEADERS: return HTTP2_FLOOD_NONE;
    default: break;
    }
    return frames_take(connection) ? HTTP2_FLOOD_NONE : HTTP2_FLOOD_FRAMES;
}

int http2_guard_frame(struct http2_connection *connection, const nghttp2_frame *frame)
{
    if (connection->flood == HTTP2_FLOOD_NONE)
        connection->flood = (uint8_t)frame_judge(connection, frame);
    return connection->flood == HTTP2_FLOOD_NONE;
}

void http2_guard_reset(struct http2_connection *connection)
{
    if (connection->flood == HTTP2_FLOOD_NONE && !resets_take(connection))
        connection->flood = HTTP2_FLOOD_RESETS;
}

void http2_guard_earn(struct http2_connection *connection, uint64_t frames_count)
{
    uint64_t earned_ns = frames_count * (second_ns / HTTP2_FRAMES_PER_S);
    connection->frames_ns -= connection->frames_ns < earned_ns ? connection->frames_ns : earned_ns;
}

void http2_guard_end(struct http2_connection *connection)
{
    struct http2_counters *counters = &connection->http2->counters;
    if (connection->closing) return;
    /* gRPC clients know this word and ask less often from then on. */
    static const char pings[] = "too_many_pings";
    const char *why = "";
    switch (connection->flood) {
    case HTTP2_FLOOD_PINGS:
        counters->floods_pings++;
        why = pings;
        break;
    case HTTP2_FLOOD_RESETS: counters->floods_resets++; break;
    default: counters->floods_frames++; break;
    }
    int32_t last = nghttp2_session_get_last_proc_stream_id(connection->session);
    (void)nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE, last,
                                NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)why, strlen(why));
    connection->goaway_sent = 1;
    http2_abandon(connection, NGHTTP2_ENHANCE_YOUR_CALM);
}
