/* faults/sim_environment.c: what befalls a node from outside, drawn by the seed: a clock that
 * jumps or stands still, a disk that is full, slow or fails a request, a host that does not answer.
 *
 * A failed write or sync under the store is the end of the process (the shard stops rather than
 * guess what is on the disk): the node ends it and starts again. */
#include "faults/sim_faults.h"

#include <string.h>

#include "cluster/sim_cluster.h"
#include "foundation/assert.h"

#define SIM_DAY_US INT64_C(86400000000)

static const enum sim_fault sim_request_faults[] = {SIM_WRITE_FAILED, SIM_SYNC_FAILED,
                                                    SIM_MISDIRECTED_WRITE};
static const enum sim_fault sim_start_faults[] = {
    SIM_READ_FAILED, SIM_SHORT_READ, SIM_MISDIRECTED_READ, SIM_WRITE_FAILED, SIM_SYNC_FAILED};

/* A tick of a node that is up, as the pump's turn has one. */
static void sim_tick(struct sim_node *node)
{
    struct sim_clock *clock = &node->cluster->clock;
    struct store_now now = node->cluster->now;
    struct store_statistics statistics;
    if (!node->up || node->over) return;
    store_tick(node->store, now);
    store_statistics(node->store, &statistics);
    if (!statistics.clock_uncertain && now.wall_us > clock->believed_us)
        clock->believed_us = now.wall_us;
}

/* The clocks go on, each as it can; then a tick of every node. */
void sim_pass(struct sim_cluster *cluster, uint64_t us)
{
    if (cluster->clock.stalled == 0) cluster->now.monotonic_ns += us * 1000;
    if (cluster->clock.stopped == 0) cluster->now.wall_us += (int64_t)us;
    for (uint32_t index = 0; index < cluster->nodes_count; index++)
        sim_tick(&cluster->nodes[index]);
}

static void sim_clock_jump(struct sim_node *node)
{
    static const int64_t jumps[] = {SIM_DAY_US, -SIM_DAY_US, 3650 * SIM_DAY_US, -3650 * SIM_DAY_US};
    struct sim_clock *clock = &node->cluster->clock;
    int64_t before = node->cluster->now.wall_us;
    if (clock->off_us != 0) {
        node->cluster->now.wall_us -= clock->off_us;
        clock->off_us = 0;
    } else {
        clock->off_us = jumps[random_below(&node->cluster->random, 4)];
        node->cluster->now.wall_us += clock->off_us;
    }
    node->storage.faults[SIM_CLOCK_JUMP]++;
    sim_trace(node, "clock", "from %lld to %lld", (long long)before,
              (long long)node->cluster->now.wall_us);
    sim_pass(node->cluster, 0);
    struct store_statistics statistics;
    store_statistics(node->store, &statistics);
    if (clock->off_us != 0 && !statistics.clock_uncertain)
        sim_fail(node, "the clock jumped by %lld us and is believed", (long long)clock->off_us);
}

static void sim_clock_act(struct sim_node *node)
{
    struct sim_clock *clock = &node->cluster->clock;
    uint64_t dice = random_below(&node->cluster->random, 4);
    if (dice < 2) {
        sim_clock_jump(node);
    } else if (dice == 2) {
        clock->stopped = (uint32_t)random_between(&node->cluster->random, 5, 60);
        node->storage.faults[SIM_CLOCK_STOP]++;
    } else {
        clock->stalled = (uint32_t)random_between(&node->cluster->random, 5, 60);
        node->storage.faults[SIM_MONOTONIC_STALL]++;
    }
}

static void sim_ambush_lay(struct sim_node *node, enum sim_fault kind, uint64_t within)
{
    struct sim_ambush *ambush = &node->storage.ambush;
    memset(ambush, 0, sizeof *ambush);
    ambush->kind = kind;
    ambush->at = node->storage.requests + 1 + random_below(&node->cluster->random, within);
}

void sim_ambush_start(struct sim_node *node)
{
    node->read_fault = 0;
    if (!(node->cluster->swarm & SIM_SWARM_REQUESTS)
        || !random_chance(&node->cluster->random, 1, 4))
        return;
    uint32_t which = (uint32_t)random_below(&node->cluster->random,
                                            sizeof sim_start_faults / sizeof *sim_start_faults);
    sim_ambush_lay(node, sim_start_faults[which], 40);
    node->read_fault = which < 3;
}

int sim_ambush_explains(const struct sim_node *node, enum status status)
{
    if (!node->storage.ambush.fired) return 0;
    switch (status) {
    case STATUS_IO_FAILED:
    case STATUS_IO_POISONED: return 1;
    /* A read that lied: refused, and the next start reads the truth. */
    case STATUS_JOURNAL_DAMAGED:
    case STATUS_CHECKPOINT_DAMAGED: return node->read_fault;
    default: return 0;
    }
}

/* A write that went elsewhere in its file. The disk said that all is well: a replica that lost
 * by it must be found out at the next start, once a later round tells that there was one. */
void sim_ambush_aftermath(struct sim_node *node)
{
    struct sim_ambush *ambush = &node->storage.ambush;
    if (!ambush->fired) return;
    if (ambush->kind == SIM_MISDIRECTED_WRITE) {
        sim_trace(node, "disk", "a write to %s went elsewhere", ambush->path);
        sim_may_stop_path(node, ambush->path);
        node->damage.may_refuse |= 2;
        for (uint32_t turn = 0; turn < 40 && !node->cluster->result->failed && !node->broken;
             turn++) {
            sim_pass(node->cluster, 30000);
            sim_io(node, 64);
        }
    }
    ambush->fired = 0;
}

void sim_surroundings_act(struct sim_node *node)
{
    uint32_t kind = 1u << random_below(&node->cluster->random, 6);
    if (!(node->cluster->swarm & kind)) return;
    switch ((enum sim_swarm)kind) {
    case SIM_SWARM_DAMAGE: break; /* comes with a crash */
    case SIM_SWARM_REQUESTS: {
        uint32_t which = (uint32_t)random_below(
            &node->cluster->random, sizeof sim_request_faults / sizeof *sim_request_faults);
        if (node->storage.ambush.at == 0) sim_ambush_lay(node, sim_request_faults[which], 10);
        break;
    }
    case SIM_SWARM_CLOCK: sim_clock_act(node); break;
    case SIM_SWARM_SPACE:
        node->storage.disk_full = (uint8_t)random_below(&node->cluster->random, 3);
        break;
    case SIM_SWARM_HOST:
        node->host.late = (uint32_t)random_between(&node->cluster->random, 10, 200);
        node->storage.faults[SIM_HOST_LATE]++;
        break;
    case SIM_SWARM_SLOW:
        node->slow = (uint32_t)random_between(&node->cluster->random, 5, 80);
        node->storage.faults[SIM_SLOW_DISK]++;
        break;
    }
}

/* All of it ends: what is left must come to rest, and work. */
void sim_surroundings_calm(struct sim_node *node)
{
    node->storage.disk_full = 0;
    node->storage.ambush.at = 0;
    node->slow = 0;
    node->host.late = 0;
    node->cluster->swarm = 0;
    node->cluster->clock.stopped = node->cluster->clock.stalled = 0;
    node->cluster->now.wall_us -= node->cluster->clock.off_us;
    node->cluster->clock.off_us = 0;
    store_tick(node->store, node->cluster->now);
    store_clock_confirm(node->store, node->cluster->now);
    sim_pass(node->cluster, 0);
}
