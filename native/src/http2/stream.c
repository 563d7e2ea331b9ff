/* http2/stream.c: the response of a stream: its header blocks, its bodies as DATA frames, its end.
 * The one place that submits for a stream, so that nothing can follow its trailers. */
#include <string.h>

#include "foundation/assert.h"
#include "http2/state.h"

static uint64_t now_of(const struct http2_stream *stream)
{
    return *stream->connection->http2->now_ns;
}

static const struct http2_callbacks *callbacks_of(const struct http2_stream *stream)
{
    return stream->connection->http2->callbacks;
}

void http2_body_release(const struct http2 *http2, struct http2_body *body)
{
    assert(body->references > 0);
    body->references--;
    if (body->references == 0) http2->callbacks->released(http2->owner, body);
}

static void bodies_pop(struct http2_stream *stream)
{
    struct http2_body *body = stream->bodies_head;
    uint32_t size = body->size;
    assert(body->taken == size);
    stream->bodies_head = body->next;
    if (stream->bodies_head == NULL) stream->bodies_tail = NULL;
    assert(stream->bodies_bytes >= size);
    stream->bodies_bytes -= size;
    if (body->followed)
        http2_output_follow(stream->connection, body);
    else
        http2_body_release(stream->connection->http2, body);
    callbacks_of(stream)->writable(stream, size);
}

/* Small bodies are gathered into one DATA frame; a large one goes out where it lies. */
static ssize_t read_bodies(struct http2_stream *stream, uint8_t *buffer, size_t length,
                           uint32_t *flags)
{
    size_t written = 0;
    while (stream->bodies_head != NULL && written < length) {
        struct http2_body *body = stream->bodies_head;
        size_t left = body->size - body->taken;
        if (left >= HTTP2_REFERENCE_SIZE_MIN) {
            if (written > 0) break;
            *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
            return (ssize_t)(left < length ? left : length);
        }
        size_t taken = left < length - written ? left : length - written;
        memcpy(buffer + written, body->data + body->taken, taken);
        body->taken += (uint32_t)taken;
        written += taken;
        stream->bodies_ns = now_of(stream);
        if (body->taken == body->size) bodies_pop(stream);
    }
    return (ssize_t)written;
}

static ssize_t on_read(nghttp2_session *session, int32_t stream_id, uint8_t *buffer, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)user;
    struct http2_stream *stream = source->ptr;
    assert(stream->id == stream_id);
    ssize_t size = read_bodies(stream, buffer, length, flags);
    /* With a reference the body is still in the queue: its end comes with the next frame. */
    if (stream->bodies_head != NULL) return size;
    if (!stream->finished) {
        if (size > 0) return size;
        stream->deferred = 1;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    int failed = callbacks_of(stream)->fields(stream, HTTP2_BLOCK_TRAILERS);
    if (failed == 0) return size;
    http2_output_unframed(stream->connection);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

void http2_stream_send(struct http2_stream *stream, const uint8_t header[9], size_t size)
{
    struct http2_body *body = stream->bodies_head;
    assert(body != NULL);
    assert(body->size - body->taken >= size);
    (void)http2_output_data(stream->connection, header, body, body->data + body->taken, size);
    body->taken += (uint32_t)size;
    stream->bodies_ns = now_of(stream);
    if (body->taken == body->size) bodies_pop(stream);
}

int http2_submit(struct http2_stream *stream, enum http2_block block,
                 const struct http2_field *fields, size_t count)
{
    nghttp2_session *session = stream->connection->session;
    nghttp2_nv entries[HTTP2_FIELDS_COUNT_MAX];
    assert(count <= HTTP2_FIELDS_COUNT_MAX);
    for (size_t index = 0; index < count; index++) {
        const struct http2_field *field = &fields[index];
        entries[index] = (nghttp2_nv){
            .name = (uint8_t *)(uintptr_t)field->name,
            .value = (uint8_t *)(uintptr_t)field->value,
            .namelen = field->name_size,
            .valuelen = field->value_size,
            .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME,
        };
        if (field->constant) entries[index].flags |= NGHTTP2_NV_FLAG_NO_COPY_VALUE;
    }
    if (block == HTTP2_BLOCK_TRAILERS)
        return nghttp2_submit_trailer(session, stream->id, entries, count);
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = on_read};
    const nghttp2_data_provider *bodies = block == HTTP2_BLOCK_RESPONSE ? &provider : NULL;
    return nghttp2_submit_response(session, stream->id, entries, count, bodies);
}

static void stream_advance(struct http2_stream *stream)
{
    struct http2_connection *connection = stream->connection;
    if (!stream->responded) {
        stream->responded = 1;
        int alone = stream->bodies_head == NULL && stream->finished;
        enum http2_block block = alone ? HTTP2_BLOCK_ALONE : HTTP2_BLOCK_RESPONSE;
        /* No memory for an answer: the connection cannot be used any more. */
        if (callbacks_of(stream)->fields(stream, block) != 0) http2_mark_closing(connection);
    } else if (stream->deferred) {
        stream->deferred = 0;
        (void)nghttp2_session_resume_data(connection->session, stream->id);
    }
    http2_mark_dirty(connection);
}

void http2_send(struct http2_stream *stream, struct http2_body *body)
{
    assert(body->next == NULL);
    assert(!stream->finished);
    if (stream->bodies_tail != NULL) {
        stream->bodies_tail->next = body;
    } else {
        stream->bodies_head = body;
        stream->bodies_ns = now_of(stream);
    }
    stream->bodies_tail = body;
    stream->bodies_bytes += body->size;
    stream_advance(stream);
}

void http2_finish(struct http2_stream *stream)
{
    assert(!stream->finished);
    stream->finished = 1;
    stream_advance(stream);
}

void http2_window_return(struct http2_stream *stream, size_t size)
{
    (void)nghttp2_session_consume_stream(stream->connection->session, stream->id, size);
    http2_mark_dirty(stream->connection);
}

void http2_reset(struct http2_stream *stream, enum http2_code code)
{
    _Static_assert((int)HTTP2_CALM == (int)NGHTTP2_ENHANCE_YOUR_CALM, "the same codes");
    (void)nghttp2_submit_rst_stream(stream->connection->session, NGHTTP2_FLAG_NONE, stream->id,
                                    (uint32_t)code);
    /* Another try only after as long a wait. */
    stream->bodies_ns = now_of(stream);
    http2_mark_dirty(stream->connection);
}

void http2_stream_close(struct http2_stream *stream)
{
    struct http2_connection *connection = stream->connection;
    if (stream->started) connection->active_ns = now_of(stream);
    queue_remove(&connection->streams, &stream->link);
    while (stream->bodies_head != NULL) {
        struct http2_body *body = stream->bodies_head;
        stream->bodies_head = body->next;
        http2_body_release(connection->http2, body);
    }
    stream->bodies_tail = NULL;
    stream->bodies_bytes = 0;
    connection->http2->callbacks->closed(stream);
}
