/* http2/connection.c: sockets and what becomes of them: taken, read, flushed, closed. */
#include "http2/connection.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "http2/state.h"
#include "io/io_poll.h"
#include "io/io_socket.h"

size_t http2_memory_bytes(size_t peer_bytes)
{
    return arena_size(sizeof(struct http2))
           + arena_size(sizeof(struct http2_connection) * HTTP2_CONNECTIONS_COUNT_MAX)
           + arena_size(peer_bytes * HTTP2_CONNECTIONS_COUNT_MAX) + arena_size(HTTP2_READ_SIZE);
}

struct http2 *http2_open(struct arena *arena, const struct http2_config *config)
{
    assert(config->limits.connections_count > 0);
    assert(config->peer_bytes % sizeof(uint64_t) == 0);
    struct http2 *http2 = arena_take(arena, sizeof *http2);
    size_t connections_bytes = sizeof(struct http2_connection) * HTTP2_CONNECTIONS_COUNT_MAX;
    struct http2_connection *connections = arena_take(arena, connections_bytes);
    uint8_t *peers = arena_take(arena, config->peer_bytes * HTTP2_CONNECTIONS_COUNT_MAX);
    uint8_t *read_buffer = arena_take(arena, HTTP2_READ_SIZE);
    if (!http2 || !connections || !peers || !read_buffer) return NULL;
    *http2 = (struct http2){
        .callbacks = config->callbacks,
        .owner = config->owner,
        .pool = config->pool,
        .poll = config->poll,
        .now_ns = config->now_ns,
        .limits = config->limits,
        .connections = connections,
        .read_buffer = read_buffer,
        .peer_bytes = config->peer_bytes,
    };
    for (uint32_t index = HTTP2_CONNECTIONS_COUNT_MAX; index-- > 0;) {
        connections[index] = (struct http2_connection){
            .http2 = http2,
            .index = index,
            .fd = -1,
            .peer = peers + index * config->peer_bytes,
            .next_free = http2->connections_free,
        };
        if (index < config->limits.connections_count) http2->connections_free = &connections[index];
    }
    if (http2_sessions_configure(http2) == STATUS_OK) return http2;
    http2_close(http2);
    return NULL;
}

void http2_close(struct http2 *http2)
{
    nghttp2_session_callbacks_del(http2->session_callbacks);
    nghttp2_option_del(http2->session_option);
    http2->session_callbacks = NULL;
    http2->session_option = NULL;
}

/* The table is full: a connection that is not trusted makes room, the oldest first. */
static void connection_evict(struct http2 *http2)
{
    struct http2_connection *oldest = NULL;
    for (uint32_t index = 0; index < HTTP2_CONNECTIONS_COUNT_MAX; index++) {
        struct http2_connection *connection = &http2->connections[index];
        if (!connection->open || connection->closing || connection->trusted) continue;
        if (oldest == NULL || connection->opened_ns < oldest->opened_ns) oldest = connection;
    }
    if (oldest == NULL) return;
    http2->counters.connections_evicted++;
    http2_abandon(oldest, NGHTTP2_ENHANCE_YOUR_CALM);
    http2_close_marked(http2);
}

enum status http2_connection_open(struct http2 *http2, int fd)
{
    if (http2->connections_free == NULL) connection_evict(http2);
    struct http2_connection *connection = http2->connections_free;
    if (connection == NULL) return STATUS_BUSY;
    assert(!connection->open);
    nghttp2_session *session = http2_session_make(connection);
    if (session == NULL) return STATUS_NO_MEMORY;
    enum status status = poll_add(http2->poll, fd, POLL_READ, connection->index);
    if (status != STATUS_OK) {
        nghttp2_session_del(session);
        return status;
    }
    http2->connections_free = connection->next_free;
    *connection = (struct http2_connection){
        .http2 = http2,
        .session = session,
        .peer = connection->peer,
        .fd = fd,
        .index = connection->index,
        .open = 1,
        .opened_ns = *http2->now_ns,
        .active_ns = *http2->now_ns,
        .written_ns = *http2->now_ns,
    };
    http2->connections_count++;
    http2->counters.connections_opened++;
    http2_mark_dirty(connection);
    return STATUS_OK;
}

void *http2_peer(const struct http2_connection *connection)
{
    return connection->peer;
}

const struct queue *http2_streams(const struct http2_connection *connection)
{
    return &connection->streams;
}

void http2_trust(struct http2_connection *connection)
{
    connection->trusted = 1;
}

int http2_blocked(const struct http2_connection *connection)
{
    return connection->write_armed;
}

uint32_t http2_connections_count(const struct http2 *http2)
{
    return http2->connections_count;
}

const struct http2_counters *http2_counters(const struct http2 *http2)
{
    return &http2->counters;
}

void http2_mark_dirty(struct http2_connection *connection)
{
    if (connection->dirty) return;
    connection->dirty = 1;
    connection->next_dirty = connection->http2->dirty;
    connection->http2->dirty = connection;
}

void http2_mark_closing(struct http2_connection *connection)
{
    assert(connection->open);
    if (connection->closing) return;
    connection->closing = 1;
    connection->next_closing = connection->http2->closing;
    connection->http2->closing = connection;
}

void http2_abandon(struct http2_connection *connection, uint32_t error_code)
{
    (void)nghttp2_session_terminate_session(connection->session, error_code);
    (void)nghttp2_session_send(connection->session);
    (void)http2_output_write(connection);
    http2_mark_closing(connection);
}

