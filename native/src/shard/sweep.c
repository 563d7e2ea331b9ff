/* shard/sweep.c: when calls and connections are looked over: every so often, and at once when the
 * grants changed. */
#include "shard/sweep.h"

#include "grpc/server.h"
#include "shard/shard.h"

void shard_sweep(struct shard *shard)
{
    struct http2 *http2 = grpc_server_transport(shard->grpc);
    uint32_t revision = shard->tables.grants.revision;
    if (revision == shard->sweep_revision && shard->now.monotonic_ns < shard->sweep_ns) return;
    shard->sweep_revision = revision;
    shard->sweep_ns = shard->now.monotonic_ns + shard->sweep_ms * UINT64_C(1000000);
    if (http2_connections_count(http2) == 0) return;
    grpc_sweep(shard->grpc);
    http2_sweep(http2);
}
