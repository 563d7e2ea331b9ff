/* node/sim_world.h: one seed, one world: a store on a simulated disk, clients that retry, a host,
 * crashes, and a checker.
 *
 * The objects are those of production; only disk, clock and callers are simulated. Everything a
 * seed does follows from it. sim_run (node/sim_run.h) is the only entry: run a seed, get what it
 * found. */
#ifndef NODE_SIM_WORLD_H
#define NODE_SIM_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/arena.h"
#include "node/sim_run.h"
#include "storage/sim_storage.h"
#include "store/store.h"

/* cffi reads this header without the compiler's own macros. */
#ifdef __GNUC__
#define SIM_FORMAT(text, first) __attribute__((format(printf, text, first)))
#else
#define SIM_FORMAT(text, first)
#endif

enum sim_world_limit {
    SIM_PARTITIONS_MAX = 6,
    SIM_PRODUCERS_MAX = 3, /* idempotent ones, per partition */
    SIM_GROUPS_MAX = 2,
    SIM_BATCHES_MAX = 8192,
    SIM_CLOSES_MAX = 4096,
    SIM_TRIMS_MAX = 64, /* of one partition, the last */
    SIM_COMMANDS_MAX = 8192,
    SIM_BATCH_BYTES_MAX = 24576,
    SIM_WAITS_MAX = 4096,
    SIM_ROUNDS_MAX = 1024,
    SIM_JOURNAL_BYTES_MAX = 12 * 40 * 4096 + 8192,
    SIM_SCRATCH_BYTES = 1048576,
};

/* What a seed draws: a subset each, so that rare ones meet in all combinations. */
enum sim_swarm {
    SIM_SWARM_DAMAGE = 1,
    SIM_SWARM_REQUESTS = 2,
    SIM_SWARM_CLOCK = 4,
    SIM_SWARM_SPACE = 8,
    SIM_SWARM_HOST = 16,
    SIM_SWARM_SLOW = 32,
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
    uint8_t stopped;  /* and it was seen to have stopped, by name */
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
    uint64_t generation;
    uint64_t generation_oldest;
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
    uint8_t may_crowd;   /* likewise, for want of room: a tombstone is gone, its group wants it */
    uint32_t stops_max;  /* so many partitions more may stop, of those that may */
    uint32_t partitions; /* which may have before */
    uint8_t metadata;
    char text[SIM_MESSAGE_SIZE];
};

