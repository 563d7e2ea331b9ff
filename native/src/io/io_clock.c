#include "io/io_clock.h"

#include <time.h>

#include "foundation/assert.h"

uint64_t clock_monotonic_ns(void)
{
    struct timespec now;
    int failed = clock_gettime(CLOCK_MONOTONIC, &now);
    assert(failed == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t clock_wall_us(void)
{
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    assert(failed == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
