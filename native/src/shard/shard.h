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
 * only through rings, its wake and the few atomics that are marked as such. */
#ifndef SHARD_SHARD_H
#define SHARD_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "catalog/tables.h"
#include "engine.h"
#include "foundation/arena.h"
#include "foundation/buffer_pool.h"
#include "foundation/ring.h"
#include "foundation/timer_wheel.h"
#include "grpc/server.h"
#include "io/io_file.h"
#include "io/io_poll.h"
#include "service/fetch_messages.h"
#include "service/queue.h"
#include "shard/queues.h"
#include "store/store.h"
#include "usage/counters.h"
#include "usage/tally.h"

enum {
    SHARD_PENDINGS_COUNT_MAX = 65536,
    SHARD_FETCHES_COUNT_MAX = 8192,
    SHARD_FETCH_BUCKETS_COUNT = 8192,
    SHARD_READS_COUNT_MAX = 64,       /* fetches that wait for the disk at once */
    SHARD_HOST_RING_BYTES = 16777216, /* each way; holds the largest frame */
    SHARD_STREAM_PENDINGS_MAX =
        16384,                /* unanswered messages of one ProduceStream: beyond it BUSY */
    SHARD_TICK_NS = 10000000, /* the longest sleep while the store works */
    SHARD_IDLE_TICK_NS = 100000000,
    SHARD_WAIT_MS_MAX = 60000, /* a long poll */
    SHARD_HOLD_MS_MIN =
        1000,              /* a fetch without room waits for it so long, or as it would for data */
    SHARD_SWEEP_MS = 1000, /* how often calls and connections are looked over, at most */
    SHARD_FETCH_BYTES_DEFAULT = 1048576,
    SHARD_FETCH_BYTES_MAX = 8388608,
    SHARD_FETCH_MESSAGES_DEFAULT = 500,
    SHARD_FETCH_MESSAGES_MAX = 10000,
};

struct node;

enum pending_kind {
    PENDING_FREE = 0,
    PENDING_PRODUCE = 1, /* a call waits (here or forwarded) */
    PENDING_COMMIT = 2,
    PENDING_FETCH_OFFSETS = 3,
    PENDING_FETCH = 4,  /* forwarded: the owner runs the fetch */
    PENDING_REMOTE = 5, /* another shard waits: (shard, its token) */
    PENDING_TIME = 7,
    PENDING_HOST = 6, /* the host waits: (cookie, frame kind) */
};

/* An operation whose outcome is to come. Its token is slot_tag << 32 | index. */
struct pending {
    uint32_t slot_tag;   /* never 0 */
    uint8_t kind;        /* enum pending_kind */
    uint8_t remote_kind; /* PENDING_REMOTE: enum pending_kind on the other side */
    uint16_t shard;      /* PENDING_REMOTE */
    uint32_t call_index;
    uint32_t call_tag;
    uint64_t number;    /* produce: the client's request; remote: its token; host: cookie */
    uint32_t host_kind; /* PENDING_HOST: enum engine_frame_kind */
    uint32_t next_free;
    void *loan; /* a buffer lent to another shard until the outcome */
};

enum fetch_state {
    FETCH_FREE = 0,
    FETCH_RUNNING = 1,
    FETCH_POLLING = 2,
    FETCH_QUEUED = 3,
    FETCH_READING = 4,
    FETCH_WAITING = 5,
};

struct fetch {
    uint32_t index;
    uint32_t slot_tag;
    uint8_t state;     /* enum fetch_state */
    uint8_t remote;    /* the requester is another shard */
    uint8_t cancelled; /* forget the answer; a read is still out */
    uint8_t attempts;  /* reads that did not hold the batch looked for */
    uint16_t shard;    /* remote: who */
    uint16_t read;     /* FETCH_READING: index of its read */
    uint64_t token;    /* remote: its pending */
    uint32_t call_index;
    uint32_t call_tag;
    struct fetch_request request;
    uint64_t deadline_ns; /* of the wait; 0 = answer at once */
    uint64_t held_ns;     /* not of a stream: until when it may be held; 0 = it never was */
    struct timer timer;
    struct queue_link link; /* in its bucket, in reads_waiting, or in fetches_held */
};

struct fetch_read {
    struct io_request request;
    uint32_t fetch_index;
    uint32_t fetch_tag;
    struct reply *reply;
    uint8_t used;
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
    struct queue_link link;       /* in works_ready */
    struct queue_link held_link;  /* in produce_held */
    struct tally_key attribution; /* of what the call last named; topic 0 = nobody */
    uint32_t pending_count;       /* operations whose outcome is still to come */
    uint32_t fetch_index;         /* a fetch in progress + 1; 0 = none */
    uint64_t fetch_pending;       /* the token of its pending on another shard; 0 = none */
    struct engine_partition_id fetch_id;
    uint16_t fetch_owner; /* the shard that carries it out */
    union {
        struct consume consume;
        struct time_search search;
    };
};

enum { TIMER_FETCH = 1 }; /* the kind of a fetch's timer in the wheel */

