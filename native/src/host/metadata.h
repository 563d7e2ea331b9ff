/* host/metadata.h: shard 0 and the metadata machine of the host (A8).
 *
 *     RESTORING --RESTORED--> SPREADING -> IDLE --op--> APPLYING --APPLIED--> SPREADING -> IDLE ..
 *                                           '--due--> SNAPSHOTTING --SNAPSHOT_IS--> IDLE
 *
 * One op is at the host at a time. Its table delta goes to every shard, and only when all have
 * applied it does the op count as applied, its submitter get the result, and the next op go out:
 * whoever is told that a topic exists finds it on any shard. READY follows the last recovered op.
 */
#ifndef HOST_METADATA_H
#define HOST_METADATA_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "shard/queues.h"

struct shard;

/* Shard 0, once: hand the recovered snapshot to the host. */
void host_metadata_start(struct shard *shard);
/* Shard 0, once a turn. */
void host_metadata_pump(struct shard *shard);
void host_metadata_frame(struct shard *shard, const struct engine_frame *frame, const uint8_t *body,
                         size_t size);
/* Every other shard: a delta to apply. */
void host_metadata_tables(struct shard *shard, const struct shard_frame *frame);
/* Shard 0: one more shard has applied the delta. */
void host_metadata_spread(struct shard *shard);

#endif
