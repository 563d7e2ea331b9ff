#include "store/registry.h"

#include <string.h>

#include "batch/batch.h"
#include "catalog/gone_topics.h"
#include "catalog/owner.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"
#include "store/accounting/retention.h"
#include "store/accounting/shard_records.h"
#include "store/accounting/storage_meter.h"
#include "store/accounting/usage_windows.h"
#include "store/checkpoint/live_entries.h"
#include "store/files/open_files.h"
#include "store/files/retire.h"
#include "store/files/segment_writer.h"
#include "store/files/trim.h"
#include "store/outbox.h"
#include "store/state.h"

enum {
    TOPICS_MAX = 32768,
    SEGMENT_SHARE = 8,        /* a segment spans an eighth of what the topic keeps .. */
    SEGMENT_US_MIN = 1000000, /* .. and no less than a second */
};

struct registry {
    struct replica *replicas;
    uint32_t replicas_max;
    uint32_t replicas_free; /* index + 1 */
    uint32_t replicas_count;
    uint32_t replica_buckets_count;
    uint32_t *replica_buckets;
    struct store_topic *topics;
    uint32_t topics_free; /* index + 1 */
    uint32_t topic_buckets_count;
    uint32_t *topic_buckets;
    struct gone_topics gone;
    uint64_t topic_highest;  /* number in any row since the start */
    uint64_t topics_refused; /* rows that found no room */
};

static uint32_t buckets_of(uint32_t count)
{
    uint32_t buckets = 16;
    while (buckets < 2 * count) buckets *= 2;
    return buckets;
}

size_t registry_memory_bytes(uint32_t replicas_max)
{
    return arena_size(sizeof(struct registry)) + arena_size(replicas_max * sizeof(struct replica))
           + arena_size(buckets_of(replicas_max) * sizeof(uint32_t))
           + arena_size(TOPICS_MAX * sizeof(struct store_topic))
           + arena_size(buckets_of(TOPICS_MAX) * sizeof(uint32_t));
}

struct registry *registry_make(struct arena *arena, uint32_t replicas_max)
{
    struct registry *registry = arena_take(arena, sizeof *registry);
    if (!registry) return NULL;
    registry->replicas_max = replicas_max;
    registry->replica_buckets_count = buckets_of(replicas_max);
    registry->topic_buckets_count = buckets_of(TOPICS_MAX);
    registry->replicas = arena_take(arena, replicas_max * sizeof *registry->replicas);
    registry->topics = arena_take(arena, TOPICS_MAX * sizeof *registry->topics);
    registry->replica_buckets =
        arena_take(arena, registry->replica_buckets_count * sizeof(uint32_t));
    registry->topic_buckets = arena_take(arena, registry->topic_buckets_count * sizeof(uint32_t));
    if (!registry->replicas || !registry->topics) return NULL;
    if (!registry->replica_buckets || !registry->topic_buckets) return NULL;
    for (uint32_t index = 0; index + 1 < replicas_max; index++)
        registry->replicas[index].next = index + 2;
    registry->replicas_free = 1;
    for (uint32_t index = 0; index + 1 < TOPICS_MAX; index++)
        registry->topics[index].next = index + 2;
    registry->topics_free = 1;
    return registry;
}

static uint64_t registry_hash(uint64_t topic, uint32_t partition)
{
    uint64_t mixed = (topic ^ ((uint64_t)partition << 40)) * UINT64_C(0x9E3779B97F4A7C15);
    return mixed ^ (mixed >> 29);
}

static uint32_t *topic_bucket(struct registry *registry, uint64_t topic)
{
    uint64_t hash = registry_hash(topic, 0);
    return &registry->topic_buckets[hash & (registry->topic_buckets_count - 1)];
}

static struct store_topic *topic_find(struct registry *registry, uint64_t topic)
{
    uint32_t index = *topic_bucket(registry, topic);
    while (index != 0 && registry->topics[index - 1].topic != topic)
        index = registry->topics[index - 1].next;
    return index == 0 ? NULL : &registry->topics[index - 1];
}

