#include "reply_budget.h"

#include "assert.h"
#include "buffer_pool.h"
#include "call.h"
#include "proto.h"
#include "shard.h"

int reply_budget_room(const struct shard *shard, uint32_t principal, size_t size)
{
    const struct reply_budget *budget = &shard->budget;
    uint64_t limit = shard->pool.region_size / REPLY_BUDGET_PART;
    uint64_t share = budget->bytes_of[principal % REPLY_PRINCIPALS];
    if (share == 0) return budget->bytes < 2 * limit;
    uint64_t taken = 4096;
    while (taken < size + sizeof(struct reply) + GRPC_PREFIX_SIZE + PROTO_FETCH_HEADER_SIZE_MAX)
        taken *= 2;
    if (budget->bytes + taken > limit) return 0;
    return share + taken <= limit / 100 * REPLY_PRINCIPAL_PERCENT;
}

void reply_budget_charge(struct shard *shard, struct reply *reply, uint32_t principal)
{
    assert(reply->charged == 0);
    assert(reply->owner == shard->index);
    uint32_t bucket = principal % REPLY_PRINCIPALS;
    size_t size = buffer_capacity(reply);
    reply->charged = (uint16_t)(bucket + 1);
    shard->budget.bytes += size;
    shard->budget.bytes_of[bucket] += size;
}

void reply_budget_refund(struct shard *shard, const struct reply *reply)
{
    assert(reply->charged > 0);
    size_t size = buffer_capacity(reply);
    uint64_t *share = &shard->budget.bytes_of[reply->charged - 1];
    assert(*share >= size && shard->budget.bytes >= size);
    *share -= size;
    shard->budget.bytes -= size;
    shard->budget.held_to_ask = shard->fetches_held.count;
}
