/* node/sim_run.c: a world is made from its seed, lives its steps, comes to rest, and is judged once
 * more. */
#include "node/sim_run.h"

#include <stdio.h>
#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "node/sim_world.h"
#include "store/files/replica_removal.h"

#define SIM_BEGIN_US INT64_C(1767225600000000)

static void sim_world_make(struct sim_world *world, uint64_t seed)
{
    random_init(&world->random, seed);
    world->now = (struct store_now){.monotonic_ns = 1000000000, .wall_us = SIM_BEGIN_US};
    size_t size = 3 * sim_storage_memory_bytes() + SIM_ROUNDS_MAX * sizeof(struct sim_round)
                  + SIM_JOURNAL_BYTES_MAX + SIM_BATCHES_MAX * sizeof(struct sim_batch)
                  + SIM_CLOSES_MAX * sizeof(struct sim_close)
                  + SIM_WAITS_MAX * sizeof(struct sim_wait) + 2 * 1048576 + 65536;
    enum status status = arena_open(&world->arena, size);
    assert(status == STATUS_OK);
    sim_storage_init(&world->storage, &world->arena, seed ^ 0x5bd1e995);
    sim_storage_init(&world->copy, &world->arena, seed);
    sim_storage_init(&world->backup, &world->arena, seed);
    world->rounds = arena_take(&world->arena, SIM_ROUNDS_MAX * sizeof *world->rounds);
    world->image = arena_take(&world->arena, SIM_JOURNAL_BYTES_MAX);
    assert(world->rounds && world->image);
    world->swarm = (uint32_t)random_below(&world->random, 64);
    world->clock.believed_us = SIM_BEGIN_US;
    world->batches = arena_take(&world->arena, SIM_BATCHES_MAX * sizeof *world->batches);
    world->closes = arena_take(&world->arena, SIM_CLOSES_MAX * sizeof *world->closes);
    world->waits = arena_take(&world->arena, SIM_WAITS_MAX * sizeof *world->waits);
    world->batch_bytes = arena_take(&world->arena, 1048576);
    world->read_bytes = arena_take(&world->arena, 1048576);
    assert(world->batches && world->closes && world->waits && world->batch_bytes
           && world->read_bytes);
    uint64_t extents = random_between(&world->random, 6, 12);
    uint64_t extent_bytes = 4096 * random_between(&world->random, 16, 40);
    world->config = (struct store_config){
        .shards_count = 1,
        .extent_bytes = extent_bytes,
        .journal_bytes = extents * extent_bytes + 8192,
        .prepares_bytes = 4096 * random_between(&world->random, 40, 100),
        .partitions_max = SIM_PARTITIONS_MAX,
        .producers_max = 256,
        .metering_window_s = 1,
        .snapshot_ops = (uint32_t)random_between(&world->random, 5, 40),
        .checkpoint_inline_bytes = random_chance(&world->random, 1, 3) ? 600 : 0,
        .cluster_id = "cl_sim",
        .node_id = "nd_sim",
        .node_incarnation = 1,
    };
    world->partitions_count = (uint32_t)random_between(&world->random, 2, SIM_PARTITIONS_MAX);
    for (uint32_t index = 0; index < world->partitions_count; index++) {
        struct sim_partition *partition = &world->partitions[index];
        partition->id = (struct engine_partition_id){
            .topic = 16 + index / 2, .created_revision = 5, .partition = index % 2};
        partition->broad = index % 2 == 0 && index + 1 < world->partitions_count
                           && random_chance(&world->random, 2, 3);
        partition->deleted = index % 2 == 1 && !world->partitions[index - 1].broad;
        partition->segment_bytes = random_between(&world->random, 8, 64) * 1024;
        if (index % 2) partition->segment_bytes = world->partitions[index - 1].segment_bytes;
        for (uint32_t producer = 0; producer < SIM_PRODUCERS_MAX; producer++) {
            bytes_put_u64(partition->producers[producer].id, index * 16 + producer + 1);
        }
    }
    world->op_now = 10;
    world->topic_next = 32;
}

/* Partitions that are whole have the same segments before and after a crash at rest. */
static void sim_segments_digest(struct sim_world *world, uint64_t digests[SIM_PARTITIONS_MAX])
{
    for (uint32_t index = 0; index < world->partitions_count; index++) {
        const struct sim_partition *partition = &world->partitions[index];
        digests[index] = 0;
        if (partition->deleted) continue;
        char prefix[IO_PATH_SIZE];
        int size =
            snprintf(prefix, sizeof prefix, "topics/%016llx-%llu-%u/",
                     (unsigned long long)partition->id.topic,
                     (unsigned long long)partition->id.created_revision, partition->id.partition);
        assert(size > 0);
        digests[index] = sim_storage_digest(&world->storage, prefix);
    }
}

