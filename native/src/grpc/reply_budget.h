/* grpc/reply_budget.h: the memory of replies from their making until their sockets have taken
 * them, so that a client that does not read cannot take all of it.
 *
 *     batches  of Fetch, FetchMessages, Consume: at most a quarter of the pool of the shard that
 *              owns the partition; what finds no room waits (service/fetch.h)
 *     answers  of methods that are charged (grpc/method.h): at most an eighth of the pool of the
 *              call's shard; what finds no room ends its call
 *     pushed   of one connection, whatever their principal: at most a sixteenth of the pool; what
 *              finds no room waits
 *
 * One principal gets at most three quarters of each; and a principal that holds none gets one
 * reply, however large, so that readers that stand still delay others of their own principal
 * only. The other calls' replies are small, one a call, and bounded by the number of calls. */
#ifndef GRPC_REPLY_BUDGET_H
#define GRPC_REPLY_BUDGET_H

#include <stddef.h>
#include <stdint.h>

enum {
    REPLY_BATCHES_PART = 4, /* of the pool */
    REPLY_ANSWERS_PART = 8,
    REPLY_PUSHED_PART = 16, /* unsent bytes of one connection's pushed replies */
    REPLY_PRINCIPAL_PERCENT = 75,
    REPLY_PRINCIPALS = 64, /* buckets of principals */
};

enum reply_kind {
    REPLY_BATCHES = 0,
    REPLY_ANSWERS = 1,
    REPLY_KINDS_COUNT = 2,
};

struct call;
struct grpc_server;
struct reply;

struct reply_budget {
    uint64_t bytes;
    uint64_t bytes_of[REPLY_PRINCIPALS]; /* by principal number */
};

/* 1 = a reply with so many bytes behind its headers is allowed. */
int reply_budget_room(const struct grpc_server *server, enum reply_kind kind, uint32_t principal,
                      size_t size);
void reply_budget_charge(struct grpc_server *server, enum reply_kind kind, struct reply *reply,
                         uint32_t principal);
/* Its memory goes back (grpc_hooks.refunded). */
void reply_budget_refund(struct grpc_server *server, const struct reply *reply);

/* May the call's connection be pushed another reply? 0 = not before grpc_hooks.pushable. */
int reply_share_room(struct call *call);
void reply_share_take(struct call *call, struct reply *reply);
void reply_share_return(struct grpc_server *server, struct reply *reply);

#endif
