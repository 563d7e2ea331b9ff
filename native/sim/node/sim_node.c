/* node/sim_node.c: a node starts, lets I/O complete or not, crashes, and recovers: twice, for
 * recovery is a function of the bytes. */
#include "node/sim_node.h"

#include <string.h>

#include "checker/sim_checker.h"
#include "cluster/sim_cluster.h"
#include "faults/sim_faults.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"

size_t sim_node_memory_bytes(void)
{
    return 3 * sim_storage_memory_bytes() + SIM_ROUNDS_MAX * sizeof(struct sim_round)
           + SIM_JOURNAL_BYTES_MAX + 8192;
}

static void sim_node_configure(struct sim_node *node)
{
    struct random *random = &node->cluster->random;
    uint64_t extents = random_between(random, 6, 12);
    uint64_t extent_bytes = 4096 * random_between(random, 16, 40);
    node->config = (struct store_config){
        .shards_count = 1,
        .extent_bytes = extent_bytes,
        .journal_bytes = extents * extent_bytes + 8192,
        .prepares_bytes = 4096 * random_between(random, 40, 100),
        .partitions_max = SIM_PARTITIONS_MAX,
        .producers_max = 256,
        .metering_window_s = 1,
        .snapshot_ops = (uint32_t)random_between(random, 5, 40),
        .checkpoint_inline_bytes = random_chance(random, 1, 3) ? 600 : 0,
        .cluster_id = SIM_CLUSTER_ID,
        .node_id = "nd_sim",
        .node_incarnation = 1,
    };
    if (node->index > 0) {
        char *end = node->config.node_id + strlen(node->config.node_id);
        *end = (char)('0' + node->index);
    }
}

void sim_node_init(struct sim_node *node, struct sim_cluster *cluster, uint32_t index,
                   uint64_t seed)
{
    struct arena *arena = &cluster->arena;
    *node =
        (struct sim_node){.cluster = cluster, .clients = &cluster->clients[index], .index = index};
    sim_storage_init(&node->storage, arena, seed ^ 0x5bd1e995);
    sim_storage_init(&node->copy, arena, seed);
    sim_storage_init(&node->backup, arena, seed);
    node->rounds = arena_take(arena, SIM_ROUNDS_MAX * sizeof *node->rounds);
    node->image = arena_take(arena, SIM_JOURNAL_BYTES_MAX);
    assert(node->rounds && node->image);
    sim_node_configure(node);
}

/* The next that completes, or an unlink that fails; NULL = none waits. */
struct io_request *sim_request(struct sim_node *node)
{
    struct io_request *head = node->storage.queue_head;
    int fails = head && node->unlinks_fail && head->operation == IO_UNLINK
                && strncmp(head->path, "topics/", 7) == 0;
    if (!fails) return sim_storage_step(&node->storage);
    node->storage.queue_head = head->next;
    if (!head->next) node->storage.queue_tail = NULL;
    head->next = NULL;
    head->status = STATUS_IO_FAILED;
    node->cluster->result->unlinks_failed++;
    return head;
}

/* At most so many requests complete; each completion is followed by a turn. */
void sim_io(struct sim_node *node, uint32_t requests_max)
{
    if (node->slow > 0) requests_max = 0;
    for (uint32_t count = 0; count < requests_max && !node->cluster->result->failed; count++) {
        struct io_request *request = sim_request(node);
        if (!request) break;
        store_complete(node->store, request);
        store_flush(node->store, node->cluster->now);
    }
    store_flush(node->store, node->cluster->now);
    enum status failed = store_failed(node->store);
    if (failed == STATUS_OK) return;
    const struct sim_ambush *ambush = &node->storage.ambush;
    int fresh = ambush->fired && ambush->kind == SIM_MISDIRECTED_WRITE;
    int astray = failed == STATUS_JOURNAL_DAMAGED && (fresh || (node->damage.may_refuse & 2) != 0);
    if (astray || sim_ambush_explains(node, failed))
        node->broken = 1;
    else
        sim_fail(node, "the store failed: %s", status_name(failed));
}

