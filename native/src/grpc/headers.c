/* grpc/headers.c: what a call's request headers say: method, credentials, deadline, content type.
 * Judges each field when it arrives; grpc/server.c decides once all are there. */
#include <string.h>

#include "catalog/grants.h"
#include "foundation/assert.h"
#include "grpc/state.h"

uint64_t grpc_timeout_deadline(const uint8_t *value, size_t size, uint64_t now_ns)
{
    /* At most 8 digits and a unit, as the specification says: no product below overflows. */
    if (size < 2 || size > 9) return 0;
    uint64_t amount = 0;
    for (size_t index = 0; index + 1 < size; index++) {
        if (value[index] < '0' || value[index] > '9') return 0;
        amount = amount * 10 + (uint64_t)(value[index] - '0');
    }
    uint64_t unit_ns;
    switch (value[size - 1]) {
    case 'n': unit_ns = 1; break;
    case 'u': unit_ns = 1000; break;
    case 'm': unit_ns = 1000000; break;
    case 'S': unit_ns = 1000000000; break;
    case 'M': unit_ns = UINT64_C(60000000000); break;
    case 'H': unit_ns = UINT64_C(3600000000000); break;
    default: return 0;
    }
    uint64_t timeout_ns;
    if (__builtin_mul_overflow(amount, unit_ns, &timeout_ns)) return UINT64_MAX;
    if (timeout_ns > UINT64_MAX - now_ns) return UINT64_MAX;
    return now_ns + timeout_ns;
}

static int is_text(const uint8_t *bytes, size_t size, const char *text)
{
    return size == strlen(text) && memcmp(bytes, text, size) == 0;
}

static int is_grpc(const uint8_t *value, size_t size)
{
    static const char type[] = "application/grpc";
    size_t length = sizeof type - 1;
    if (size < length || memcmp(value, type, length) != 0) return 0;
    return size == length || value[length] == '+' || value[length] == ';';
}

static void token_remember(const struct call *call, const uint8_t *value, size_t size,
                           const struct grant *grant)
{
    struct grpc_peer *peer = call->peer;
    struct grpc_token *cached = &peer->tokens[peer->tokens_next];
    if (size > sizeof cached->token) return;
    peer->tokens_next = (uint8_t)((peer->tokens_next + 1) % GRPC_TOKENS_CACHED);
    cached->revision = call->server->grants->revision;
    cached->size = (uint32_t)size;
    cached->expires_at_us = grant->expires_at_us;
    memcpy(cached->secret_sha256, grant->sha256, sizeof cached->secret_sha256);
    cached->caller = call->caller;
    memcpy(cached->token, value, size);
}

/* The whole token is compared, in one pass without a branch on its bytes: a hash could be made to
 * collide. */
static const struct grpc_token *token_recall(const struct call *call, const uint8_t *value,
                                             size_t size)
{
    uint32_t revision = call->server->grants->revision;
    for (uint32_t index = 0; index < GRPC_TOKENS_CACHED; index++) {
        const struct grpc_token *cached = &call->peer->tokens[index];
        if (cached->revision != revision || cached->size != size) continue;
        uint8_t difference = 0;
        for (size_t at = 0; at < size; at++) difference |= (uint8_t)(cached->token[at] ^ value[at]);
        if (difference == 0) return cached;
    }
    return NULL;
}

static void caller_take(struct call *call, const struct grant *grant)
{
    call->caller = (struct engine_caller){
        .principal = grant->principal,
        .organization = grant->organization,
        .project = grant->project,
        .verbs = grant->verbs,
    };
    memcpy(call->caller.key_id, grant->key_id, sizeof call->caller.key_id);
    call->grants_revision = call->server->grants->revision;
    call->expires_at_us = grant->expires_at_us;
    memcpy(call->secret_sha256, grant->sha256, sizeof call->secret_sha256);
}

enum grpc_error grpc_answer_error(enum grant_answer answer)
{
    switch (answer) {
    case GRANT_ANSWER_OK: return GRPC_ERROR_NONE;
    case GRANT_ANSWER_MISSING: return GRPC_ERROR_MISSING_CREDENTIALS;
    case GRANT_ANSWER_EXPIRED: return GRPC_ERROR_EXPIRED_CREDENTIALS;
    default: return GRPC_ERROR_INVALID_CREDENTIALS;
    }
}

