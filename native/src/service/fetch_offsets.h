/* service/fetch_offsets.h: FetchOffsets: the committed offset of a group, and the log's bounds. */
#ifndef SERVICE_FETCH_OFFSETS_H
#define SERVICE_FETCH_OFFSETS_H

#include "grpc/call.h"
#include "service/shard_frame.h"

struct pending;
struct service;

void fetch_offsets_message(struct call *call, struct grpc_message *message);
/* For another shard. */
void fetch_offsets_remote(struct service *service, const struct shard_frame *frame);
/* The owner's answer. Frees the pending. */
void fetch_offsets_answered(struct service *service, struct pending *pending,
                            const struct frame_offsets *offsets);

#endif