static enum status sim_open_store(struct sim_node *node, struct sim_storage *storage,
                                  struct arena *arena, struct store **store, char *detail,
                                  size_t detail_size)
{
    detail[0] = 0;
    enum status status = arena_open(arena, store_memory_bytes(&node->config) + 4096);
    assert(status == STATUS_OK);
    *store = store_allocate(&node->config, arena);
    assert(*store != NULL);
    return store_open(*store, sim_storage_io(storage), node->cluster->now, detail, detail_size);
}

/* Open the copy too: recovery is a function of the bytes. Then open what recovery left: it changes
 * nothing more. */
static void sim_recover_again(struct sim_node *node, const char *what)
{
    struct arena arena;
    struct store *store;
    char detail[256];
    enum status status = sim_open_store(node, &node->copy, &arena, &store, detail, sizeof detail);
    if (status == STATUS_JOURNAL_DAMAGED && (node->damage.may_refuse & 2)) {
        node->over = 1;
        node->cluster->result->refused++;
    } else if (status != STATUS_OK) {
        sim_fail(node, "%s: %s (%s)", what, status_name(status), detail);
    } else if (sim_storage_digest(&node->copy, "") != sim_storage_digest(&node->storage, "")) {
        sim_fail(node, "%s gives other bytes", what);
    }
    arena_close(&arena);
}

/* The start failed, as something that was done to it explains. 0 = nothing does. */
static int sim_start_failed(struct sim_node *node, enum status status)
{
    struct sim_storage *storage = &node->storage;
    if (storage->dead) {
        sim_trace(node, "crash", "in the middle of recovery");
        storage->faults[SIM_RECOVERY_CRASH]++;
    } else if (status == STATUS_STORAGE_FULL && storage->disk_full) {
        storage->faults[SIM_RECOVERY_FULL]++;
    } else if (!sim_ambush_explains(node, status)) {
        return sim_damage_undo(node, status);
    }
    sim_storage_crash(storage);
    return 1;
}

/* What may come between a start and its end, one thing at a time. */
static void sim_start_faults(struct sim_node *node)
{
    struct sim_storage *storage = &node->storage;
    storage->crash_at = 0;
    node->read_fault = 0;
    memset(&storage->ambush, 0, sizeof storage->ambush);
    if (random_chance(&node->cluster->random, 1, 4))
        storage->crash_at = storage->requests + random_below(&node->cluster->random, 60) + 1;
    else if ((node->cluster->swarm & SIM_SWARM_SPACE)
             && random_chance(&node->cluster->random, 1, 4))
        storage->disk_full = (uint8_t)random_between(&node->cluster->random, 1, 2);
    else if (!node->damage.done)
        sim_ambush_start(node);
}

/* A read that lied, and was believed: its replica may have stopped; of the journal nothing
 * may come of it but a refusal. */
static void sim_start_judge(struct sim_node *node)
{
    const struct sim_ambush *ambush = &node->storage.ambush;
    if (!ambush->fired) return;
    sim_trace(node, "disk", "%s in recovery: %s", sim_fault_name(ambush->kind), ambush->path);
    if (!node->read_fault) return;
    if (strcmp(ambush->path, "journal") == 0) return;
    node->damage.stops_max = UINT32_MAX;
    sim_may_stop_path(node, ambush->path);
}

