/* store/accounting/storage_meter.h: what is stored for how long: byte-seconds of each topic in
 * this shard.
 *
 *     byte_seconds += bytes * (now - until), whenever bytes change and when a window is reported
 *
 * An account is one revision of a topic; its partitions here add to it what their segments hold.
 * Time is monotonic, in milliseconds; what is less than a byte-second is carried on. Accounts that
 * changed wait in one queue, those that only grow older in another, oldest report first: a report
 * visits no account without anything to report. A topic pays until its row goes; a partition
 * that is damaged, or of a system topic, is not billed. When no account is free the bytes go to
 * that of topic 0, which is not billed. Refuses to know windows: host/counters.c does. */
#ifndef STORE_ACCOUNTING_STORAGE_METER_H
#define STORE_ACCOUNTING_STORAGE_METER_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct replica;
struct storage_meter;
struct store;

/* What a replica keeps for it; store/accounting/storage_meter.c's alone. */
struct replica_storage {
    uint32_t account; /* it adds its bytes to, index + 1; 0 = none */
    uint64_t bytes;   /* in it */
    uint8_t ended;    /* forgotten: it never has one again */
};

size_t storage_meter_memory_bytes(uint32_t replicas_max);
struct storage_meter *storage_meter_make(struct arena *arena, uint32_t replicas_max);

void storage_meter_add(struct store *store, struct replica *replica, uint64_t bytes);
void storage_meter_take(struct store *store, struct replica *replica, uint64_t bytes);
/* All that recovery found. */
void storage_meter_recovered(struct store *store, struct replica *replica);
/* The replica goes: it stores nothing any more. */
void storage_meter_forget(struct store *store, struct replica *replica);

void storage_meter_invariants(const struct store *store);

#endif
