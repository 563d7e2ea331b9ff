/* store/accounting/usage_windows.h: metering windows are closed by ops of the partition's own log
 * (M1).
 *
 * Open windows wait in one list. All windows of a shard have the same length and stamps grow, so
 * the list is in the order of their ends and a tick looks at its head only. A closed window is
 * handed out until it is acknowledged, again every five seconds: an acknowledgement lost in a
 * restart costs a repetition, never a window. */
#ifndef STORE_ACCOUNTING_USAGE_WINDOWS_H
#define STORE_ACCOUNTING_USAGE_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"
#include "foundation/status.h"

struct arena;
struct replica;
struct store;
struct usage_windows;

/* What a replica keeps for it; store/accounting/usage_windows.c's alone. */
struct replica_usage {
    uint8_t busy; /* a METER_CLOSE is in flight */
    struct queue_link window_link;
    struct queue_link closes_link;
    uint64_t closes_at_ns;
    uint64_t closes_handed;
};

size_t usage_windows_memory_bytes(void);
struct usage_windows *usage_windows_make(struct arena *arena);

/* Something was appended: a window is open. */
void usage_windows_appended(struct store *store, struct replica *replica);
/* A METER_CLOSE was executed. */
void usage_windows_closed(struct store *store, struct replica *replica);
void usage_windows_tick(struct store *store);
/* Found by a start: the open window, and unacknowledged closes. */
void usage_windows_recovered(struct store *store, struct replica *replica);

/* Close the open window now; at most one close is in flight per partition: the next is proposed
 * when this one was executed. NOT_FOUND: nothing is due. */
enum status usage_windows_propose(struct store *store, struct replica *replica, int force,
                                  uint64_t token, int waits);
int usage_windows_busy(const struct replica *replica);
void usage_windows_forget(struct store *store, struct replica *replica);

void usage_windows_invariants(const struct store *store);

#endif
