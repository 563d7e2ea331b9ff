#include "host/host.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "host/calls.h"
#include "host/counters.h"
#include "host/metadata.h"
#include "host/node.h"
#include "host/partitions.h"
#include "host/ring.h"
#include "host/state.h"

size_t host_memory_bytes(void)
{
    return arena_size(sizeof(struct host)) + host_ring_memory_bytes() + host_calls_memory_bytes();
}

struct host *host_make(struct arena *arena, const struct host_config *config)
{
    struct host *host = arena_take(arena, sizeof *host);
    if (!host) return NULL;
    *host = (struct host){
        .index = config->shard,
        .shards_count = config->node->shards_count,
        .call_ms = config->call_ms,
        .snapshot_retry_ms = config->snapshot_retry_ms,
        .node = config->node,
        .now = config->now,
        .store = config->store,
        .service = config->service,
        .tables = config->tables,
        .tally = config->tally,
        .pool = config->pool,
        .grpc = config->grpc,
    };
    if (!host_ring_make(host, arena) || !host_calls_make(host, arena)) return NULL;
    const struct grpc_service methods = {&host_method, 1, host};
    grpc_server_register(host->grpc, &methods);
    return host;
}

const struct host_counters *host_counters(const struct host *host)
{
    return &host->counters;
}

void host_start(struct host *host)
{
    if (host->index == 0) host_metadata_start(host);
    host_flush(host);
}

void host_report(struct host *host)
{
    host_meters(host);
    host_trims(host);
    host_counters_turn(host);
}

int host_invariants(const struct host *host)
{
    assert(host->posted <= 1);
    return host_ring_invariants(host) && host_calls_invariants(host)
           && host_metadata_invariants(host);
}
