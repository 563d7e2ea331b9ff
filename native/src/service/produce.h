/* service/produce.h: Produce, ProduceStream, CommitOffsets, FetchOffsets and Health.Check on a
 * shard: requests that wait for one outcome of the store, here or on the shard that owns the
 * partition. */
#ifndef SERVICE_PRODUCE_H
#define SERVICE_PRODUCE_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "shard/queues.h"

struct shard;
struct pending;

void stream_produce(struct call *call, struct grpc_message *message);
/* ProduceStream: the client sends no more. */
void stream_produce_end(struct call *call);
/* A client part on its way into the store, for a caller that was let in: `number` is what the
 * answer repeats (Produce: the request, Publish: the partition). Answers every refusal. *owned, the
 * buffer that the part lies in, is NULL afterwards if it was taken over. */
void stream_produce_submit(struct call *call, struct store_produce *produce, uint64_t number,
                           uint8_t **owned);
void stream_commit(struct call *call, struct grpc_message *message);
void stream_fetch_offsets(struct call *call, struct grpc_message *message);
void stream_health(struct call *call, struct grpc_message *message);

/* For another shard. */
void stream_remote_produce(struct shard *shard, const struct shard_frame *frame);
void stream_remote_commit(struct shard *shard, const struct shard_frame *frame);
void stream_remote_offsets(struct shard *shard, const struct shard_frame *frame);

/* An outcome for a call of this shard. Frees the pending. */
void stream_outcome(struct shard *shard, struct pending *pending,
                    const struct frame_outcome *outcome);
void stream_offsets(struct shard *shard, struct pending *pending,
                    const struct frame_offsets *offsets);

#endif
