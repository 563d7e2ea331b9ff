/* service/pendings.h: operations of calls whose outcome is to come, here or on the shard that owns
 * the partition. */
#ifndef SERVICE_PENDINGS_H
#define SERVICE_PENDINGS_H

#include <stdint.h>

#include "grpc/call.h"
#include "shard/shard.h"

/* 0 = the table is full. */
uint64_t pending_of_call(struct call *call, enum pending_kind kind, uint64_t number);
/* The answer has come: frees the pending and what it lent. NULL = the call is gone, which is
 * counted. */
struct call *pending_answered(struct shard *shard, struct pending *pending);
/* An outcome for a call of this shard. Frees the pending. */
void pending_outcome(struct shard *shard, struct pending *pending,
                     const struct frame_outcome *outcome);

#endif
