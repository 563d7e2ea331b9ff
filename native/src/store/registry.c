/* store/registry.c: which topics this shard knows, and the groups behind their partitions.
 *
 * A topic is a row of the compiled tables. A group exists from the first operation on its partition
 * until its topic goes; a partition that nobody wrote to costs nothing: no memory, no entry, no
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

static uint32_t *store_group_bucket(struct store *store, uint64_t topic, uint32_t partition)
{
    return &store->group_buckets[store_hash(topic, partition) & (store->group_buckets_count - 1)];
}

struct store_group *store_group_find(struct store *store, uint64_t topic, uint32_t partition)
{
    uint32_t index = *store_group_bucket(store, topic, partition);
    while (index != 0) {
        struct store_group *group = &store->groups[index - 1];
        if (group->topic == topic && group->partition == partition) return group;
        index = group->next;
    }
    return NULL;
}

uint32_t store_group_index(const struct store *store, const struct store_group *group)
{
    assert(group >= store->groups && group < store->groups + store->groups_max);
    return (uint32_t)(group - store->groups);
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

struct store_group *store_group_make(struct store *store, uint64_t topic, uint64_t created_revision,
                                     uint32_t partition, const struct segment_limit *limit,
                                     int metered)
{
    assert(store_group_find(store, topic, partition) == NULL);
    if (store->groups_free == 0) return NULL;
    struct store_group *group = &store->groups[store->groups_free - 1];
    store->groups_free = group->next;
    memset(group, 0, sizeof *group);
    group->used = 1;
    group->topic = topic;
    group->created_revision = created_revision;
    group->partition = partition;
    group->segment_limit = *limit;
    group->metered = group->metered_wanted = metered != 0;
    vsr_init(&group->vsr, 0, 0);
    const struct partition_config config = {
        .segment_bytes = limit->bytes, .segment_us = limit->time_us, .metered = metered != 0};
    partition_init(&group->state, &store->pools, &config);
    uint32_t *bucket = store_group_bucket(store, topic, partition);
    group->next = *bucket;
    *bucket = store_group_index(store, group) + 1;
    store->groups_count++;
    return group;
}

static void store_link_remove(struct queue_link *link)
{
    if (link->queue) queue_remove((struct queue *)(uintptr_t)link->queue, link);
}

void store_group_drop(struct store *store, struct store_group *group)
{
    assert(group->used);
    assert(!group->write_busy);
    uint32_t *index = store_group_bucket(store, group->topic, group->partition);
    uint32_t self = store_group_index(store, group) + 1;
    while (*index != self) index = &store->groups[*index - 1].next;
    *index = group->next;
    store_link_remove(&group->pin_link);
    store_link_remove(&group->write_link);
    store_link_remove(&group->advance_link);
    store_link_remove(&group->window_link);
    store_link_remove(&group->closes_link);
    store_link_remove(&group->removal_link);
    store_link_remove(&group->trim_link);
    store_link_remove(&group->events_link);
    store_retention_forget(store, group);
    store_stored_forget(store, group);
    /* The slot's next group must not meet an open file of this one. */
    int closed = store_files_forget(store, group, UINT64_MAX);
    assert(closed);
    store->live_bytes -= group->live_bytes;
    partition_deinit(&group->state);
    group->used = 0;
    group->next = store->groups_free;
    store->groups_free = self;
    store->groups_count--;
}

/* The topic's row and the group, NULL while nothing happened in the partition. */
enum status store_group_lookup(struct store *store, const struct engine_partition_id *id,
                               struct store_group **group)
{
    *group = NULL;
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
    *group = store_group_find(store, id->topic, id->partition);
    /* Nothing is known of the partition, and of what was known something is lost. */
    if (!*group && store_unseen(store, topic->created_revision)) return STATUS_DAMAGED;
    /* Revision 0: damage named the group and took all else that was known of it. */
    uint64_t revision = *group ? (*group)->created_revision : 0;
    if (*group
        && ((*group)->removal.phase != RECONCILE_NONE
            || (revision != 0 && revision != id->created_revision))) {
        *group = NULL;
        return STATUS_REBUILDING;
    }
    return STATUS_OK;
}

/* The same, made if absent: only for calls that are about to journal something. */
enum status store_group_open(struct store *store, const struct engine_partition_id *id,
                             struct store_group **group)
{
    enum status status = store_group_lookup(store, id, group);
    if (status != STATUS_OK) return status;
    const struct store_topic *topic = store_topic_find(store, id->topic);
    int metered = !(topic->flags & ENGINE_TOPIC_SYSTEM);
    if (!*group) {
        if (topic->flags & ENGINE_TOPIC_CLOSING) return STATUS_CLOSED;
        *group = store_group_make(store, id->topic, id->created_revision, id->partition,
                                  &topic->segment_limit, metered);
        /* Not BUSY: a wait does not help, a partition has to go or partitions_max to grow. */
        if (!*group) return STATUS_PARTITIONS_FULL;
        const struct vsr_event event = {.kind = VSR_RECOVERED};
        struct vsr_update update;
        vsr_step(&(*group)->vsr, &event, &update);
    }
    if ((*group)->vsr.status == VSR_DAMAGED) {
        store->statistics.refused_damaged++;
        return STATUS_DAMAGED;
    }
    if ((*group)->unknown_op != 0) {
        store->statistics.refused_op_unknown++;
        return STATUS_OP_UNKNOWN;
    }
    return STATUS_OK;
}

void store_group_pin(struct store *store, struct store_group *group, uint64_t generation)
{
    assert(generation >= store->journal.generation_oldest);
    if (group->pin_link.queue)
        queue_remove((struct queue *)(uintptr_t)group->pin_link.queue, &group->pin_link);
    group->pin = generation;
    queue_push(&store->pins[generation % store->journal.config.extents_count], &group->pin_link);
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
