/* cluster/sim_cluster.h: one seed: nodes on simulated disks, clients that retry, crashes, and a
 * checker.
 *
 * The objects are those of production; only disk, clock and callers are simulated. Everything a
 * seed does follows from it. The cluster owns the clock, the seed and where each node's disk lies;
 * a node owns its store. sim_run (cluster/sim_run.h) is the only entry: run a seed, get what it
 * found. */
#ifndef CLUSTER_SIM_CLUSTER_H
#define CLUSTER_SIM_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "clients/sim_clients.h"
#include "cluster/sim_run.h"
#include "foundation/arena.h"
#include "foundation/random.h"
#include "node/sim_node.h"

/* cffi reads this header without the compiler's own macros. */
#ifdef __GNUC__
#define SIM_FORMAT(text, first) __attribute__((format(printf, text, first)))
#else
#define SIM_FORMAT(text, first)
#endif

/* What a seed draws: a subset each, so that rare ones meet in all combinations. */
enum sim_swarm {
    SIM_SWARM_DAMAGE = 1,
    SIM_SWARM_REQUESTS = 2,
    SIM_SWARM_CLOCK = 4,
    SIM_SWARM_SPACE = 8,
    SIM_SWARM_HOST = 16,
    SIM_SWARM_SLOW = 32,
};

struct sim_clock {
    int64_t off_us;      /* wall clock's error */
    int64_t believed_us; /* the latest time that the store had reason to believe */
    uint32_t stopped;    /* steps until the wall clock goes on */
    uint32_t stalled;    /* steps until the monotonic clock goes on */
};

struct sim_cluster {
    struct random random;
    struct sim_result *result;
    struct arena arena;
    struct store_now now;
    struct sim_clock clock;
    uint32_t swarm;
    uint64_t hash; /* of everything that was observable */
    char *trace;
    size_t trace_room;
    uint32_t nodes_count;
    struct sim_node nodes[SIM_NODES_MAX];
    struct sim_clients clients[SIM_NODES_MAX]; /* one set a node */
};

void sim_cluster_init(struct sim_cluster *cluster, uint64_t seed, uint32_t nodes_count);
/* One action of the seed's, on one of the nodes. */
void sim_cluster_step(struct sim_cluster *cluster);
/* 1 = something failed that must not, or no node is left that may start. */
int sim_cluster_ended(const struct sim_cluster *cluster);

/* The run ends: a node did what it must not. */
void sim_fail(struct sim_node *node, const char *format, ...) SIM_FORMAT(2, 3);
void sim_trace(struct sim_node *node, const char *lane, const char *format, ...) SIM_FORMAT(3, 4);
/* Something failed that must not, or the node may not start, as it must be. */
static inline int sim_ended(const struct sim_node *node)
{
    return node->cluster->result->failed || node->over;
}

#endif
