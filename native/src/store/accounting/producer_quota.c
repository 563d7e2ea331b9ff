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

/* Whose topic it is; asked of the tables once for a replica that a start found. */
static uint32_t producers_organization(struct store *store, struct replica *replica)
{
    if (replica->organization != 0) return replica->organization;
    const struct store_topic *topic = store_topic_find(store, replica->topic);
    if (topic) replica->organization = topic->organization;
    return replica->organization;
}

static uint64_t producers_held(struct store *store, uint32_t organization)
{
    uint64_t held = 0;
    for (uint32_t index = 0; index < store->replicas_max; index++) {
        struct replica *replica = &store->replicas[index];
        if (!replica->used || replica == store->metadata_replica) continue;
        if (producers_organization(store, replica) != organization) continue;
        held += replica->state.producers.remembered_count + replica->state.producers.admitted_count;
    }
    return held;
}

enum status store_producers_share(struct store *store, struct replica *replica,
                                  const struct batch_client *client)
{
    if (!producers_scarce(store)) return STATUS_OK;
    struct producer_id producer;
    memcpy(producer.bytes, client->producer_id, sizeof producer.bytes);
    if (producer_table_knows(&replica->state.producers, &producer)) return STATUS_OK;
    uint64_t held = producers_held(store, producers_organization(store, replica));
    if (producers_free(store) == 0 || held < producers_free(store)) return STATUS_OK;
    store->statistics.refused_producers_share++;
    return STATUS_PRODUCERS_SHARE;
}

static enum status producers_expire(struct store *store, struct replica *replica,
                                    int64_t used_until_us)
{
    enum status status = store_admit_op(store, PARTITION_EXPIRE_BYTES);
    if (status != STATUS_OK) return status;
    const struct partition_expire expire = {.used_until_us = used_until_us};
    uint8_t body[PARTITION_EXPIRE_BYTES];
    partition_encode_expire(&expire, body);
    store_prepare_op(store, &store->data, replica, PARTITION_EXPIRE_PRODUCERS, body, sizeof body, 0,
                     0);
    replica->expire_busy = 1;
    return STATUS_OK;
}

void store_producers_tick(struct store *store)
{
    int64_t now_us = store_clock_us(store);
    if (now_us == 0 || !producers_scarce(store)) return;
    if (store->now.monotonic_ns < store->producers_at_ns) return;
    store->producers_at_ns = store->now.monotonic_ns + PRODUCERS_TICK_NS;
    int64_t until_us = now_us - (int64_t)PRODUCER_IDLE_MINUTES * 60000000;
    uint32_t proposals = 0;
    for (uint32_t step = 0; step < PRODUCERS_GROUPS_PER_TICK && step < store->replicas_max;
         step++) {
        struct replica *replica = &store->replicas[store->producers_cursor++ % store->replicas_max];
        if (!replica->used || replica == store->metadata_replica || replica->expire_busy) continue;
        if (replica->vsr.status != VSR_NORMAL || replica->removal.phase != REMOVAL_NONE) continue;
        if (!producer_table_idle(&replica->state.producers, until_us)) continue;
        if (producers_expire(store, replica, until_us) != STATUS_OK) return;
        if (++proposals == PRODUCERS_PROPOSALS_PER_TICK) return;
    }
}
