/* foundation/machine.h: a state machine as a table of states and their allowed successors.
 *
 *     static const struct machine_state slot_states[] = {
 *         [SLOT_FREE]    = { "free",    1u << SLOT_WRITING },
 *         [SLOT_WRITING] = { "writing", 1u << SLOT_FREE | 1u << SLOT_DURABLE },
 *         ..
 *     };
 *     machine_move(&slot->machine, SLOT_WRITING);
 *
 * A move outside the table is our error and stops the process; the states are few and their names
 * print. */
#ifndef FOUNDATION_MACHINE_H
#define FOUNDATION_MACHINE_H

#include <stdint.h>

#include "foundation/assert.h"

struct machine_state {
    const char *name;
    uint32_t next; /* bit n: state n may follow */
};

struct machine {
    const struct machine_state *states;
    uint8_t count;
    uint8_t current;
};

static inline void machine_init(struct machine *machine, const struct machine_state *states,
                                uint8_t count, uint8_t first)
{
    assert(count > 0 && count <= 32);
    assert(first < count);
    machine->states = states;
    machine->count = count;
    machine->current = first;
}

static inline int machine_may(const struct machine *machine, uint8_t next)
{
    assert(next < machine->count);
    return (machine->states[machine->current].next >> next) & 1u;
}

static inline void machine_move(struct machine *machine, uint8_t next)
{
    assert(machine_may(machine, next));
    machine->current = next;
}

static inline const char *machine_name(const struct machine *machine)
{
    return machine->states[machine->current].name;
}

#endif
