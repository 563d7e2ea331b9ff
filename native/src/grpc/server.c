/* grpc/server.c: calls from their first header to their end: slots, messages, dispatch. */
#include "grpc/server.h"

#include <string.h>

#include "catalog/grants.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/buffer_pool.h"
#include "grpc/state.h"

/* Parts of the pool that messages on their way may hold: of one connection, of all. */
enum { MESSAGE_SIZE_FIRST = 65520, MESSAGES_CONNECTION_PART = 4, MESSAGES_SHARD_PART = 2 };

static uint32_t tag_next(uint32_t tag)
{
    return tag == UINT32_MAX ? 1 : tag + 1;
}

static struct http2_stream *call_begin(void *owner, struct http2_connection *connection)
{
    struct grpc_server *server = owner;
    if (server->calls_free_count == 0) {
        server->counters.calls_refused++;
        return NULL;
    }
    struct call *call = &server->calls[server->calls_free[--server->calls_free_count]];
    assert(call->stream.connection == NULL);
    call->server = server;
    call->peer = http2_peer(connection);
    call->answer = GRANT_ANSWER_MISSING;
    return &call->stream;
}

static void call_give(struct call *call)
{
    struct grpc_server *server = call->server;
    assert(call->stream.connection != NULL);
    assert(call->stream.bodies_head == NULL);
    timer_clear(server->timers, &call->timer);
    uint32_t index = call->index;
    uint32_t tag = tag_next(call->slot_tag);
    *call = (struct call){.index = index, .slot_tag = tag};
    server->calls_free[server->calls_free_count++] = index;
}

/* NONE = may go on. */
static enum grpc_error start_credentials(const struct call *call)
{
    if (call->method->authorize != NULL) return call->method->authorize(call);
    return grpc_answer_error((enum grant_answer)call->answer);
}

static enum grpc_error start_check(const struct call *call)
{
    const struct grpc_server *server = call->server;
    if (call->early_error != GRPC_ERROR_NONE) return (enum grpc_error)call->early_error;
    if (!call->content_type_ok) return GRPC_ERROR_CONTENT_TYPE;
    if (call->method == NULL) return GRPC_ERROR_MALFORMED_REQUEST;
    if (call->method->flags & GRPC_METHOD_OPEN) return GRPC_ERROR_NONE;
    if (server->draining) return GRPC_ERROR_STOPPING;
    if (!server->ready) return GRPC_ERROR_NOT_READY;
    enum grpc_error error = start_credentials(call);
    if (error != GRPC_ERROR_NONE) return error;
    if (call->deadline_ns != 0 && call->deadline_ns <= server->now->monotonic_ns)
        return GRPC_ERROR_DEADLINE_EXCEEDED;
    return GRPC_ERROR_NONE;
}

static void call_start(struct http2_stream *stream)
{
    struct call *call = call_of(stream);
    struct grpc_server *server = call->server;
    call->message_since_ns = server->now->monotonic_ns;
    server->counters.calls_opened++;
    if (call->method != NULL) server->counters.calls_by_method[call->method_index]++;
    enum grpc_error error = start_check(call);
    if (error != GRPC_ERROR_NONE)
        grpc_finish_error(call, error);
    else if (call->method->open != NULL)
        call->method->open(call);
}

/* One whole message. `buffer` is its memory in the pool, or NULL if the bytes are borrowed from the
 * transport. */
static void dispatch(struct call *call, const uint8_t *data, size_t size, uint8_t *buffer)
{
    struct buffer_pool *pool = call->server->pool;
    struct grpc_message message = {.data = data, .size = size, .buffer = buffer};
    call->messages_count++;
    enum grpc_error error = grpc_credentials_again(call);
    if (error == GRPC_ERROR_NONE && call->messages_count > 1
        && !(call->method->flags & GRPC_METHOD_STREAMS))
        error = GRPC_ERROR_MALFORMED_REQUEST;
    if (error == GRPC_ERROR_NONE)
        call->method->message(call, &message);
    else
        grpc_finish_error(call, error);
    buffer_give(pool, message.buffer);
}

