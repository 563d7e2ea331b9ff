/* service/state.h: a shard's service, for the files of service/ and no others.
 *
 * It is made of parts. Each is changed by the file named beside it, which also looks at it in
 * checked builds (service_invariants); the others call that file. What stands in front is lent by
 * the shard and read by all of them. */
#ifndef SERVICE_STATE_H
#define SERVICE_STATE_H

#include "catalog/tables.h"
#include "engine.h"
#include "foundation/buffer_pool.h"
#include "foundation/queue.h"
#include "grpc/server.h"
#include "io/io_file.h"
#include "service/fetch/fetch_messages.h"
#include "service/fetch/fetch_table.h"
#include "service/pendings.h"
#include "service/produce_queue.h"
#include "service/service.h"
#include "service/shard_frame.h"
#include "service/shard_queues.h"
#include "usage/tally.h"

/* service/pendings.c */
struct pendings {
    struct pending *slots;
    uint32_t free; /* index + 1 */
    uint32_t count;
};

/* A frame that waits for room. */
struct frame_waiting {
    struct frame_waiting *next;
    struct shard_frame frame;
};

struct queue_end {
    struct ring *ring;
    struct frame_waiting *backlog_head;
    struct frame_waiting *backlog_tail;
};

/* service/shard_queues.c */
struct shard_queues {
    struct queue_end out[ENGINE_SHARDS_MAX][QUEUES_COUNT]; /* by target */
    struct ring *in[ENGINE_SHARDS_MAX][QUEUES_COUNT];      /* by source */
    struct frame_waiting *backlog_free;
    uint64_t backlog_count; /* frames that wait, in all ends */
    uint64_t raise;         /* bit s: shard s got something this turn */
};

/* service/fetch/fetch_table.c: slots; service/fetch/fetch_wait.c: queues */
struct fetches {
    struct fetch *slots;
    uint32_t *free;
    uint32_t free_count;
    struct fetch_read *reads;
    struct queue *buckets;     /* by partition: fetches that wait for data */
    struct queue queued;       /* for a free read, or to ask again at the end of the turn */
    struct queue waiting;      /* until replies have left memory */
    uint64_t waiting_to_retry; /* of those, since some memory came back */
};

/* An open Consume: what it asks next and what it may still send. */
struct consume {
    struct fetch_request request; /* its offset moves on with every reply */
    uint32_t bytes_max;           /* of one reply */
    uint8_t begun;
    uint8_t caught_up; /* EMPTY was sent since the last data */
    int64_t credit;    /* bytes; below 0 by at most one batch */
};

/* A ListOffsets that reads on. */
struct time_search {
    struct fetch_request request;
    int64_t time_us;
    struct store_time found; /* so far */
    uint32_t attempts;       /* begun again because the log's start moved past it */
};

/* What a call needs beyond its own row: what is out for it, and the state of those that take
 * several fetches, one after the other. By the call's index. */
struct call_work {
    struct queue_link link;         /* in works_ready */
    struct queue_link blocked_link; /* in produce_blocked */
    struct tally_key attribution;   /* of what the call last named; topic 0 = none */
    uint32_t pending_count;         /* operations whose outcome is still to come */
    uint32_t fetch_index;           /* a fetch in progress + 1; 0 = none */
    uint64_t fetch_pending;         /* the token of its pending on another shard; 0 = none */
    struct engine_partition_id fetch_id;
    uint16_t fetch_owner; /* the shard that carries it out */
    union {
        struct consume consume;
        struct time_search search;
    };
};

struct service {
    uint16_t index; /* of the shard */
    uint16_t shards_count;
    uint8_t ready; /* METADATA_READY has passed: calls from outside are served */
    uint8_t draining;
    struct wake *const *shard_wakes;
    const struct store_now *now;
    struct store *store;
    struct tables *tables;
    struct tally *tally;
    struct buffer_pool *pool;
    struct timer_wheel *timers;
    struct io_file *file;
    struct grpc_server *grpc;

    uint32_t host_beat_ms; /* service/health.c */
    uint64_t host_beat_ns; /* the last one; 0 = never */
    struct pendings pendings;
    struct shard_queues queues;
    struct fetches fetches;
    struct message_opener opener; /* service/fetch/fetch_messages.c */
    struct call_work *works;
    struct queue works_ready; /* service/ready_queue.c: calls whose next fetch may begin */
    struct produce_queue produce_queue; /* service/produce_queue.c */
    struct queue produce_blocked;       /* calls whose window waits for it */
    struct service_counters counters;
};

static inline struct service *service_of(const struct call *call)
{
    return call->context;
}

static inline struct call_work *work_of(const struct call *call)
{
    return &service_of(call)->works[call->index];
}

#endif
