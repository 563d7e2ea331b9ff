/* shard/shard.h: one shard: a thread, its pump, and everything that only this thread touches.
 *
 * The pump's order is fixed (A3):
 *
 *     wait -> stop -> tick (timers, store_tick)
 *          -> main queue (I/O completions, host, other shards, sockets) -> store_flush
 *          -> outcomes, advances, metadata, meters, counters -> reply queue
 *          -> flush connections -> close connections
 *
 * Nothing here waits for Python, for another shard or for the disk. Other threads reach a shard
 * only through rings, its wake and the few atomics that are marked as such.
 *
 * The shard owns the thread and the memory, and composes the rest: the store, the gRPC server, the
 * service (calls that it answers itself) and the host (calls that Python answers). Only shard/ and
 * engine/ know this struct; the others know what they were lent. */
#ifndef SHARD_SHARD_H
#define SHARD_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "catalog/tables.h"
#include "engine.h"
#include "foundation/arena.h"
#include "foundation/buffer_pool.h"
#include "foundation/timer_wheel.h"
#include "io/io_file.h"
#include "io/io_poll.h"
#include "store/store.h"
#include "usage/tally.h"

enum {
    SHARD_TICK_NS = 10000000, /* the longest sleep while the store works */
    SHARD_IDLE_TICK_NS = 100000000,
    SHARD_SWEEP_MS = 1000, /* how often calls and connections are looked over, at most */
};

struct grpc_server;
struct host;
struct node;
struct service;

/* Only the shard's thread writes; engine_metrics reads. */
struct shard_counters {
    uint64_t connections_refused, accepts_failed, turns;
};

struct shard {
    uint16_t index;
    uint16_t shards_count;
    uint8_t draining;
    uint8_t drained;
    uint8_t checkpointing;
    uint8_t done;
    struct node *node;
    struct store_now now;

    struct arena arena;
    struct buffer_pool pool;
    struct store *store;
    struct tally tally;
    struct io_file file;
    struct tables tables;
    struct poll poll;
    struct wake wake;
    struct timer_wheel timers;
    struct grpc_server *grpc;
    struct service *service;
    struct host *host;

    struct engine_limits limits; /* none is 0 */
    uint32_t sweep_ms;           /* between two, a part of the shortest limit */
    uint64_t sweep_ns;           /* the next */
    uint32_t sweep_revision;     /* of the grants, at the last */

    int listener;                /* shard 0 */
    uint64_t listener_paused_ns; /* no descriptors left: accept again from then on; 0 = accepting */
    uint16_t hand_next;
    unsigned long thread; /* pthread_t */
    uint8_t thread_started;
    struct shard_counters counters;
};

/* shard/shard.c */
enum status shard_run_start(struct shard *shard);
void *shard_run(void *context);
/* What shard_run_start and its thread do, step by step: for a caller without a thread
 * (native/fuzz). */
enum status shard_attach(struct shard *shard);
void shard_begin(struct shard *shard);
void shard_turn(struct shard *shard);

#endif
