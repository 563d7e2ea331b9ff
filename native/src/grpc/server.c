#include "grpc/server.h"

#include <string.h>

#include "foundation/assert.h"
#include "host/calls.h"
#include "service/consume.h"
#include "service/fetch.h"
#include "service/fetch_messages.h"
#include "service/list_offsets.h"
#include "service/produce.h"
#include "service/publish.h"
#include "service/queue.h"
#include "service/ready_queue.h"
#include "shard/shard.h"

/* Parts of the pool that messages on their way may hold: of one connection, of all. */
enum { MESSAGE_SIZE_FIRST = 65520, MESSAGES_CONNECTION_PART = 4, MESSAGES_SHARD_PART = 2 };

static int is_hot(const struct call *call)
{
    return call->method != METHOD_HOST && call->method != METHOD_HEALTH_CHECK;
}

static int path_begins(const struct call *call, const char *prefix)
{
    size_t length = strlen(prefix);
    return call->path_size >= length && memcmp(call->path, prefix, length) == 0;
}

/* NONE = may go on. */
static enum grpc_error start_credentials(const struct call *call)
{
    if (call->method == METHOD_HEALTH_CHECK) return GRPC_ERROR_NONE;
    switch (call->answer) {
    case GRANT_ANSWER_OK: break;
    case GRANT_ANSWER_MISSING:
        /* Health.Watch, reflection and the like tell nothing about anybody's data: the host
         * decides. */
        if (call->method == METHOD_HOST && !path_begins(call, "/headrace.")) return GRPC_ERROR_NONE;
        return GRPC_ERROR_MISSING_CREDENTIALS;
    case GRANT_ANSWER_EXPIRED: return GRPC_ERROR_EXPIRED_CREDENTIALS;
    default: return GRPC_ERROR_INVALID_CREDENTIALS;
    }
    if (call->method != METHOD_HOST) return GRPC_ERROR_NONE;
    if (path_begins(call, "/headrace.node.") && !(call->caller.verbs & ENGINE_VERB_ADMIN)) {
        return GRPC_ERROR_PERMISSION_DENIED;
    }
    return GRPC_ERROR_NONE;
}

static enum grpc_error start_check(const struct call *call)
{
    const struct shard *shard = call->connection->shard;
    if (call->early_error != GRPC_ERROR_NONE) return (enum grpc_error)call->early_error;
    if (!call->content_type_ok) return GRPC_ERROR_CONTENT_TYPE;
    if (call->method == METHOD_NONE) return GRPC_ERROR_MALFORMED_REQUEST;
    if (call->method == METHOD_HEALTH_CHECK) return GRPC_ERROR_NONE;
    if (shard->draining) return GRPC_ERROR_STOPPING;
    if (!shard->ready) return GRPC_ERROR_NOT_READY;
    enum grpc_error error = start_credentials(call);
    if (error != GRPC_ERROR_NONE) return error;
    if (call->deadline_ns != 0 && call->deadline_ns <= shard->now.monotonic_ns)
        return GRPC_ERROR_DEADLINE_EXCEEDED;
    return GRPC_ERROR_NONE;
}

void grpc_start(struct call *call)
{
    assert(!call->started);
    call->started = 1;
    struct shard *shard = call->connection->shard;
    call->connection->active_ns = shard->now.monotonic_ns;
    call->message_since_ns = shard->now.monotonic_ns;
    http2_guard_earn(call->connection, HTTP2_FRAMES_PER_CALL);
    shard->counters.calls_opened++;
    shard->counters.calls_by_method[call->method]++;
    enum grpc_error error = start_check(call);
    if (error != GRPC_ERROR_NONE) {
        grpc_finish_error(call, error);
        return;
    }
    if (call->method == METHOD_HOST) host_call_open(call);
}

static uint32_t message_size_max(const struct call *call)
{
    switch (call->method) {
    case METHOD_PRODUCE:
    case METHOD_PRODUCE_STREAM:
    case METHOD_PUBLISH: return CALL_MESSAGE_SIZE_MAX;
    default: return CALL_HOST_MESSAGE_SIZE_MAX;
    }
}

/* One whole message. `owned` is its buffer in the pool, or NULL if the bytes are borrowed from the
 * transport. Whoever takes it over says so with 1. */
static int dispatch(struct call *call, const uint8_t *message, size_t size, uint8_t *owned)
{
    call->messages_count++;
    enum grpc_error error = grpc_credentials_again(call);
    if (error != GRPC_ERROR_NONE) {
        grpc_finish_error(call, error);
        return 0;
    }
    if (call->method == METHOD_HOST) {
        host_call_message(call, message, size);
        return 0;
    }
    int streams = call->method == METHOD_PRODUCE_STREAM || call->method == METHOD_CONSUME;
    if (call->messages_count > 1 && !streams) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return 0;
    }
    switch (call->method) {
    case METHOD_PRODUCE:
    case METHOD_PRODUCE_STREAM: return stream_produce(call, message, size, owned);
    case METHOD_FETCH: stream_fetch(call, message, size); return 0;
    case METHOD_PUBLISH: stream_publish(call, message, size); return 0;
    case METHOD_FETCH_MESSAGES: stream_fetch_messages(call, message, size); return 0;
    case METHOD_CONSUME: stream_consume(call, message, size); return 0;
    case METHOD_COMMIT_OFFSETS: stream_commit(call, message, size); return 0;
    case METHOD_FETCH_OFFSETS: stream_fetch_offsets(call, message, size); return 0;
    case METHOD_LIST_OFFSETS: stream_list_offsets(call, message, size); return 0;
    case METHOD_HEALTH_CHECK: stream_health(call, message, size); return 0;
    default: unreachable();
    }
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
    } else if (call->message_size > message_size_max(call)) {
        grpc_finish_error(call, GRPC_ERROR_REQUEST_TOO_LARGE);
    }
    return taken;
}

