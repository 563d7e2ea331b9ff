/* host/metadata.h: shard 0 and the metadata machine of the host (A8).
 *
 *     RESTORING --RESTORED--> SPREADING -> IDLE --op--> APPLYING --APPLIED--> SPREADING -> IDLE ..
 *                                           '--due--> SNAPSHOTTING --SNAPSHOT_IS--> IDLE
 *
 * One op is at the host at a time. Its table delta goes to every shard, and only when all have
 * applied it does the op count as applied, its submitter get the result, and the next op go out:
 * a caller that learns that a topic exists finds it on any shard. READY follows the last recovered
 * op. */
#ifndef HOST_METADATA_H
#define HOST_METADATA_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "service/shard_frame.h"

struct host;

enum metadata_phase {
    METADATA_NONE = 0,      /* not shard 0 */
    METADATA_RESTORING = 1, /* RESTORE sent */
    METADATA_IDLE = 2,      /* nothing at the host */
    METADATA_APPLYING = 3,  /* one APPLY at the host */
    METADATA_SPREADING = 4, /* its delta is on its way to all shards */
    METADATA_SNAPSHOTTING = 5,
};

/* Shard 0, once: hand the recovered snapshot to the host. */
void host_metadata_start(struct host *host);
/* Shard 0, once a turn. */
void host_metadata_pump(struct host *host);
void host_metadata_frame(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                         size_t size);
/* Every other shard: a delta to apply. */
void host_metadata_tables(struct host *host, const struct shard_frame *frame);
/* Shard 0: one more shard has applied the delta. */
void host_metadata_spread(struct host *host);

int host_metadata_invariants(const struct host *host);

#endif
