/* store/accounting/producer_quota.h: the shard's table of producers is shared by all tenants:
 * no tenant fills it for the others, and none for ever.
 *
 * A new producer of an organization is taken while the organization holds fewer entries than are
 * free: alone it gets half of the table, with n others an equal part, and a newcomer always finds
 * some. A known producer is never refused for lack of room.
 *
 * Once no more than half is free, partitions whose producers have long been silent get
 * EXPIRE_PRODUCERS into their own log: forgotten at that op on every replica and in every replay
 * (P2). Nothing is proposed while the clock is not believed (C2). */
#ifndef STORE_ACCOUNTING_PRODUCER_QUOTA_H
#define STORE_ACCOUNTING_PRODUCER_QUOTA_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"

struct arena;
struct batch_client;
struct producer_quota;
struct replica;
struct store;

/* What a replica keeps for it; store/accounting/producer_quota.c's alone. */
struct replica_producers {
    uint8_t expiring;      /* an EXPIRE_PRODUCERS is in flight */
    uint32_t organization; /* 0 = not asked for yet */
};

size_t producer_quota_memory_bytes(void);
struct producer_quota *producer_quota_make(struct arena *arena);

/* May a producer that is new here take an entry? OK, PRODUCERS_SHARE. */
enum status producer_quota_check(struct store *store, struct replica *replica,
                                 const struct batch_client *client);
void producer_quota_tick(struct store *store);
/* An EXPIRE_PRODUCERS was executed. */
void producer_quota_expired(struct replica *replica);

void producer_quota_invariants(const struct store *store);

#endif
