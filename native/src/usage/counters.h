/* usage/counters.h: the windows in which a shard tells what it counted: when one is over, where
 * it ends.
 *
 *     begun -> counting -> over -> counting -> ..
 *
 * Pure: times are given. Windows follow each other and never overlap; each lies within one hour,
 * UTC. A clock that steps back makes a window short, never backward; one that leaps forward ends
 * the window with its hour, and the hours between have none. */
#ifndef USAGE_COUNTERS_H
#define USAGE_COUNTERS_H

#include <stdint.h>

struct counting {
    int64_t start_us;     /* of the window */
    int64_t hour_end_us;  /* of the hour that it lies in */
    int64_t floor_us;     /* no window that is reported now begins before: the hour, or the start */
    int64_t begun_us;     /* the first window */
    uint64_t reported_ns; /* monotonic: when it began */
    uint64_t window_ns;
    uint8_t begun;
};

void counting_begin(struct counting *counting, int64_t now_us, uint64_t now_ns, uint64_t window_ns);
/* The hour of the window is over: it must be reported. */
int counting_hour_over(const struct counting *counting, int64_t now_us);
/* It has been long enough: it may be reported. */
int counting_due(const struct counting *counting, uint64_t now_ns);
/* Where a window ends that is reported now: after its start, within its hour. */
int64_t counting_end(const struct counting *counting, int64_t now_us);
/* It was reported: the next one begins. */
void counting_next(struct counting *counting, int64_t now_us, uint64_t now_ns);

/* 1; checked builds look after every change. */
int counting_invariants(const struct counting *counting);

#endif
