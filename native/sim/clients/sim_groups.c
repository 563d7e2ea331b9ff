/* clients/sim_groups.c: consumer groups of a partition: commits, fences, the first data of an
 * assignment.
 *
 * What is known of a group is what was acknowledged; between sending and answer either may hold.
 * Checked at every answer: a frozen owner gets no data but still commits (G1), a closed one does
 * neither, a later one has to wait for its CLOSE, and data never leaves before InFlight is in the
 * log (G2): after a crash the group that got data is not asked to wait again. */
#include "clients/sim_clients.h"

#include "cluster/sim_cluster.h"
#include "faults/sim_faults.h"
#include "foundation/assert.h"

static struct sim_group *sim_group_pick(struct sim_node *node, uint32_t partition, uint32_t *which)
{
    *which = (uint32_t)random_below(&node->cluster->random, SIM_GROUPS_MAX);
    return &node->clients->partitions[partition].groups[*which];
}

static void sim_commit(struct sim_node *node, uint32_t index)
{
    uint32_t which;
    struct sim_group *group = sim_group_pick(node, index, &which);
    struct sim_partition *partition = &node->clients->partitions[index];
    if (group->commit_busy || group->fence_busy) return;
    uint64_t offset = random_below(&node->cluster->random, partition->end_offset + 1);
    uint64_t generation = group->generation;
    uint8_t kind = SIM_WAIT_COMMIT;
    if (group->generation > 0 && random_chance(&node->cluster->random, 1, 5)) {
        /* The owner before the last CLOSE, or one whose CLOSE has not come: refused. */
        generation += random_chance(&node->cluster->random, 1, 2) ? 1 : UINT64_MAX;
        kind = SIM_WAIT_STALE;
    }
    uint64_t token =
        sim_wait(node, kind, index, which, kind == SIM_WAIT_STALE ? generation : offset);
    enum status status =
        store_commit_offset(node->store, &partition->id, which + 1, generation, offset, token);
    if (status != STATUS_OK) {
        sim_unwait(node, token);
        return;
    }
    if (kind == SIM_WAIT_STALE) return;
    group->commit_busy = 1;
    group->committed_pending = offset;
}

static void sim_fence(struct sim_node *node, uint32_t index)
{
    uint32_t which;
    struct sim_group *group = sim_group_pick(node, index, &which);
    if (group->commit_busy || group->fence_busy) return;
    uint64_t target = group->generation + 1;
    int freeze = group->frozen < target && random_chance(&node->cluster->random, 1, 2);
    uint64_t token =
        sim_wait(node, freeze ? SIM_WAIT_FREEZE : SIM_WAIT_FENCE, index, which, target);
    const struct engine_group_fence fence = {.group = which + 1,
                                             .generation = target,
                                             .intent_op = ++node->clients->op_now,
                                             .kind =
                                                 freeze ? ENGINE_FENCE_FREEZE : ENGINE_FENCE_CLOSE};
    const struct engine_partition_id *id = &node->clients->partitions[index].id;
    if (store_group_fence(node->store, id, &fence, token) != STATUS_OK) {
        sim_unwait(node, token);
        return;
    }
    group->frozen_pending = target;
    if (freeze) return;
    group->fence_busy = 1;
    group->generation_pending = target;
}

