/* clients/sim_host.c: the host beside shard 0: a small metadata machine (the list of commands it
 * ran), tables, and meter closes. */
#include "clients/sim_clients.h"

#include <string.h>

#include "cluster/sim_cluster.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"

static void sim_host_run(struct sim_node *node, uint64_t op, const uint8_t *command, size_t size)
{
    struct sim_host *host = &node->host;
    if (op != host->op + 1)
        sim_fail(node, "metadata op %llu after %llu", (unsigned long long)op,
                 (unsigned long long)host->op);
    if (size < 8) sim_fail(node, "a metadata command is cut");
    host->op = op;
    uint64_t id = bytes_get_u64(command);
    if (host->ids_count > 0 && id <= host->ids[host->ids_count - 1])
        sim_fail(node, "metadata commands out of order");
    assert(host->ids_count < SIM_COMMANDS_MAX);
    host->ids[host->ids_count++] = id;
}

/* A snapshot is due: given, or refused by one side or the other. Then it is asked for again. */
static void sim_host_snapshot(struct sim_node *node, uint64_t due)
{
    struct sim_host *host = &node->host;
    const uint8_t *ids = (const uint8_t *)host->ids;
    if (due != host->op)
        sim_fail(node, "a snapshot of op %llu is due at %llu", (unsigned long long)due,
                 (unsigned long long)host->op);
    if ((node->cluster->swarm & SIM_SWARM_HOST) && random_chance(&node->cluster->random, 1, 4)) {
        int large = random_chance(&node->cluster->random, 1, 2);
        enum status refused = store_metadata_snapshot(node->store, due, ids,
                                                      large ? ENGINE_FRAME_SIZE_MAX + 1ULL : 0);
        if (refused != (large ? STATUS_MESSAGE_TOO_LARGE : STATUS_INVALID))
            sim_fail(node, "an impossible snapshot: %s", status_name(refused));
        node->storage.faults[SIM_SNAPSHOT_REFUSED]++;
        return;
    }
    enum status status =
        store_metadata_snapshot(node->store, due, ids, host->ids_count * sizeof *host->ids);
    if (status != STATUS_OK && status != STATUS_BUSY)
        sim_fail(node, "snapshot: %s", status_name(status));
    sim_trace(node, "metadata", "snapshot of op %llu", (unsigned long long)due);
}

/* Metadata that was stopped says so, and takes no more commands. */
static int sim_host_stopped(struct sim_node *node)
{
    struct sim_host *host = &node->host;
    if (!host->may_stop) return 0;
    /* A command that is too large anyhow: refused for one reason or the other. */
    uint8_t nothing = 0;
    enum status status = store_metadata_submit(node->store, &nothing, UINT32_MAX, SIM_WAITS_MAX);
    if (host->stopped && status != STATUS_DAMAGED)
        sim_fail(node, "metadata was stopped and forgot it: %s", status_name(status));
    host->stopped = status == STATUS_DAMAGED;
    return host->stopped;
}

/* Take at most so many ops, run them, answer; give a snapshot when one is due. */
void sim_host_act(struct sim_node *node, uint32_t ops_max)
{
    struct sim_host *host = &node->host;
    if (host->late > 0) return;
    for (uint32_t count = 0; count < ops_max && !node->cluster->result->failed; count++) {
        uint64_t op;
        int64_t append_time_us;
        const uint8_t *command;
        size_t size;
        if (!store_metadata_next(node->store, &op, &append_time_us, &command, &size)) break;
        sim_host_run(node, op, command, size);
        uint8_t result[8];
        bytes_put_u64(result, host->ids[host->ids_count - 1]);
        uint64_t due;
        int snapshot = store_metadata_snapshot_due(node->store, &due);
        enum status status = store_metadata_applied(node->store, op, result, sizeof result);
        if (status != STATUS_OK) sim_fail(node, "applied: %s", status_name(status));
        if (snapshot) sim_host_snapshot(node, due);
        sim_client_outcomes(node);
    }
}

/* After a restart: the snapshot, then every op above it, and all that was acknowledged is among
 * them. */
