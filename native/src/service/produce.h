/* service/produce.h: Produce and ProduceStream, the first step: decoded, access checked, and on to
 * the store of this shard or of the one that owns the partition. The six steps of a Produce are
 * drawn in docs/internals/produce.md. */
#ifndef SERVICE_PRODUCE_H
#define SERVICE_PRODUCE_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "service/shard_frame.h"

struct service;

void produce_message(struct call *call, struct grpc_message *message);
/* A client part on its way into the store, for a caller that was let in: `number` is what the
 * answer repeats (Produce: the request, Publish: the partition). Answers every refusal. *owned, the
 * buffer that the part lies in, is NULL afterwards if it was taken over. */
void produce_submit(struct call *call, struct store_produce *produce, uint64_t number,
                    uint8_t **owned);
/* For another shard. */
void produce_remote(struct service *service, const struct shard_frame *frame);

#endif
