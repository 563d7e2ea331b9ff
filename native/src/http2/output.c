/* http2/output.c: the output of one connection: a block of copied bytes, references to large
 * bodies, and the writev that sends both. A reference is counted until its bytes have left.
 *
 * Bodies that their owner asked about are followed to the kernel: bytes leave in the order in which
 * frames are written, so the place of a body's last byte says when all of it was taken. What is
 * dropped with its connection before that was not sent. */
#include <string.h>

#include "foundation/assert.h"
#include "http2/state.h"
#include "io/io_socket.h"

static uint8_t *output_take(struct http2 *http2)
{
    if (http2->output_spares_count > 0) return http2->output_spares[--http2->output_spares_count];
    return buffer_take(http2->pool, HTTP2_OUTPUT_SIZE);
}

static void output_give(struct http2 *http2, uint8_t *output)
{
    if (http2->output_spares_count < HTTP2_OUTPUT_SPARES) {
        http2->output_spares[http2->output_spares_count++] = output;
        return;
    }
    buffer_give(http2->pool, output);
}

int http2_output_room(const struct http2_connection *connection, size_t size)
{
    /* A data frame takes at most two vectors: its header with what lies before it, and a reference.
     */
    if (connection->vectors_first + connection->vectors_count + 2 > HTTP2_VECTORS_MAX) return 0;
    size_t copied = 9 + (size < HTTP2_REFERENCE_SIZE_MIN ? size : 0);
    return connection->output_used + copied <= HTTP2_OUTPUT_SIZE;
}

ssize_t http2_output_copy(struct http2_connection *connection, const uint8_t *data, size_t size)
{
    if (connection->output == NULL) {
        connection->output = output_take(connection->http2);
        if (connection->output == NULL) return NGHTTP2_ERR_CALLBACK_FAILURE;
        connection->output_used = 0;
    }
    size_t room = HTTP2_OUTPUT_SIZE - connection->output_used;
    size_t taken = size < room ? size : room;
    if (taken == 0) return 0;
    uint8_t *target = connection->output + connection->output_used;
    uint32_t last = connection->vectors_first + connection->vectors_count;
    struct http2_vector *vector =
        last > connection->vectors_first ? &connection->vectors[last - 1] : NULL;
    if (vector != NULL && vector->body == NULL && vector->data + vector->size == target) {
        vector->size += taken;
    } else {
        if (last == HTTP2_VECTORS_MAX) return 0;
        connection->vectors[last] = (struct http2_vector){.data = target, .size = taken};
        connection->vectors_count++;
    }
    memcpy(target, data, taken);
    connection->output_used += (uint32_t)taken;
    connection->output_total += taken;
    return (ssize_t)taken;
}

int http2_output_data(struct http2_connection *connection, const uint8_t header[9],
                      struct http2_body *body, const uint8_t *data, size_t size)
{
    assert(http2_output_room(connection, size));
    if (http2_output_copy(connection, header, 9) != 9) return 0;
    if (size < HTTP2_REFERENCE_SIZE_MIN) {
        return size == 0 || http2_output_copy(connection, data, size) == (ssize_t)size;
    }
    uint32_t last = connection->vectors_first + connection->vectors_count;
    assert(last < HTTP2_VECTORS_MAX);
    connection->vectors[last] = (struct http2_vector){.data = data, .size = size, .body = body};
    connection->vectors_count++;
    connection->output_total += size;
    body->references++;
    return 1;
}

void http2_output_follow(struct http2_connection *connection, struct http2_body *body)
{
    assert(body->followed);
    body->next = NULL;
    if (connection->followed_tail != NULL)
        connection->followed_tail->next = body;
    else
        connection->followed_head = body;
    connection->followed_tail = body;
    if (connection->followed_open == NULL) connection->followed_open = body;
}

void http2_output_framed(struct http2_connection *connection)
{
    struct http2_body *body = connection->followed_open;
    for (; body != NULL; body = body->next) body->sent_at = connection->output_total;
    connection->followed_open = NULL;
}

