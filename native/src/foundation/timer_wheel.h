/* foundation/timer_wheel.h: deadlines by the thousand: set and cleared in constant time, as long
 * polls need it.
 *
 * A timer lies in the slot of its deadline (4 ms wide); the wheel spans 65 s and a later deadline
 * stays in its slot for the revolutions it needs. A timer fires at most one slot late, never early.
 * Pure: the time is an argument. */
#ifndef FOUNDATION_TIMER_WHEEL_H
#define FOUNDATION_TIMER_WHEEL_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"

enum {
    TIMER_SLOTS_COUNT = 16384,
    TIMER_SLOT_NS = 4000000,
    TIMER_WORDS_COUNT = TIMER_SLOTS_COUNT / 64
};

struct timer {
    struct queue_link link;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0 = not set */
    uint32_t kind;        /* the owner's */
    uint32_t reserved;
};

struct timer_wheel {
    struct queue *slots; /* TIMER_SLOTS_COUNT */
    uint64_t *occupied;  /* one bit a slot */
    uint64_t visited;    /* slots up to here (absolute numbers) were looked at */
    uint64_t count;
};

size_t timer_wheel_bytes(void);
/* `memory` is zeroed. */
void timer_wheel_init(struct timer_wheel *wheel, void *memory, uint64_t now_ns);
void timer_set(struct timer_wheel *wheel, struct timer *timer, uint64_t deadline_ns);
/* A timer that is not set may be cleared. */
void timer_clear(struct timer_wheel *wheel, struct timer *timer);
/* The next timer that is due, cleared; NULL = none. Call until NULL. */
struct timer *timer_due(struct timer_wheel *wheel, uint64_t now_ns);
/* When to look again; UINT64_MAX = nothing is set. May be too early, never too late. */
uint64_t timer_next_ns(const struct timer_wheel *wheel);

/* 1; checked builds look after every change. */
int timer_wheel_invariants(const struct timer_wheel *wheel);

#endif
