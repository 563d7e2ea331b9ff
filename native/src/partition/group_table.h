/* partition/group_table.h: consumer groups as one partition knows them: who owns it, and how far
 * they have committed.
 *
 * Rules G1..G3 and T1; the bytes and the whole story stand in docs/internals/groups.md. A
 * generation owns the partition from the CLOSE that names it until the next CLOSE:
 *
 *     CLOSE(g1) ........ FREEZE(g2) ........ CLOSE(g2) ........
 *     g1: in flight, commits | commits only  | g1: nothing. g2: in flight, commits
 *
 * A group that was never fenced is owned by generation 0: clients without a coordinator. The
 * committed offset is stored as given and never clamped: an offset beyond the end is refused, one
 * below the log's start is the reader's to see. */
#ifndef PARTITION_GROUP_TABLE_H
#define PARTITION_GROUP_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/limits.h"
#include "foundation/status.h"

struct bytes_reader;
struct bytes_writer;

struct group_row {
    uint64_t group;
    uint64_t owner_generation;     /* of the last CLOSE; 0 = none yet */
    uint64_t frozen_generation;    /* of the last FREEZE or CLOSE: older ones may not fetch */
    uint64_t in_flight_generation; /* the last InFlight applied: data may leave for it (G2) */
    uint64_t intent_op;            /* the highest metadata op seen in a fence (T1) */
    uint64_t committed;
    uint8_t has_committed;
    uint8_t in_flight_proposed; /* primary only: InFlight is on its way to the log */
    uint8_t reserved[6];
};

struct group_table {
    uint32_t count;
    uint32_t reserved;
    struct group_row rows[PARTITION_GROUPS_MAX]; /* by ascending group */
};

/* What fences and commits answer, and what FetchOffsets shows. All zero: unknown group. */
struct group_state {
    uint64_t generation; /* owner */
    uint64_t committed;
    uint8_t has_committed;
    uint8_t closed; /* 1 = no fence is open: no member older than `generation` may commit */
};

void group_table_init(struct group_table *table);

/* Decisions at apply; each fills `state` with what holds afterwards. FENCED: older than the owner
 * (or frozen). GROUP_PENDING: newer than the owner, its CLOSE is not in this log yet.
 * TOO_MANY_GROUPS: the table is full. */
enum status group_table_commit(struct group_table *table, uint64_t group, uint64_t generation,
                               uint64_t offset, uint64_t end_offset, struct group_state *state);
enum status group_table_in_flight(struct group_table *table, uint64_t group, uint64_t generation,
                                  struct group_state *state);
enum status group_table_freeze(struct group_table *table, uint64_t group, uint64_t generation,
                               uint64_t intent_op, struct group_state *state);
enum status group_table_close(struct group_table *table, uint64_t group, uint64_t generation,
                              uint64_t intent_op, struct group_state *state);

/* May data leave for (group, generation)? OK; GROUP_PENDING: propose InFlight first (or wait for
 * the CLOSE); FENCED. */
enum status group_table_fetch(const struct group_table *table, uint64_t group, uint64_t generation);
/* Primary: InFlight of the group's owner was proposed, and is not yet applied; nothing if the group
 * is unknown. A fence that comes between asks for a new one. */
void group_table_propose(struct group_table *table, uint64_t group);
int group_table_proposed(const struct group_table *table, uint64_t group);
/* NOT_FOUND: never heard of. */
enum status group_table_state(const struct group_table *table, uint64_t group,
                              struct group_state *state);

size_t group_table_encoded_bytes(const struct group_table *table);
void group_table_encode(const struct group_table *table, struct bytes_writer *writer);
enum status group_table_decode(struct group_table *table, struct bytes_reader *reader);

/* 1; checked builds look after every step of the shard. */
int group_table_invariants(const struct group_table *table);

#endif
