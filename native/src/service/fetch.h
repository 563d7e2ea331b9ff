/* service/fetch.h: Fetch with its long poll, on the shard that owns the partition.
 *
 *     RUNNING -> answered            bytes in memory, in the page cache, or nothing and no wait
 *     RUNNING -> POLLING -> RUNNING  nothing yet: in its bucket until data or its fence moves
 *     RUNNING -> QUEUED -> READING   the disk must be read: one of a few reads, others wait
 *     RUNNING -> WAITING -> RUNNING  no room (grpc/reply_budget.h): until replies have left
 *                                    memory; a stream for ever, others until REPLIES_FULL
 *
 * A fetch of a call on another shard is the same fetch with another requester; its reply is lent
 * across. */
#ifndef SERVICE_FETCH_H
#define SERVICE_FETCH_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "io/io.h"
#include "shard/queues.h"

struct shard;
struct pending;

void stream_fetch(struct call *call, struct grpc_message *message);
/* Ask for a call, here or on the owning shard; its access was judged. One at a time. The answer may
 * come before this returns. Not NONE: nothing was begun. */
enum grpc_error stream_fetch_begin(struct call *call, const struct fetch_request *wanted);
/* The one answer to what stream_fetch_begin began, its reply given away. */
void stream_fetch_answer(struct call *call, const struct fetch_result *fetched);
/* Until when a call waits that may wait so long, CLOCK_MONOTONIC ns; 0 = not at all. */
uint64_t stream_fetch_deadline(const struct call *call, uint32_t wait_ms_max);
/* The call is gone: forget its fetch at once. */
void stream_fetch_cancel(struct call *call);

void stream_remote_fetch(struct shard *shard, const struct shard_frame *frame);
void stream_remote_fetch_cancel(struct shard *shard, const struct shard_frame *frame);
void stream_fetched(struct shard *shard, struct pending *pending,
                    const struct fetch_result *fetched);

/* A partition has more to give (store_advance_next). */
void stream_fetch_advance(struct shard *shard, const struct engine_partition_id *id);
void stream_fetch_timeout(struct shard *shard, struct timer *timer);
/* 1 = the request was one of ours. */
int stream_fetch_read_done(struct shard *shard, struct io_request *request);
/* Once a turn: fetches that waited for a free read, or must read more than they did. */
void stream_fetch_go_on(struct shard *shard);
/* Answer every waiting fetch as if its time were up. */
void stream_fetch_drain(struct shard *shard);

#endif