/* Take bytes of the prefix. Returns how many; a refused prefix finishes the call. */
static size_t data_prefix(struct call *call, const uint8_t *data, size_t size)
{
    size_t missing = (size_t)(GRPC_PREFIX_SIZE - call->prefix_size);
    size_t taken = size < missing ? size : missing;
    memcpy(call->prefix + call->prefix_size, data, taken);
    call->prefix_size = (uint8_t)(call->prefix_size + taken);
    if (call->prefix_size < GRPC_PREFIX_SIZE) return taken;
    call->message_size = (uint32_t)call->prefix[1] << 24 | (uint32_t)call->prefix[2] << 16
                         | (uint32_t)call->prefix[3] << 8 | call->prefix[4];
    call->message_filled = 0;
    if (call->prefix[0] != 0) {
        grpc_finish_error(call, GRPC_ERROR_COMPRESSION_REFUSED);
    } else if (call->message_size > call->method->message_size_max) {
        grpc_finish_error(call, GRPC_ERROR_REQUEST_TOO_LARGE);
    }
    return taken;
}

static void message_forget(struct call *call)
{
    struct grpc_peer *peer = call->peer;
    struct grpc_server *server = call->server;
    assert(peer->messages_bytes >= call->message_capacity);
    assert(server->messages_bytes >= call->message_capacity);
    peer->messages_bytes -= call->message_capacity;
    server->messages_bytes -= call->message_capacity;
    call->message = NULL;
    call->message_capacity = 0;
}

void grpc_message_drop(struct call *call)
{
    buffer_give(call->server->pool, call->message);
    message_forget(call);
}

/* Room for `wanted` bytes of the message: doubled as they arrive, so that announcing much costs us
 * nothing, and bounded by connection and shard, so that a few cannot take all of the pool. 0 = the
 * call was ended. */
static int message_grow(struct call *call, size_t wanted)
{
    assert(wanted <= call->message_size);
    if (wanted <= call->message_capacity) return 1;
    struct grpc_peer *peer = call->peer;
    struct grpc_server *server = call->server;
    uint64_t room = server->pool->region_size;
    size_t size = MESSAGE_SIZE_FIRST;
    while (size < wanted) size *= 2;
    if (size > call->message_size) size = call->message_size;
    size_t more = size - call->message_capacity;
    uint8_t *larger = NULL;
    if (peer->messages_bytes + more <= room / MESSAGES_CONNECTION_PART
        && server->messages_bytes + more <= room / MESSAGES_SHARD_PART)
        larger = buffer_resize(server->pool, call->message, size);
    if (larger == NULL) {
        server->counters.messages_refused++;
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
        return 0;
    }
    if (call->message == NULL) call->message_since_ns = server->now->monotonic_ns;
    call->message = larger;
    call->message_capacity = (uint32_t)size;
    peer->messages_bytes += more;
    server->messages_bytes += more;
    return 1;
}

/* Take bytes of the message behind a whole prefix. */
static size_t data_message(struct call *call, const uint8_t *data, size_t size)
{
    size_t missing = call->message_size - call->message_filled;
    if (call->message == NULL && size >= missing) {
        /* Whole in the transport's buffer: no copy. */
        call->prefix_size = 0;
        dispatch(call, data, missing, NULL);
        return missing;
    }
    size_t taken = size < missing ? size : missing;
    if (!message_grow(call, call->message_filled + taken)) return size;
    memcpy(call->message + call->message_filled, data, taken);
    call->message_filled += (uint32_t)taken;
    if (call->message_filled < call->message_size) return taken;
    uint8_t *message = call->message;
    message_forget(call);
    call->prefix_size = 0;
    dispatch(call, message, call->message_size, message);
    return taken;
}

/* Ends the process where it does not hold. */
static int call_invariants(const struct call *call)
{
    assert(call->slot_tag != 0);
    assert(call->prefix_size <= GRPC_PREFIX_SIZE);
    assert((call->message == NULL) == (call->message_capacity == 0));
    assert(call->peer->messages_bytes >= call->message_capacity);
    assert(call->server->messages_bytes >= call->peer->messages_bytes);
    ergo(call->finished, call->message == NULL);
    ergo(call->finished, call->window_owed == 0);
    assert(call->finished == call->stream.finished);
    return 1;
}

