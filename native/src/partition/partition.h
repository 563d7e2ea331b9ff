/* partition/partition.h: one partition's state, changed only by applying committed operations,
 * the same on every replica.
 *
 * Pure: no clock, no I/O; memory comes from pools of the shard, filled once. It owns: which offset
 * a batch gets, which batch is a duplicate, where its bytes go and when a segment is sealed, who of
 * a consumer group may commit, what is metered. It refuses to own: the bytes (the caller writes
 * them where partition_apply says), the replica's journal, and time.
 *
 *     request -> partition_admit_batch -> [prepare, journal, commit] -> partition_apply -> write
 *
 * Admission spares the journal what apply would refuse anyway; the decision is made at apply, from
 * applied state only (P1).
 *
 * Offsets: log_start <= .. < next_offset. next_offset is both the high watermark and the log's end,
 * since only committed batches have offsets. */
#ifndef PARTITION_PARTITION_H
#define PARTITION_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "batch/batch.h"
#include "foundation/limits.h"
#include "foundation/status.h"
#include "partition/group_table.h"
#include "partition/meter.h"
#include "partition/producer_table.h"
#include "partition/retention.h"
#include "segment/segment.h"

struct arena;

/* Operations of a partition's replica. Numbers are in the journal [bytes]. Bodies:
 * docs/internals/groups.md. */
enum partition_op {
    PARTITION_BATCH = 1,            /* a stored batch; base_offset and cumulative_bytes zero */
    PARTITION_COMMIT_OFFSET = 2,    /* struct partition_commit */
    PARTITION_IN_FLIGHT = 3,        /* struct partition_in_flight */
    PARTITION_FREEZE = 4,           /* struct partition_fence */
    PARTITION_CLOSE = 5,            /* struct partition_fence */
    PARTITION_METER_CLOSE = 6,      /* struct partition_meter_close */
    PARTITION_SEAL = 7,             /* struct partition_seal */
    PARTITION_EXPIRE_PRODUCERS = 8, /* struct partition_expire */
    PARTITION_TRIM = 9,             /* struct partition_trim */
    PARTITION_SET_HOLD = 10,        /* struct partition_hold */
    PARTITION_CONFIGURE = 11,       /* struct partition_configure */
    PARTITION_OP_LAST = PARTITION_CONFIGURE, /* what comes behind is of a newer release */
};

/* Sizes of the bodies [bytes]. */
enum partition_body {
    PARTITION_COMMIT_BYTES = 32,
    PARTITION_IN_FLIGHT_BYTES = 24,
    PARTITION_FENCE_BYTES = 32,
    PARTITION_METER_CLOSE_BYTES = 32,
    PARTITION_SEAL_BYTES = 16,
    PARTITION_EXPIRE_BYTES = 16,
    PARTITION_TRIM_BYTES = 40,
    PARTITION_HOLD_BYTES = 32,
    PARTITION_CONFIGURE_BYTES = 48,
    PARTITION_BODY_VERSION = 1,
};

struct partition_commit {
    uint64_t group;
    uint64_t generation;
    uint64_t offset; /* the next to read */
};

struct partition_in_flight {
    uint64_t group;
    uint64_t generation;
};

struct partition_fence {
    uint64_t group;
    uint64_t generation; /* of the new owner */
    uint64_t intent_op;  /* the metadata op that decided it (T1) */
};

struct partition_meter_close {
    uint64_t sequence;
    int64_t window_end_us;
    uint64_t acked; /* all closes up to this one are stored in _usage */
};

struct partition_seal {
    uint64_t intent_op; /* the metadata op that deletes the topic (T1, T3); never 0 */
};

struct partition_expire {
    /* Producers last used up to then are forgotten, but none that the operation's own append time
     * does not find silent for PRODUCER_IDLE_MINUTES (P2). */
    int64_t used_until_us;
};

struct partition_trim {
    uint64_t log_start; /* the log begins there from now on */
    uint64_t cause;     /* enum retention_cause */
    uint64_t policy_version;
    uint64_t acked; /* all events up to this one are stored in _retention */
};

