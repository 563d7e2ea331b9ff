/* cluster/sim_run.c: a cluster is made from its seed, lives its steps, comes to rest, and is
 * checked once more. */
#include "cluster/sim_run.h"

#include <stdio.h>
#include <string.h>

#include "checker/sim_checker.h"
#include "cluster/sim_cluster.h"
#include "faults/sim_faults.h"
#include "foundation/assert.h"
#include "store/files/replica_removal.h"

/* Partitions that are whole have the same segments before and after a crash at rest. */
static void sim_segments_digest(struct sim_node *node, uint64_t digests[SIM_PARTITIONS_MAX])
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        const struct sim_partition *partition = &node->clients->partitions[index];
        digests[index] = 0;
        if (partition->deleted) continue;
        char prefix[IO_PATH_SIZE];
        int size =
            snprintf(prefix, sizeof prefix, "topics/%016llx-%llu-%u-",
                     (unsigned long long)partition->id.topic,
                     (unsigned long long)partition->id.created_revision, partition->id.partition);
        assert(size > 0);
        digests[index] = sim_storage_digest(&node->storage, prefix);
    }
}

/* Liveness: no more faults are injected; within so many turns every partition that was not
 * stopped after damage must accept a batch and answer. */
static void sim_node_lives(struct sim_node *node)
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        const struct sim_partition *partition = &node->clients->partitions[index];
        uint64_t before = node->cluster->result->batches_acked;
        if (partition->deleted || partition->closing || partition->stopped) continue;
        for (uint32_t turn = 0; turn < 200 && !sim_ended(node); turn++) {
            if (node->cluster->result->batches_acked > before || partition->stopped) break;
            sim_client_produce(node, index);
            sim_settle(node);
            sim_host_meters(node);
            sim_host_trims(node);
        }
        if (sim_ended(node)) return;
        if (node->cluster->result->batches_acked == before && !partition->stopped)
            sim_fail(node, "partition %u: all is calm, and no batch is taken", index);
    }
}

/* A crash at rest changes no segment. */
static void sim_node_reopen(struct sim_node *node)
{
    uint64_t before[SIM_PARTITIONS_MAX];
    uint64_t after[SIM_PARTITIONS_MAX];
    uint64_t starts[SIM_PARTITIONS_MAX];
    for (uint32_t index = 0; index < node->clients->partitions_count; index++)
        starts[index] = sim_trims_settled(node, index);
    sim_segments_digest(node, before);
    sim_crash(node);
    if (!sim_ended(node)) sim_settle(node); /* what a replay made again and a trim took goes */
    if (sim_ended(node)) return;
    sim_segments_digest(node, after);
    for (uint32_t index = 0; index < node->clients->partitions_count && !sim_ended(node); index++) {
        /* Something may have come of age meanwhile. */
        if (starts[index] == UINT64_MAX || sim_trims_settled(node, index) != starts[index])
            continue;
        if (before[index] != after[index] && !node->clients->partitions[index].may_stop)
            sim_fail(node, "partition %u: other segments than before the crash", index);
    }
}

static void sim_node_finish(struct sim_node *node)
{
    node->unlinks_fail = 0;
    sim_surroundings_calm(node);
    sim_settle(node); /* what fails still, fails before the longest pause */
    if (sim_ended(node)) return;
    node->cluster->now.monotonic_ns += REMOVAL_PAUSE_MS_MAX * UINT64_C(1000000);
    node->cluster->now.wall_us += REMOVAL_PAUSE_MS_MAX * INT64_C(1000);
    store_tick(node->store, node->cluster->now);
    sim_settle(node);
    if (!sim_ended(node)) sim_check_names(node);
    if (!sim_ended(node)) sim_node_reopen(node);
    if (!sim_ended(node) && node->clients->batches_count < SIM_BATCHES_MAX) sim_node_lives(node);
    if (!sim_ended(node)) sim_check_meters(node);
    if (sim_ended(node)) return;
    store_checkpoint_all(node->store);
    sim_settle(node);
    if (!sim_ended(node)) sim_check_trims(node);
    if (!sim_ended(node)) sim_crash(node);
}

static void sim_result_sum(struct sim_cluster *cluster)
{
    struct sim_result *result = cluster->result;
    result->hash = cluster->hash;
    result->simulated_us = cluster->now.monotonic_ns / 1000;
    for (uint32_t index = 0; index < cluster->nodes_count; index++) {
        struct sim_node *node = &cluster->nodes[index];
        result->hash = result->hash * 31 + sim_storage_digest(&node->storage, "");
        for (uint32_t fault = 0; fault < SIM_FAULTS_COUNT; fault++)
            result->faults[fault] += node->storage.faults[fault];
        result->recoveries += node->boots;
        result->metadata_ops += node->host.ids_count;
        result->closes += node->clients->closes_count;
    }
}

int sim_run(uint64_t seed, uint32_t nodes_count, uint64_t steps, char *trace, size_t trace_room,
            struct sim_result *result)
{
    struct arena holder;
    memset(result, 0, sizeof *result);
    result->seed = seed;
    enum status status = arena_open(&holder, sizeof(struct sim_cluster) + 4096);
    assert(status == STATUS_OK);
    struct sim_cluster *cluster = arena_take(&holder, sizeof *cluster);
    cluster->result = result;
    cluster->trace = trace;
    cluster->trace_room = trace_room;
    sim_cluster_init(cluster, seed, nodes_count);
    for (uint32_t index = 0; index < nodes_count && !result->failed; index++)
        sim_recover(&cluster->nodes[index]);
    for (; result->steps < steps && !sim_cluster_ended(cluster); result->steps++)
        sim_cluster_step(cluster);
    for (uint32_t index = 0; index < nodes_count && !result->failed; index++) {
        if (!cluster->nodes[index].over) sim_node_finish(&cluster->nodes[index]);
    }
    sim_result_sum(cluster);
    for (uint32_t index = 0; index < nodes_count; index++)
        arena_close(&cluster->nodes[index].store_arena);
    arena_close(&cluster->arena);
    arena_close(&holder);
    return result->failed;
}