static void sim_group_fetch(struct sim_node *node, uint32_t index)
{
    uint32_t which;
    struct sim_group *group = sim_group_pick(node, index, &which);
    uint64_t generation = group->generation;
    struct store_fetch fetch;
    store_fetch(node->store, &node->clients->partitions[index].id, 0, 1000, which + 1, generation,
                &fetch);
    if (sim_stopped(node, index, fetch.status)) return;
    int fenced = group->frozen > generation || group->generation > generation;
    int may_be_fenced = fenced || group->frozen_pending > generation;
    if (sim_closed(&node->clients->partitions[index], fetch.status)) return;
    switch (fetch.status) {
    case STATUS_TRUNCATED: /* it would have got data, were there any at 0 */
    case STATUS_OK:
        if (fenced) {
            sim_fail(node, "partition %u group %u: data for a frozen owner", index, which);
        }
        group->in_flight = generation;
        break;
    case STATUS_GROUP_PENDING:
        if (generation > 0 && group->in_flight == generation) {
            sim_fail(node, "partition %u group %u: data had left, its InFlight is gone", index,
                     which);
        }
        break;
    case STATUS_FENCED:
        if (!may_be_fenced)
            sim_fail(node, "partition %u group %u: its owner is fenced", index, which);
        break;
    case STATUS_BUSY:
    case STATUS_STORAGE_FULL:
    case STATUS_NO_MEMORY:
    case STATUS_PARTITIONS_FULL:
    case STATUS_REBUILDING: break;
    default: sim_fail(node, "group fetch: %s", status_name(fetch.status));
    }
}

void sim_group_act(struct sim_node *node, uint32_t partition)
{
    uint64_t dice = random_below(&node->cluster->random, 10);
    if (dice < 5)
        sim_commit(node, partition);
    else if (dice < 7)
        sim_fence(node, partition);
    else
        sim_group_fetch(node, partition);
}

static void sim_stale_outcome(struct sim_node *node, const struct sim_wait *wait,
                              const struct store_outcome *outcome)
{
    const struct sim_group *group = &node->clients->partitions[wait->partition].groups[wait->group];
    if (sim_closed(&node->clients->partitions[wait->partition], outcome->status)) return;
    if (outcome->status == STATUS_FENCED && wait->what < group->generation_pending) return;
    if (outcome->status == STATUS_FENCED && wait->what < group->generation) return;
    if (outcome->status == STATUS_GROUP_PENDING && wait->what > group->generation) return;
    sim_fail(node, "partition %u group %u: a commit of generation %llu under %llu: %s",
             wait->partition, wait->group, (unsigned long long)wait->what,
             (unsigned long long)group->generation, status_name(outcome->status));
}

void sim_group_outcome(struct sim_node *node, const struct sim_wait *wait,
                       const struct store_outcome *outcome)
{
    struct sim_group *group = &node->clients->partitions[wait->partition].groups[wait->group];
    int ok = outcome->status == STATUS_OK;
    switch ((enum sim_wait_kind)wait->kind) {
    case SIM_WAIT_STALE: sim_stale_outcome(node, wait, outcome); return;
    case SIM_WAIT_COMMIT:
        group->commit_busy = 0;
        if (ok) {
            group->committed = wait->what;
            group->has_committed = 1;
        }
        break;
    case SIM_WAIT_FREEZE:
        if (ok && wait->what > group->frozen) group->frozen = wait->what;
        break;
    case SIM_WAIT_FENCE:
        group->fence_busy = 0;
        if (ok) group->generation = wait->what;
        if (ok && wait->what > group->frozen) group->frozen = wait->what;
        break;
    case SIM_WAIT_PRODUCE:
    case SIM_WAIT_COMMAND:
    case SIM_WAIT_FLUSH:
    case SIM_WAIT_SEAL:
    case SIM_WAIT_PURGE:
    case SIM_WAIT_HOLD:
    case SIM_WAIT_BURIED: unreachable();
    }
    if (!ok && !sim_closed(&node->clients->partitions[wait->partition], outcome->status))
        sim_fail(node, "commit or fence: %s", status_name(outcome->status));
}

void sim_groups_crashed(struct sim_node *node)
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        for (uint32_t which = 0; which < SIM_GROUPS_MAX; which++) {
            struct sim_group *group = &node->clients->partitions[index].groups[which];
            maybe(group->frozen_pending > group->frozen); /* it may be in the log all the same */
            group->generation_pending = group->fence_busy ? group->generation_pending : 0;
        }
    }
}
