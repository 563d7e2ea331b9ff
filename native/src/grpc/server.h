/* grpc/server.h: gRPC over HTTP/2: methods, message framing, deadlines, credentials, status
 * trailers.
 *
 * Every call gets exactly one terminal status. What arrives for a finished call is thrown away;
 * what is answered to a call that is gone is dropped by its tag. The server calls the handlers of
 * the services that were registered and knows none of them. */
#ifndef GRPC_SERVER_H
#define GRPC_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "catalog/grants.h"
#include "grpc/call.h"
#include "grpc/error.h"
#include "grpc/method.h"
#include "grpc/reply_budget.h"

enum { GRPC_TIMER = 2 }; /* the kind of its timers in the wheel */

struct arena;
struct store_now;
struct timer_wheel;

/* What the server leaves to others. */
struct grpc_hooks {
    void *context;
    /* A reply of another shard's pool: its last reference is gone. */
    void (*give_back)(void *context, struct reply *reply);
    /* Pushed replies have left this connection, on which some waited for that. */
    void (*pushable)(void *context, struct http2_connection *connection);
    /* Replies of this kind have left memory. */
    void (*refunded)(void *context, enum reply_kind kind);
};

struct grpc_config {
    uint16_t shard;
    uint32_t message_ms; /* until a message that has begun is whole */
    uint32_t stall_ms;   /* until the client takes of its replies */
    struct http2_limits connections;
    struct buffer_pool *pool;
    struct poll *poll;
    struct timer_wheel *timers;
    struct tally *tally;
    struct grants *grants;
    const struct store_now *now;
    struct grpc_hooks hooks;
};

/* Only the server's thread writes. */
struct grpc_counters {
    uint64_t calls_opened, calls_refused, calls_cancelled, calls_late;
    uint64_t calls_by_method[GRPC_METHODS_COUNT_MAX];
    uint64_t failures_by_error[GRPC_ERROR_COUNT];
    uint64_t messages_refused, messages_late, replies_stalled, answers_refused, access_ended;
    uint64_t pushes_blocked; /* a connection's share was used up */
    uint64_t egress_bytes, egress_unsent;
};

/* grpc/server.c */
size_t grpc_server_bytes(void);
/* NULL = no memory. */
struct grpc_server *grpc_server_open(struct arena *arena, const struct grpc_config *config);
void grpc_server_close(struct grpc_server *server);
/* Its methods are served from now on; before the first connection. */
void grpc_server_register(struct grpc_server *server, const struct grpc_service *service);
/* The method with this number (grpc_counters.calls_by_method); NULL = there are no more. */
const struct grpc_method *grpc_server_method(const struct grpc_server *server, uint32_t index);
/* Calls from outside are served. */
void grpc_server_ready(struct grpc_server *server);
/* No new calls, no new streams. */
void grpc_server_drain(struct grpc_server *server);
/* Every call that is not finished fails. */
void grpc_server_fail(struct grpc_server *server, enum grpc_error error);
struct http2 *grpc_server_transport(const struct grpc_server *server);
struct grpc_counters *grpc_server_counters(struct grpc_server *server);
uint32_t grpc_calls_count(const struct grpc_server *server);
/* Once a turn in checked builds: ends the process where the server's sums do not hold. */
int grpc_invariants(const struct grpc_server *server);
/* 1 = no call, and no memory of one. */
int grpc_server_idle(const struct grpc_server *server);
/* The call in a slot; NULL = it is free, or its headers are not complete. */
struct call *grpc_call_at(const struct grpc_server *server, uint32_t index);
/* NULL = it is gone. */
struct call *grpc_call_find(const struct grpc_server *server, uint32_t index, uint32_t tag);
/* The call fails at this time, if it is not finished. */
void grpc_deadline_set(struct call *call, uint64_t deadline_ns);
void grpc_deadline_passed(struct grpc_server *server, struct timer *timer);

/* grpc/sweep.c: calls that have lost their right to stay, or whose client does not go on. */
void grpc_sweep(struct grpc_server *server);

/* grpc/headers.c */
/* NONE = the key is good. */
enum grpc_error grpc_answer_error(enum grant_answer answer);
/* "100m" to an absolute time; 0 = malformed. */
uint64_t grpc_timeout_deadline(const uint8_t *value, size_t size, uint64_t now_ns);

/* grpc/reply.c */
/* A reply with room for `size` bytes behind the prefix, which is filled in; NULL = no memory. */
struct reply *grpc_reply_make(struct grpc_server *server, size_t size);
/* The reply becomes the call's; starts the response. */
void grpc_reply_queue(struct call *call, struct reply *reply);
void grpc_reply_release(struct grpc_server *server, struct reply *reply);
/* Its last reference is gone: back to the pool of this shard, its owner. */
void grpc_reply_give(struct grpc_server *server, struct reply *reply);
/* Copy a small message and queue it. No memory ends the call. */
void grpc_reply_small(struct call *call, const uint8_t *message, size_t size);
/* Give back so much of the stream's window that was kept, at most all. */
void grpc_window_return(struct call *call, uint64_t size);
void grpc_finish_ok(struct call *call);
void grpc_finish(struct call *call, const struct grpc_failure *failure);
void grpc_finish_error(struct call *call, enum grpc_error error);
/* A status made by the handler: a code and the bytes of a Status (copied). */
void grpc_finish_status(struct call *call, uint32_t code, const uint8_t *status, size_t size);
/* A failure that a handler answers in a message of its own. */
void grpc_failure_count(struct call *call, enum grpc_error error);

#endif