/* One read. 1 = there may be more. */
static int connection_read(struct http2_connection *connection)
{
    struct http2 *http2 = connection->http2;
    size_t size;
    enum socket_answer answer =
        socket_read(connection->fd, http2->read_buffer, HTTP2_READ_SIZE, &size);
    if (answer == SOCKET_GONE) http2_mark_closing(connection);
    if (answer != SOCKET_OK) return 0;
    http2->counters.bytes_received += size;
    ssize_t used = nghttp2_session_mem_recv(connection->session, http2->read_buffer, size);
    http2_mark_dirty(connection);
    /* The library has bounds of its own, of what we would have to answer: the same kind. */
    if (used == NGHTTP2_ERR_FLOODED) connection->flood = HTTP2_FLOOD_FRAMES;
    if (connection->flood != HTTP2_FLOOD_NONE) {
        http2_guard_end(connection);
        return 0;
    }
    if (used < 0 || (size_t)used != size) {
        /* What the peer sent was not HTTP/2, or our memory ended: say goodbye if that is still
         * possible. */
        http2->counters.connections_malformed++;
        http2_abandon(connection, NGHTTP2_PROTOCOL_ERROR);
        return 0;
    }
    return size == HTTP2_READ_SIZE;
}

void http2_event(struct http2 *http2, uint64_t token, uint32_t interest)
{
    assert(token < HTTP2_CONNECTIONS_COUNT_MAX);
    struct http2_connection *connection = &http2->connections[token];
    if (!connection->open || connection->closing) return;
    if (interest & POLL_WRITE) http2_mark_dirty(connection);
    if (!(interest & (POLL_READ | POLL_GONE))) return;
    for (int left = HTTP2_READS_PER_TURN; left > 0 && !connection->closing; left--)
        if (!connection_read(connection)) return;
}

static void connection_arm(struct http2_connection *connection, int wanted)
{
    if (connection->write_armed == wanted) return;
    connection->write_armed = (uint8_t)wanted;
    uint32_t interest = wanted ? POLL_READ | POLL_WRITE : POLL_READ;
    (void)poll_change(connection->http2->poll, connection->fd, interest, connection->index);
}

/* Session to output to socket, until one of them has no more. */
static void connection_flush(struct http2_connection *connection)
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

/* Ends the process where it does not hold. */
static int connection_invariants(const struct http2_connection *connection)
{
    uint64_t waiting = 0;
    assert(connection->open);
    assert(connection->vectors_first + connection->vectors_count <= HTTP2_VECTORS_MAX);
    assert(connection->output_used <= HTTP2_OUTPUT_SIZE);
    ergo(connection->output == NULL, connection->vectors_count == 0);
    ergo(connection->followed_open != NULL, connection->followed_head != NULL);
    for (uint32_t index = 0; index < connection->vectors_count; index++)
        waiting += connection->vectors[connection->vectors_first + index].size;
    assert(connection->sent_total + waiting == connection->output_total);
    queue_each(&connection->streams, link)
    {
        const struct http2_stream *stream = queue_element(link, struct http2_stream, link);
        assert(stream->connection == connection);
        uint64_t bytes = 0;
        for (const struct http2_body *at = stream->bodies_head; at != NULL; at = at->next)
            bytes += at->size;
        assert(stream->bodies_bytes == bytes);
    }
    return 1;
}

void http2_flush(struct http2 *http2)
{
    while (http2->dirty != NULL) {
        struct http2_connection *connection = http2->dirty;
        http2->dirty = connection->next_dirty;
        connection->dirty = 0;
        connection->next_dirty = NULL;
        if (!connection->open || connection->closing) continue;
        checked(connection_invariants(connection));
        connection_flush(connection);
    }
}

static void connection_close(struct http2_connection *connection)
{
    struct http2 *http2 = connection->http2;
    assert(connection->open);
    /* Streams first: their owner ends what works for them; then the session, which no longer knows
     * any. */
    while (!queue_empty(&connection->streams)) {
        struct http2_stream *stream =
            queue_element(connection->streams.head, struct http2_stream, link);
        (void)nghttp2_session_set_stream_user_data(connection->session, stream->id, NULL);
        http2_stream_close(stream);
    }
    poll_remove(http2->poll, connection->fd);
    http2_output_drop(connection);
    nghttp2_session_del(connection->session);
    socket_close(connection->fd);
    memset(connection->peer, 0, http2->peer_bytes);
    connection->session = NULL;
    connection->open = 0;
    connection->closing = 0;
    connection->fd = -1;
    connection->next_free = http2->connections_free;
    http2->connections_free = connection;
    assert(http2->connections_count > 0);
    http2->connections_count--;
    http2->counters.connections_closed++;
}

static void dirty_remove(struct http2 *http2, struct http2_connection *connection)
{
    if (!connection->dirty) return;
    struct http2_connection **at = &http2->dirty;
    while (*at != connection) at = &(*at)->next_dirty;
    *at = connection->next_dirty;
    connection->dirty = 0;
}

void http2_close_marked(struct http2 *http2)
{
    while (http2->closing != NULL) {
        struct http2_connection *connection = http2->closing;
        http2->closing = connection->next_closing;
        connection->next_closing = NULL;
        dirty_remove(http2, connection);
        connection_close(connection);
        /* Closing its streams can mark it again. */
        dirty_remove(http2, connection);
    }
}

void http2_close_all(struct http2 *http2)
{
    for (uint32_t index = 0; index < HTTP2_CONNECTIONS_COUNT_MAX; index++) {
        if (http2->connections[index].open) http2_mark_closing(&http2->connections[index]);
    }
    http2_close_marked(http2);
}