struct partition_hold {
    uint64_t intent_op; /* the metadata op that decided it (T1); never 0 */
    uint64_t held;      /* 1 = no trim beyond from_offset, 0 = nothing holds the partition */
    uint64_t from_offset;
};

/* What apply depends on beyond the operations themselves (V11): the first operation of every log,
 * and again whenever the topic changes. */
struct partition_configure {
    uint64_t segment_bytes;
    int64_t segment_us; /* 0 = no segment ends for its age */
    uint32_t producers_max;
    uint32_t groups_max;
    uint8_t metered; /* 0 = a system topic */
};

void partition_encode_commit(const struct partition_commit *commit,
                             uint8_t body[PARTITION_COMMIT_BYTES]);
void partition_encode_in_flight(const struct partition_in_flight *in_flight,
                                uint8_t body[PARTITION_IN_FLIGHT_BYTES]);
void partition_encode_fence(const struct partition_fence *fence,
                            uint8_t body[PARTITION_FENCE_BYTES]);
void partition_encode_meter_close(const struct partition_meter_close *close,
                                  uint8_t body[PARTITION_METER_CLOSE_BYTES]);
void partition_encode_seal(const struct partition_seal *seal, uint8_t body[PARTITION_SEAL_BYTES]);
void partition_encode_expire(const struct partition_expire *expire,
                             uint8_t body[PARTITION_EXPIRE_BYTES]);
void partition_encode_trim(const struct partition_trim *trim, uint8_t body[PARTITION_TRIM_BYTES]);
void partition_encode_hold(const struct partition_hold *hold, uint8_t body[PARTITION_HOLD_BYTES]);
void partition_encode_configure(const struct partition_configure *configure,
                                uint8_t body[PARTITION_CONFIGURE_BYTES]);
/* OP_MALFORMED: another size, version, or reserved bytes that are not zero. */
enum status partition_decode_commit(const uint8_t *body, size_t size,
                                    struct partition_commit *commit);
enum status partition_decode_in_flight(const uint8_t *body, size_t size,
                                       struct partition_in_flight *in_flight);
enum status partition_decode_fence(const uint8_t *body, size_t size, struct partition_fence *fence);
enum status partition_decode_meter_close(const uint8_t *body, size_t size,
                                         struct partition_meter_close *close);
enum status partition_decode_seal(const uint8_t *body, size_t size, struct partition_seal *seal);
enum status partition_decode_expire(const uint8_t *body, size_t size,
                                    struct partition_expire *expire);
enum status partition_decode_trim(const uint8_t *body, size_t size, struct partition_trim *trim);
enum status partition_decode_hold(const uint8_t *body, size_t size, struct partition_hold *hold);
enum status partition_decode_configure(const uint8_t *body, size_t size,
                                       struct partition_configure *configure);

/* ---- memory ---- */

struct partition_limits {
    uint32_t producers_max;     /* entries of the shard */
    uint32_t producers_reserve; /* and for replays (partition/producer_table.h) */
    uint32_t segments_max;      /* of the shard */
    uint32_t index_blocks_max;  /* of the shard: one per 42 * OFFSET_INDEX_STRIDE_BYTES of data */
};

struct partition_pools {
    struct producer_pool producers;
    struct segment_pool segments;
    struct offset_index_pool index;
};

size_t partition_pools_bytes(const struct partition_limits *limits);
enum status partition_pools_init(struct partition_pools *pools, struct arena *arena,
                                 const struct partition_limits *limits);

struct partition_config {
    struct segment_seeds seeds;        /* of the place; not in the log */
    struct partition_configure limits; /* as the log says it; before that: as the topic does */
};

struct partition {
    struct partition_config config;
    uint64_t applied_op; /* of the last operation applied */
    uint64_t next_offset;
    uint64_t log_start;
    uint64_t cumulative_bytes; /* stored since it began: never shrinks */
    int64_t append_time_us;    /* of the last batch */
    uint64_t seal_intent_op;   /* of the highest SEAL applied; 0 = not sealed */
    struct producer_table producers;
    struct group_table groups;
    struct meter meter;
    struct retention retention;
    struct segment_list segments;
    /* Primary only: the topic's, before it is in the log; 0 bytes = as configured. */
    struct segment_limit segment_next;
    int64_t now_us; /* Primary only: what is admitted has no earlier append time */
    /* Primary only: the topic is being deleted: what is new is refused before it reaches the log */
    uint8_t closing;
};