int grpc_invariants(const struct grpc_server *server)
{
    assert(server->calls_free_count <= GRPC_CALLS_COUNT_MAX);
    ergo(grpc_calls_count(server) == 0, server->messages_bytes == 0);
    assert(server->messages_bytes <= server->pool->region_size / MESSAGES_SHARD_PART);
    for (uint32_t kind = 0; kind < REPLY_KINDS_COUNT; kind++) {
        uint64_t bytes = 0;
        for (uint32_t bucket = 0; bucket < REPLY_PRINCIPALS; bucket++)
            bytes += server->budgets[kind].bytes_of[bucket];
        assert(server->budgets[kind].bytes == bytes);
    }
    return 1;
}

static size_t call_data(struct http2_stream *stream, const uint8_t *data, size_t size)
{
    struct call *call = call_of(stream);
    size_t owed = 0;
    size_t at = 0;
    int have_prefix = call->prefix_size == GRPC_PREFIX_SIZE;
    while (at < size || (have_prefix && call->message_size == 0)) {
        if (call->finished || !stream->started) return 0;
        if (!have_prefix) {
            at += data_prefix(call, data + at, size - at);
        } else {
            size_t taken = data_message(call, data + at, size - at);
            if (call->method->flags & GRPC_METHOD_CREDIT) owed += taken;
            at += taken;
        }
        have_prefix = call->prefix_size == GRPC_PREFIX_SIZE;
    }
    checked(call_invariants(call));
    if (call->finished) return 0;
    if (call->method->withhold != NULL && call->method->withhold(call)) owed = size;
    call->window_owed += (uint32_t)owed;
    return owed;
}

static void call_end(struct http2_stream *stream)
{
    struct call *call = call_of(stream);
    checked(call_invariants(call));
    if (call->finished) return;
    int may_end = call->messages_count > 0 || call->method->flags & GRPC_METHOD_QUIET;
    if (call->prefix_size != 0 || !may_end)
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
    else if (call->method->end != NULL)
        call->method->end(call);
}

static void call_closed(struct http2_stream *stream)
{
    struct call *call = call_of(stream);
    struct grpc_server *server = call->server;
    const struct grpc_method *method = call->method;
    if (stream->started && !call->finished) {
        server->counters.calls_cancelled++;
        if (method->cancelled != NULL) method->cancelled(call);
    }
    if (method != NULL && method->closed != NULL) method->closed(call);
    grpc_message_drop(call);
    buffer_give(server->pool, call->status);
    call_give(call);
}

static const struct http2_callbacks callbacks = {
    .begin = call_begin,
    .header = grpc_header,
    .headers = call_start,
    .data = call_data,
    .end = call_end,
    .fields = grpc_fields,
    .writable = grpc_writable,
    .closed = call_closed,
    .sent = grpc_reply_sent,
    .released = grpc_reply_released,
};

size_t grpc_server_bytes(void)
{
    return http2_memory_bytes(sizeof(struct grpc_peer)) + arena_size(sizeof(struct grpc_server))
           + arena_size(sizeof(struct call) * GRPC_CALLS_COUNT_MAX)
           + arena_size(sizeof(uint32_t) * GRPC_CALLS_COUNT_MAX);
}

static struct http2 *transport_open(struct grpc_server *server, struct arena *arena,
                                    const struct grpc_config *config)
{
    const struct http2_config http2 = {
        .callbacks = &callbacks,
        .owner = server,
        .peer_bytes = sizeof(struct grpc_peer),
        .pool = config->pool,
        .poll = config->poll,
        .now_ns = &config->now->monotonic_ns,
        .limits = config->connections,
    };
    return http2_open(arena, &http2);
}

