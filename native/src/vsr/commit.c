/* vsr/commit.c: a durable op is our PrepareOk; a quorum of them commits; committed ops are executed
 * one by one. */
#include "vsr/vsr.h"

#include <string.h>

#include "foundation/assert.h"

void vsr_commit_persisted(struct vsr *vsr, const struct vsr_event *event, struct vsr_update *update)
{
    assert(vsr->status == VSR_NORMAL);
    assert(event->op > vsr->commit_max);
    assert(event->op <= vsr->op);

    /* Each member that has synced the op sent a PrepareOk. With one member ours is the quorum. */
    uint8_t prepare_oks = 1;
    if (prepare_oks < vsr->quorum) return;
    update->committed =
        (struct vsr_committed){.first = vsr->commit_max + 1, .count = event->op - vsr->commit_max};
    vsr->commit_max = event->op;
}

void vsr_commit_executed(struct vsr *vsr, const struct vsr_event *event)
{
    assert(event->op == vsr->commit_min + 1);
    assert(event->op <= vsr->commit_max);
    vsr->commit_min = event->op;
    vsr->executed_time_us = event->time_us;
    memcpy(vsr->executed_checksum, event->checksum, 16);
}

struct vsr_reached vsr_reached(const struct vsr *vsr)
{
    /* An answer leaves once its op is committed: a quorum has synced it. */
    if (!vsr) return (struct vsr_reached){.persisted = 1, .replicas = VSR_MEMBERS_FOUNDING};
    return (struct vsr_reached){.persisted = vsr->quorum, .replicas = vsr->members_count};
}