/* In place. Empty: operation 0, offset 0, no segment. */
void partition_init(struct partition *partition, struct partition_pools *pools,
                    const struct partition_config *config);
/* What it took from the pools goes back. */
void partition_deinit(struct partition *partition);

/* ---- admission (primary only) ---- */

struct partition_admission {
    enum status status; /* OK: prepare it, or answer a duplicate */
    uint8_t duplicate;  /* OK: stored and durable at base_offset; prepare nothing */
    uint64_t base_offset;
    uint64_t expected; /* OUT_OF_SEQUENCE */
    uint32_t record_count;
    int64_t append_time_us; /* duplicate */
};

/* `client` as batch_check_client gave it. OK without duplicate counts as unresolved until
 * partition_apply of that batch or partition_admit_cancel: call it last, when nothing else can
 * refuse. Other answers: ALREADY_COMMITTED, OUT_OF_SEQUENCE, SESSION_EXPIRED, PRODUCER_FENCED,
 * TOO_MANY_IN_FLIGHT, METER_FULL, SEGMENTS_FULL, SEGMENT_POOL_FULL, PRODUCERS_FULL, CLOSED. What is
 * stored already is answered whatever is full or closed: a repeated batch must not be answered as
 * if it were not stored (P3); BUSY: a closing topic, and what became of its batches on their way is
 * not yet known. */
struct partition_admission partition_admit_batch(struct partition *partition,
                                                 const struct batch_client *client,
                                                 uint32_t principal);
void partition_admit_cancel(struct partition *partition, const struct batch_client *client);

/* ---- apply ---- */

struct partition_result {
    enum status status;   /* of the operation itself: deterministic, returned to the caller */
    uint8_t duplicate;    /* BATCH: already stored at base_offset, write nothing */
    uint8_t append;       /* BATCH: write the body at place.position of segment place.base_offset */
    uint8_t meter_closed; /* METER_CLOSE: partition_meter_next has one more */
    uint8_t trimmed;      /* TRIM: partition_trim_next has one more */
    uint32_t record_count; /* BATCH */
    uint64_t base_offset;  /* BATCH */
    /* OUT_OF_SEQUENCE: the sequence; OFFSET_BEYOND_END: the end; HELD: from where */
    uint64_t expected;
    int64_t append_time_us; /* BATCH: of the stored batch, also of an earlier duplicate */
    struct segment_place place;
    struct group_state group; /* COMMIT_OFFSET, IN_FLIGHT, FREEZE, CLOSE: what holds afterwards */
};

/* 1 = this release can apply it: it knows the operation and the version of its body. Looks at
 * versions alone: what else may be wrong with a body is no newer release's doing. */
int partition_op_known(uint16_t operation, const uint8_t *body, size_t size);

/* Apply the operation `op` (above the last one). A batch's body is changed in place: base_offset,
 * cumulative_bytes and the header's CRC are filled if it is to be appended.
 *
 * Returns OK also when the operation is refused by a rule: look at result->status. Anything else
 * means this replica cannot go on: OP_UNKNOWN, OP_MALFORMED (the log is newer than us, or broken),
 * NO_MEMORY (a replay with smaller pools than the log was written with: admission reserves room in
 * the shard's pools, and refusals at apply come from this partition's state only). Then the caller
 * must stop this replica. */
enum status partition_apply(struct partition *partition, uint64_t op, enum partition_op kind,
                            int64_t append_time_us, uint8_t *body, size_t size,
                            struct partition_result *result);

/* ---- reading ---- */

