/* clients/sim_topics.c: topics live, grow, are sealed, deleted and made again under their names.
 *
 * Two partitions lie in a topic; the second may come later. Deleting goes the whole way (T3:
 * closing, sealed, every window acknowledged and equal to the log, gone) or is forced. What a topic
 * promised ends with it; what its successor of the same place promises begins anew. */
#include "clients/sim_clients.h"

#include <stdlib.h>
#include <string.h>

#include "checker/sim_checker.h"
#include "cluster/sim_cluster.h"
#include "foundation/assert.h"

static size_t topics_row(uint8_t *target, uint16_t kind, const struct sim_partition *partition,
                         uint32_t flags)
{
    struct engine_row_topic row = {.row = {.kind = kind, .size = sizeof row},
                                   .topic = partition->id.topic,
                                   .created_revision = partition->id.created_revision,
                                   .organization = 16,
                                   .project = 16,
                                   .partitions_count = partition->broad ? 2 : 1,
                                   .message_bytes_max = 1048576,
                                   .segment_bytes = partition->segment_bytes,
                                   .flags = flags,
                                   .retention_ms = partition->retention_ms,
                                   .retention_bytes = partition->retention_bytes,
                                   .policy_version = (uint64_t)partition->retention_ms};
    if (partition->closing) row.flags |= ENGINE_TOPIC_CLOSING;
    memcpy(target, &row, sizeof row);
    return sizeof row;
}

static void topics_send(struct sim_node *node, uint16_t kind, const struct sim_partition *partition,
                        uint32_t flags)
{
    uint8_t delta[sizeof(struct engine_row_topic)];
    size_t size = topics_row(delta, kind, partition, flags);
    enum status status = store_tables_apply(node->store, ++node->clients->op_now, delta, size);
    if (status != STATUS_OK) sim_fail(node, "tables: %s", status_name(status));
}

void sim_topics_restored(struct sim_node *node)
{
    uint8_t delta[SIM_PARTITIONS_MAX * sizeof(struct engine_row_topic)];
    size_t size = 0;
    for (uint32_t index = 0; index < node->clients->partitions_count; index += 2) {
        const struct sim_partition *partition = &node->clients->partitions[index];
        uint16_t kind = partition->deleted ? ENGINE_ROW_TOPIC_GONE : ENGINE_ROW_TOPIC;
        size += topics_row(delta + size, kind, partition, 0);
    }
    enum status status = store_tables_apply(node->store, ++node->clients->op_now, delta, size);
    if (status != STATUS_OK) sim_fail(node, "tables: %s", status_name(status));
    store_tables_complete(node->store, node->clients->op_now);
}

static uint32_t topics_end(const struct sim_node *node, uint32_t first)
{
    return first + 2 < node->clients->partitions_count ? first + 2
                                                       : node->clients->partitions_count;
}

static void topics_resize(struct sim_node *node, uint32_t first)
{
    uint64_t segment_bytes = random_between(&node->cluster->random, 8, 64) * 1024;
    for (uint32_t each = first; each < topics_end(node, first); each++)
        node->clients->partitions[each].segment_bytes = segment_bytes;
    struct sim_partition *partition = &node->clients->partitions[first];
    partition->retention_ms = partition->retention_bytes = 0;
    if (random_chance(&node->cluster->random, 1, 3))
        partition->retention_ms = (int64_t)random_between(&node->cluster->random, 200, 20000);
    if (random_chance(&node->cluster->random, 1, 3))
        partition->retention_bytes = (int64_t)random_between(&node->cluster->random, 20000, 200000);
    topics_send(node, ENGINE_ROW_TOPIC, &node->clients->partitions[first], 0);
}

static void topics_grow(struct sim_node *node, uint32_t first)
{
    if (node->clients->partitions[first].broad || first + 1 == node->clients->partitions_count)
        return;
    if (node->clients->partitions[first].closing) return;
    node->clients->partitions[first].broad = 1;
    node->clients->partitions[first + 1].deleted = 0;
    topics_send(node, ENGINE_ROW_TOPIC, &node->clients->partitions[first], 0);
    node->cluster->result->topics_grown++;
}