/* Liveness: nothing befalls the node any more; within so many turns every partition that was not
 * stopped by name must take a batch and answer. */
static void sim_world_lives(struct sim_world *world)
{
    for (uint32_t index = 0; index < world->partitions_count; index++) {
        const struct sim_partition *partition = &world->partitions[index];
        uint64_t before = world->result->batches_acked;
        if (partition->deleted || partition->closing || partition->stopped) continue;
        for (uint32_t turn = 0; turn < 200 && !sim_ended(world); turn++) {
            if (world->result->batches_acked > before || partition->stopped) break;
            sim_client_produce(world, index);
            sim_settle(world);
            sim_host_meters(world);
            sim_host_trims(world);
        }
        if (sim_ended(world)) return;
        if (world->result->batches_acked == before && !partition->stopped)
            sim_fail(world, "partition %u: all is calm, and no batch is taken", index);
    }
}

/* A crash at rest changes no segment. */
static void sim_world_reopen(struct sim_world *world)
{
    uint64_t before[SIM_PARTITIONS_MAX];
    uint64_t after[SIM_PARTITIONS_MAX];
    uint64_t starts[SIM_PARTITIONS_MAX];
    for (uint32_t index = 0; index < world->partitions_count; index++)
        starts[index] = sim_trims_settled(world, index);
    sim_segments_digest(world, before);
    sim_crash(world);
    if (!sim_ended(world)) sim_settle(world); /* what a replay made again and a trim took goes */
    if (sim_ended(world)) return;
    sim_segments_digest(world, after);
    for (uint32_t index = 0; index < world->partitions_count && !sim_ended(world); index++) {
        /* Something may have come of age meanwhile. */
        if (starts[index] == UINT64_MAX || sim_trims_settled(world, index) != starts[index])
            continue;
        if (before[index] != after[index] && !world->partitions[index].may_stop)
            sim_fail(world, "partition %u: other segments than before the crash", index);
    }
}

static void sim_world_finish(struct sim_world *world)
{
    world->unlinks_fail = 0;
    sim_surroundings_calm(world);
    sim_settle(world); /* what fails still, fails before the longest pause */
    if (sim_ended(world)) return;
    world->now.monotonic_ns += REMOVAL_PAUSE_MS_MAX * UINT64_C(1000000);
    world->now.wall_us += REMOVAL_PAUSE_MS_MAX * INT64_C(1000);
    store_tick(world->store, world->now);
    sim_settle(world);
    if (!sim_ended(world)) sim_check_names(world);
    if (!sim_ended(world)) sim_world_reopen(world);
    if (!sim_ended(world) && world->batches_count < SIM_BATCHES_MAX) sim_world_lives(world);
    if (!sim_ended(world)) sim_check_meters(world);
    if (sim_ended(world)) return;
    store_checkpoint_all(world->store);
    sim_settle(world);
    if (!sim_ended(world)) sim_check_trims(world);
    if (!sim_ended(world)) sim_crash(world);
}

int sim_run(uint64_t seed, uint64_t steps, char *trace, size_t trace_room,
            struct sim_result *result)
{
    struct arena holder;
    memset(result, 0, sizeof *result);
    result->seed = seed;
    enum status status = arena_open(&holder, sizeof(struct sim_world) + 4096);
    assert(status == STATUS_OK);
    struct sim_world *world = arena_take(&holder, sizeof *world);
    world->result = result;
    world->trace = trace;
    world->trace_room = trace_room;
    sim_world_make(world, seed);
    sim_recover(world);
    for (; result->steps < steps && !sim_ended(world); result->steps++) sim_step(world);
    if (!sim_ended(world)) sim_world_finish(world);
    result->hash = world->hash * 31 + sim_storage_digest(&world->storage, "");
    result->simulated_us = world->now.monotonic_ns / 1000;
    memcpy(result->faults, world->storage.faults, sizeof result->faults);
    result->metadata_ops = world->host.ids_count;
    result->closes = world->closes_count;
    arena_close(&world->store_arena);
    arena_close(&world->arena);
    arena_close(&holder);
    return result->failed;
}
