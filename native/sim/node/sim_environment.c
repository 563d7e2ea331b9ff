/* node/sim_environment.c: what befalls a node from outside, drawn by the seed: a clock that
 * jumps or stands still, a disk that is full, slow or fails a request, a host that does not answer.
 *
 * A failed write or sync under the store is the end of the process (the shard stops rather than
 * guess what is on the disk): the world ends it and starts again. */
#include "node/sim_world.h"

#include <string.h>

#include "foundation/assert.h"

#define SIM_DAY_US INT64_C(86400000000)

static const enum sim_fault sim_request_faults[] = {SIM_WRITE_FAILED, SIM_SYNC_FAILED,
                                                    SIM_MISDIRECTED_WRITE};
static const enum sim_fault sim_start_faults[] = {
    SIM_READ_FAILED, SIM_SHORT_READ, SIM_MISDIRECTED_READ, SIM_WRITE_FAILED, SIM_SYNC_FAILED};

/* The clocks go on, each as it can; then a tick, as the pump's turn has one. */
void sim_pass(struct sim_world *world, uint64_t us)
{
    struct sim_clock *clock = &world->clock;
    if (clock->stalled == 0) world->now.monotonic_ns += us * 1000;
    if (clock->stopped == 0) world->now.wall_us += (int64_t)us;
    store_tick(world->store, world->now);
    struct store_statistics statistics;
    store_statistics(world->store, &statistics);
    if (!statistics.clock_uncertain && world->now.wall_us > clock->believed_us)
        clock->believed_us = world->now.wall_us;
}

static void sim_clock_jump(struct sim_world *world)
{
    static const int64_t jumps[] = {SIM_DAY_US, -SIM_DAY_US, 3650 * SIM_DAY_US, -3650 * SIM_DAY_US};
    struct sim_clock *clock = &world->clock;
    int64_t before = world->now.wall_us;
    if (clock->off_us != 0) {
        world->now.wall_us -= clock->off_us;
        clock->off_us = 0;
    } else {
        clock->off_us = jumps[random_below(&world->random, 4)];
        world->now.wall_us += clock->off_us;
    }
    world->storage.faults[SIM_CLOCK_JUMP]++;
    sim_trace(world, "clock", "from %lld to %lld", (long long)before,
              (long long)world->now.wall_us);
    sim_pass(world, 0);
    struct store_statistics statistics;
    store_statistics(world->store, &statistics);
    if (clock->off_us != 0 && !statistics.clock_uncertain)
        sim_fail(world, "the clock jumped by %lld us and is believed", (long long)clock->off_us);
}

static void sim_clock_act(struct sim_world *world)
{
    struct sim_clock *clock = &world->clock;
    uint64_t dice = random_below(&world->random, 4);
    if (dice < 2) {
        sim_clock_jump(world);
    } else if (dice == 2) {
        clock->stopped = (uint32_t)random_between(&world->random, 5, 60);
        world->storage.faults[SIM_CLOCK_STOP]++;
    } else {
        clock->stalled = (uint32_t)random_between(&world->random, 5, 60);
        world->storage.faults[SIM_MONOTONIC_STALL]++;
    }
}

static void sim_ambush_lay(struct sim_world *world, enum sim_fault kind, uint64_t within)
{
    struct sim_ambush *ambush = &world->storage.ambush;
    memset(ambush, 0, sizeof *ambush);
    ambush->kind = kind;
    ambush->at = world->storage.requests + 1 + random_below(&world->random, within);
}

void sim_ambush_start(struct sim_world *world)
{
    world->read_fault = 0;
    if (!(world->swarm & SIM_SWARM_REQUESTS) || !random_chance(&world->random, 1, 4)) return;
    uint32_t which =
        (uint32_t)random_below(&world->random, sizeof sim_start_faults / sizeof *sim_start_faults);
    sim_ambush_lay(world, sim_start_faults[which], 40);
    world->read_fault = which < 3;
}

int sim_ambush_explains(const struct sim_world *world, enum status status)
{
    if (!world->storage.ambush.fired) return 0;
    switch (status) {
    case STATUS_IO_FAILED:
    case STATUS_IO_POISONED: return 1;
    /* A read that lied: refused, and the next start reads the truth. */
    case STATUS_JOURNAL_DAMAGED:
    case STATUS_CHECKPOINT_DAMAGED: return world->read_fault;
    default: return 0;
    }
}

/* A write that went elsewhere in its file. The disk said that all is well: a group that lost by it
 * must be found out at the next start, once a later round tells that there was one. */
void sim_ambush_aftermath(struct sim_world *world)
{
    struct sim_ambush *ambush = &world->storage.ambush;
    if (!ambush->fired) return;
    if (ambush->kind == SIM_MISDIRECTED_WRITE) {
        sim_trace(world, "disk", "a write to %s went elsewhere", ambush->path);
        sim_may_stop_path(world, ambush->path);
        world->damage.may_refuse |= 2;
        for (uint32_t turn = 0; turn < 40 && !world->result->failed && !world->broken; turn++) {
            sim_pass(world, 30000);
            sim_io(world, 64);
        }
    }
    ambush->fired = 0;
}

void sim_surroundings_act(struct sim_world *world)
{
    uint32_t kind = 1u << random_below(&world->random, 6);
    if (!(world->swarm & kind)) return;
    switch ((enum sim_swarm)kind) {
    case SIM_SWARM_DAMAGE: break; /* comes with a crash */
    case SIM_SWARM_REQUESTS: {
        uint32_t which = (uint32_t)random_below(&world->random, sizeof sim_request_faults
                                                                    / sizeof *sim_request_faults);
        if (world->storage.ambush.at == 0) sim_ambush_lay(world, sim_request_faults[which], 10);
        break;
    }
    case SIM_SWARM_CLOCK: sim_clock_act(world); break;
    case SIM_SWARM_SPACE:
        world->storage.disk_full = (uint8_t)random_below(&world->random, 3);
        break;
    case SIM_SWARM_HOST:
        world->host.late = (uint32_t)random_between(&world->random, 10, 200);
        world->storage.faults[SIM_HOST_LATE]++;
        break;
    case SIM_SWARM_SLOW:
        world->slow = (uint32_t)random_between(&world->random, 5, 80);
        world->storage.faults[SIM_SLOW_DISK]++;
        break;
    }
}

/* All of it ends: what is left must come to rest, and work. */
void sim_surroundings_calm(struct sim_world *world)
{
    world->storage.disk_full = 0;
    world->storage.ambush.at = 0;
    world->slow = 0;
    world->host.late = 0;
    world->swarm = 0;
    world->clock.stopped = world->clock.stalled = 0;
    world->now.wall_us -= world->clock.off_us;
    world->clock.off_us = 0;
    store_tick(world->store, world->now);
    store_clock_confirm(world->store, world->now);
    sim_pass(world, 0);
}
