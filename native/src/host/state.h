/* host/state.h: a shard's door to the host, for the files of host/ and no others. Each part is
 * changed by the file named beside it. */
#ifndef HOST_STATE_H
#define HOST_STATE_H

#include "catalog/tables.h"
#include "foundation/buffer_pool.h"
#include "foundation/ring.h"
#include "grpc/server.h"
#include "host/host.h"
#include "host/metadata.h"
#include "usage/counters.h"
#include "usage/tally.h"

/* A frame that found the ring full; its body follows. */
struct host_waiting {
    struct host_waiting *next;
    uint64_t body_size;
    struct engine_frame frame;
};

/* host/metadata.c */
struct metadata_host {
    uint8_t phase;     /* enum metadata_phase */
    uint8_t ready;     /* READY was sent */
    uint8_t restoring; /* SPREADING the tables of RESTORED */
    uint16_t acks_missing;
    uint64_t op;         /* what is at the host or spreading */
    uint64_t applied_op; /* the host's machine has applied all up to here, and so have the tables */
    uint8_t *delta;      /* in the pool, lent to the other shards */
    uint64_t last_recovered_op;
    uint64_t snapshot_retry_ns; /* not asked for before; 0 = any time */
    uint8_t *result;            /* in the pool, until the spreading is over */
    size_t result_size;
};

struct host {
    uint16_t index; /* of the shard */
    uint16_t shards_count;
    uint32_t call_ms;
    uint32_t snapshot_retry_ms;
    struct node *node;
    const struct store_now *now;
    struct store *store;
    struct service *service;
    struct tables *tables;
    struct tally *tally;
    struct buffer_pool *pool;
    struct grpc_server *grpc;

    /* host/ring.c */
    struct frame_ring out;
    struct frame_ring in;
    struct host_waiting *backlog_head; /* frames that found `out` full, in order */
    struct host_waiting *backlog_tail;
    uint64_t backlog_count;
    uint8_t *scratch;
    uint8_t posted; /* raise the host's wake at the end of the turn */

    /* host/calls.c */
    uint8_t *calls_opened;          /* by slot: the host has the call */
    uint32_t *calls_cancelled;      /* atomic, by slot: tag of a call whose client is gone; or 0 */
    uint32_t calls_cancelled_count; /* atomic: grows with each */

    struct counting counting; /* host/counters.c */
    struct metadata_host metadata;
    struct host_counters counters;
};

static inline struct host *host_of(const struct call *call)
{
    return call->context;
}

#endif
