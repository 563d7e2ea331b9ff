#include "store/accounting/producer_quota.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/admit.h"
#include "store/clock.h"
#include "store/files/retire.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/state.h"

enum {
    PRODUCERS_REPLICAS_PER_TICK = 64,
    PRODUCERS_PROPOSALS_PER_TICK = 8,
    PRODUCERS_TICK_NS = 100000000,
};

struct producer_quota {
    uint64_t at_ns;  /* the next look */
    uint32_t cursor; /* the next replica whose silent producers are looked for */
};

size_t producer_quota_memory_bytes(void)
{
    return arena_size(sizeof(struct producer_quota));
}

struct producer_quota *producer_quota_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct producer_quota));
}

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
    if (replica->producers.organization != 0) return replica->producers.organization;
    const struct store_topic *topic = registry_topic(store, replica->topic);
    if (topic) replica->producers.organization = topic->organization;
    return replica->producers.organization;
}

static uint64_t producers_count(struct store *store, uint32_t organization)
{
    uint64_t count = 0;
    uint32_t cursor = 0;
    struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        if (replica->is_metadata) continue;
        if (producers_organization(store, replica) != organization) continue;
        count +=
            replica->state.producers.remembered_count + replica->state.producers.admitted_count;
    }
    return count;
}

enum status producer_quota_check(struct store *store, struct replica *replica,
                                 const struct batch_client *client)
{
    if (!producers_scarce(store)) return STATUS_OK;
    struct producer_id producer;
    memcpy(producer.bytes, client->producer_id, sizeof producer.bytes);
    if (producer_table_knows(&replica->state.producers, &producer)) return STATUS_OK;
    uint64_t count = producers_count(store, producers_organization(store, replica));
    if (producers_free(store) == 0 || count < producers_free(store)) return STATUS_OK;
    store->statistics.refused_producers_share++;
    return STATUS_PRODUCERS_SHARE;
}

static enum status producers_expire(struct store *store, struct replica *replica,
                                    int64_t used_until_us)
{
    enum status status = admit_op(store, PARTITION_EXPIRE_BYTES);
    if (status != STATUS_OK) return status;
    const struct partition_expire expire = {.used_until_us = used_until_us};
    uint8_t body[PARTITION_EXPIRE_BYTES];
    partition_encode_expire(&expire, body);
    propose_op(store, replica, PARTITION_EXPIRE_PRODUCERS, body, sizeof body, 0, 0);
    replica->producers.expiring = 1;
    return STATUS_OK;
}

void producer_quota_tick(struct store *store)
{
    int64_t now_us = store_clock_us(store);
    if (now_us == 0 || !producers_scarce(store)) return;
    if (store->now.monotonic_ns < store->producer_quota->at_ns) return;
    store->producer_quota->at_ns = store->now.monotonic_ns + PRODUCERS_TICK_NS;
    int64_t until_us = now_us - (int64_t)PRODUCER_IDLE_MINUTES * 60000000;
    uint32_t proposals = 0;
    for (uint32_t step = 0;
         step < PRODUCERS_REPLICAS_PER_TICK && step < registry_replicas_max(store); step++) {
        struct replica *replica =
            registry_at(store, store->producer_quota->cursor++ % registry_replicas_max(store));
        if (!replica->used || replica->is_metadata || replica->producers.expiring) continue;
        if (replica->vsr.status != VSR_NORMAL || retire_leaves(replica)) continue;
        if (!producer_table_idle(&replica->state.producers, until_us)) continue;
        if (producers_expire(store, replica, until_us) != STATUS_OK) return;
        if (++proposals == PRODUCERS_PROPOSALS_PER_TICK) return;
    }
}

void producer_quota_expired(struct replica *replica)
{
    replica->producers.expiring = 0;
}

void producer_quota_invariants(const struct store *store)
{
    const struct producer_pool *pool = &store->pools.producers;
    assert(pool->free_count <= pool->count);
    assert(pool->reserve <= pool->count);
}
