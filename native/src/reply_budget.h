/* reply_budget.h: the memory of replies with batches (Fetch, FetchMessages, Consume) from their
 * making until their sockets have taken them.
 *
 * Kept by the shard that owns the partition: the bytes lie in its pool, whoever sends them. Nobody
 * who does not read can take all of it: together at most a quarter of the pool, of which one
 * principal gets at most three quarters; and whoever holds nothing gets one reply, however large,
 * so that readers that stand still hold up others of their own principal only. What finds no room
 * waits (stream_fetch.h). */
#ifndef REPLY_BUDGET_H
#define REPLY_BUDGET_H

#include <stddef.h>
#include <stdint.h>

enum {
    REPLY_BUDGET_PART = 4, /* of the pool */
    REPLY_PRINCIPAL_PERCENT = 75,
    REPLY_PRINCIPALS = 64, /* buckets of principals */
};

struct shard;
struct reply;

struct reply_budget {
    uint64_t bytes;
    uint64_t bytes_of[REPLY_PRINCIPALS]; /* by principal number */
    uint64_t held_to_ask;                /* of fetches_held, since some came back */
};

/* 1 = a reply with so many bytes of batches is allowed. */
int reply_budget_room(const struct shard *shard, uint32_t principal, size_t size);
void reply_budget_charge(struct shard *shard, struct reply *reply, uint32_t principal);
/* Its memory goes back: those that wait are asked again. */
void reply_budget_refund(struct shard *shard, const struct reply *reply);

#endif
