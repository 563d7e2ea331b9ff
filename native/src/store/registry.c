/* store/registry.c: which topics this shard knows, and the replicas behind their partitions.
 *
 * A topic is a row of the compiled tables. A replica exists from the first operation on its
 * partition until its topic goes; a partition that nobody wrote to costs nothing: no memory, no entry, no
 * folder. */
#include "store/state.h"

#include "catalog/owner.h"

static uint64_t store_hash(uint64_t topic, uint32_t partition)
{
    uint64_t mixed = (topic ^ ((uint64_t)partition << 40)) * UINT64_C(0x9E3779B97F4A7C15);
    return mixed ^ (mixed >> 29);
}

static uint32_t *store_topic_bucket(struct store *store, uint64_t topic)
{
    return &store->topic_buckets[store_hash(topic, 0) & (store->topic_buckets_count - 1)];
}

struct store_topic *store_topic_find(struct store *store, uint64_t topic)
{
    uint32_t index = *store_topic_bucket(store, topic);
    while (index != 0 && store->topics[index - 1].topic != topic)
        index = store->topics[index - 1].next;
    return index == 0 ? NULL : &store->topics[index - 1];
}

static uint32_t *registry_bucket(struct store *store, uint64_t topic, uint32_t partition)
{
    return &store->replica_buckets[store_hash(topic, partition)
                                   & (store->replica_buckets_count - 1)];
}

struct replica *registry_find(struct store *store, uint64_t topic, uint32_t partition)
{
    uint32_t index = *registry_bucket(store, topic, partition);
    while (index != 0) {
        struct replica *replica = &store->replicas[index - 1];
        if (replica->topic == topic && replica->partition == partition) return replica;
        index = replica->next;
    }
    return NULL;
}

uint32_t registry_index(const struct store *store, const struct replica *replica)
{
    assert(replica >= store->replicas && replica < store->replicas + store->replicas_max);
    return (uint32_t)(replica - store->replicas);
}

/* Records outlive their time by the age of their segment at most: so much of it. */
static int64_t store_segment_us(int64_t time_us)
{
    if (time_us <= 0) return 0;
    int64_t share_us = time_us / STORE_SEGMENT_SHARE;
    return share_us > STORE_SEGMENT_US_MIN ? share_us : STORE_SEGMENT_US_MIN;
}

/* Before its log says where its segments end. */
const struct segment_limit store_limit_unknown = {.bytes = 1};

struct replica *registry_make(struct store *store, uint64_t topic, uint64_t created_revision,
                              uint32_t partition, const struct segment_limit *limit, int metered)
{
    assert(registry_find(store, topic, partition) == NULL);
    if (store->replicas_free == 0) return NULL;
    struct replica *replica = &store->replicas[store->replicas_free - 1];
    store->replicas_free = replica->next;
    memset(replica, 0, sizeof *replica);
    replica->used = 1;
    replica->topic = topic;
    replica->created_revision = created_revision;
    replica->partition = partition;
    replica->segment_limit = *limit;
    replica->metered = replica->metered_wanted = metered != 0;
    vsr_init(&replica->vsr, 0, 0);
    const struct partition_config config = {
        .segment_bytes = limit->bytes, .segment_us = limit->time_us, .metered = metered != 0};
    partition_init(&replica->state, &store->pools, &config);
    uint32_t *bucket = registry_bucket(store, topic, partition);
    replica->next = *bucket;
    *bucket = registry_index(store, replica) + 1;
    store->replicas_count++;
    return replica;
}

static void store_link_remove(struct queue_link *link)
{
    if (link->queue) queue_remove((struct queue *)(uintptr_t)link->queue, link);
}

void registry_drop(struct store *store, struct replica *replica)
{
    assert(replica->used);
    assert(!replica->write_busy);
    uint32_t *index = registry_bucket(store, replica->topic, replica->partition);
    uint32_t self = registry_index(store, replica) + 1;
    while (*index != self) index = &store->replicas[*index - 1].next;
    *index = replica->next;
    store_link_remove(&replica->pin_link);
    store_link_remove(&replica->write_link);
    outbox_forget(store->outbox, replica);
    store_link_remove(&replica->window_link);
    store_link_remove(&replica->closes_link);
    store_link_remove(&replica->removal_link);
    store_link_remove(&replica->trim_link);
    store_link_remove(&replica->events_link);
    store_retention_forget(store, replica);
    store_stored_forget(store, replica);
    /* The slot's next replica must not meet an open file of this one. */
    int closed = store_files_forget(store, replica, UINT64_MAX);
    assert(closed);
    store->live_bytes -= replica->live_bytes;
    partition_deinit(&replica->state);
    replica->used = 0;
    replica->next = store->replicas_free;
    store->replicas_free = self;
    store->replicas_count--;
}

