/* store/clock.h: which time the shard believes (C1, C2), and what metering windows close by.
 *
 * A lone node has no quorum to agree with. It suspends all expiry when its wall clock leaves
 * the monotonic one, or at a start the last stamp, by more than a stepping time service moves it,
 * until an operator or the control plane confirms it. Windows are no expiry: they close on time
 * whatever the wall clock does.
 *
 * Owns that judgement. Refuses to read a clock: the turn brings the time. */
#ifndef STORE_CLOCK_H
#define STORE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct store;
struct store_clock;
struct store_now;

size_t store_clock_memory_bytes(void);
/* `uncertain`: not believed before it is confirmed. NULL = the arena is too small. */
struct store_clock *store_clock_make(struct arena *arena, int uncertain);

void store_clock_begin(struct store_clock *clock, const struct store_now *now);
/* An append time that recovery found. */
void store_clock_stamped(struct store_clock *clock, int64_t append_time_us);
/* All of them were. */
void store_clock_recovered(struct store_clock *clock, const struct store_now *now);
void store_clock_tick(struct store_clock *clock, const struct store_now *now);

/* Not confirmed = the last time that was, so that a replica stamps its last + 1, and one without
 * any stamp does not begin in 1970: its producers would expire when the clock is right. */
int64_t store_clock_us(const struct store *store);
int store_clock_uncertain(const struct store *store);

void store_clock_invariants(const struct store_clock *clock);

#endif
