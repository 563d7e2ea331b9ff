/* cluster/sim_cluster.c: nodes made from one seed, and the loop of a seed: each step draws a node
 * and what happens to it. */
#include "cluster/sim_cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "checker/sim_checker.h"
#include "faults/sim_faults.h"
#include "foundation/assert.h"

#define SIM_BEGIN_US INT64_C(1767225600000000)

void sim_cluster_init(struct sim_cluster *cluster, uint64_t seed, uint32_t nodes_count)
{
    assert(nodes_count >= 1 && nodes_count <= SIM_NODES_MAX);
    random_init(&cluster->random, seed);
    cluster->now = (struct store_now){.monotonic_ns = 1000000000, .wall_us = SIM_BEGIN_US};
    cluster->clock.believed_us = SIM_BEGIN_US;
    cluster->nodes_count = nodes_count;
    size_t node_bytes = sim_node_memory_bytes() + sim_clients_memory_bytes();
    enum status status = arena_open(&cluster->arena, nodes_count * node_bytes + 65536);
    assert(status == STATUS_OK);
    cluster->swarm = (uint32_t)random_below(&cluster->random, 64);
    for (uint32_t index = 0; index < nodes_count; index++) {
        /* The disks of a cluster differ: each draws from a seed of its own. */
        sim_node_init(&cluster->nodes[index], cluster, index, seed + ((uint64_t)index << 32));
        sim_clients_init(&cluster->clients[index], &cluster->arena, &cluster->random);
    }
}

void sim_fail(struct sim_node *node, const char *format, ...)
{
    if (node->cluster->result->failed) return;
    node->cluster->result->failed = 1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(node->cluster->result->message, SIM_MESSAGE_SIZE, format, arguments);
    va_end(arguments);
    sim_trace(node, "failure", "%s", node->cluster->result->message);
}

void sim_trace(struct sim_node *node, const char *lane, const char *format, ...)
{
    if (!node->cluster->trace) return;
    struct sim_result *result = node->cluster->result;
    char line[512];
    unsigned long long now_us = node->cluster->now.monotonic_ns / 1000;
    int at = snprintf(line, sizeof line, "%llu|%s|", now_us, lane);
    if (node->cluster->nodes_count > 1)
        at += snprintf(line + at, sizeof line - (size_t)at, "node %u: ", node->index);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + at, sizeof line - (size_t)at - 2, format, arguments);
    va_end(arguments);
    size_t size = strlen(line);
    assert(more >= 0);
    line[size++] = '\n';
    if (size > node->cluster->trace_room - result->trace_size) return;
    memcpy(node->cluster->trace + result->trace_size, line, size);
    result->trace_size += size;
}

int sim_cluster_ended(const struct sim_cluster *cluster)
{
    if (cluster->result->failed) return 1;
    for (uint32_t index = 0; index < cluster->nodes_count; index++) {
        if (!cluster->nodes[index].over) return 0;
    }
    return 1;
}

static void sim_step_fetch(struct sim_node *node)
{
    uint32_t index =
        (uint32_t)random_below(&node->cluster->random, node->clients->partitions_count);
    const struct sim_partition *partition = &node->clients->partitions[index];
    if (partition->deleted || partition->stopped || partition->end_offset == 0) return;
    struct engine_partition_state state;
    if (!sim_trims_look(node, index, &state) || state.log_start >= partition->end_offset) return;
    uint64_t span = partition->end_offset - state.log_start;
    sim_check_fetch(node, index, state.log_start + random_below(&node->cluster->random, span));
}

static void sim_count_down(uint32_t *steps)
{
    if (*steps > 0) (*steps)--;
}

static void sim_step_end(struct sim_node *node)
{
    if (sim_ended(node)) return;
    sim_count_down(&node->slow);
    sim_count_down(&node->host.late);
    sim_count_down(&node->cluster->clock.stopped);
    sim_count_down(&node->cluster->clock.stalled);
    sim_io(node, 0);
    if (!node->broken) sim_ambush_aftermath(node);
    if (node->broken) sim_broken(node);
    if (sim_ended(node)) return;
    sim_client_outcomes(node);
    sim_host_meters(node);
    sim_host_counters(node);
    sim_host_trims(node);
}

static void sim_node_step(struct sim_node *node)
{
    uint64_t dice = random_below(&node->cluster->random, 1000);
    if (dice < 450)
        sim_client_act(node);
    else if (dice < 700)
        sim_io(node, (uint32_t)random_between(&node->cluster->random, 1, 3));
    else if (dice < 760)
        sim_io(node, 64);
    else if (dice < 860)
        sim_host_act(node, (uint32_t)random_between(&node->cluster->random, 1, 4));
    else if (dice < 940)
        sim_pass(node->cluster, random_between(&node->cluster->random, 10, 40000));
    else if (dice < 962)
        sim_step_fetch(node);
    else if (dice < 972)
        sim_topics_act(node);
    else if (dice < 974)
        sim_trims_act(node);
    else if (dice < 977) {
        store_checkpoint_all(node->store);
        node->checkpointing = 1;
    } else if (dice < 986)
        sim_surroundings_act(node);
    else if (dice < 988)
        sim_pass(node->cluster, random_between(&node->cluster->random, 100000, 3000000));
    else if (dice < 993 || (node->checkpointing && random_chance(&node->cluster->random, 1, 2)))
        sim_crash(node);
    sim_step_end(node);
}

void sim_cluster_step(struct sim_cluster *cluster)
{
    uint64_t index = 0;
    if (cluster->nodes_count > 1) index = random_below(&cluster->random, cluster->nodes_count);
    if (!cluster->nodes[index].over) sim_node_step(&cluster->nodes[index]);
}
