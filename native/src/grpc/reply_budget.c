#include "grpc/reply_budget.h"

#include "foundation/assert.h"
#include "foundation/buffer_pool.h"
#include "grpc/state.h"
#include "wire/proto.h"

int reply_budget_room(const struct grpc_server *server, enum reply_kind kind, uint32_t principal,
                      size_t size)
{
    static const uint64_t parts[REPLY_KINDS_COUNT] = {[REPLY_BATCHES] = REPLY_BATCHES_PART,
                                                      [REPLY_ANSWERS] = REPLY_ANSWERS_PART};
    const struct reply_budget *budget = &server->budgets[kind];
    uint64_t limit = server->pool->region_size / parts[kind];
    uint64_t share = budget->bytes_of[principal % REPLY_PRINCIPALS];
    if (share == 0) return budget->bytes < 2 * limit;
    /* As the pool hands it out: a power of two. */
    uint64_t taken = 32;
    while (taken < size + sizeof(struct reply) + GRPC_PREFIX_SIZE + PROTO_FETCH_HEADER_SIZE_MAX)
        taken *= 2;
    if (budget->bytes + taken > limit) return 0;
    return share + taken <= limit / 100 * REPLY_PRINCIPAL_PERCENT;
}

void reply_budget_charge(struct grpc_server *server, enum reply_kind kind, struct reply *reply,
                         uint32_t principal)
{
    assert(reply->charged == 0);
    assert(reply->owner == server->shard);
    uint32_t bucket = principal % REPLY_PRINCIPALS;
    size_t size = buffer_capacity(reply);
    reply->charged = (uint8_t)(bucket + 1);
    reply->kind = (uint8_t)kind;
    server->budgets[kind].bytes += size;
    server->budgets[kind].bytes_of[bucket] += size;
}

void reply_budget_refund(struct grpc_server *server, const struct reply *reply)
{
    assert(reply->charged > 0);
    assert(reply->kind < REPLY_KINDS_COUNT);
    struct reply_budget *budget = &server->budgets[reply->kind];
    size_t size = buffer_capacity(reply);
    uint64_t *share = &budget->bytes_of[reply->charged - 1];
    assert(*share >= size && budget->bytes >= size);
    *share -= size;
    budget->bytes -= size;
    server->hooks.refunded(server->hooks.context, (enum reply_kind)reply->kind);
}

static uint64_t share_bytes(const struct grpc_server *server)
{
    return server->pool->region_size / REPLY_PUSHED_PART;
}

int reply_share_room(struct call *call)
{
    struct grpc_peer *peer = call->peer;
    if (peer->pushed_bytes < share_bytes(call->server)) return 1;
    if (!peer->push_blocked) call->server->counters.pushes_blocked++;
    peer->push_blocked = 1;
    return 0;
}

void reply_share_take(struct call *call, struct reply *reply)
{
    assert(reply->pushed == NULL);
    reply->pushed = call->stream.connection;
    call->peer->pushed_bytes += reply->body.size;
}

void reply_share_return(struct grpc_server *server, struct reply *reply)
{
    struct http2_connection *connection = reply->pushed;
    struct grpc_peer *peer = http2_peer(connection);
    assert(peer->pushed_bytes >= reply->body.size);
    peer->pushed_bytes -= reply->body.size;
    reply->pushed = NULL;
    if (!peer->push_blocked || peer->pushed_bytes >= share_bytes(server)) return;
    peer->push_blocked = 0;
    server->hooks.pushable(server->hooks.context, connection);
}