const struct store_topic *registry_topic(const struct store *store, uint64_t topic)
{
    return topic_find(store->registry, topic);
}

int registry_proves_gone(const struct store *store, uint64_t topic)
{
    struct registry *registry = store->registry;
    return registry->topics_refused == 0 && topic < registry->topic_highest
           && !topic_find(registry, topic);
}

static uint32_t *replica_bucket(struct registry *registry, uint64_t topic, uint32_t partition)
{
    uint64_t hash = registry_hash(topic, partition);
    return &registry->replica_buckets[hash & (registry->replica_buckets_count - 1)];
}

struct replica *registry_find(const struct store *store, uint64_t topic, uint32_t partition)
{
    struct registry *registry = store->registry;
    uint32_t index = *replica_bucket(registry, topic, partition);
    while (index != 0) {
        struct replica *replica = &registry->replicas[index - 1];
        if (replica->topic == topic && replica->partition == partition) return replica;
        index = replica->next;
    }
    return NULL;
}

struct replica *registry_at(const struct store *store, uint32_t index)
{
    assert(index < store->registry->replicas_max);
    return &store->registry->replicas[index];
}

uint32_t registry_index(const struct store *store, const struct replica *replica)
{
    const struct registry *registry = store->registry;
    assert(replica >= registry->replicas);
    assert(replica < registry->replicas + registry->replicas_max);
    return (uint32_t)(replica - registry->replicas);
}

struct replica *registry_next(const struct store *store, uint32_t *cursor)
{
    const struct registry *registry = store->registry;
    while (*cursor < registry->replicas_max) {
        struct replica *replica = &registry->replicas[(*cursor)++];
        if (replica->used) return replica;
    }
    return NULL;
}

uint32_t registry_replicas_max(const struct store *store)
{
    return store->registry->replicas_max;
}

uint32_t registry_replicas_count(const struct store *store)
{
    return store->registry->replicas_count;
}

/* Records outlive their time by the age of their segment at most: so much of it. */
static int64_t segment_age_us(int64_t time_us)
{
    if (time_us <= 0) return 0;
    int64_t share_us = time_us / SEGMENT_SHARE;
    return share_us > SEGMENT_US_MIN ? share_us : SEGMENT_US_MIN;
}

const struct partition_configure registry_configuration_unknown = {
    .segment_bytes = 1,
    .producers_max = PARTITION_PRODUCERS_MAX,
    .groups_max = PARTITION_GROUPS_MAX,
};

struct partition_configure registry_configuration(const struct store_topic *topic)
{
    return (struct partition_configure){
        .segment_bytes = topic->segment_limit.bytes,
        .segment_us = topic->segment_limit.time_us,
        .producers_max = PARTITION_PRODUCERS_MAX,
        .groups_max = PARTITION_GROUPS_MAX,
        .metered = (topic->flags & ENGINE_TOPIC_SYSTEM) == 0,
    };
}

/* J10: of the partition, and of the node for what no other node has. */
static struct segment_seeds segment_seeds(const struct store *store, uint64_t topic,
                                          uint64_t created_revision, uint32_t partition)
{
    struct segment_seeds seeds = {
        .batch = batch_seed(store->config.cluster_id, topic, created_revision, partition)};
    uint8_t node[8];
    bytes_put_u64(node, store->config.node_incarnation);
    seeds.footer = crc32c_extend(seeds.batch, node, sizeof node);
    return seeds;
}

