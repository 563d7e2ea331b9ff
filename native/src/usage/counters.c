/* usage/counters.c: see usage/counters.h. */
#include "usage/counters.h"

#include "foundation/assert.h"

#define HOUR_US INT64_C(3600000000)

static void counting_start(struct counting *counting, int64_t start_us)
{
    counting->start_us = start_us;
    int64_t hour_us = start_us - start_us % HOUR_US;
    counting->hour_end_us = hour_us + HOUR_US;
    counting->floor_us = hour_us > counting->begun_us ? hour_us : counting->begun_us;
    checked(counting_invariants(counting));
}

void counting_begin(struct counting *counting, int64_t now_us, uint64_t now_ns, uint64_t window_ns)
{
    assert(now_us >= 0);
    *counting = (struct counting){
        .begun_us = now_us, .reported_ns = now_ns, .window_ns = window_ns, .begun = 1};
    counting_start(counting, now_us);
}

int counting_hour_over(const struct counting *counting, int64_t now_us)
{
    return now_us >= counting->hour_end_us;
}

int counting_due(const struct counting *counting, uint64_t now_ns)
{
    return now_ns - counting->reported_ns >= counting->window_ns;
}

int64_t counting_end(const struct counting *counting, int64_t now_us)
{
    if (now_us >= counting->hour_end_us) return counting->hour_end_us;
    return now_us > counting->start_us ? now_us : counting->start_us + 1;
}

void counting_next(struct counting *counting, int64_t now_us, uint64_t now_ns)
{
    int64_t end_us = counting_end(counting, now_us);
    int64_t hour_us = now_us - now_us % HOUR_US;
    counting->reported_ns = now_ns;
    counting_start(counting, hour_us > end_us ? hour_us : end_us);
}

int counting_invariants(const struct counting *counting)
{
    if (!counting->begun) return 1;
    assert(counting->begun_us <= counting->floor_us);
    assert(counting->floor_us <= counting->start_us);
    assert(counting->start_us < counting->hour_end_us);
    assert(counting->hour_end_us - counting->start_us <= HOUR_US);
    assert(counting->hour_end_us % HOUR_US == 0);
    return 1;
}