enum metadata_phase {
    METADATA_NONE = 0,      /* not shard 0 */
    METADATA_RESTORING = 1, /* RESTORE sent */
    METADATA_IDLE = 2,      /* nothing at the host */
    METADATA_APPLYING = 3,  /* one APPLY at the host */
    METADATA_SPREADING = 4, /* its delta is on its way to all shards */
    METADATA_SNAPSHOTTING = 5,
};

struct metadata_host {
    uint8_t phase;     /* enum metadata_phase */
    uint8_t ready;     /* READY was sent */
    uint8_t restoring; /* SPREADING the tables of RESTORED */
    uint16_t acks_missing;
    uint64_t op;         /* what is at the host or spreading */
    uint64_t applied_op; /* the host's machine has applied all up to here, and so have the tables */
    uint8_t *delta;      /* in the pool, lent to the other shards */
    uint64_t last_recovered_op;
    uint64_t snapshot_bytes;    /* of the last one offered */
    uint64_t snapshots_refused; /* it found no room, or was too large */
    uint64_t snapshot_retry_ns; /* not asked for before; 0 = any time */
    uint8_t *result;            /* in the pool, until the spreading is over */
    size_t result_size;
};

/* Only the shard's thread writes; engine_metrics reads. */
struct shard_counters {
    uint64_t connections_refused, accepts_failed;
    uint64_t fetch_waits, fetch_reads, fetch_bytes, produce_forwarded, fetch_forwarded,
        produce_waits, consume_holds_memory, fetch_holds;
    uint64_t late_outcomes, late_host_answers, host_opens_refused, host_frames_out, host_frames_in;
    uint64_t frame_drops_main, frames_delayed_reply, frames_misrouted, meter_frames, turns;
    uint64_t requests_metered, usage_unattributed, counter_frames, counter_rows;
};

struct shard {
    uint16_t index;
    uint16_t shards_count;
    uint8_t ready; /* METADATA_READY has passed: calls from outside are served */
    uint8_t draining;
    uint8_t drained;
    uint8_t checkpointing;
    uint8_t done;
    struct node *node;
    struct store_now now;
    uint64_t host_beat_ns; /* of the last HOST_BEAT; 0 = never */

    struct arena arena;
    struct buffer_pool pool;
    struct store *store;
    struct tally tally;
    struct counting counting;
    struct io_file file;
    struct tables tables;
    struct poll poll;
    struct wake wake;
    struct timer_wheel timers;
    struct grpc_server *grpc;

    uint8_t *calls_opened; /* by slot: the host has the call */
    /* Atomic, by slot: tag of a host call whose client is gone; 0 = none. */
    uint32_t *calls_cancelled;
    uint32_t calls_cancelled_count; /* atomic: grows with each */
    struct engine_limits limits;    /* none is 0 */
    uint32_t sweep_ms;              /* between two, a part of the shortest limit */
    uint64_t sweep_ns;              /* the next */
    uint32_t sweep_revision;        /* of the grants, at the last */

    struct pending *pendings;
    uint32_t pendings_free; /* index + 1 */
    uint32_t pendings_count;
    struct fetch *fetches;
    uint32_t *fetches_free;
    uint32_t fetches_free_count;
    struct queue *fetch_buckets;
    struct fetch_read *reads;
    struct queue reads_waiting;
    struct message_opener opener;
    struct queue fetches_held; /* until replies have left memory */
    uint64_t fetches_to_ask;   /* of those, since some memory came back */
    struct call_work *works;   /* by index of the call */
    struct queue works_ready;  /* of calls whose next fetch may begin */

    struct produce_queue produce_queue;
    struct queue produce_held; /* calls whose window waits for it */
    struct shard_queues queues;
    struct metadata_host metadata;

    struct frame_ring host_out;
    struct frame_ring host_in;
    struct host_waiting *host_backlog_head; /* frames that found host_out full, in order */
    struct host_waiting *host_backlog_tail;
    uint8_t *host_scratch;
    uint8_t host_posted; /* raise the host's wake at the end of the turn */

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
/* What shard_run_start and its thread do, step by step: for whoever has no thread (native/fuzz). */
enum status shard_attach(struct shard *shard);
void shard_begin(struct shard *shard);
void shard_turn(struct shard *shard);
/* One outcome, to whoever waits for it. */
void shard_outcome(struct shard *shard, const struct store_outcome *outcome);

/* pendings: 0 = the table is full */
uint64_t pending_take(struct shard *shard, const struct pending *values);
struct pending *pending_find(struct shard *shard, uint64_t token);
void pending_give(struct shard *shard, struct pending *pending);

/* fetches, and reads of files for them: NULL = all are in use */
struct fetch *fetch_take(struct shard *shard);
void fetch_give(struct shard *shard, struct fetch *fetch);
struct fetch_read *fetch_read_take(struct shard *shard, uint16_t *index);

static inline struct shard *shard_of(const struct call *call)
{
    return call->context;
}

static inline struct call_work *work_of(const struct call *call)
{
    return &shard_of(call)->works[call->index];
}

#endif