/* Every byte of the log stands in a window that the host has. */
static void topics_check_bill(struct sim_node *node, uint32_t index)
{
    sim_check_log(node, index);
    uint64_t bytes = 0;
    for (uint32_t each = 0; each < node->clients->closes_count; each++) {
        if (node->clients->closes[each].partition == index)
            bytes += node->clients->closes[each].bytes;
    }
    if (!node->cluster->result->failed && bytes != node->clients->partitions[index].log_bytes)
        sim_fail(node, "partition %u was sealed with %llu bytes billed, %llu in the log", index,
                 (unsigned long long)bytes,
                 (unsigned long long)node->clients->partitions[index].log_bytes);
}

static void topics_delete(struct sim_node *node, uint32_t first)
{
    int sealed = 1;
    for (uint32_t each = first; each < topics_end(node, first); each++)
        sealed &= node->clients->partitions[each].deleted || node->clients->partitions[each].sealed
                  || node->clients->partitions[each].stopped;
    for (uint32_t each = first; each < topics_end(node, first); each++) {
        struct sim_partition *partition = &node->clients->partitions[each];
        if (sealed && !partition->deleted && !partition->stopped) {
            for (uint32_t index = 0; index < node->clients->batches_count; index++)
                node->clients->batches[index].seen = 0;
            topics_check_bill(node, each);
        }
        partition->deleted = 1;
        partition->closing = partition->sealed = 0;
    }
    if (node->cluster->result->failed) return;
    topics_send(node, ENGINE_ROW_TOPIC_GONE, &node->clients->partitions[first], 0);
    node->unlinks_fail = random_chance(&node->cluster->random, 1, 3) != 0;
    sim_trace(node, "tables", "topic %llu is gone, %s",
              (unsigned long long)node->clients->partitions[first].id.topic,
              sealed ? "sealed" : "forced");
    if (sealed)
        node->cluster->result->topics_sealed++;
    else
        node->cluster->result->topics_forced++;
}

/* What was promised here ends. */
static void topics_bury(struct sim_node *node, uint32_t index)
{
    for (uint32_t each = 0; each < node->clients->batches_count; each++) {
        if (node->clients->batches[each].partition == index)
            node->clients->batches[each].partition = SIM_PARTITIONS_MAX;
    }
    for (uint32_t each = 0; each < node->clients->closes_count; each++) {
        if (node->clients->closes[each].partition == index)
            node->clients->closes[each].partition = SIM_PARTITIONS_MAX;
    }
    for (uint32_t each = 0; each < SIM_WAITS_MAX; each++) {
        struct sim_wait *wait = &node->clients->waits[each];
        if (wait->kind != 0 && wait->kind != SIM_WAIT_COMMAND && wait->partition == index)
            wait->kind = SIM_WAIT_BURIED;
    }
    struct sim_partition *partition = &node->clients->partitions[index];
    struct sim_partition fresh = {.id = partition->id, .segment_bytes = partition->segment_bytes};
    /* What a write that went astray destroyed in the journal may name no replica: then all stop,
     * those that came later too. */
    fresh.may_stop = (node->damage.may_refuse & 2) != 0;
    for (uint32_t which = 0; which < SIM_PRODUCERS_MAX; which++)
        memcpy(fresh.producers[which].id, partition->producers[which].id, 16);
    *partition = fresh;
}

