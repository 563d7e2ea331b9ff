/* partition/meter.h: what a partition's appends cost whom, closed into windows by the
 * partition's own log (rules M1, M2).
 *
 * One open window gathers sums by principal. METER_CLOSE (sequence, window_end, acked) ends it:
 * from_op, to_op and the sums are computed where it is applied, so every replica has the same
 * closes. Closes stay until an ack arrives, which rides in the next close. With METER_CLOSES_MAX
 * unacked ones the window stays open and grows: nothing is lost, only coarser.
 *
 *     sums: | close 5 | close 6 | open ...       one array, oldest first; an ack cuts at the front
 *
 * Exact: a sum is never dropped or merged across principals. When the array is full, a batch of a
 * *new* principal is refused (METER_FULL, the same on every replica) until a close was acked. */
#ifndef PARTITION_METER_H
#define PARTITION_METER_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/limits.h"
#include "foundation/status.h"

struct bytes_reader;
struct bytes_writer;

struct meter_sum {
    uint32_t principal;
    uint32_t reserved;
    uint64_t ingress_bytes; /* of stored batches */
    uint64_t records;
    uint64_t batches;
};

struct meter_close {
    uint64_t sequence;       /* 1, 2, 3, .. */
    uint64_t from_op;        /* the previous to_op + 1 */
    uint64_t to_op;          /* of the METER_CLOSE itself */
    int64_t window_start_us; /* the first append's second, not before the previous window's end */
    int64_t window_end_us;
    uint32_t sums_count;
    uint32_t reserved;
};

struct meter {
    uint64_t sequence;       /* of the last close */
    uint64_t from_op;        /* of the open window */
    int64_t closed_until_us; /* window_end of the last close */
    int64_t first_us;        /* append time of the first batch in the open window */
    uint64_t acked;          /* replicated: highest sequence dropped */
    uint64_t acked_here;     /* this replica only: rides in the next close */
    uint32_t closes_count;
    uint32_t sums_count; /* of closes and the open window together */
    uint32_t open_count; /* of the open window */
    uint32_t reserved;
    struct meter_close closes[METER_CLOSES_MAX];
    struct meter_sum sums[METER_SUMS_MAX];
};

void meter_init(struct meter *meter);

/* Room for one more batch of this principal? METER_FULL if not. */
enum status meter_admit(const struct meter *meter, uint32_t principal);
enum status meter_add(struct meter *meter, uint32_t principal, uint64_t bytes, uint64_t records,
                      int64_t append_time_us);

/* Should a close be proposed now? 1 = yes: something billable is open and its window has ended by
 * `now_us` (or `force`), and a close would fit. Fills what to put into the operation. window_us
 * divides a minute. */
int meter_due(const struct meter *meter, int64_t now_us, int64_t window_us, int force,
              uint64_t *sequence, int64_t *window_end_us, uint64_t *acked);

/* Apply a METER_CLOSE. METER_SEQUENCE: not the next one. METER_EMPTY: nothing to close. METER_FULL:
 * MAX unacked. In all cases `acked` is honoured. */
enum status meter_close(struct meter *meter, uint64_t op, uint64_t sequence, int64_t window_end_us,
                        uint64_t acked);

/* This replica heard that all closes up to `sequence` are stored in _usage. */
void meter_ack(struct meter *meter, uint64_t sequence);

/* The lowest unacked close above `after`, its sums borrowed until the next change; NULL = none. */
const struct meter_close *meter_next(const struct meter *meter, uint64_t after,
                                     const struct meter_sum **sums);

size_t meter_encoded_bytes(const struct meter *meter);
void meter_encode(const struct meter *meter, struct bytes_writer *writer);
enum status meter_decode(struct meter *meter, struct bytes_reader *reader);

/* 1; checked builds look after every step of the shard. */
int meter_invariants(const struct meter *meter);

#endif
