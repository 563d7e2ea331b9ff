/* service/service.h: what a shard does for its callers: the methods of service/methods.h, and the
 * queues to the other shards, for partitions that one of those owns.
 *
 *     call here ---> decode, access ---> this shard's store ---> pending ---> outcome ---> reply
 *                          '-----------> the owner's main queue ... its answer ----^
 *
 * The shard drives it, turn by turn; nothing here waits. Its state is private to service/. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"
#include "store/store.h"

struct arena;
struct buffer_pool;
struct grpc_server;
struct http2_connection;
struct io_file;
struct io_request;
struct pending;
struct service;
struct shard_frame;
struct tables;
struct tally;
struct timer;
struct timer_wheel;
struct wake;

enum { SERVICE_TIMER = 1 }; /* the kind of its timers in the wheel */

/* All that is pointed to outlives the service. */
struct service_config {
    uint16_t shard;
    uint16_t shards_count;
    uint32_t host_beat_ms;
    struct wake *const *shard_wakes; /* of all shards, once they are open */
    const struct store_now *now;     /* of this turn */
    struct store *store;
    struct tables *tables;
    struct tally *tally;
    struct buffer_pool *pool;
    struct timer_wheel *timers;
    struct io_file *file;
    struct grpc_server *grpc;
};

/* Only the shard's thread writes; engine_metrics reads. */
struct service_counters {
    uint64_t fetch_waits, fetch_reads, fetch_bytes, fetch_memory_waits, fetch_forwarded;
    uint64_t produce_waits, produce_forwarded, consume_memory_waits;
    uint64_t late_outcomes, requests_metered, frame_drops_main, frames_delayed_reply;
};

size_t service_memory_bytes(uint16_t shards_count);
/* NULL = no memory. Its methods are registered: before the first connection. */
struct service *service_make(struct arena *arena, const struct service_config *config);
/* NULL is none. */
void service_close(struct service *service);
const struct service_counters *service_counters(const struct service *service);

/* Calls from outside are served from now on. */
void service_ready(struct service *service);
int service_is_ready(const struct service *service);
/* No client is served any more: streams end, fetches that wait are answered. */
void service_drain(struct service *service);

/* The steps of a turn. */
void service_timeout(struct service *service, struct timer *timer);
/* 1 = the request was one of ours. */
int service_read_done(struct service *service, struct io_request *request);
/* The outcome of an operation whose pending is not the host's. Frees the pending. */
void service_outcome(struct service *service, struct pending *pending,
                     const struct store_outcome *outcome);
/* A partition has more to give (store_advance_next). */
void service_advance(struct service *service, const struct engine_partition_id *id);
/* Before the round: batches that waited for room in the store. */
void service_retry(struct service *service);
/* After the outcomes: fetches and calls that go on. */
void service_go_on(struct service *service);
/* Replies with batches have left memory. */
void service_refunded(struct service *service);
/* Pushed replies have left this connection. */
void service_pushable(struct http2_connection *connection);

/* What another shard asked for, or answered. */
void service_request(struct service *service, const struct shard_frame *frame);
void service_answer(struct service *service, const struct shard_frame *frame);

/* 1 = the next turn has something to do at once. */
int service_work(const struct service *service);
/* 1 = fetches wait for a read of the disk. */
int service_reads_wait(const struct service *service);

/* After a turn in checked builds: ends the process where counts, lists and links do not hold.
 * `all`: tables slot by slot too, which is too dear for every turn. */
int service_invariants(const struct service *service, int all);

#endif
