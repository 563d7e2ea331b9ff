/* clients/sim_clients.h: the callers of a node and what was promised to them.
 *
 * A partition has one replica, so each node has clients of its own. */
#ifndef CLIENTS_SIM_CLIENTS_H
#define CLIENTS_SIM_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

#include "node/sim_node.h"
#include "store/store.h"

struct random;

enum sim_clients_limit {
    SIM_PARTITIONS_MAX = 6,
    SIM_PRODUCERS_MAX = 3, /* idempotent ones, per partition */
    SIM_GROUPS_MAX = 2,
    SIM_BATCHES_MAX = 8192,
    SIM_CLOSES_MAX = 4096,
    SIM_TRIMS_MAX = 64, /* of one partition, the last */
    SIM_WAITS_MAX = 4096,
    SIM_CLIENT_BYTES = 1048576, /* of each buffer */
};

enum sim_batch_state { SIM_BATCH_SENT = 1, SIM_BATCH_ACKED, SIM_BATCH_UNKNOWN, SIM_BATCH_REFUSED };

struct sim_batch {
    uint32_t partition;
    uint32_t producer; /* SIM_PRODUCERS_MAX = none */
    uint64_t sequence;
    uint32_t records;
    uint32_t size;
    uint64_t hash;        /* of the client part */
    uint64_t base_offset; /* acked */
    uint8_t state;
    uint8_t seen; /* in this check */
};

struct sim_producer {
    uint8_t id[16];
    uint64_t next_sequence;
    uint64_t
        retry_batch; /* index + 1 of the batch to send next: sent before, not known to be stored */
    uint32_t in_flight;
};

struct sim_group {
    uint64_t committed;         /* acknowledged */
    uint64_t committed_pending; /* the last one sent */
    uint8_t has_committed;
    uint8_t commit_busy;
    uint64_t generation;
    uint64_t generation_pending;
    uint8_t fence_busy;
    uint64_t frozen;         /* acknowledged: older ones get no data */
    uint64_t frozen_pending; /* sent, not answered: it may hold */
    uint64_t in_flight;      /* data left for this generation: its InFlight is in the log (G2) */
};

struct sim_close {
    uint32_t partition;
    uint64_t sequence;
    uint64_t from_op;
    uint64_t to_op;
    uint64_t bytes;
    uint64_t records;
};

struct sim_trim {
    uint64_t from_offset;
    uint64_t to_offset;
    uint64_t bytes;
    uint64_t trim_op;
};

struct sim_partition {
    struct engine_partition_id id;
    uint64_t segment_bytes;
    uint8_t deleted; /* or not there yet */
    uint8_t broad;   /* first of its topic: the topic has two */
    uint8_t closing;
    uint8_t sealed; /* and all windows acknowledged */
    uint8_t seal_busy;
    uint64_t seal_intent;
    uint64_t end_offset; /* highest known */
    struct sim_producer producers[SIM_PRODUCERS_MAX];
    struct sim_group groups[SIM_GROUPS_MAX];
    uint8_t may_stop; /* damage was done that may concern it */
    uint8_t stopped;  /* and a call showed that it has stopped */
    uint8_t damaged;  /* for good: every start after that remembers it (J4) */
    uint64_t closes_last;
    int64_t retention_ms;
    int64_t retention_bytes;
    uint64_t log_start; /* known: it never goes back */
    uint8_t held;       /* known, and no release is under way */
    uint8_t hold_busy;
    uint64_t held_from;
    uint64_t hold_intent; /* the last that was answered */
    uint64_t trims_last;  /* sequence of the last event that came */
    uint64_t trimmed_to;  /* and where it ended */
    struct sim_trim trims[SIM_TRIMS_MAX];
    uint64_t log_bytes; /* by the last check */
    uint64_t log_records;
};

enum sim_wait_kind {
    SIM_WAIT_PRODUCE = 1,
    SIM_WAIT_COMMIT,
    SIM_WAIT_STALE, /* a commit of a generation that is not the owner */
    SIM_WAIT_FREEZE,
    SIM_WAIT_FENCE,
    SIM_WAIT_COMMAND,
    SIM_WAIT_FLUSH,
    SIM_WAIT_SEAL,
    SIM_WAIT_PURGE,
    SIM_WAIT_HOLD,
    SIM_WAIT_BURIED, /* of a topic that is gone */
};

struct sim_wait { /* an accepted call; its token is its index + 1 */
    uint8_t kind;
    uint32_t partition;
    uint32_t group;
    uint64_t what; /* batch index, offset, generation, command id */
};

struct sim_clients {
    uint32_t partitions_count;
    struct sim_partition partitions[SIM_PARTITIONS_MAX];
    struct sim_batch *batches;
    uint32_t batches_count;
    struct sim_close *closes;
    uint32_t closes_count;
    struct sim_wait *waits;
    uint64_t waits_free;
    uint8_t *batch_bytes;
    uint8_t *read_bytes;
    uint64_t topic_next; /* number */
    uint64_t op_now;     /* metadata op of the next tables delta or fence intent */
};

size_t sim_clients_memory_bytes(void);
void sim_clients_init(struct sim_clients *clients, struct arena *arena, struct random *random);

/* clients/sim_clients.c */
uint64_t sim_wait(struct sim_node *node, uint8_t kind, uint32_t partition, uint32_t group,
                  uint64_t what);
void sim_unwait(struct sim_node *node, uint64_t token);
void sim_client_act(struct sim_node *node);
void sim_client_outcomes(struct sim_node *node);
void sim_clients_crashed(struct sim_node *node);
void sim_client_seal(struct sim_node *node, uint32_t partition);
/* 1 = the partition answers so because its topic closes. */
int sim_closed(const struct sim_partition *partition, enum status status);
void sim_client_produce(struct sim_node *node, uint32_t partition);

/* clients/sim_host.c */
void sim_host_act(struct sim_node *node, uint32_t ops_max);
void sim_host_restore(struct sim_node *node);
void sim_host_meters(struct sim_node *node);
/* Stored byte-seconds, as a shard tells them: each rises, none comes twice. */
void sim_host_counters(struct sim_node *node);

/* clients/sim_trims.c */
void sim_trims_act(struct sim_node *node);
void sim_trims_outcome(struct sim_node *node, const struct sim_wait *wait,
                       const struct store_outcome *outcome);
void sim_trims_crashed(struct sim_node *node);
int sim_trims_look(struct sim_node *node, uint32_t partition, struct engine_partition_state *state);
/* Where the log begins; UINT64_MAX = it does not say, or files below it wait for a checkpoint. */
uint64_t sim_trims_settled(struct sim_node *node, uint32_t partition);
void sim_host_trims(struct sim_node *node);
void sim_check_trims(struct sim_node *node);

/* clients/sim_topics.c */
void sim_topics_act(struct sim_node *node);
void sim_topics_restored(struct sim_node *node);
void sim_check_names(struct sim_node *node);

/* clients/sim_groups.c */
void sim_group_act(struct sim_node *node, uint32_t partition);
void sim_group_outcome(struct sim_node *node, const struct sim_wait *wait,
                       const struct store_outcome *outcome);
void sim_groups_crashed(struct sim_node *node);

#endif
