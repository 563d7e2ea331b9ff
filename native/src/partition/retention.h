/* partition/retention.h: what a partition's log knows of its own beginning: whether it is held,
 * and what every trim took away (rules T1, T2, M3).
 *
 * A hold is the last word of the metadata on the partition: one intent says whether anything at all
 * holds it and from which offset on, so that a later intent includes all earlier ones and a delayed
 * one changes nothing (T1). No trim goes beyond what is held; decided where the trim is applied.
 *
 * Every trim that took something away leaves an event, the same on every replica. Events stay, in
 * the checkpoint too, until an ack arrives, which rides in the next trim. With
 * RETENTION_EVENTS_MAX unacked ones a trim is refused (TRIMS_FULL): the log keeps more for a while,
 * and no deletion is ever without its evidence. */
#ifndef PARTITION_RETENTION_H
#define PARTITION_RETENTION_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/limits.h"
#include "foundation/status.h"

struct bytes_reader;
struct bytes_writer;

/* Why a log's beginning was moved. Numbers are in the journal and in checkpoints [bytes]. */
enum retention_cause {
    RETENTION_TIME = 1,  /* older than the topic keeps */
    RETENTION_SIZE = 2,  /* more than the topic keeps */
    RETENTION_PURGE = 3, /* somebody asked for it */
    RETENTION_CAUSES_COUNT,
};

struct retention_event {
    uint64_t sequence; /* 1, 2, 3, .. */
    uint64_t trim_op;
    uint64_t policy_version; /* of the policy that asked for it, or of the purge */
    uint64_t from_offset;    /* where the log began before */
    uint64_t to_offset;      /* and begins since: the first that is kept */
    /* Of the segments that went whole. One that was cut counts with the trim that takes the
     * rest. */
    uint64_t bytes;
    uint64_t records;
    int64_t min_time_us; /* append times of those; 0 = no segment went */
    int64_t max_time_us;
    int64_t trimmed_at_us; /* append time of the TRIM itself */
    uint32_t cause;        /* enum retention_cause */
    uint32_t segments;     /* that went */
};

struct retention {
    uint64_t hold_intent_op;   /* of the highest SET_HOLD applied; 0 = never held */
    uint64_t held_from_offset; /* while held: no trim goes beyond it */
    uint64_t held;             /* 1 = held */
    uint64_t sequence;         /* of the last event */
    uint64_t acked;            /* replicated: highest sequence dropped */
    uint64_t acked_here;       /* this replica only: rides in the next trim */
    uint32_t events_count;
    uint32_t reserved;
    struct retention_event events[RETENTION_EVENTS_MAX];
};

void retention_init(struct retention *retention);

/* Apply a SET_HOLD. STALE_INTENT: a later one was applied; nothing changed. */
enum status retention_hold(struct retention *retention, uint64_t intent_op, uint64_t held,
                           uint64_t from_offset);

/* May the log begin at `log_start` from now on? HELD, TRIMS_FULL. */
enum status retention_admit(const struct retention *retention, uint64_t log_start);
/* retention_admit said OK. The event's sequence is given here. */
void retention_trimmed(struct retention *retention, const struct retention_event *event);

/* All events up to this sequence are stored in _retention: by the log, so that they go; heard by
 * this replica, so that it proposes that. */
void retention_drop_acked(struct retention *retention, uint64_t acked);
void retention_ack(struct retention *retention, uint64_t sequence);
uint64_t retention_acked(const struct retention *retention);

/* The lowest unacked event above `after`, borrowed until the next change; NULL = none. */
const struct retention_event *retention_next(const struct retention *retention, uint64_t after);

size_t retention_encoded_bytes(const struct retention *retention);
void retention_encode(const struct retention *retention, struct bytes_writer *writer);
enum status retention_decode(struct retention *retention, struct bytes_reader *reader);

/* 1; checked builds look after every step of the shard. */
int retention_invariants(const struct retention *retention);

#endif