static void topics_recreate(struct sim_node *node, uint32_t first)
{
    const struct sim_partition old = node->clients->partitions[first];
    uint64_t number = node->clients->topic_next++;
    for (uint32_t each = first; each < topics_end(node, first); each++) {
        topics_bury(node, each);
        node->clients->partitions[each].id.topic = number;
        node->clients->partitions[each].id.created_revision = node->clients->op_now + 1;
    }
    struct sim_partition *partition = &node->clients->partitions[first];
    partition->broad =
        first + 1 < node->clients->partitions_count && random_chance(&node->cluster->random, 1, 2);
    if (first + 1 < node->clients->partitions_count)
        node->clients->partitions[first + 1].deleted = !partition->broad;
    topics_send(node, ENGINE_ROW_TOPIC, partition, 0);
    topics_send(node, ENGINE_ROW_TOPIC_GONE, &old, ENGINE_TOPIC_RECREATED);
    struct engine_partition_state state;
    enum status status = store_describe(node->store, &old.id, &state);
    if (status != STATUS_RECREATED)
        sim_fail(node, "a handle of an earlier revision is answered %s", status_name(status));
    sim_trace(node, "tables", "topic %llu follows %llu", (unsigned long long)number,
              (unsigned long long)old.id.topic);
    node->cluster->result->topics_recreated++;
}

static void topics_seal(struct sim_node *node, uint32_t first)
{
    int left = 0;
    for (uint32_t each = first; each < topics_end(node, first); each++) {
        struct sim_partition *partition = &node->clients->partitions[each];
        if (partition->deleted || partition->sealed || partition->stopped) continue;
        left = 1;
        sim_client_seal(node, each);
    }
    if (!left) topics_delete(node, first);
}

void sim_topics_act(struct sim_node *node)
{
    uint32_t first =
        (uint32_t)random_below(&node->cluster->random, node->clients->partitions_count) / 2 * 2;
    struct sim_partition *partition = &node->clients->partitions[first];
    uint64_t dice = random_below(&node->cluster->random, 12);
    if (dice == 0) {
        node->unlinks_fail = 0;
    } else if (partition->deleted) {
        if (dice < 8) topics_recreate(node, first);
    } else if (partition->closing) {
        topics_seal(node, first);
    } else if (dice < 6) {
        topics_resize(node, first);
    } else if (dice < 8) {
        topics_grow(node, first);
    } else if (first >= 2 && dice < 11) {
        partition->closing = 1;
        partition->seal_intent = node->clients->op_now + 1;
        if (partition->broad) {
            node->clients->partitions[first + 1].closing = 1;
            node->clients->partitions[first + 1].seal_intent = partition->seal_intent;
        }
        topics_send(node, ENGINE_ROW_TOPIC, partition, 0);
    } else if (first >= 2) {
        topics_delete(node, first);
    }
}

static int topics_damaged(const struct sim_node *node)
{
    static const enum sim_fault kinds[] = {
        SIM_MISDIRECTED_WRITE, SIM_MISDIRECTED_READ,  SIM_ROT_WITNESSED,
        SIM_ROT_LAST,          SIM_ROT_EXTENT_HEADER, SIM_ROT_FILE_HEADER,
    };
    uint64_t fired = 0;
    for (uint32_t index = 0; index < sizeof kinds / sizeof *kinds; index++)
        fired += node->storage.faults[kinds[index]];
    return fired > 0;
}

/* Removals are over: no file is left of a topic that is not there. Only damage can remove from the
 * journal every entry of a partition before its topic was deleted: then the owner of these files is
 * unknown. */
void sim_check_names(struct sim_node *node)
{
    if (topics_damaged(node)) return;
    for (uint32_t index = 0; index < node->storage.names_count; index++) {
        const struct sim_name *name = &node->storage.names[index];
        if (name->file == 0 || strncmp(name->path, "topics/", 7) != 0) continue;
        uint64_t topic = strtoull(name->path + 7, NULL, 16);
        int lives = 0;
        for (uint32_t each = 0; each < node->clients->partitions_count; each++) {
            const struct sim_partition *partition = &node->clients->partitions[each];
            lives |= !partition->deleted && partition->id.topic == topic;
        }
        if (!lives) sim_fail(node, "%s is left of a topic that is gone", name->path);
    }
}
