/* grpc/state.h: the state of one shard's gRPC server: of this room alone. */
#ifndef GRPC_STATE_H
#define GRPC_STATE_H

#include "grpc/server.h"
#include "store/store.h"

enum { GRPC_TOKENS_CACHED = 4 };

/* An authorization header that was verified: valid while the grants' revision is the same. */
struct grpc_token {
    uint32_t revision; /* 0 = empty */
    uint32_t size;
    int64_t expires_at_us;
    uint8_t secret_sha256[32];
    struct engine_caller caller;
    uint8_t token[96];
};

/* What the server keeps of a connection. */
struct grpc_peer {
    uint64_t messages_bytes; /* of incomplete messages */
    uint64_t pushed_bytes;   /* of pushed replies that its socket has not yet taken */
    uint8_t push_blocked;    /* one of its calls waits for them */
    uint8_t tokens_next;
    uint8_t reserved[6];
    struct grpc_token tokens[GRPC_TOKENS_CACHED];
};

struct grpc_server {
    struct http2 *http2;
    struct buffer_pool *pool;
    struct timer_wheel *timers;
    struct tally *tally;
    struct grants *grants;
    const struct store_now *now;
    struct grpc_hooks hooks;
    uint32_t message_ms;
    uint32_t stall_ms;
    uint16_t shard;
    uint8_t ready;
    uint8_t draining;
    uint32_t services_count;
    struct grpc_service services[GRPC_SERVICES_COUNT_MAX];
    uint32_t methods_first[GRPC_SERVICES_COUNT_MAX]; /* number of each one's first method */
    struct call *calls;                              /* GRPC_CALLS_COUNT_MAX */
    uint32_t *calls_free;
    uint32_t calls_free_count;
    uint64_t messages_bytes; /* of incomplete messages */
    struct reply_budget budgets[REPLY_KINDS_COUNT];
    struct grpc_counters counters;
};

/* grpc/headers.c */
void grpc_header(struct http2_stream *stream, const uint8_t *name, size_t name_size,
                 const uint8_t *value, size_t value_size);
/* Is the key that opened the call still good? Cheap while nothing has changed; takes over what has:
 * rights may be others now. NONE = may go on. */
enum grpc_error grpc_credentials_again(struct call *call);

/* grpc/server.c: forget the message that was being read. */
void grpc_message_drop(struct call *call);

/* grpc/reply.c: what the transport asks and says of answers. */
int grpc_fields(struct http2_stream *stream, enum http2_block block);
void grpc_writable(struct http2_stream *stream, uint32_t size);
void grpc_reply_sent(void *owner, struct http2_body *body);
void grpc_reply_released(void *owner, struct http2_body *body);

static inline struct call *call_of(struct http2_stream *stream)
{
    return (struct call *)(void *)stream;
}

#endif
