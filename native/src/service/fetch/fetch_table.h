/* service/fetch/fetch_table.h: the slots of fetches, and of reads of files for them.
 *
 * A fetch is named by (index, slot tag); the tag grows when the slot is given back and is never
 * 0. */
#ifndef SERVICE_FETCH_FETCH_TABLE_H
#define SERVICE_FETCH_FETCH_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"
#include "foundation/timer_wheel.h"
#include "io/io.h"
#include "service/shard_frame.h"

enum {
    FETCHES_COUNT_MAX = 8192,
    FETCH_BUCKETS_COUNT = 8192,
    FETCH_READS_COUNT_MAX = 64, /* fetches that wait for the disk at once */
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
    uint64_t deadline_ns;   /* of the wait; 0 = answer at once */
    uint64_t wait_until_ns; /* limit of the wait for memory; 0 = none; unused for a stream */
    struct timer timer;
    struct queue_link link; /* in its bucket, in `queued`, or in `waiting` */
};

struct fetch_read {
    struct io_request request;
    uint32_t fetch_index;
    uint32_t fetch_tag;
    struct reply *reply;
    uint8_t used;
};

static inline int fetch_is_consume(const struct fetch *fetch)
{
    return (fetch->request.flags & FETCH_CONSUME) != 0;
}

/* Asked by the node, which continues by itself: no client repeats it, and failures are statuses. */
static inline int fetch_is_work(const struct fetch *fetch)
{
    return (fetch->request.flags & (FETCH_CONSUME | FETCH_SEARCH)) != 0;
}

/* What a search reads is freed before it reads on: no client can keep it. */
static inline int fetch_is_budgeted(const struct fetch *fetch)
{
    return (fetch->request.flags & FETCH_SEARCH) == 0;
}

struct arena;
struct service;

size_t fetch_table_memory_bytes(void);
/* 0 = no memory. */
int fetch_table_make(struct service *service, struct arena *arena);
/* `all`: every slot, too dear for every turn. */
int fetch_table_invariants(const struct service *service, int all);

/* NULL = all are in use. */
struct fetch *fetch_take(struct service *service);
void fetch_give(struct service *service, struct fetch *fetch);
/* NULL = all are in use. */
struct fetch_read *fetch_read_take(struct service *service, uint16_t *index);

#endif
