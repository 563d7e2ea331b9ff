#include "store/clock.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/state.h"

enum { JUMP_MAX_US = 5000000 /* more than a stepping NTP client does, less than a person */ };

struct store_clock {
    uint8_t uncertain;
    uint8_t jumped;
    uint8_t begun_uncertain;
    int64_t agreed_us;    /* the last wall clock that was believed */
    int64_t stamp_max_us; /* the latest append time that recovery found */
    struct store_now reference;
    int64_t window_us;     /* what windows close by */
    uint64_t window_at_ns; /* monotonic, of the last tick */
};

size_t store_clock_memory_bytes(void)
{
    return arena_size(sizeof(struct store_clock));
}

struct store_clock *store_clock_make(struct arena *arena, int uncertain)
{
    struct store_clock *clock = arena_take(arena, sizeof *clock);
    if (clock) clock->begun_uncertain = uncertain != 0;
    return clock;
}

void store_clock_begin(struct store_clock *clock, const struct store_now *now)
{
    clock->reference = *now;
}

void store_clock_stamped(struct store_clock *clock, int64_t append_time_us)
{
    if (append_time_us > clock->stamp_max_us) clock->stamp_max_us = append_time_us;
}

void store_clock_recovered(struct store_clock *clock, const struct store_now *now)
{
    clock->agreed_us = clock->stamp_max_us;
    store_clock_tick(clock, now);
}

/* While the wall clock is believed it leads; else the monotonic clock goes on from the last time
 * agreed. Never backward by more than a jump: a window's end is not before the last one's. */
static void clock_window_tick(struct store_clock *clock, const struct store_now *now)
{
    if (clock->window_at_ns == 0)
        clock->window_us = clock->stamp_max_us;
    else
        clock->window_us += (int64_t)((now->monotonic_ns - clock->window_at_ns) / 1000);
    clock->window_at_ns = now->monotonic_ns;
    int behind = now->wall_us + JUMP_MAX_US < clock->window_us;
    if (!clock->uncertain && !behind) clock->window_us = now->wall_us;
}

void store_clock_tick(struct store_clock *clock, const struct store_now *now)
{
    const struct store_now *reference = &clock->reference;
    int64_t passed = (int64_t)((now->monotonic_ns - reference->monotonic_ns) / 1000);
    int64_t leap = now->wall_us - reference->wall_us - passed;
    clock->jumped = leap > JUMP_MAX_US || leap < -JUMP_MAX_US;
    int behind = now->wall_us + JUMP_MAX_US < clock->stamp_max_us;
    clock->uncertain = clock->jumped || behind || clock->begun_uncertain;
    if (!clock->jumped) clock->reference = *now; /* slow drift is not a jump */
    if (!clock->uncertain) clock->agreed_us = now->wall_us;
    clock_window_tick(clock, now);
}

void store_clock_confirm(struct store *store, struct store_now now)
{
    struct store_clock *clock = store->clock;
    store->now = now;
    clock->reference = now;
    clock->stamp_max_us = 0;
    clock->begun_uncertain = 0;
    clock->uncertain = clock->jumped = 0;
}

int64_t store_clock_us(const struct store *store)
{
    return store->clock->uncertain ? store->clock->agreed_us : store->now.wall_us;
}

int store_clock_uncertain(const struct store *store)
{
    return store->clock->uncertain;
}

int64_t store_window_us(const struct store *store)
{
    return store->clock->window_us;
}

void store_clock_invariants(const struct store_clock *clock)
{
    ergo(clock->jumped, clock->uncertain);
    ergo(clock->begun_uncertain && clock->window_at_ns != 0, clock->uncertain);
}