void sim_host_restore(struct sim_node *node)
{
    struct sim_host *host = &node->host;
    uint64_t last;
    host->late = 0;
    const uint8_t *snapshot;
    size_t size;
    store_metadata_recovery(node->store, &host->op, &snapshot, &size, &last);
    host->ids_count = size / sizeof *host->ids;
    assert(host->ids_count <= SIM_COMMANDS_MAX);
    memcpy(host->ids, snapshot, size);
    store_metadata_recovered(node->store);
    while (host->op < last && !node->cluster->result->failed) {
        uint64_t before = host->op;
        sim_host_act(node, 1);
        if (host->op == before)
            sim_fail(node, "metadata op %llu is not handed out", (unsigned long long)before + 1);
    }
    if (node->cluster->result->failed || sim_host_stopped(node)) return;
    uint64_t highest = host->ids_count > 0 ? host->ids[host->ids_count - 1] : 0;
    if (highest < host->acked_last) {
        sim_fail(node, "metadata command %llu was acknowledged and is lost",
                 (unsigned long long)host->acked_last);
    }
    if (host->sent < highest) sim_fail(node, "a metadata command from nowhere");
    /* Commands that were sent and are gone will not come back. */
    host->sent = host->sent > highest ? host->sent : highest;
}

static uint32_t sim_host_partition(const struct sim_node *node,
                                   const struct engine_partition_id *id)
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        const struct sim_partition *partition = &node->clients->partitions[index];
        if (!partition->deleted && memcmp(&partition->id, id, sizeof *id) == 0) return index;
    }
    return SIM_PARTITIONS_MAX;
}

/* A close comes until it is acknowledged, always the same. Some acknowledgements get lost. */
void sim_host_meters(struct sim_node *node)
{
    struct engine_meter_close close;
    struct engine_meter_sum sums[256];
    while (store_meter_next(node->store, &close, sums, 256)) {
        struct sim_close own = {
            .sequence = close.sequence, .from_op = close.from_op, .to_op = close.to_op};
        own.partition = sim_host_partition(node, &close.id);
        if (own.partition == SIM_PARTITIONS_MAX) continue; /* gone meanwhile */
        for (uint32_t index = 0; index < close.sums_count; index++) {
            own.bytes += sums[index].ingress_bytes;
            own.records += sums[index].records;
        }
        struct sim_close *known = NULL;
        struct sim_close *previous = NULL;
        for (uint32_t index = 0; index < node->clients->closes_count; index++) {
            struct sim_close *each = &node->clients->closes[index];
            if (each->partition != own.partition) continue;
            if (each->sequence == own.sequence) known = each;
            if (each->sequence + 1 == own.sequence) previous = each;
        }
        if (known && memcmp(known, &own, sizeof own) != 0)
            sim_fail(node, "close %llu came again and differs", (unsigned long long)own.sequence);
        if (!known) {
            if (own.sequence > 1 && !previous)
                sim_fail(node, "close %llu without the one before",
                         (unsigned long long)own.sequence);
            if (previous && own.from_op != previous->to_op + 1)
                sim_fail(node, "closes are not contiguous");
            assert(node->clients->closes_count < SIM_CLOSES_MAX);
            node->clients->closes[node->clients->closes_count++] = own;
        }
        if (random_chance(&node->cluster->random, 4, 5))
            (void)store_meter_ack(node->store, &close.id, close.sequence);
    }
}

void sim_host_counters(struct sim_node *node)
{
    struct engine_counter row;
    int64_t end_us = store_window_us(node->store);
    store_stored_turn(node->store);
    while (end_us > 0 && store_stored_next(node->store, 0, 0, end_us, &row)) {
        int known = row.topic != 0 && row.created_revision != 0;
        int rises = row.delta > 0 && row.delta <= row.cumulative;
        if (!known || !rises || row.window_start_us >= end_us || row.principal != 0)
            sim_fail(node, "topic %llu stored %llu byte-seconds of %llu",
                     (unsigned long long)row.topic, (unsigned long long)row.delta,
                     (unsigned long long)row.cumulative);
    }
}