enum grpc_error grpc_credentials_again(struct call *call)
{
    /* Without a good key only what tells nothing about anybody's data was let in. */
    if (call->answer != GRANT_ANSWER_OK) return GRPC_ERROR_NONE;
    const struct grants *grants = call->server->grants;
    int64_t now_us = call->server->now->wall_us;
    int expired = call->expires_at_us != 0 && call->expires_at_us <= now_us;
    if (call->grants_revision == grants->revision && !expired) return GRPC_ERROR_NONE;
    struct grant grant;
    enum grant_answer answer =
        grants_again(grants, call->caller.key_id, call->secret_sha256, now_us, &grant);
    if (answer == GRANT_ANSWER_OK) caller_take(call, &grant);
    return grpc_answer_error(answer);
}

static void header_authorization(struct call *call, const uint8_t *value, size_t size)
{
    int64_t now_us = call->server->now->wall_us;
    const struct grpc_token *cached = token_recall(call, value, size);
    if (cached != NULL) {
        int expired = cached->expires_at_us != 0 && cached->expires_at_us <= now_us;
        call->answer = expired ? GRANT_ANSWER_EXPIRED : GRANT_ANSWER_OK;
        call->caller = cached->caller;
        call->grants_revision = cached->revision;
        call->expires_at_us = cached->expires_at_us;
        memcpy(call->secret_sha256, cached->secret_sha256, sizeof call->secret_sha256);
        return;
    }
    struct grant grant;
    call->answer =
        (uint8_t)grants_check(call->server->grants, (const char *)value, size, now_us, &grant);
    if (call->answer != GRANT_ANSWER_OK) return;
    http2_trust(call->stream.connection);
    caller_take(call, &grant);
    token_remember(call, value, size, &grant);
}

static void header_path(struct call *call, const uint8_t *value, size_t size)
{
    struct grpc_server *server = call->server;
    const struct grpc_service *service = NULL;
    call->method =
        grpc_method_find(server->services, server->services_count, value, size, &service);
    if (call->method == NULL) {
        call->early_error = GRPC_ERROR_METHOD_UNKNOWN;
        return;
    }
    call->context = service->context;
    call->method_index = (uint16_t)(server->methods_first[service - server->services]
                                    + (uint32_t)(call->method - service->methods));
    if (call->method->path[0] != 0) return;
    if (size > CALL_PATH_SIZE) {
        call->early_error = GRPC_ERROR_METHOD_UNKNOWN;
        return;
    }
    memcpy(call->path, value, size);
    call->path_size = (uint32_t)size;
}

void grpc_header(struct http2_stream *stream, const uint8_t *name, size_t name_size,
                 const uint8_t *value, size_t value_size)
{
    assert(!stream->started);
    struct call *call = call_of(stream);
    /* 32 bytes a field, as HTTP/2 counts a header list. */
    if (value_size > HTTP2_HEADERS_SIZE_MAX || name_size > HTTP2_HEADERS_SIZE_MAX) {
        call->headers_size = HTTP2_HEADERS_SIZE_MAX;
    }
    call->headers_size += (uint32_t)(name_size + value_size) + 32;
    if (call->headers_size > HTTP2_HEADERS_SIZE_MAX) {
        call->headers_size = HTTP2_HEADERS_SIZE_MAX;
        call->early_error = GRPC_ERROR_HEADERS_TOO_LARGE;
        return;
    }
    if (is_text(name, name_size, ":path")) {
        header_path(call, value, value_size);
    } else if (is_text(name, name_size, "authorization")) {
        header_authorization(call, value, value_size);
    } else if (is_text(name, name_size, "content-type")) {
        call->content_type_ok = (uint8_t)is_grpc(value, value_size);
    } else if (is_text(name, name_size, "grpc-timeout")) {
        call->deadline_ns =
            grpc_timeout_deadline(value, value_size, call->server->now->monotonic_ns);
        if (call->deadline_ns == 0) call->early_error = GRPC_ERROR_MALFORMED_REQUEST;
    }
}
