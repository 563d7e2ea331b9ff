/* http2/session.c: the sessions of nghttp2: their options at the start, and their callbacks:
 * frames that came, frames that leave, memory. */
#include <nghttp2/nghttp2.h>
#include <string.h>

#include "foundation/assert.h"
#include "http2/state.h"

static void *memory_take(size_t size, void *user)
{
    return buffer_take(user, size);
}

static void memory_give(void *buffer, void *user)
{
    buffer_give(user, buffer);
}

static void *memory_take_zeroed(size_t count, size_t size, void *user)
{
    /* nghttp2 asks for a few objects of a known size: the product cannot overflow. */
    assert(size == 0 || count <= SIZE_MAX / size);
    void *buffer = buffer_take(user, count * size);
    if (buffer != NULL) memset(buffer, 0, count * size);
    return buffer;
}

static void *memory_resize(void *buffer, size_t size, void *user)
{
    return buffer_resize(user, buffer, size);
}

static struct http2_stream *stream_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static const struct http2_callbacks *callbacks_of(const struct http2_stream *stream)
{
    return stream->connection->http2->callbacks;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2_connection *connection = user;
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    struct http2 *http2 = connection->http2;
    struct http2_stream *stream = http2->callbacks->begin(http2->owner, connection);
    if (stream == NULL) {
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                        NGHTTP2_REFUSED_STREAM);
        http2_mark_dirty(connection);
        return 0;
    }
    stream->connection = connection;
    stream->id = frame->hd.stream_id;
    queue_push(&connection->streams, &stream->link);
    (void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    (void)flags;
    (void)user;
    struct http2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (stream == NULL || stream->started) return 0;
    callbacks_of(stream)->header(stream, name, name_size, value, value_size);
    return 0;
}

static void stream_start(struct http2_stream *stream)
{
    struct http2_connection *connection = stream->connection;
    stream->started = 1;
    connection->active_ns = *connection->http2->now_ns;
    http2_guard_earn(connection, HTTP2_FRAMES_PER_STREAM);
    callbacks_of(stream)->headers(stream);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    if (!http2_guard_frame(user, frame)) return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    struct http2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (stream == NULL) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !stream->started) stream_start(stream);
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || stream->half_closed) return 0;
    stream->half_closed = 1;
    callbacks_of(stream)->end(stream);
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
        http2_guard_reset(user);
    if (frame->hd.type == NGHTTP2_DATA) http2_output_framed(user);
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    struct http2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (stream == NULL || stream->half_closed) return 0;
    /* We ended the stream before the client did: it may stop sending (RFC 9113, 8.1). */
    (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                    NGHTTP2_NO_ERROR);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t size, void *user)
{
    (void)flags;
    struct http2_stream *stream = stream_of(session, stream_id);
    size_t kept = stream != NULL ? callbacks_of(stream)->data(stream, data, size) : 0;
    assert(kept <= size);
    /* The connection's window is given back as bytes land in memory that is accounted for; the
     * stream's window only as its reader consumes, so that one stalled stream stalls no other. */
    (void)nghttp2_session_consume_connection(session, size);
    if (kept < size) (void)nghttp2_session_consume_stream(session, stream_id, size - kept);
    http2_mark_dirty(user);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *user)
{
    (void)error_code;
    (void)user;
    struct http2_stream *stream = stream_of(session, stream_id);
    if (stream == NULL) return 0;
    (void)nghttp2_session_set_stream_user_data(session, stream_id, NULL);
    http2_stream_close(stream);
    return 0;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size, int flags,
                       void *user)
{
    (void)session;
    (void)flags;
    ssize_t taken = http2_output_copy(user, data, size);
    return taken == 0 ? NGHTTP2_ERR_WOULDBLOCK : taken;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                        size_t size, nghttp2_data_source *source, void *user)
{
    (void)source;
    assert(frame->data.padlen == 0);
    struct http2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (stream == NULL) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (!http2_output_room(user, size)) return NGHTTP2_ERR_WOULDBLOCK;
    http2_stream_send(stream, header, size);
    return 0;
}

enum status http2_sessions_configure(struct http2 *http2)
{
    http2->session_memory =
        (nghttp2_mem){http2->pool, memory_take, memory_give, memory_take_zeroed, memory_resize};
    if (nghttp2_session_callbacks_new(&http2->session_callbacks) != 0) return STATUS_NO_MEMORY;
    if (nghttp2_option_new(&http2->session_option) != 0) return STATUS_NO_MEMORY;
    nghttp2_session_callbacks *callbacks = http2->session_callbacks;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
    nghttp2_option_set_no_auto_window_update(http2->session_option, 1);
    nghttp2_option_set_no_closed_streams(http2->session_option, 1);
    /* Ours (http2/guard.c) is to be met first: it says ENHANCE_YOUR_CALM. */
    nghttp2_option_set_stream_reset_rate_limit(http2->session_option, 2 * HTTP2_RESETS_BURST,
                                               2 * HTTP2_RESETS_PER_S);
    return STATUS_OK;
}

static int session_greet(nghttp2_session *session)
{
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, HTTP2_FRAME_SIZE_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP2_HEADERS_SIZE_MAX},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    int failed = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
                                         sizeof settings / sizeof settings[0]);
    if (failed != 0) return failed;
    return nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                                 HTTP2_CONNECTION_WINDOW);
}

nghttp2_session *http2_session_make(struct http2_connection *connection)
{
    struct http2 *http2 = connection->http2;
    nghttp2_session *session = NULL;
    int failed = nghttp2_session_server_new3(&session, http2->session_callbacks, connection,
                                             http2->session_option, &http2->session_memory);
    if (failed != 0) return NULL;
    if (session_greet(session) == 0) return session;
    nghttp2_session_del(session);
    return NULL;
}