struct replica *registry_make_replica(struct store *store, uint64_t topic,
                                      uint64_t created_revision, uint32_t partition,
                                      const struct partition_configure *configuration)
{
    struct registry *registry = store->registry;
    assert(registry_find(store, topic, partition) == NULL);
    if (registry->replicas_free == 0) return NULL;
    struct replica *replica = &registry->replicas[registry->replicas_free - 1];
    registry->replicas_free = replica->next;
    memset(replica, 0, sizeof *replica);
    replica->used = 1;
    replica->topic = topic;
    replica->created_revision = created_revision;
    replica->partition = partition;
    replica->is_metadata = topic == OWNER_METADATA_TOPIC;
    struct vsr_founding founding = {.member = store->member, .release = ENGINE_RELEASE};
    vsr_identity(store->config.cluster_id, topic, created_revision, partition, founding.identity);
    vsr_init(&replica->vsr, &founding);
    const struct partition_config config = {
        .seeds = segment_seeds(store, topic, created_revision, partition),
        .limits = *configuration,
    };
    partition_init(&replica->state, &store->pools, &config);
    uint32_t *bucket = replica_bucket(registry, topic, partition);
    replica->next = *bucket;
    *bucket = registry_index(store, replica) + 1;
    registry->replicas_count++;
    return replica;
}

void registry_drop(struct store *store, struct replica *replica)
{
    struct registry *registry = store->registry;
    assert(replica->used);
    uint32_t *index = replica_bucket(registry, replica->topic, replica->partition);
    uint32_t self = registry_index(store, replica) + 1;
    while (*index != self) index = &registry->replicas[*index - 1].next;
    *index = replica->next;
    segment_writer_forget(store, replica);
    outbox_forget(store->outbox, replica);
    usage_windows_forget(store, replica);
    retire_forget(store, replica);
    trim_forget(store, replica);
    store_retention_forget(store, replica);
    storage_meter_forget(store, replica);
    live_entries_forget(store, replica);
    /* The place's next replica must not meet an open file of this one. */
    int closed = open_files_forget(store, replica, UINT64_MAX);
    assert(closed);
    partition_deinit(&replica->state);
    replica->used = 0;
    replica->next = registry->replicas_free;
    registry->replicas_free = self;
    registry->replicas_count--;
}

enum status registry_lookup(struct store *store, const struct engine_partition_id *id,
                            struct replica **replica)
{
    *replica = NULL;
    if (id->topic == OWNER_METADATA_TOPIC) return STATUS_NOT_FOUND;
    const struct store_topic *topic = topic_find(store->registry, id->topic);
    if (!topic) {
        const struct gone_topic *gone = gone_topics_find(&store->registry->gone, id->topic);
        return gone && gone->recreated ? STATUS_RECREATED : STATUS_TOPIC_NOT_FOUND;
    }
    if (topic->created_revision != id->created_revision) return STATUS_RECREATED;
    if (id->partition >= topic->partitions_count) return STATUS_NOT_FOUND;
    if (owner_of(id->topic, id->partition, store->config.shards_count) != store->config.shard)
        return STATUS_NOT_FOUND;
    *replica = registry_find(store, id->topic, id->partition);
    /* Nothing is known of the partition, and of what was known something is lost. */
    if (!*replica && shard_records_unseen(store, topic->created_revision)) return STATUS_DAMAGED;
    if (*replica
        && (retire_leaves(*replica) || (*replica)->created_revision != id->created_revision)) {
        *replica = NULL;
        return STATUS_REBUILDING;
    }
    return STATUS_OK;
}

enum status registry_open(struct store *store, const struct engine_partition_id *id,
                          struct replica **replica)
{
    enum status status = registry_lookup(store, id, replica);
    if (status != STATUS_OK) return status;
    const struct store_topic *topic = topic_find(store->registry, id->topic);
    if (!*replica) {
        if (topic->flags & ENGINE_TOPIC_CLOSING) return STATUS_CLOSED;
        const struct partition_configure configuration = registry_configuration(topic);
        *replica = registry_make_replica(store, id->topic, id->created_revision, id->partition,
                                         &configuration);
        /* Not BUSY: a wait does not help, a partition has to go or partitions_max to grow. */
        if (!*replica) return STATUS_PARTITIONS_FULL;
        const struct vsr_event event = {.kind = VSR_RECOVERED};
        struct vsr_update update;
        vsr_step(&(*replica)->vsr, &event, &update);
    }
    if ((*replica)->vsr.status == VSR_DAMAGED) {
        store->statistics.refused_damaged++;
        return STATUS_DAMAGED;
    }
    if ((*replica)->unknown_op != 0) {
        store->statistics.refused_op_unknown++;
        return STATUS_OP_UNKNOWN;
    }
    return STATUS_OK;
}

