/* service/produce.h: Produce and ProduceStream: a batch on its way into the partition's log.
 *
 *     decode, access -> admitted here, or forwarded to the shard that owns the partition
 *     outcome        -> the reply, or the error: on a stream a message, else the call's status */
#ifndef SERVICE_PRODUCE_H
#define SERVICE_PRODUCE_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "service/shard_frame.h"

struct service;

void produce_message(struct call *call, struct grpc_message *message);
/* ProduceStream: the client sends no more. */
void produce_end(struct call *call);
/* A client part on its way into the store, for a caller that was let in: `number` is what the
 * answer repeats (Produce: the request, Publish: the partition). Answers every refusal. *owned, the
 * buffer that the part lies in, is NULL afterwards if it was taken over. */
void produce_submit(struct call *call, struct store_produce *produce, uint64_t number,
                    uint8_t **owned);
/* For another shard. */
void produce_remote(struct service *service, const struct shard_frame *frame);
/* What became of it (service/pendings.h). */
void produce_outcome(struct call *call, uint64_t number, const struct frame_outcome *outcome);

#endif