struct partition_place {
    /* OK; TRUNCATED: below log_start; OFFSET_OUT_OF_RANGE: above next_offset; NOT_FOUND: at it. */
    enum status status;
    uint64_t segment_base_offset;
    uint64_t segment_data_bytes; /* do not read beyond */
    uint64_t position; /* of a batch that begins at or before the offset: walk headers from here */
    uint64_t stride_bytes; /* an indexed offset lies within so many bytes, and one batch, of it */
    uint8_t sealed;
    uint8_t indexed; /* 0 = the segment was not walked since the start: position is 0 or far away */
};

struct partition_place partition_find(struct partition *partition, uint64_t offset);

/* 1 = a SEAL was applied: batches, commits and fences are refused with CLOSED, reads go on. */
int partition_sealed(const struct partition *partition);

/* Group fetches (G2): OK; GROUP_PENDING: propose IN_FLIGHT, or the CLOSE is to come; FENCED;
 * CLOSED: sealed before its IN_FLIGHT was applied. */
enum status partition_group_fetch(const struct partition *partition, uint64_t group,
                                  uint64_t generation);
/* 1 = proposing IN_FLIGHT(group, generation) would be accepted now and is still missing. */
int partition_in_flight_due(const struct partition *partition, uint64_t group, uint64_t generation);
enum status partition_group_state(const struct partition *partition, uint64_t group,
                                  struct group_state *state);

/* Segments, by position 0..count-1; NULL behind the last. segment_walk_begin and segment_walk
 * (segment/segment.h) rebuild the index, for the active segment after partition_decode also the
 * digest: an active segment must be walked before the next apply. */
struct segment *partition_segment(struct partition *partition, uint32_t position);
uint64_t partition_bytes(const struct partition *partition); /* data bytes of all segments */

/* ---- meters ---- */

/* 1 = propose a METER_CLOSE with this body now. `force`: a flush, whatever the time. */
int partition_meter_due(const struct partition *partition, int64_t now_us, uint32_t window_s,
                        int force, struct partition_meter_close *close);
uint64_t partition_meter_acked(const struct partition *partition);
void partition_meter_ack(struct partition *partition, uint64_t sequence);
const struct meter_close *partition_meter_next(const struct partition *partition, uint64_t after,
                                               const struct meter_sum **sums);

/* ---- retention ---- */

struct partition_policy {
    int64_t time_us;     /* records older than that go; <= 0 = however old */
    int64_t bytes;       /* so much is kept; <= 0 = however much */
    int64_t time_us_min; /* no record younger than that goes for its size */
    uint64_t version;
};

/* What the policy takes now: whole segments from the front, the active one too once all of it is
 * too old. */
struct partition_due {
    uint8_t due;         /* 1 = propose `trim` */
    uint8_t held;        /* what the policy would take is held: `trim` goes up to the hold */
    int64_t next_us;     /* 0 = not before something is appended; else look again then */
    uint64_t held_bytes; /* of segments that would go were they not held */
    struct partition_trim trim;
};

struct partition_due partition_retention_due(struct partition *partition,
                                             const struct partition_policy *policy, int64_t now_us);
/* The lowest unacknowledged event above `after`; NULL = none. */
const struct retention_event *partition_trim_next(const struct partition *partition,
                                                  uint64_t after);

/* TRIM and SET_HOLD, for partition_apply alone. */
enum status partition_apply_trim(struct partition *partition, uint64_t op, int64_t append_time_us,
                                 const uint8_t *body, size_t size, struct partition_result *result);
enum status partition_apply_hold(struct partition *partition, const uint8_t *body, size_t size,
                                 struct partition_result *result);

/* ---- checkpoints ---- */

/* A checkpoint [bytes]: magic, version, CRC32C, then all of the above but what only the primary
 * knows. Canonical: equal states give equal bytes. */
size_t partition_checkpoint_bytes(const struct partition *partition);
void partition_checkpoint_encode(const struct partition *partition, uint8_t *bytes, size_t size);
/* Into a partition fresh from partition_init. CHECKPOINT_DAMAGED, CHECKPOINT_VERSION, NO_MEMORY: it
 * is empty again. */
enum status partition_checkpoint_decode(struct partition *partition, const uint8_t *bytes,
                                        size_t size);

/* 1; checked builds look after every step of the shard. */
int partition_invariants(const struct partition *partition);

#endif
