/* host/host.h: a shard's door to the Python host: two rings, the calls and requests that cross
 * them, and on shard 0 the metadata machine of the host.
 *
 * The shard drives it, turn by turn, and never waits for the host. Its state is private to host/;
 * what other threads may call says so. */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"
#include "store/store.h"

struct arena;
struct buffer_pool;
struct grpc_server;
struct host;
struct node;
struct service;
struct tables;
struct tally;

/* All that is pointed to outlives the host. */
struct host_config {
    uint16_t shard;
    uint32_t call_ms;
    uint32_t snapshot_retry_ms;
    struct node *node;
    const struct store_now *now; /* of this turn */
    struct store *store;
    struct service *service;
    struct tables *tables;
    struct tally *tally;
    struct buffer_pool *pool;
    struct grpc_server *grpc;
};

/* Only the shard's thread writes; engine_metrics reads. */
struct host_counters {
    uint64_t late_host_answers, host_opens_refused, host_frames_out, host_frames_in;
    uint64_t meter_frames, usage_unattributed, counter_frames, counter_rows;
    uint64_t snapshot_bytes;    /* of the last one offered */
    uint64_t snapshots_refused; /* it found no room, or was too large */
};

size_t host_memory_bytes(void);
/* NULL = no memory. Its method is registered: before the first connection. */
struct host *host_make(struct arena *arena, const struct host_config *config);
const struct host_counters *host_counters(const struct host *host);

/* Once, by the shard's thread: shard 0 hands the recovered metadata to the host. */
void host_start(struct host *host);
/* What the host asked for is done in host_receive (host/ring.h); what there is for it, here: closed
 * windows, trims, counters. */
void host_report(struct host *host);

/* Once a turn in checked builds: ends the process where counts and links do not hold. */
int host_invariants(const struct host *host);

#endif
