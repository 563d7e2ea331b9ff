/* host/node.h: what the threads of one node share: its configuration, the wakes of its threads, and
 * a few flags.
 *
 * Everything above the flags is written before the threads start. A flag says in its comment who
 * may raise it; all are atomic. */
#ifndef HOST_NODE_H
#define HOST_NODE_H

#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"
#include "io/descriptors.h"
#include "io/io_poll.h"

struct node {
    struct engine_config config;
    char data_path[512];
    char host[256];
    uint16_t shards_count;
    int listener;
    struct descriptors descriptors;
    uint64_t node_incarnation;
    uint32_t formatted; /* as the directory's identity said at the start */
    struct wake host_wake;
    struct wake stop_wake; /* a shard is done */
    struct wake *shard_wakes[ENGINE_SHARDS_MAX];
    /* atomics */
    uint32_t host_raised; /* the host's wake is up already */
    uint32_t
        host_blocked;    /* engine_send found a ring full: a shard that made room raises the wake */
    uint32_t stopping;   /* shards drain */
    uint32_t abandoning; /* the drain's time is up */
    uint32_t failed;     /* negated status of the first shard that failed; 0 = none */
    uint32_t drained_count;
    uint32_t done_count;
};

/* The host has something to read. */
void node_raise_host(struct node *node);
/* Every shard looks at the flags. */
void node_raise_shards(struct node *node);
/* A shard cannot go on: the whole node stops. 1 = it is the first, which counts. */
int node_fail(struct node *node, enum status status);
/* The result that the host gets for a status. */
enum engine_result node_result(enum status status);

#endif
