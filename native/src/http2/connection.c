#include "http2/connection.h"

#include <string.h>

#include "foundation/assert.h"
#include "grpc/server.h"
#include "io/io_socket.h"
#include "shard/shard.h"

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

static struct call *stream_call(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct connection *connection = user;
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    struct call *call = call_take(connection->shard, connection, frame->hd.stream_id);
    if (call == NULL) {
        connection->shard->counters.calls_refused++;
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                        NGHTTP2_REFUSED_STREAM);
        http2_mark_dirty(connection);
        return 0;
    }
    (void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    (void)flags;
    (void)user;
    struct call *call = stream_call(session, frame->hd.stream_id);
    if (call == NULL || call->started) return 0;
    grpc_header(call, name, name_size, value, value_size);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    if (!http2_guard_frame(user, frame)) return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    struct call *call = stream_call(session, frame->hd.stream_id);
    if (call == NULL) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !call->started) grpc_start(call);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) grpc_half_close(call);
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
        http2_guard_reset(user);
    if (frame->hd.type == NGHTTP2_DATA) http2_output_framed(user);
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    struct call *call = stream_call(session, frame->hd.stream_id);
    if (call == NULL || call->half_closed) return 0;
    /* We ended the call before the client did: tell it to stop sending (RFC 9113, 8.1). */
    (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                    NGHTTP2_NO_ERROR);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t size, void *user)
{
    (void)flags;
    struct connection *connection = user;
    struct call *call = stream_call(session, stream_id);
    size_t owed = call != NULL ? grpc_data(call, data, size) : 0;
    assert(owed <= size);
    /* The connection's window is given back as bytes land in memory that is accounted for; the
     * stream's window only as the host consumes, so that one stalled call stalls no other. */
    (void)nghttp2_session_consume_connection(session, size);
    if (owed < size) (void)nghttp2_session_consume_stream(session, stream_id, size - owed);
    http2_mark_dirty(connection);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *user)
{
    (void)error_code;
    (void)user;
    struct call *call = stream_call(session, stream_id);
    if (call == NULL) return 0;
    (void)nghttp2_session_set_stream_user_data(session, stream_id, NULL);
    grpc_closed(call);
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
    struct connection *connection = user;
    assert(frame->data.padlen == 0);
    struct call *call = stream_call(session, frame->hd.stream_id);
    if (call == NULL) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (!http2_output_room(connection, size)) return NGHTTP2_ERR_WOULDBLOCK;
    grpc_reply_send(call, header, size);
    return 0;
}