struct sim_clock {
    int64_t off_us;      /* wall clock's error */
    int64_t believed_us; /* the latest time that the store had reason to believe */
    uint32_t stopped;    /* steps until the wall clock goes on */
    uint32_t stalled;    /* steps until the monotonic clock goes on */
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

struct sim_world {
    struct random random;
    struct sim_result *result;
    struct arena arena; /* the world's own */
    struct arena store_arena;
    struct store_config config;
    struct store *store;
    struct store_now now;
    struct sim_storage storage;
    struct sim_storage copy;
    struct sim_storage backup; /* before the damage */
    uint32_t swarm;
    struct sim_damage damage;
    struct sim_clock clock;
    uint32_t slow;         /* steps until requests complete again */
    uint8_t checkpointing; /* store_checkpoint_all was asked for and may be under way */
    uint8_t over;          /* no start is possible, as it must be */
    uint8_t broken;        /* the store has failed as it must: the process ends */
    uint8_t truncated;     /* the last fetch asked below the log's beginning */
    uint8_t read_fault;    /* a lying read was laid for this start */
    struct sim_round *rounds;
    uint8_t *image; /* of the journal */
    uint32_t partitions_count;
    struct sim_partition partitions[SIM_PARTITIONS_MAX];
    struct sim_batch *batches;
    uint32_t batches_count;
    struct sim_close *closes;
    uint32_t closes_count;
    struct sim_wait *waits;
    uint64_t waits_free;
    struct sim_host host;
    uint8_t *batch_bytes;
    uint8_t *read_bytes;
    uint64_t topic_next;  /* number */
    uint8_t unlinks_fail; /* of segment files */
    uint64_t hash;        /* of everything that was observable */
    uint64_t op_now;      /* metadata op of the next tables delta or fence intent */
    char *trace;
    size_t trace_room;
};

/* ---- the parts ---- */

void sim_fail(struct sim_world *world, const char *format, ...) SIM_FORMAT(2, 3);
/* Something failed that must not, or no start is possible, as it must be. */
static inline int sim_ended(const struct sim_world *world)
{
    return world->result->failed || world->over;
}
void sim_trace(struct sim_world *world, const char *lane, const char *format, ...) SIM_FORMAT(3, 4);

/* clients/sim_clients.c */
uint64_t sim_wait(struct sim_world *world, uint8_t kind, uint32_t partition, uint32_t group,
                  uint64_t what);
void sim_unwait(struct sim_world *world, uint64_t token);
void sim_client_act(struct sim_world *world);
void sim_client_outcomes(struct sim_world *world);
void sim_clients_crashed(struct sim_world *world);
void sim_client_seal(struct sim_world *world, uint32_t partition);
/* 1 = the partition answers so because its topic closes. */
int sim_closed(const struct sim_partition *partition, enum status status);
void sim_client_produce(struct sim_world *world, uint32_t partition);

/* clients/sim_host.c */
void sim_host_act(struct sim_world *world, uint32_t ops_max);
void sim_host_restore(struct sim_world *world);
void sim_host_meters(struct sim_world *world);
/* Stored byte-seconds, as a shard tells them: each rises, none comes twice. */
void sim_host_counters(struct sim_world *world);

/* clients/sim_trims.c */
void sim_trims_act(struct sim_world *world);
void sim_trims_outcome(struct sim_world *world, const struct sim_wait *wait,
                       const struct store_outcome *outcome);
void sim_trims_crashed(struct sim_world *world);
int sim_trims_look(struct sim_world *world, uint32_t partition,
                   struct engine_partition_state *state);
/* Where the log begins; UINT64_MAX = it does not say, or files below it wait for a checkpoint. */
uint64_t sim_trims_settled(struct sim_world *world, uint32_t partition);
void sim_host_trims(struct sim_world *world);
void sim_check_trims(struct sim_world *world);

/* clients/sim_topics.c */
void sim_topics_act(struct sim_world *world);
void sim_topics_restored(struct sim_world *world);
void sim_check_names(struct sim_world *world);
/* faults/sim_damage.c: to bytes and files that were durable. Done between a crash and the next
 * start. */
void sim_damage(struct sim_world *world);
/* The start was refused: put everything back. 0 = the damage does not allow a refusal. */
int sim_damage_undo(struct sim_world *world, enum status status);
/* After a start: who may have stopped has stopped by name, or is whole. */
void sim_damage_judge(struct sim_world *world);
void sim_may_stop_path(struct sim_world *world, const char *path);
void sim_may_stop_all(struct sim_world *world);
/* 1 = the partition answers with a status that says it was stopped, and may. */
int sim_stopped(struct sim_world *world, uint32_t partition, enum status status);

/* node/sim_environment.c: time, space, slow disks, failing requests, a host that is late. */
void sim_surroundings_act(struct sim_world *world);
void sim_surroundings_calm(struct sim_world *world);
void sim_pass(struct sim_world *world, uint64_t us);
void sim_ambush_start(struct sim_world *world);
/* 1 = the failure that the store reports was laid for it. */
int sim_ambush_explains(const struct sim_world *world, enum status status);
void sim_ambush_aftermath(struct sim_world *world);

/* clients/sim_groups.c */
void sim_group_act(struct sim_world *world, uint32_t partition);
void sim_group_outcome(struct sim_world *world, const struct sim_wait *wait,
                       const struct store_outcome *outcome);
void sim_groups_crashed(struct sim_world *world);

/* checker/sim_checker.c */
void sim_check_log(struct sim_world *world, uint32_t partition);
void sim_check_logs(struct sim_world *world);
void sim_check_fetch(struct sim_world *world, uint32_t partition, uint64_t offset);
void sim_check_groups(struct sim_world *world);
void sim_check_meters(struct sim_world *world);
/* What is paid for storage is what the partitions hold. */
void sim_check_stored(struct sim_world *world);

/* node/sim_world.c: let I/O complete. */
void sim_io(struct sim_world *world, uint32_t requests_max);
struct io_request *sim_request(struct sim_world *world);
void sim_settle(struct sim_world *world);
void sim_step(struct sim_world *world);
void sim_crash(struct sim_world *world);
void sim_recover(struct sim_world *world);

#endif