static struct http2_body *followed_pop(struct http2_connection *connection)
{
    struct http2_body *body = connection->followed_head;
    connection->followed_head = body->next;
    if (body->next == NULL) connection->followed_tail = NULL;
    body->next = NULL;
    return body;
}

void http2_output_unframed(struct http2_connection *connection)
{
    struct http2_body *open = connection->followed_open;
    if (open == NULL) return;
    /* Those before it stay: they are few, and this is a failure. */
    struct http2_body *last = NULL;
    for (struct http2_body *at = connection->followed_head; at != open; at = at->next) last = at;
    if (last != NULL)
        last->next = NULL;
    else
        connection->followed_head = NULL;
    connection->followed_tail = last;
    connection->followed_open = NULL;
    while (open != NULL) {
        struct http2_body *next = open->next;
        open->next = NULL;
        http2_body_release(connection->http2, open);
        open = next;
    }
}

/* What the kernel has all of. */
static void followed_sent(struct http2_connection *connection)
{
    const struct http2 *http2 = connection->http2;
    while (connection->followed_head != connection->followed_open
           && connection->followed_head->sent_at <= connection->sent_total) {
        struct http2_body *body = followed_pop(connection);
        http2->callbacks->sent(http2->owner, body);
        http2_body_release(http2, body);
    }
}

static void output_advance(struct http2_connection *connection, size_t sent)
{
    connection->sent_total += sent;
    while (sent > 0) {
        assert(connection->vectors_count > 0);
        struct http2_vector *vector = &connection->vectors[connection->vectors_first];
        if (sent < vector->size) {
            vector->data += sent;
            vector->size -= sent;
            return;
        }
        sent -= vector->size;
        if (vector->body != NULL) http2_body_release(connection->http2, vector->body);
        connection->vectors_first++;
        connection->vectors_count--;
    }
}

int http2_output_write(struct http2_connection *connection)
{
    struct iovec vectors[HTTP2_VECTORS_MAX];
    if (connection->write_armed == 0) connection->written_ns = *connection->http2->now_ns;
    while (connection->vectors_count > 0) {
        for (uint32_t index = 0; index < connection->vectors_count; index++) {
            const struct http2_vector *vector =
                &connection->vectors[connection->vectors_first + index];
            vectors[index].iov_base = (void *)(uintptr_t)vector->data;
            vectors[index].iov_len = vector->size;
        }
        size_t sent;
        enum socket_answer answer =
            socket_write(connection->fd, vectors, (int)connection->vectors_count, &sent);
        if (answer == SOCKET_GONE) return -1;
        if (answer == SOCKET_WAIT) return 0;
        connection->http2->counters.bytes_sent += sent;
        connection->written_ns = *connection->http2->now_ns;
        connection->unearned += (uint32_t)sent;
        http2_guard_earn(connection, connection->unearned / HTTP2_BYTES_PER_FRAME);
        connection->unearned %= HTTP2_BYTES_PER_FRAME;
        output_advance(connection, sent);
        followed_sent(connection);
    }
    connection->vectors_first = 0;
    connection->output_used = 0;
    if (connection->output != NULL) output_give(connection->http2, connection->output);
    connection->output = NULL;
    return 1;
}

void http2_output_drop(struct http2_connection *connection)
{
    for (uint32_t index = 0; index < connection->vectors_count; index++) {
        struct http2_vector *vector = &connection->vectors[connection->vectors_first + index];
        if (vector->body != NULL) http2_body_release(connection->http2, vector->body);
    }
    connection->followed_open = NULL;
    while (connection->followed_head != NULL)
        http2_body_release(connection->http2, followed_pop(connection));
    connection->vectors_first = 0;
    connection->vectors_count = 0;
    connection->output_used = 0;
    if (connection->output != NULL) output_give(connection->http2, connection->output);
    connection->output = NULL;
}
