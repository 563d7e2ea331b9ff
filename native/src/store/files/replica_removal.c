/* store/files/replica_removal.c: see store/files/replica_removal.h. */
#include "store/files/replica_removal.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/machine.h"

static const struct machine_state reconcile_states[RECONCILE_PHASES_COUNT] = {
    [RECONCILE_NONE] = {"none", 1u << RECONCILE_DOOMED | 1u << RECONCILE_FORGOTTEN},
    [RECONCILE_DOOMED] = {"doomed", 1u << RECONCILE_FORGETTING},
    [RECONCILE_FORGETTING] = {"forgetting", 1u << RECONCILE_FORGOTTEN},
    [RECONCILE_FORGOTTEN] = {"forgotten", 1u << RECONCILE_LISTING},
    [RECONCILE_LISTING] = {"listing", 1u << RECONCILE_UNLINKING | 1u << RECONCILE_FOLDER_SYNCING
                                          | 1u << RECONCILE_FORGOTTEN},
    [RECONCILE_UNLINKING] = {"unlinking", 1u << RECONCILE_UNLINKING | 1u << RECONCILE_FOLDER_SYNCING
                                              | 1u << RECONCILE_FORGOTTEN},
    [RECONCILE_FOLDER_SYNCING] = {"folder syncing",
                                  1u << RECONCILE_PARTING | 1u << RECONCILE_FORGOTTEN},
    [RECONCILE_PARTING] = {"parting", 1u << RECONCILE_PARENT_SYNCING | 1u << RECONCILE_FORGOTTEN},
    [RECONCILE_PARENT_SYNCING] = {"parent syncing", 1u << RECONCILE_FORGOTTEN},
};

static void reconcile_enter(struct reconcile *removal, enum reconcile_phase phase)
{
    struct machine machine;
    machine_init(&machine, reconcile_states, RECONCILE_PHASES_COUNT, removal->phase);
    machine_move(&machine, (uint8_t)phase);
    removal->phase = machine.current;
}

void reconcile_doom(struct reconcile *removal)
{
    memset(removal, 0, sizeof *removal);
    reconcile_enter(removal, RECONCILE_DOOMED);
}

/* The next begins after 1 s, 2 s, 4 s, .. 60 s. */
static void reconcile_pause(struct reconcile *removal, uint64_t now_ns)
{
    uint64_t pause_ms = RECONCILE_PAUSE_MS_MAX;
    if (removal->pauses < 6) pause_ms = (uint64_t)RECONCILE_PAUSE_MS_MIN << removal->pauses;
    assert(pause_ms <= RECONCILE_PAUSE_MS_MAX);
    if (removal->pauses < UINT16_MAX) removal->pauses++;
    removal->retry_ns = now_ns + pause_ms * UINT64_C(1000000);
    removal->failed = 0;
}

void reconcile_found(struct reconcile *removal, uint64_t now_ns)
{
    memset(removal, 0, sizeof *removal);
    reconcile_enter(removal, RECONCILE_FORGOTTEN);
    reconcile_pause(removal, now_ns);
}

static enum reconcile_action reconcile_step_doomed(const struct reconcile_seen *seen)
{
    if (seen->held) return RECONCILE_WITHDRAW;
    /* A tombstone before other entries of the replica would let those bring it back (REC-2). */
    if (seen->undurable || seen->leaving) return RECONCILE_WAIT;
    return RECONCILE_FORGET;
}

static enum reconcile_action reconcile_step_forgotten(const struct reconcile *removal,
                                                      const struct reconcile_seen *seen,
                                                      uint64_t now_ns)
{
    if (seen->writing) return RECONCILE_WAIT;
    if (seen->queued) return RECONCILE_DISCARD;
    if (now_ns < removal->retry_ns) return RECONCILE_WAIT;
    if (seen->files) return RECONCILE_CLOSE;
    return seen->turn ? RECONCILE_LIST : RECONCILE_WAIT;
}

enum reconcile_action reconcile_step(struct reconcile *removal, const struct reconcile_seen *seen,
                                     uint64_t now_ns)
{
    if (removal->flights > 0) return RECONCILE_WAIT;
    if (removal->failed) {
        reconcile_enter(removal, RECONCILE_FORGOTTEN);
        reconcile_pause(removal, now_ns);
        return RECONCILE_PAUSE;
    }
    switch ((enum reconcile_phase)removal->phase) {
    case RECONCILE_DOOMED: return reconcile_step_doomed(seen);
    case RECONCILE_FORGETTING: return RECONCILE_WAIT;
    case RECONCILE_FORGOTTEN: return reconcile_step_forgotten(removal, seen, now_ns);
    case RECONCILE_LISTING:
    case RECONCILE_UNLINKING: return seen->names ? RECONCILE_UNLINK : RECONCILE_SYNC_FOLDER;
    case RECONCILE_FOLDER_SYNCING: return RECONCILE_PART;
    case RECONCILE_PARTING: return RECONCILE_SYNC_PARENT;
    case RECONCILE_PARENT_SYNCING: return RECONCILE_DROP;
    case RECONCILE_NONE:
    case RECONCILE_PHASES_COUNT: unreachable();
    }
    unreachable();
}

static enum reconcile_phase reconcile_phase_of(enum reconcile_action action)
{
    switch (action) {
    case RECONCILE_FORGET: return RECONCILE_FORGETTING;
    case RECONCILE_LIST: return RECONCILE_LISTING;
    case RECONCILE_UNLINK: return RECONCILE_UNLINKING;
    case RECONCILE_SYNC_FOLDER: return RECONCILE_FOLDER_SYNCING;
    case RECONCILE_PART: return RECONCILE_PARTING;
    case RECONCILE_SYNC_PARENT: return RECONCILE_PARENT_SYNCING;
    default: unreachable();
    }
}

void reconcile_move(struct reconcile *removal, enum reconcile_action action, uint32_t flights)
{
    assert(removal->flights == 0);
    assert((action == RECONCILE_FORGET) == (flights == 0));
    reconcile_enter(removal, reconcile_phase_of(action));
    removal->flights = flights;
}

void reconcile_forgotten(struct reconcile *removal)
{
    assert(removal->phase == RECONCILE_FORGETTING);
    reconcile_enter(removal, RECONCILE_FORGOTTEN);
}

int reconcile_done(struct reconcile *removal, enum status status)
{
    assert(removal->flights > 0);
    removal->flights--;
    /* Never made, or gone with an earlier attempt. */
    int absent = status == STATUS_FILE_NOT_FOUND && removal->phase == RECONCILE_FOLDER_SYNCING;
    if (status == STATUS_OK || absent) return 0;
    removal->failed = 1;
    return 1;
}
