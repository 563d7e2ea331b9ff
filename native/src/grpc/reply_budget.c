#include "grpc/reply_budget.h"

#include "foundation/assert.h"
#include "foundation/buffer_pool.h"
#include "grpc/call.h"
#include "shard/shard.h"
#include "wire/proto.h"

int reply_budget_room(const struct shard *shard, enum reply_kind kind, uint32_t principal,
                      size_t size)
{
    static const uint64_t parts[REPLY_KINDS_COUNT] = {[REPLY_BATCHES] = REPLY_BATCHES_PART,
                                                      [REPLY_ANSWERS] = REPLY_ANSWERS_PART};
    const struct reply_budget *budget = &shard->budgets[kind];
    uint64_t limit = shard->pool.region_size / parts[kind];
    uint64_t share = budget->bytes_of[principal % REPLY_PRINCIPALS];
    if (share == 0) return budget->bytes < 2 * limit;
    /* As the pool hands it out: a power of two. */
    uint64_t taken = 32;
    while (taken < size + sizeof(struct reply) + GRPC_PREFIX_SIZE + PROTO_FETCH_HEADER_SIZE_MAX)
        taken *= 2;
    if (budget->bytes + taken > limit) return 0;
    return share + taken <= limit / 100 * REPLY_PRINCIPAL_PERCENT;
}

void reply_budget_charge(struct shard *shard, enum reply_kind kind, struct reply *reply,
                         uint32_t principal)
{
    assert(reply->charged == 0);
    assert(reply->owner == shard->index);
    uint32_t bucket = principal % REPLY_PRINCIPALS;
    size_t size = buffer_capacity(reply);
    reply->charged = (uint8_t)(bucket + 1);
    reply->kind = (uint8_t)kind;
    shard->budgets[kind].bytes += size;
    shard->budgets[kind].bytes_of[bucket] += size;
}

void reply_budget_refund(struct shard *shard, const struct reply *reply)
{
    assert(reply->charged > 0);
    assert(reply->kind < REPLY_KINDS_COUNT);
    struct reply_budget *budget = &shard->budgets[reply->kind];
    size_t size = buffer_capacity(reply);
    uint64_t *share = &budget->bytes_of[reply->charged - 1];
    assert(*share >= size && budget->bytes >= size);
    *share -= size;
    budget->bytes -= size;
    if (reply->kind == REPLY_BATCHES) shard->fetches_to_ask = shard->fetches_held.count;
}
