#include "foundation/timer_wheel.h"

#include "foundation/assert.h"

size_t timer_wheel_bytes(void)
{
    return sizeof(struct queue) * TIMER_SLOTS_COUNT + sizeof(uint64_t) * TIMER_WORDS_COUNT;
}

void timer_wheel_init(struct timer_wheel *wheel, void *memory, uint64_t now_ns)
{
    assert(memory != NULL);
    *wheel = (struct timer_wheel){.slots = memory, .visited = now_ns / TIMER_SLOT_NS};
    wheel->occupied = (uint64_t *)(void *)(wheel->slots + TIMER_SLOTS_COUNT);
}

static uint32_t slot_of(uint64_t absolute)
{
    return (uint32_t)(absolute % TIMER_SLOTS_COUNT);
}

static void occupied_set(struct timer_wheel *wheel, uint32_t slot)
{
    uint64_t bit = UINT64_C(1) << (slot % 64);
    if (queue_empty(&wheel->slots[slot]))
        wheel->occupied[slot / 64] &= ~bit;
    else
        wheel->occupied[slot / 64] |= bit;
}

void timer_set(struct timer_wheel *wheel, struct timer *timer, uint64_t deadline_ns)
{
    assert(timer->deadline_ns == 0);
    assert(deadline_ns > 0);
    timer->deadline_ns = deadline_ns;
    /* Rounded up: a slot is visited once its end has passed, so everything in it for this
     * revolution is due. */
    uint64_t absolute = deadline_ns / TIMER_SLOT_NS + 1;
    if (absolute <= wheel->visited) absolute = wheel->visited + 1;
    uint32_t slot = slot_of(absolute);
    timer->reserved = slot;
    queue_push(&wheel->slots[slot], &timer->link);
    occupied_set(wheel, slot);
    wheel->count++;
    checked(timer_wheel_invariants(wheel));
}

void timer_clear(struct timer_wheel *wheel, struct timer *timer)
{
    if (timer->deadline_ns == 0) return;
    uint32_t slot = timer->reserved;
    queue_remove(&wheel->slots[slot], &timer->link);
    occupied_set(wheel, slot);
    timer->deadline_ns = 0;
    assert(wheel->count > 0);
    wheel->count--;
    checked(timer_wheel_invariants(wheel));
}

struct timer *timer_due(struct timer_wheel *wheel, uint64_t now_ns)
{
    uint64_t now_slot = now_ns / TIMER_SLOT_NS;
    if (wheel->count == 0) wheel->visited = now_slot > wheel->visited ? now_slot : wheel->visited;
    /* One revolution sees every slot: a pause longer than that needs no more. */
    if (now_slot > wheel->visited + TIMER_SLOTS_COUNT)
        wheel->visited = now_slot - TIMER_SLOTS_COUNT;
    while (wheel->visited < now_slot) {
        uint32_t slot = slot_of(wheel->visited + 1);
        queue_each(&wheel->slots[slot], link)
        {
            struct timer *timer = queue_element(link, struct timer, link);
            if (timer->deadline_ns > now_ns) continue;
            timer_clear(wheel, timer);
            return timer;
        }
        wheel->visited++;
    }
    return NULL;
}

uint64_t timer_next_ns(const struct timer_wheel *wheel)
{
    if (wheel->count == 0) return UINT64_MAX;
    uint64_t first = wheel->visited + 1;
    for (uint32_t step = 0; step <= TIMER_WORDS_COUNT; step++) {
        uint32_t slot = slot_of(first + step * UINT64_C(64));
        uint32_t shift = step == 0 ? slot % 64 : 0;
        uint64_t word = wheel->occupied[slot / 64] >> shift;
        if (word == 0) continue;
        uint64_t base = step == 0 ? first : first + step * UINT64_C(64) - slot % 64;
        return (base + (uint64_t)__builtin_ctzll(word)) * TIMER_SLOT_NS;
    }
    return (first + TIMER_SLOTS_COUNT) * TIMER_SLOT_NS;
}

int timer_wheel_invariants(const struct timer_wheel *wheel)
{
    uint64_t count = 0;
    for (uint32_t word = 0; word < TIMER_WORDS_COUNT; word++) {
        for (uint64_t left = wheel->occupied[word]; left != 0; left &= left - 1) {
            const struct queue *slot = &wheel->slots[word * 64 + (uint32_t)__builtin_ctzll(left)];
            assert(!queue_empty(slot));
            count += slot->count;
        }
    }
    /* No slot without its bit holds a timer. */
    assert(count == wheel->count);
    return 1;
}