void sim_recover(struct sim_node *node)
{
    char detail[256];
    for (uint32_t tries = 0;; tries++) {
        sim_storage_copy(&node->copy, &node->storage);
        if (tries < 8) sim_start_faults(node);
        enum status status = sim_open_store(node, &node->storage, &node->store_arena, &node->store,
                                            detail, sizeof detail);
        /* A start that needs nothing more of its last request has still died with it. */
        if (status == STATUS_OK && !node->storage.dead) break;
        arena_close(&node->store_arena);
        /* A write that went astray contradicts the chain: an operator's case. The tombstone may be
         * what it took: then a partition that is gone wants the room of one that came after it. */
        int refused = status == STATUS_JOURNAL_DAMAGED || status == STATUS_CHECKPOINT_DAMAGED
                      || status == STATUS_NO_MEMORY;
        if ((node->damage.may_refuse & 2) && refused) {
            node->over = 1;
            return;
        }
        if (!sim_start_failed(node, status)) {
            sim_fail(node, "recovery: %s (%s)", status_name(status), detail);
            return;
        }
    }
    node->storage.crash_at = 0;
    node->storage.ambush.at = 0;
    node->storage.disk_full = 0;
    node->up = 1;
    node->boots++;
    /* Without room segments are written later: bytes cannot be compared yet, what is read can. */
    struct store_statistics statistics;
    store_statistics(node->store, &statistics);
    int waits = statistics.storage_full != 0;
    node->storage.faults[SIM_RECOVERY_FULL] += (uint64_t)waits;
    if (!node->storage.ambush.fired && !waits)
        sim_recover_again(node, "recovery of the same bytes");
    sim_start_judge(node);
    int lied = node->storage.ambush.fired && node->read_fault;
    node->storage.ambush.fired = 0;
    if (node->cluster->result->failed) return;
    sim_storage_copy(&node->copy, &node->storage);
    memset(node->copy.slots, 0, sizeof node->copy.slots);
    node->config.formatted = 1;
    if (!lied && !waits) sim_recover_again(node, "a second recovery");
    if (sim_ended(node)) return;
    node->damage.may_refuse = 0;
    sim_pass(node->cluster, 0);
    sim_host_restore(node);
    sim_topics_restored(node);
    sim_damage_judge(node);
    sim_check_logs(node);
    sim_check_stored(node);
    sim_check_groups(node);
    node->cluster->hash = node->cluster->hash * 31 + sim_storage_digest(&node->storage, "");
    sim_trace(node, "recovery", "done, %llu requests so far",
              (unsigned long long)node->storage.requests);
}

void sim_crash(struct sim_node *node)
{
    struct store_statistics statistics;
    store_statistics(node->store, &statistics);
    node->cluster->result->extents_released += statistics.extents_released;
    node->cluster->result->segments_sealed += statistics.segments_sealed;
    sim_trace(node, "crash", "%llu rounds, %llu checkpoints, %llu extents released",
              (unsigned long long)statistics.rounds, (unsigned long long)statistics.checkpoints,
              (unsigned long long)statistics.extents_released);
    if (node->checkpointing && !store_idle(node->store))
        node->storage.faults[SIM_CHECKPOINT_CRASH]++;
    node->checkpointing = node->broken = 0;
    node->slow = 0;
    if (node->cluster->clock.off_us > 0) {
        /* A start has nothing to tell a clock that is ahead by: somebody set it right. */
        node->cluster->now.wall_us -= node->cluster->clock.off_us;
        node->cluster->clock.off_us = 0;
    }
    sim_storage_crash(&node->storage);
    node->up = 0;
    arena_close(&node->store_arena);
    sim_clients_crashed(node);
    sim_damage(node);
    sim_recover(node);
}

/* The store has failed as it must: the process ends, and another starts. */
void sim_broken(struct sim_node *node)
{
    const struct sim_ambush *ambush = &node->storage.ambush;
    if (ambush->fired && ambush->kind == SIM_MISDIRECTED_WRITE) {
        /* Found out at once; but no later round tells what went astray: an operator's case. */
        node->over = 1;
        node->cluster->result->refused++;
        return;
    }
    sim_trace(node, "disk", "a request for %s failed, the process ends", ambush->path);
    sim_crash(node);
}

void sim_settle(struct sim_node *node)
{
    for (uint32_t turn = 0; turn < 10000 && !node->cluster->result->failed; turn++) {
        sim_pass(node->cluster, 5000);
        sim_io(node, 64);
        if (node->broken) sim_broken(node);
        if (sim_ended(node)) return;
        sim_host_act(node, 64);
        sim_client_outcomes(node);
        if (store_idle(node->store) && node->storage.queue_head == NULL && !store_work(node->store))
            return;
    }
    sim_fail(node, "the store does not come to rest");
}
