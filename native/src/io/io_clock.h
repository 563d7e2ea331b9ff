/* io/io_clock.h: the two clocks of the system, read once a pump turn and passed on as arguments. */
#ifndef IO_IO_CLOCK_H
#define IO_IO_CLOCK_H

#include <stdint.h>

uint64_t clock_monotonic_ns(void);
int64_t clock_wall_us(void);

#endif