enum status http2_shared_open(struct shard *shard)
{
    struct http2_shared *shared = &shard->http2;
    shared->memory =
        (nghttp2_mem){&shard->pool, memory_take, memory_give, memory_take_zeroed, memory_resize};
    if (nghttp2_session_callbacks_new(&shared->callbacks) != 0) return STATUS_NO_MEMORY;
    if (nghttp2_option_new(&shared->options) != 0) return STATUS_NO_MEMORY;
    nghttp2_session_callbacks_set_on_begin_headers_callback(shared->callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(shared->callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(shared->callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(shared->callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(shared->callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(shared->callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_send_callback(shared->callbacks, on_send);
    nghttp2_session_callbacks_set_send_data_callback(shared->callbacks, on_send_data);
    nghttp2_option_set_no_auto_window_update(shared->options, 1);
    nghttp2_option_set_no_closed_streams(shared->options, 1);
    /* Ours (http2/guard.c) is to be met first: it says ENHANCE_YOUR_CALM. */
    nghttp2_option_set_stream_reset_rate_limit(shared->options, 2 * HTTP2_RESETS_BURST,
                                               2 * HTTP2_RESETS_PER_S);
    return STATUS_OK;
}

void http2_shared_close(struct shard *shard)
{
    nghttp2_session_callbacks_del(shard->http2.callbacks);
    nghttp2_option_del(shard->http2.options);
    shard->http2 = (struct http2_shared){0};
}

static int session_greet(nghttp2_session *session)
{
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, HTTP2_FRAME_SIZE_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, CALL_HEADERS_SIZE_MAX},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    int failed = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
                                         sizeof settings / sizeof settings[0]);
    if (failed != 0) return failed;
    return nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                                 HTTP2_CONNECTION_WINDOW);
}

/* The table is full: whoever has never shown a key makes room, the oldest first. */
static void connection_evict(struct shard *shard)
{
    struct connection *oldest = NULL;
    for (uint32_t index = 0; index < SHARD_CONNECTIONS_COUNT_MAX; index++) {
        struct connection *connection = &shard->connections[index];
        if (!connection->open || connection->closing || connection->authenticated) continue;
        if (oldest == NULL || connection->opened_ns < oldest->opened_ns) oldest = connection;
    }
    if (oldest == NULL) return;
    shard->counters.connections_evicted++;
    http2_abandon(oldest, NGHTTP2_ENHANCE_YOUR_CALM);
    http2_close_marked(shard);
}

enum status http2_connection_open(struct shard *shard, int fd)
{
    if (shard->connections_free == NULL) connection_evict(shard);
    struct connection *connection = shard->connections_free;
    if (connection == NULL) return STATUS_BUSY;
    assert(!connection->open);
    nghttp2_session *session = NULL;
    int failed = nghttp2_session_server_new3(&session, shard->http2.callbacks, connection,
                                             shard->http2.options, &shard->http2.memory);
    if (failed != 0) return STATUS_NO_MEMORY;
    if (session_greet(session) != 0) {
        nghttp2_session_del(session);
        return STATUS_NO_MEMORY;
    }
    enum status status = poll_add(&shard->poll, fd, POLL_READ, connection->index);
    if (status != STATUS_OK) {
        nghttp2_session_del(session);
        return status;
    }
    shard->connections_free = connection->next_free;
    uint32_t index = connection->index;
    *connection = (struct connection){
        .shard = shard,
        .session = session,
        .fd = fd,
        .index = index,
        .open = 1,
        .opened_ns = shard->now.monotonic_ns,
        .active_ns = shard->now.monotonic_ns,
        .written_ns = shard->now.monotonic_ns,
    };
    shard->connections_count++;
    shard->counters.connections_opened++;
    http2_mark_dirty(connection);
    return STATUS_OK;
}

void http2_mark_dirty(struct connection *connection)
{
    if (connection->dirty) return;
    connection->dirty = 1;
    connection->next_dirty = connection->shard->dirty;
    connection->shard->dirty = connection;
}

void http2_mark_closing(struct connection *connection)
{
    assert(connection->open);
    if (connection->closing) return;
    connection->closing = 1;
    connection->next_closing = connection->shard->closing;
    connection->shard->closing = connection;
}

void http2_abandon(struct connection *connection, uint32_t error_code)
{
    (void)nghttp2_session_terminate_session(connection->session, error_code);
    (void)nghttp2_session_send(connection->session);
    (void)http2_output_write(connection);
    http2_mark_closing(connection);
}

void http2_readable(struct connection *connection)
{
    struct shard *shard = connection->shard;
    for (int turn = 0; turn < HTTP2_READS_PER_TURN; turn++) {
        if (connection->closing) return;
        size_t size;
        enum socket_answer answer =
            socket_read(connection->fd, shard->read_buffer, HTTP2_READ_SIZE, &size);
        if (answer == SOCKET_GONE) http2_mark_closing(connection);
        if (answer != SOCKET_OK) return;
        shard->counters.bytes_received += size;
        ssize_t used = nghttp2_session_mem_recv(connection->session, shard->read_buffer, size);
        http2_mark_dirty(connection);
        /* The library has bounds of its own, of what we would have to answer: the same kind. */
        if (used == NGHTTP2_ERR_FLOODED) connection->flood = HTTP2_FLOOD_FRAMES;
        if (connection->flood != HTTP2_FLOOD_NONE) {
            http2_guard_end(connection);
            return;
        }
        if (used < 0 || (size_t)used != size) {
            /* What the peer sent was not HTTP/2, or our memory ended: say goodbye if that is still
             * possible. */
            shard->counters.connections_malformed++;
            http2_abandon(connection, NGHTTP2_PROTOCOL_ERROR);
            return;
        }
        if (size < HTTP2_READ_SIZE) return;
    }
}

static void connection_arm(struct connection *connection, int wanted)
{
    if (connection->write_armed == wanted) return;
    connection->write_armed = (uint8_t)wanted;
    uint32_t interest = wanted ? POLL_READ | POLL_WRITE : POLL_READ;
    (void)poll_change(&connection->shard->poll, connection->fd, interest, connection->index);
}

/* Session to output to socket, until one of them has no more. */
static void connection_flush(struct connection *connection)
{
    for (;;) {
        if (nghttp2_session_send(connection->session) != 0) {
            http2_mark_closing(connection);
            return;
        }
        if (connection->vectors_count == 0) break;
        int written = http2_output_write(connection);
        if (written < 0) {
            http2_mark_closing(connection);
            return;
        }
        if (written == 0) {
            connection_arm(connection, 1);
            return;
        }
    }
    connection_arm(connection, 0);
    if (connection->flood != HTTP2_FLOOD_NONE) {
        http2_guard_end(connection);
        return;
    }
    if (!nghttp2_session_want_read(connection->session)
        && !nghttp2_session_want_write(connection->session)) {
        http2_mark_closing(connection);
    }
}

void http2_writable(struct connection *connection)
{
    http2_mark_dirty(connection);
}

void http2_flush_dirty(struct shard *shard)
{
    while (shard->dirty != NULL) {
        struct connection *connection = shard->dirty;
        shard->dirty = connection->next_dirty;
        connection->dirty = 0;
        connection->next_dirty = NULL;
        if (connection->open && !connection->closing) connection_flush(connection);
    }
}

void http2_goaway(struct connection *connection)
{
    if (connection->goaway_sent || !connection->open) return;
    connection->goaway_sent = 1;
    int32_t last = nghttp2_session_get_last_proc_stream_id(connection->session);
    (void)nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR,
                                NULL, 0);
    http2_mark_dirty(connection);
}

static void connection_close(struct connection *connection)
{
    struct shard *shard = connection->shard;
    assert(connection->open);
    /* Calls first: each tells whoever works for it; then the session, which no longer knows any. */
    while (!queue_empty(&connection->calls)) {
        struct call *call = queue_element(connection->calls.head, struct call, connection_link);
        (void)nghttp2_session_set_stream_user_data(connection->session, call->stream_id, NULL);
        grpc_closed(call);
    }
    poll_remove(&shard->poll, connection->fd);
    http2_output_drop(connection);
    nghttp2_session_del(connection->session);
    socket_close(connection->fd);
    memset(connection->tokens, 0, sizeof connection->tokens);
    connection->session = NULL;
    connection->open = 0;
    connection->closing = 0;
    connection->fd = -1;
    connection->next_free = shard->connections_free;
    shard->connections_free = connection;
    assert(shard->connections_count > 0);
    shard->connections_count--;
    shard->counters.connections_closed++;
}

void http2_close_marked(struct shard *shard)
{
    while (shard->closing != NULL) {
        struct connection *connection = shard->closing;
        shard->closing = connection->next_closing;
        connection->next_closing = NULL;
        if (connection->dirty) {
            /* Unlink from the list of those to flush: closing one can mark it again. */
            struct connection **at = &shard->dirty;
            while (*at != connection) at = &(*at)->next_dirty;
            *at = connection->next_dirty;
            connection->dirty = 0;
        }
        connection_close(connection);
        if (connection->dirty) {
            struct connection **at = &shard->dirty;
            while (*at != connection) at = &(*at)->next_dirty;
            *at = connection->next_dirty;
            connection->dirty = 0;
        }
    }
}