/* The topic's row and the replica, NULL while nothing happened in the partition. */
enum status registry_lookup(struct store *store, const struct engine_partition_id *id,
                            struct replica **replica)
{
    *replica = NULL;
    if (id->topic == OWNER_METADATA_TOPIC) return STATUS_NOT_FOUND;
    const struct store_topic *topic = store_topic_find(store, id->topic);
    if (!topic) {
        const struct gone_topic *gone = gone_topics_find(&store->gone, id->topic);
        return gone && gone->recreated ? STATUS_RECREATED : STATUS_TOPIC_NOT_FOUND;
    }
    if (topic->created_revision != id->created_revision) return STATUS_RECREATED;
    if (id->partition >= topic->partitions_count) return STATUS_NOT_FOUND;
    if (owner_of(id->topic, id->partition, store->config.shards_count) != store->config.shard)
        return STATUS_NOT_FOUND;
    *replica = registry_find(store, id->topic, id->partition);
    /* Nothing is known of the partition, and of what was known something is lost. */
    if (!*replica && store_unseen(store, topic->created_revision)) return STATUS_DAMAGED;
    /* Revision 0: damage named the replica and took all else that was known of it. */
    uint64_t revision = *replica ? (*replica)->created_revision : 0;
    if (*replica
        && ((*replica)->removal.phase != REMOVAL_NONE
            || (revision != 0 && revision != id->created_revision))) {
        *replica = NULL;
        return STATUS_REBUILDING;
    }
    return STATUS_OK;
}

/* The same, made if absent: only for calls that are about to journal something. */
enum status registry_open(struct store *store, const struct engine_partition_id *id,
                          struct replica **replica)
{
    enum status status = registry_lookup(store, id, replica);
    if (status != STATUS_OK) return status;
    const struct store_topic *topic = store_topic_find(store, id->topic);
    int metered = !(topic->flags & ENGINE_TOPIC_SYSTEM);
    if (!*replica) {
        if (topic->flags & ENGINE_TOPIC_CLOSING) return STATUS_CLOSED;
        *replica = registry_make(store, id->topic, id->created_revision, id->partition,
                                 &topic->segment_limit, metered);
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

void replica_pin(struct store *store, struct replica *replica, uint64_t generation)
{
    assert(generation >= store->journal.generation_oldest);
    if (replica->pin_link.queue)
        queue_remove((struct queue *)(uintptr_t)replica->pin_link.queue, &replica->pin_link);
    replica->pin = generation;
    queue_push(&store->pins[generation % store->journal.config.extents_count], &replica->pin_link);
}

/* 0 = for ever, as more than any clock will ever say is. */
static int64_t store_policy_us(int64_t ms)
{
    return ms > 0 && ms < INT64_MAX / 4000 ? ms * 1000 : 0;
}

static void store_topic_put(struct store *store, const struct engine_row_topic *row)
{
    struct store_topic *topic = store_topic_find(store, row->topic);
    if (!topic) {
        if (store->topics_free == 0) {
            store->topics_refused++;
            return;
        }
        topic = &store->topics[store->topics_free - 1];
        uint32_t index = store->topics_free;
        store->topics_free = topic->next;
        uint32_t *bucket = store_topic_bucket(store, row->topic);
        *topic = (struct store_topic){.topic = row->topic, .next = *bucket};
        *bucket = index;
    }
    topic->created_revision = row->created_revision;
    topic->organization = row->organization;
    topic->partitions_count = row->partitions_count;
    topic->flags = row->flags;
    const struct partition_policy policy = {.time_us = store_policy_us(row->retention_ms),
                                            .bytes = row->retention_bytes,
                                            .time_us_min = store_policy_us(row->retention_ms_min),
                                            .version = row->policy_version};
    int changed = memcmp(&policy, &topic->policy, sizeof policy) != 0;
    topic->policy = policy;
    topic->segment_limit = (struct segment_limit){.bytes = row->segment_bytes,
                                                  .time_us = store_segment_us(policy.time_us)};
    if (changed) store_retention_policy(store, topic);
}

/* The row goes at once: nobody is served any more. Its partitions follow as they can
 * (store/files/replica_removal.h), those of an earlier life of the node too, which had the row
 * when this one does not. */
static void store_topic_gone(struct store *store, const struct engine_row_topic *row, uint64_t op)
{
    store_topic_doom(store, row->topic, op);
    struct store_topic *topic = store_topic_find(store, row->topic);
    gone_topics_put(&store->gone, row, topic ? topic->organization : 0);
    if (!topic) return;
    uint32_t *index = store_topic_bucket(store, row->topic);
    uint32_t self = (uint32_t)(topic - store->topics) + 1;
    while (*index != self) index = &store->topics[*index - 1].next;
    *index = topic->next;
    topic->next = store->topics_free;
    topic->topic = 0;
    store->topics_free = self;
}

enum status store_tables_apply(struct store *store, uint64_t op, const uint8_t *delta, size_t size)
{
    size_t at = 0;
    if (!store_unseen_settle(store, op)) return STATUS_BUSY;
    while (at < size) {
        struct engine_row header;
        if (size - at < sizeof header) return STATUS_INVALID;
        memcpy(&header, delta + at, sizeof header);
        if (header.size < sizeof header || header.size > size - at) return STATUS_INVALID;
        if (header.kind == ENGINE_ROW_TOPIC || header.kind == ENGINE_ROW_TOPIC_GONE) {
            struct engine_row_topic row;
            if (header.size < sizeof row) return STATUS_INVALID;
            memcpy(&row, delta + at, sizeof row);
            if (row.topic > store->topic_highest) store->topic_highest = row.topic;
            if (header.kind == ENGINE_ROW_TOPIC)
                store_topic_put(store, &row);
            else
                store_topic_gone(store, &row, op);
        }
        at += bytes_round_up(header.size, 8);
    }
    return STATUS_OK;
}
