/* store/accounting/producer_quota.c: the shard's table of producers is shared by all tenants:
 * nobody fills it for the others, and nobody for ever.
 *
 * A new producer of an organization is taken while the organization holds fewer entries than are
 * free: alone it gets half of the table, with n others an equal part, and a newcomer always finds
 * some. What a producer is told that is known already is never a matter of room.
 *
 * Once no more than half is free, partitions whose producers have long been silent get
 * EXPIRE_PRODUCERS into their own log: forgotten at that op on every replica and in every replay
 * (P2). Nothing is proposed while the clock is not believed (C2). */
#include "store/state.h"

enum {
    PRODUCERS_GROUPS_PER_TICK = 64,
    PRODUCERS_PROPOSALS_PER_TICK = 8,
    PRODUCERS_TICK_NS = 100000000,
};

static uint32_t producers_free(const struct store *store)
{
    const struct producer_pool *pool = &store->pools.producers;
    return pool->free_count > pool->reserve ? pool->free_count - pool->reserve : 0;
}

static int producers_scarce(const struct store *store)
{
    const struct producer_pool *pool = &store->pools.producers;
    return producers_free(store) <= (pool->count - pool->reserve) / 2;
}

/* Whose topic it is; asked of the tables once for a group that a start found. */
static uint32_t producers_organization(struct store *store, struct store_group *group)
{
    if (group->organization != 0) return group->organization;
    const struct store_topic *topic = store_topic_find(store, group->topic);
    if (topic) group->organization = topic->organization;
    return group->organization;
}

static uint64_t producers_held(struct store *store, uint32_t organization)
{
    uint64_t held = 0;
    for (uint32_t index = 0; index < store->groups_max; index++) {
        struct store_group *group = &store->groups[index];
        if (!group->used || group == store->metadata_group) continue;
        if (producers_organization(store, group) != organization) continue;
        held += group->state.producers.remembered_count + group->state.producers.admitted_count;
    }
    return held;
}

enum status store_producers_share(struct store *store, struct store_group *group,
                                  const struct batch_client *client)
{
    if (!producers_scarce(store)) return STATUS_OK;
    struct producer_id producer;
    memcpy(producer.bytes, client->producer_id, sizeof producer.bytes);
    if (producer_table_knows(&group->state.producers, &producer)) return STATUS_OK;
    uint64_t held = producers_held(store, producers_organization(store, group));
    if (producers_free(store) == 0 || held < producers_free(store)) return STATUS_OK;
    store->statistics.refused_producers_share++;
    return STATUS_PRODUCERS_SHARE;
}

static enum status producers_expire(struct store *store, struct store_group *group,
                                    int64_t used_until_us)
{
    enum status status = store_admit_op(store, PARTITION_EXPIRE_BYTES);
    if (status != STATUS_OK) return status;
    const struct partition_expire expire = {.used_until_us = used_until_us};
    uint8_t body[PARTITION_EXPIRE_BYTES];
    partition_encode_expire(&expire, body);
    store_prepare_op(store, &store->data, group, PARTITION_EXPIRE_PRODUCERS, body, sizeof body, 0,
                     0);
    group->expire_busy = 1;
    return STATUS_OK;
}

void store_producers_tick(struct store *store)
{
    int64_t now_us = store_time_us(store);
    if (now_us == 0 || !producers_scarce(store)) return;
    if (store->now.monotonic_ns < store->producers_at_ns) return;
    store->producers_at_ns = store->now.monotonic_ns + PRODUCERS_TICK_NS;
    int64_t until_us = now_us - (int64_t)PRODUCER_IDLE_MINUTES * 60000000;
    uint32_t proposals = 0;
    for (uint32_t step = 0; step < PRODUCERS_GROUPS_PER_TICK && step < store->groups_max; step++) {
        struct store_group *group = &store->groups[store->producers_cursor++ % store->groups_max];
        if (!group->used || group == store->metadata_group || group->expire_busy) continue;
        if (group->vsr.status != VSR_NORMAL || group->removal.phase != RECONCILE_NONE) continue;
        if (!producer_table_idle(&group->state.producers, until_us)) continue;
        if (producers_expire(store, group, until_us) != STATUS_OK) return;
        if (++proposals == PRODUCERS_PROPOSALS_PER_TICK) return;
    }
}
