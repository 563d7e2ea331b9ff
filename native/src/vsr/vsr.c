/* vsr/vsr.c: dispatch, and what must hold after every step. */
#include "vsr/vsr.h"

#include <stddef.h>
#include <string.h>

#include "foundation/assert.h"
#include "foundation/machine.h"

static const struct machine_state vsr_states[VSR_STATUSES_COUNT] = {
    [VSR_RECOVERING] = {"recovering", 1u << VSR_NORMAL | 1u << VSR_DAMAGED},
    [VSR_NORMAL] = {"normal", 0},
    [VSR_DAMAGED] = {"damaged", 0},
};

void vsr_init(struct vsr *vsr, const struct vsr_founding *founding)
{
    *vsr = (struct vsr){.status = VSR_RECOVERING,
                        .members_count = VSR_MEMBERS_FOUNDING,
                        .quorum = VSR_MEMBERS_FOUNDING / 2 + 1,
                        .epoch = VSR_EPOCH_FOUNDING,
                        .release = founding->release,
                        .members = {founding->member}};
    memcpy(vsr->checksum, founding->identity, 16);
    memcpy(vsr->executed_checksum, founding->identity, 16);
}

struct entry_view_state vsr_view_state(const struct vsr *vsr)
{
    struct entry_view_state state = {.view = vsr->view,
                                     .log_view = vsr->log_view,
                                     .epoch = vsr->epoch,
                                     .members_count = vsr->members_count};
    memcpy(state.members, vsr->members, sizeof state.members);
    return state;
}

uint32_t vsr_tenure(const struct vsr *vsr)
{
    assert(vsr->self < vsr->members_count);
    return vsr->members[vsr->self].tenure;
}

static void vsr_invariant(const struct vsr *vsr)
{
    assert(vsr->commit_min <= vsr->commit_max);
    assert(vsr->commit_max <= vsr->op);
    assert(vsr->log_view <= vsr->view);
    assert(vsr->self < vsr->members_count);
    ergo(vsr->status == VSR_DAMAGED, vsr->damaged_from == vsr->op + 1);
}

void vsr_step(struct vsr *vsr, const struct vsr_event *event, struct vsr_update *update)
{
    struct machine machine;
    machine_init(&machine, vsr_states, VSR_STATUSES_COUNT, vsr->status);
    /* The prepare and its header are written where `journal` is set. */
    memset(update, 0, offsetof(struct vsr_update, prepare));
    switch (event->kind) {
    case VSR_REQUEST: vsr_prepare_request(vsr, event, update); break;
    case VSR_PERSISTED: vsr_commit_persisted(vsr, event, update); break;
    case VSR_EXECUTED: vsr_commit_executed(vsr, event); break;
    case VSR_VIEW_FOUND:
    case VSR_CHECKPOINT_FOUND:
    case VSR_PREPARE_FOUND:
    case VSR_DAMAGE_FOUND:
    case VSR_ABSTAINED:
    case VSR_RECOVERED: vsr_recovery_step(vsr, event, update); break;
    default: unreachable();
    }
    if (vsr->status != machine.current) machine_move(&machine, vsr->status);
    vsr_invariant(vsr);
}

const char *vsr_status_name(const struct vsr *vsr)
{
    assert(vsr->status < VSR_STATUSES_COUNT);
    return vsr_states[vsr->status].name;
}
