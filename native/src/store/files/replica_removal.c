/* store/files/replica_removal.c: see store/files/replica_removal.h. */
#include "store/files/replica_removal.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/machine.h"

static const struct machine_state replica_removal_states[REMOVAL_PHASES_COUNT] = {
    [REMOVAL_NONE] = {"none", 1u << REMOVAL_DOOMED | 1u << REMOVAL_FORGOTTEN},
    [REMOVAL_DOOMED] = {"doomed", 1u << REMOVAL_FORGETTING},
    [REMOVAL_FORGETTING] = {"forgetting", 1u << REMOVAL_FORGOTTEN},
    [REMOVAL_FORGOTTEN] = {"forgotten", 1u << REMOVAL_LISTING},
    [REMOVAL_LISTING] = {"listing", 1u << REMOVAL_UNLINKING | 1u << REMOVAL_FOLDER_SYNCING
                                        | 1u << REMOVAL_FORGOTTEN},
    [REMOVAL_UNLINKING] = {"unlinking", 1u << REMOVAL_UNLINKING | 1u << REMOVAL_FOLDER_SYNCING
                                            | 1u << REMOVAL_FORGOTTEN},
    [REMOVAL_FOLDER_SYNCING] = {"folder syncing", 1u << REMOVAL_PARTING | 1u << REMOVAL_FORGOTTEN},
    [REMOVAL_PARTING] = {"parting", 1u << REMOVAL_PARENT_SYNCING | 1u << REMOVAL_FORGOTTEN},
    [REMOVAL_PARENT_SYNCING] = {"parent syncing", 1u << REMOVAL_FORGOTTEN},
};

static void replica_removal_enter(struct replica_removal *removal, enum replica_removal_phase phase)
{
    struct machine machine;
    machine_init(&machine, replica_removal_states, REMOVAL_PHASES_COUNT, removal->phase);
    machine_move(&machine, (uint8_t)phase);
    removal->phase = machine.current;
}

void replica_removal_doom(struct replica_removal *removal)
{
    memset(removal, 0, sizeof *removal);
    replica_removal_enter(removal, REMOVAL_DOOMED);
}

/* The next begins after 1 s, 2 s, 4 s, .. 60 s. */
static void replica_removal_pause(struct replica_removal *removal, uint64_t now_ns)
{
    uint64_t pause_ms = REMOVAL_PAUSE_MS_MAX;
    if (removal->pauses < 6) pause_ms = (uint64_t)REMOVAL_PAUSE_MS_MIN << removal->pauses;
    assert(pause_ms <= REMOVAL_PAUSE_MS_MAX);
    if (removal->pauses < UINT16_MAX) removal->pauses++;
    removal->retry_ns = now_ns + pause_ms * UINT64_C(1000000);
    removal->failed = 0;
}

void replica_removal_found(struct replica_removal *removal, uint64_t now_ns)
{
    memset(removal, 0, sizeof *removal);
    replica_removal_enter(removal, REMOVAL_FORGOTTEN);
    replica_removal_pause(removal, now_ns);
}

static enum replica_removal_action replica_removal_step_doomed(
    const struct replica_removal_seen *seen)
{
    if (seen->withdrawable) return REMOVAL_WITHDRAW;
    /* A tombstone before other entries of the replica would let those bring it back (REC-2). */
    if (seen->undurable || seen->leaving) return REMOVAL_WAIT;
    return REMOVAL_FORGET;
}

static enum replica_removal_action replica_removal_step_forgotten(
    const struct replica_removal *removal, const struct replica_removal_seen *seen, uint64_t now_ns)
{
    if (seen->writing) return REMOVAL_WAIT;
    if (seen->queued) return REMOVAL_DISCARD;
    if (now_ns < removal->retry_ns) return REMOVAL_WAIT;
    if (seen->files) return REMOVAL_CLOSE;
    return seen->turn ? REMOVAL_LIST : REMOVAL_WAIT;
}

enum replica_removal_action replica_removal_step(struct replica_removal *removal,
                                                 const struct replica_removal_seen *seen,
                                                 uint64_t now_ns)
{
    if (removal->flights > 0) return REMOVAL_WAIT;
    if (removal->failed) {
        replica_removal_enter(removal, REMOVAL_FORGOTTEN);
        replica_removal_pause(removal, now_ns);
        return REMOVAL_PAUSE;
    }
    switch ((enum replica_removal_phase)removal->phase) {
    case REMOVAL_DOOMED: return replica_removal_step_doomed(seen);
    case REMOVAL_FORGETTING: return REMOVAL_WAIT;
    case REMOVAL_FORGOTTEN: return replica_removal_step_forgotten(removal, seen, now_ns);
    case REMOVAL_LISTING:
    case REMOVAL_UNLINKING: return seen->names ? REMOVAL_UNLINK : REMOVAL_SYNC_FOLDER;
    case REMOVAL_FOLDER_SYNCING: return REMOVAL_PART;
    case REMOVAL_PARTING: return REMOVAL_SYNC_PARENT;
    case REMOVAL_PARENT_SYNCING: return REMOVAL_DROP;
    case REMOVAL_NONE:
    case REMOVAL_PHASES_COUNT: unreachable();
    }
    unreachable();
}

static enum replica_removal_phase replica_removal_phase_of(enum replica_removal_action action)
{
    switch (action) {
    case REMOVAL_FORGET: return REMOVAL_FORGETTING;
    case REMOVAL_LIST: return REMOVAL_LISTING;
    case REMOVAL_UNLINK: return REMOVAL_UNLINKING;
    case REMOVAL_SYNC_FOLDER: return REMOVAL_FOLDER_SYNCING;
    case REMOVAL_PART: return REMOVAL_PARTING;
    case REMOVAL_SYNC_PARENT: return REMOVAL_PARENT_SYNCING;
    default: unreachable();
    }
}

void replica_removal_move(struct replica_removal *removal, enum replica_removal_action action,
                          uint32_t flights)
{
    assert(removal->flights == 0);
    assert((action == REMOVAL_FORGET) == (flights == 0));
    replica_removal_enter(removal, replica_removal_phase_of(action));
    removal->flights = flights;
}

void replica_removal_forgotten(struct replica_removal *removal)
{
    assert(removal->phase == REMOVAL_FORGETTING);
    replica_removal_enter(removal, REMOVAL_FORGOTTEN);
}

int replica_removal_done(struct replica_removal *removal, enum status status)
{
    assert(removal->flights > 0);
    removal->flights--;
    /* Never made, or gone with an earlier attempt. */
    int absent = status == STATUS_FILE_NOT_FOUND && removal->phase == REMOVAL_FOLDER_SYNCING;
    if (status == STATUS_OK || absent) return 0;
    removal->failed = 1;
    return 1;
}
