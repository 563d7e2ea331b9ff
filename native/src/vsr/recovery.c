/* vsr/recovery.c: a replica's log after a restart, from what the journal still shows.
 *
 * A checkpoint stands for all ops up to its own. Above it, prepares count in the order of their
 * parents, wherever and however often they lie in the journal: an op is taken when it is the next
 * one and its parent is the checksum before it.
 *
 * With one member every intact op was prepared by us alone, so it is committed: no member
 * can hold another. What is absent was never durable and is cut. What is known to have existed and
 * cannot be read stops the replica (V1). */
#include "vsr/vsr.h"

#include <string.h>

#include "foundation/assert.h"

static void vsr_recovery_prepare(struct vsr *vsr, const struct vsr_event *event,
                                 struct vsr_update *update)
{
    const struct entry_prepare *prepare = &event->prepare;
    if (prepare->op > vsr->seen_max) vsr->seen_max = prepare->op;
    if (prepare->op != vsr->op + 1) return;
    if (vsr->damaged_from != 0 && prepare->op >= vsr->damaged_from) return;
    if (memcmp(prepare->parent, vsr->checksum, 16) != 0) return;

    vsr->op = vsr->commit_max = prepare->op;
    vsr->append_time_us = prepare->append_time_us;
    memcpy(vsr->checksum, prepare->checksum, 16);
    update->committed = (struct vsr_committed){.first = prepare->op, .count = 1};
}

/* The latest counts, by epoch, then view; copies lie in any order. */
static void vsr_recovery_view(struct vsr *vsr, const struct entry_view_state *found)
{
    int newer = found->epoch != vsr->epoch ? found->epoch > vsr->epoch : found->view >= vsr->view;
    if (!newer) return;
    uint64_t node = vsr->members[vsr->self].node;
    vsr->epoch = found->epoch;
    vsr->view = found->view;
    vsr->log_view = found->log_view;
    vsr->members_count = (uint8_t)found->members_count;
    vsr->quorum = (uint8_t)(found->members_count / 2 + 1);
    memcpy(vsr->members, found->members, sizeof vsr->members);
    for (vsr->self = 0; vsr->members[vsr->self].node != node; vsr->self++)
        assert(vsr->self + 1 < vsr->members_count);
}

void vsr_recovery_step(struct vsr *vsr, const struct vsr_event *event, struct vsr_update *update)
{
    assert(vsr->status == VSR_RECOVERING);
    switch (event->kind) {
    case VSR_VIEW_FOUND: vsr_recovery_view(vsr, event->view_state); break;
    case VSR_CHECKPOINT_FOUND:
        assert(vsr->op == vsr->commit_min);
        if (event->op < vsr->op) break;
        vsr->op = vsr->commit_max = vsr->commit_min = event->op;
        if (event->op > vsr->seen_max) vsr->seen_max = event->op;
        vsr->append_time_us = vsr->executed_time_us = event->time_us;
        memcpy(vsr->checksum, event->checksum, 16);
        memcpy(vsr->executed_checksum, event->checksum, 16);
        break;
    case VSR_PREPARE_FOUND: vsr_recovery_prepare(vsr, event, update); break;
    case VSR_DAMAGE_FOUND:
        if (event->op > vsr->seen_max) vsr->seen_max = event->op;
        break;
    case VSR_ABSTAINED:
        vsr->damaged_from = event->op + 1;
        vsr->damaged_to = event->op_to;
        if (event->op_to > vsr->seen_max) vsr->seen_max = event->op_to;
        break;
    case VSR_RECOVERED:
        if (vsr->seen_max > vsr->op || vsr->damaged_from != 0) {
            update->damaged = vsr->damaged_from == 0;
            /* Metadata's intact ops are still on their way to the host: they are before the gap. */
            vsr->damaged_from = vsr->op + 1;
            if (vsr->damaged_to < vsr->seen_max) vsr->damaged_to = vsr->seen_max;
            vsr->status = VSR_DAMAGED;
        } else {
            vsr->status = VSR_NORMAL;
        }
        break;
    default: unreachable();
    }
}
