/* vsr/vsr.h: one replica of a replica set: Viewstamped Replication as a pure step.
 *
 *     vsr_step(vsr, event, update)
 *
 * Events carry what happened outside (a request with its time, a round that is durable, an op that
 * was executed, a prepare that recovery found); the update says what to do next. No clock, no
 * randomness, no I/O, no memory of its own. A replica set of one member takes the same path as
 * any other: prepare, journal, own PrepareOk once the round is synced, commit at a quorum of
 * one, execute.
 *
 *     RECOVERING --recovered--> NORMAL
 *          \---damage found---> DAMAGED      stopped until an operator decides (V1)
 *
 * commit_max is what is known committed, commit_min what is executed; op is the head of the log:
 *     commit_min <= commit_max <= op. */
#ifndef VSR_VSR_H
#define VSR_VSR_H

#include <stdint.h>

#include "foundation/status.h"
#include "journal/entry_bodies.h"

enum vsr_status { VSR_RECOVERING = 0, VSR_NORMAL = 1, VSR_DAMAGED = 2, VSR_STATUSES_COUNT = 3 };

/* What a prepare does. Numbers below 32 are operations of a partition (partition/partition.h: enum
 * partition_op) [bytes]. */
enum vsr_operation { VSR_OPERATION_METADATA = 32 };

enum { VSR_MEMBERS_FOUNDING = 1, VSR_EPOCH_FOUNDING = 1 };

struct vsr {
    uint8_t status; /* enum vsr_status */
    uint8_t members_count;
    uint8_t quorum;
    uint8_t self; /* this replica among the members */
    uint32_t epoch;
    uint32_t release; /* of this node: in what it proposes first (V3) */
    uint64_t view;
    uint64_t log_view;
    uint64_t op;
    uint64_t commit_max;
    uint64_t commit_min;
    uint64_t seen_max; /* recovery: the highest op that some intact bytes or directory named */
    uint64_t damaged_from;
    uint64_t damaged_to;
    int64_t append_time_us;        /* of the head */
    uint8_t checksum[16];          /* of the head: the next prepare's parent */
    int64_t executed_time_us;      /* of commit_min */
    uint8_t executed_checksum[16]; /* of commit_min: what a checkpoint carries */
    struct entry_member members[ENTRY_MEMBERS_MAX];
};

enum vsr_event_kind {
    VSR_REQUEST = 1,      /* prepare.operation, .principal, .payload_bytes, .digest; time_us */
    VSR_PERSISTED,        /* op: durable here up to it: our own PrepareOk */
    VSR_EXECUTED,         /* op, checksum, time_us */
    VSR_VIEW_FOUND,       /* recovery: view_state, in any order */
    VSR_CHECKPOINT_FOUND, /* recovery: op, checksum, time_us */
    VSR_PREPARE_FOUND,    /* recovery: prepare, intact */
    VSR_DAMAGE_FOUND,     /* recovery: ops up to `op` existed; their bytes may be lost */
    /* recovery: op = the last good one, op_to: an earlier recovery stopped the replica */
    VSR_ABSTAINED,
    VSR_RECOVERED, /* recovery: all was shown */
};

struct vsr_event {
    enum vsr_event_kind kind;
    uint64_t op;
    uint64_t op_to;
    int64_t time_us; /* REQUEST: agreed time; 0 = unknown, stamp last + 1 */
    uint8_t checksum[16];
    struct entry_prepare prepare;
    const struct entry_view_state *view_state;
};

/* Ops `first` .. `first + count - 1` of the log: committed by this step, to be executed in order,
 * each followed by EXECUTED. */
struct vsr_committed {
    uint64_t first;
    uint64_t count;
};

struct vsr_update {
    enum status status; /* REQUEST: DAMAGED, REBUILDING */
    uint8_t journal;    /* write `header` and the payload into the next round */
    uint8_t damaged;    /* the replica has just been stopped: remember it (J4) */
    uint16_t reserved;
    struct vsr_committed committed; /* PERSISTED, PREPARE_FOUND */
    struct entry_prepare prepare;
    uint8_t header[ENTRY_PREPARE_BYTES]; /* of `prepare`, as it is journaled */
};

/* How far the operation that an answer speaks of has come. */
struct vsr_reached {
    uint32_t persisted; /* members that hold it durably, at least */
    uint32_t replicas;  /* members */
};

/* Of whatever is committed. NULL: a log that did not begin has the member that would begin it. */
struct vsr_reached vsr_reached(const struct vsr *vsr);

/* What a replica knows before its log. */
struct vsr_founding {
    uint8_t identity[16];       /* vsr_identity: the parent of the first prepare (J10) */
    struct entry_member member; /* the only one */
    uint32_t release;
};

/* Of the replica set: so the chain of parents binds every prepare to it. */
void vsr_identity(const char *cluster_id, uint64_t topic, uint64_t created_revision,
                  uint32_t partition, uint8_t checksum[16]);

void vsr_init(struct vsr *vsr, const struct vsr_founding *founding);
/* What is to be durable of it. */
struct entry_view_state vsr_view_state(const struct vsr *vsr);
/* The epoch in which this replica joined. */
uint32_t vsr_tenure(const struct vsr *vsr);
void vsr_step(struct vsr *vsr, const struct vsr_event *event, struct vsr_update *update);
const char *vsr_status_name(const struct vsr *vsr);

/* The parts of the step, one concept a file. */
void vsr_prepare_request(struct vsr *vsr, const struct vsr_event *event, struct vsr_update *update);
void vsr_commit_persisted(struct vsr *vsr, const struct vsr_event *event,
                          struct vsr_update *update);
void vsr_commit_executed(struct vsr *vsr, const struct vsr_event *event);
void vsr_recovery_step(struct vsr *vsr, const struct vsr_event *event, struct vsr_update *update);

/* A prepare as it is journaled; its checksum is computed here, once, and set in both. */
void vsr_prepare_encode(struct entry_prepare *prepare, uint8_t bytes[ENTRY_PREPARE_BYTES]);
/* What was read from a disk. JOURNAL_DAMAGED: its checksum fails. OP_UNKNOWN: a newer release made
 * it (J13). */
enum status vsr_prepare_decode(const uint8_t *bytes, struct entry_prepare *prepare);
/* Of a header that is known to be whole: one that was encoded here, or decoded before. */
void vsr_prepare_read(const uint8_t *bytes, struct entry_prepare *prepare);
void vsr_digest(const uint8_t *payload, uint64_t size, uint8_t digest[16]);

#endif
