/* node/sim_node.h: one simulated node: a store of production objects on a disk of its own, and the
 * host beside it.
 *
 * A node starts, lets I/O complete, crashes and starts again. Whatever it may not do ends the run
 * (cluster/sim_cluster.h: sim_fail). */
#ifndef NODE_SIM_NODE_H
#define NODE_SIM_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/arena.h"
#include "storage/sim_storage.h"
#include "store/store.h"

struct sim_clients;
struct sim_cluster;

/* As the node's configuration says it. */
#define SIM_CLUSTER_ID "cl_sim"

enum sim_node_limit {
    SIM_COMMANDS_MAX = 8192,
    SIM_ROUNDS_MAX = 1024,
    SIM_JOURNAL_BYTES_MAX = 12 * 40 * 4096 + 8192,
    SIM_DAMAGE_TEXT_SIZE = 256,
};

struct sim_host {
    uint64_t ids[SIM_COMMANDS_MAX]; /* commands applied, in order */
    uint64_t ids_count;
    uint64_t op;         /* last applied */
    uint64_t acked_last; /* highest id acknowledged to a caller */
    uint64_t sent;       /* ids given out */
    uint32_t late;       /* steps until it answers again */
    uint8_t may_stop;    /* as of a partition: metadata */
    uint8_t stopped;
};

/* A round of the journal as it lies on the disk. */
struct sim_round {
    uint64_t lsn;
    uint64_t extent_cycle;
    uint64_t extent_cycle_oldest;
    uint64_t offset;
    uint32_t blocks_count;
    uint32_t partitions; /* a bit each: whose entries it holds */
    uint8_t metadata;
    uint8_t everybody; /* it remembers damage that concerned all */
};

/* Damage done between a crash and the start after it: what may come of it. */
struct sim_damage {
    uint8_t done;
    uint8_t may_refuse;  /* the start may be refused; then all is put back, and must be there */
    uint8_t may_crowd;   /* likewise, for want of room: a tombstone is gone, its replica wants it */
    uint32_t stops_max;  /* so many partitions more may stop, of those that may */
    uint32_t partitions; /* which may have before */
    uint8_t metadata;
    char text[SIM_DAMAGE_TEXT_SIZE];
};

struct sim_node {
    struct sim_cluster *cluster;
    struct sim_clients *clients; /* of the partitions that it serves */
    uint32_t index;
    uint32_t boots; /* starts that were completed */
    uint8_t up;     /* the store is open */
    uint8_t over;   /* no start is possible, as it must be */
    uint8_t broken; /* the store has failed as it must: the process ends */
    struct arena store_arena;
    struct store_config config;
    struct store *store;
    struct sim_storage storage; /* its disk */
    struct sim_storage copy;
    struct sim_storage backup; /* before the damage */
    struct sim_damage damage;
    struct sim_host host;
    uint32_t slow;         /* steps until requests complete again */
    uint8_t checkpointing; /* store_checkpoint_all was asked for and may be under way */
    uint8_t truncated;     /* the last fetch asked below the log's beginning */
    uint8_t read_fault;    /* a lying read was laid for this start */
    uint8_t unlinks_fail;  /* of segment files */
    struct sim_round *rounds;
    uint8_t *image; /* of the journal */
};

/* Make the node's disk and configuration; the cluster's arena gives the memory. */
size_t sim_node_memory_bytes(void);
void sim_node_init(struct sim_node *node, struct sim_cluster *cluster, uint32_t index,
                   uint64_t seed);

/* At most so many requests complete; each completion is followed by a turn. */
void sim_io(struct sim_node *node, uint32_t requests_max);
/* The next request that completes; NULL = none waits. */
struct io_request *sim_request(struct sim_node *node);
/* Let I/O complete until nothing is left to do. */
void sim_settle(struct sim_node *node);
/* End the process; start it again, with recovery. */
void sim_crash(struct sim_node *node);
void sim_recover(struct sim_node *node);
/* The store failed as it must: end the process and start another. */
void sim_broken(struct sim_node *node);

#endif