/* 0 = for ever, as more than any clock will ever say is. */
static int64_t policy_us(int64_t ms)
{
    return ms > 0 && ms < INT64_MAX / 4000 ? ms * 1000 : 0;
}

static void topic_put(struct store *store, const struct engine_row_topic *row)
{
    struct registry *registry = store->registry;
    struct store_topic *topic = topic_find(registry, row->topic);
    if (!topic) {
        if (registry->topics_free == 0) {
            registry->topics_refused++;
            return;
        }
        topic = &registry->topics[registry->topics_free - 1];
        uint32_t index = registry->topics_free;
        registry->topics_free = topic->next;
        uint32_t *bucket = topic_bucket(registry, row->topic);
        *topic = (struct store_topic){.topic = row->topic, .next = *bucket};
        *bucket = index;
    }
    topic->created_revision = row->created_revision;
    topic->organization = row->organization;
    topic->partitions_count = row->partitions_count;
    topic->flags = row->flags;
    const struct partition_policy policy = {.time_us = policy_us(row->retention_ms),
                                            .bytes = row->retention_bytes,
                                            .time_us_min = policy_us(row->retention_ms_min),
                                            .version = row->policy_version};
    int changed = memcmp(&policy, &topic->policy, sizeof policy) != 0;
    topic->policy = policy;
    topic->segment_limit = (struct segment_limit){.bytes = row->segment_bytes,
                                                  .time_us = segment_age_us(policy.time_us)};
    if (changed) store_retention_policy(store, topic);
}

/* The row is removed at once: no client is served any more. Its partitions follow as they can
 * (store/files/retire.h), those of an earlier start too, which had the row
 * when this one does not. */
static void topic_gone(struct store *store, const struct engine_row_topic *row, uint64_t op)
{
    struct registry *registry = store->registry;
    retire_topic(store, row->topic, op);
    struct store_topic *topic = topic_find(registry, row->topic);
    gone_topics_put(&registry->gone, row, topic ? topic->organization : 0);
    if (!topic) return;
    uint32_t *index = topic_bucket(registry, row->topic);
    uint32_t self = (uint32_t)(topic - registry->topics) + 1;
    while (*index != self) index = &registry->topics[*index - 1].next;
    *index = topic->next;
    topic->next = registry->topics_free;
    topic->topic = 0;
    registry->topics_free = self;
}

enum status store_tables_apply(struct store *store, uint64_t op, const uint8_t *delta, size_t size)
{
    size_t at = 0;
    if (!shard_records_settle(store, op)) return STATUS_BUSY;
    while (at < size) {
        struct engine_row header;
        if (size - at < sizeof header) return STATUS_INVALID;
        memcpy(&header, delta + at, sizeof header);
        if (header.size < sizeof header || header.size > size - at) return STATUS_INVALID;
        if (header.kind == ENGINE_ROW_TOPIC || header.kind == ENGINE_ROW_TOPIC_GONE) {
            struct engine_row_topic row;
            if (header.size < sizeof row) return STATUS_INVALID;
            memcpy(&row, delta + at, sizeof row);
            if (row.topic > store->registry->topic_highest)
                store->registry->topic_highest = row.topic;
            if (header.kind == ENGINE_ROW_TOPIC)
                topic_put(store, &row);
            else
                topic_gone(store, &row, op);
        }
        at += bytes_round_up(header.size, 8);
    }
    return STATUS_OK;
}

void registry_invariants(const struct store *store)
{
    const struct registry *registry = store->registry;
    assert(registry->replicas_count <= registry->replicas_max);
    assert((registry->replicas_count == registry->replicas_max) == (registry->replicas_free == 0));
    uint32_t count = 0;
    uint32_t cursor = 0;
    const struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        count++;
        assert(registry_find(store, replica->topic, replica->partition) == replica);
        assert(replica->is_metadata == (replica->topic == OWNER_METADATA_TOPIC));
    }
    assert(count == registry->replicas_count);
}