static void message_forget(struct call *call)
{
    struct connection *connection = call->connection;
    assert(connection->messages_bytes >= call->message_capacity);
    assert(connection->shard->messages_bytes >= call->message_capacity);
    connection->messages_bytes -= call->message_capacity;
    connection->shard->messages_bytes -= call->message_capacity;
    call->message = NULL;
    call->message_capacity = 0;
}

void grpc_message_drop(struct call *call)
{
    buffer_give(&call->connection->shard->pool, call->message);
    message_forget(call);
}

/* Room for `wanted` bytes of the message: doubled as they arrive, so that announcing much costs us
 * nothing, and bounded by connection and shard, so that a few cannot take all of the pool. 0 = the
 * call was ended. */
static int message_grow(struct call *call, size_t wanted)
{
    assert(wanted <= call->message_size);
    if (wanted <= call->message_capacity) return 1;
    struct connection *connection = call->connection;
    struct shard *shard = connection->shard;
    uint64_t room = shard->pool.region_size;
    size_t size = MESSAGE_SIZE_FIRST;
    while (size < wanted) size *= 2;
    if (size > call->message_size) size = call->message_size;
    size_t more = size - call->message_capacity;
    uint8_t *larger = NULL;
    if (connection->messages_bytes + more <= room / MESSAGES_CONNECTION_PART
        && shard->messages_bytes + more <= room / MESSAGES_SHARD_PART)
        larger = buffer_resize(&shard->pool, call->message, size);
    if (larger == NULL) {
        shard->counters.messages_refused++;
        grpc_finish_error(call, GRPC_ERROR_MEMORY_EXHAUSTED);
        return 0;
    }
    if (call->message == NULL) call->message_since_ns = shard->now.monotonic_ns;
    call->message = larger;
    call->message_capacity = (uint32_t)size;
    connection->messages_bytes += more;
    shard->messages_bytes += more;
    return 1;
}

/* Take bytes of the message behind a whole prefix. */
static size_t data_message(struct call *call, const uint8_t *data, size_t size)
{
    struct shard *shard = call->connection->shard;
    size_t missing = call->message_size - call->message_filled;
    if (call->message == NULL && size >= missing) {
        /* Whole in the transport's buffer: no copy. */
        call->prefix_size = 0;
        (void)dispatch(call, data, missing, NULL);
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
    if (!dispatch(call, message, call->message_size, message)) buffer_give(&shard->pool, message);
    return taken;
}

size_t grpc_data(struct call *call, const uint8_t *data, size_t size)
{
    size_t owed = 0;
    size_t at = 0;
    int have_prefix = call->prefix_size == GRPC_PREFIX_SIZE;
    while (at < size || (have_prefix && call->message_size == 0)) {
        if (call->finished || !call->started) return 0;
        if (!have_prefix) {
            at += data_prefix(call, data + at, size - at);
        } else {
            size_t taken = data_message(call, data + at, size - at);
            if (call->method == METHOD_HOST) owed += taken;
            at += taken;
        }
        have_prefix = call->prefix_size == GRPC_PREFIX_SIZE;
    }
    if (call->finished) return 0;
    if (produce_queue_hold(call)) owed = size;
    call->window_owed += (uint32_t)owed;
    return owed;
}

void grpc_half_close(struct call *call)
{
    if (call->half_closed) return;
    call->half_closed = 1;
    if (call->finished) return;
    if (call->prefix_size != 0) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
    } else if (call->method == METHOD_HOST) {
        host_call_half_close(call);
    } else if (call->method == METHOD_PRODUCE_STREAM) {
        if (call->pending_count == 0) grpc_finish_ok(call);
    } else if (call->messages_count == 0) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
    } else if (call->method == METHOD_CONSUME) {
        stream_consume_ready(call);
    }
}

void grpc_closed(struct call *call)
{
    struct shard *shard = call->connection->shard;
    assert(!is_hot(call) || call->host_opened == 0);
    if (call->started && !call->finished) shard->counters.calls_cancelled++;
    if (call->host_opened && !call->finished) host_call_cancel(call);
    if (call->fetch_index != 0 || call->fetch_pending != 0) stream_fetch_cancel(call);
    if (call->started) call->connection->active_ns = shard->now.monotonic_ns;
    stream_work_forget(call);
    grpc_message_drop(call);
    buffer_give(&shard->pool, call->host_status);
    grpc_reply_drop(call);
    call_give(shard, call);
}