struct grpc_server *grpc_server_open(struct arena *arena, const struct grpc_config *config)
{
    struct grpc_server *server = arena_take(arena, sizeof *server);
    struct call *calls = arena_take(arena, sizeof *calls * GRPC_CALLS_COUNT_MAX);
    uint32_t *calls_free = arena_take(arena, sizeof *calls_free * GRPC_CALLS_COUNT_MAX);
    if (!server || !calls || !calls_free) return NULL;
    *server = (struct grpc_server){
        .pool = config->pool,
        .timers = config->timers,
        .tally = config->tally,
        .grants = config->grants,
        .now = config->now,
        .hooks = config->hooks,
        .message_ms = config->message_ms,
        .stall_ms = config->stall_ms,
        .shard = config->shard,
        .calls = calls,
        .calls_free = calls_free,
    };
    for (uint32_t index = GRPC_CALLS_COUNT_MAX; index-- > 0;) {
        calls[index] = (struct call){.index = index, .slot_tag = 1};
        calls_free[server->calls_free_count++] = index;
    }
    server->http2 = transport_open(server, arena, config);
    return server->http2 == NULL ? NULL : server;
}

void grpc_server_close(struct grpc_server *server)
{
    http2_close(server->http2);
}

void grpc_server_register(struct grpc_server *server, const struct grpc_service *service)
{
    uint32_t at = server->services_count;
    assert(at < GRPC_SERVICES_COUNT_MAX);
    uint32_t first =
        at == 0 ? 0 : server->methods_first[at - 1] + server->services[at - 1].methods_count;
    assert(first + service->methods_count <= GRPC_METHODS_COUNT_MAX);
    server->services[at] = *service;
    server->methods_first[at] = first;
    server->services_count++;
}

const struct grpc_method *grpc_server_method(const struct grpc_server *server, uint32_t index)
{
    for (uint32_t at = 0; at < server->services_count; at++) {
        uint32_t place = index - server->methods_first[at];
        if (place < server->services[at].methods_count) return &server->services[at].methods[place];
    }
    return NULL;
}

void grpc_server_ready(struct grpc_server *server)
{
    server->ready = 1;
}

void grpc_server_drain(struct grpc_server *server)
{
    server->draining = 1;
    http2_drain(server->http2);
}

void grpc_server_fail(struct grpc_server *server, enum grpc_error error)
{
    for (uint32_t index = 0; index < GRPC_CALLS_COUNT_MAX; index++) {
        struct call *call = grpc_call_at(server, index);
        if (call != NULL) grpc_finish_error(call, error);
    }
}

struct http2 *grpc_server_transport(const struct grpc_server *server)
{
    return server->http2;
}

struct grpc_counters *grpc_server_counters(struct grpc_server *server)
{
    return &server->counters;
}

uint32_t grpc_calls_count(const struct grpc_server *server)
{
    return GRPC_CALLS_COUNT_MAX - server->calls_free_count;
}

int grpc_server_idle(const struct grpc_server *server)
{
    return grpc_calls_count(server) == 0 && server->messages_bytes == 0;
}

struct call *grpc_call_at(const struct grpc_server *server, uint32_t index)
{
    assert(index < GRPC_CALLS_COUNT_MAX);
    struct call *call = &server->calls[index];
    return call->stream.connection != NULL && call->stream.started ? call : NULL;
}

struct call *grpc_call_find(const struct grpc_server *server, uint32_t index, uint32_t tag)
{
    if (index >= GRPC_CALLS_COUNT_MAX) return NULL;
    struct call *call = &server->calls[index];
    if (call->stream.connection == NULL || call->slot_tag != tag) return NULL;
    return call;
}

void grpc_deadline_set(struct call *call, uint64_t deadline_ns)
{
    call->timer.kind = GRPC_TIMER;
    timer_set(call->server->timers, &call->timer, deadline_ns);
}

void grpc_deadline_passed(struct grpc_server *server, struct timer *timer)
{
    struct call *call = queue_element(&timer->link, struct call, timer.link);
    assert(call->server == server);
    if (call->finished) return;
    struct grpc_failure failure = {
        .error = GRPC_ERROR_DEADLINE_EXCEEDED,
        .hint = "see whether it was done, then repeat",
    };
    if (call->deadline_ns == 0 || call->deadline_ns > server->now->monotonic_ns) {
        server->counters.calls_late++;
        failure.detail = "the node did not answer within the time that it gives such a call";
    }
    grpc_finish(call, &failure);
}
