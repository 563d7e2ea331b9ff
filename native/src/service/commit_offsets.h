/* service/commit_offsets.h: CommitOffsets: a group's offset as an op of the partition's own log. */
#ifndef SERVICE_COMMIT_OFFSETS_H
#define SERVICE_COMMIT_OFFSETS_H

#include "grpc/call.h"
#include "service/shard_frame.h"

struct service;

void commit_offsets_message(struct call *call, struct grpc_message *message);
/* For another shard. */
void commit_offsets_remote(struct service *service, const struct shard_frame *frame);
/* What became of it (service/pendings.h). */
void commit_offsets_outcome(struct call *call, const struct frame_outcome *outcome);

#endif
