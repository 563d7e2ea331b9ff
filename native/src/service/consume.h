/* service/consume.h: Consume: one partition, pushed as it is committed, as far as the credit goes.
 *
 *     BEGIN -> fetch -> reply queued, offset and credit move on -> fetch -> ..
 *              fetch -> EMPTY once -> the next fetch waits for data without a deadline
 *              fetch -> TRUNCATED: on at the log's start     fetch -> an error: the stream ends
 *
 * A stream has at most one fetch out (service/fetch/fetch_remote.h, here or on the owning shard)
 * and asks for the next only while its own and its connection's unsent replies are few; so what a
 * reader that stands still can hold is bounded three times: by stream, by connection, and by the
 * owner's budget of replies (grpc/reply_budget.h). There is no timer: whatever a stream waits for
 * (data, a fence, credit, room) wakes it. */
#ifndef SERVICE_CONSUME_H
#define SERVICE_CONSUME_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "service/shard_frame.h"

enum {
    CONSUME_AHEAD_BYTES = 1048576, /* unsent bytes of a stream from which on it asks no more */
    /* Of one reply, if no batch is larger: with the way of a file read it fits into 1 MiB of the
     * pool. */
    CONSUME_REPLY_BYTES_MAX = 917504,
};

struct service;

void consume_message(struct call *call, struct grpc_message *message);
/* Something the stream may have waited for has come: look at it this turn. */
void consume_ready(struct call *call);
/* The one answer to its fetch. */
void consume_fetched(struct call *call, const struct fetch_result *fetched);
/* Ask for the next batches, if credit and room allow (service/ready_queue.h). */
void consume_step(struct call *call);
/* Its rights or its topic may be others now: end it if so. */
void consume_again(struct call *call);
/* The node stops: every stream is ended. */
void consume_drain(struct service *service);

/* The connection's share has room again. */
void consume_pushable(struct http2_connection *connection);

#endif
