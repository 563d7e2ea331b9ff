/* service/produce_reply.h: the last step of a Produce: what became of it, to the caller.
 *
 *     outcome -> the reply, or the error: on a ProduceStream a message and the stream lives on,
 *                else the call's status */
#ifndef SERVICE_PRODUCE_REPLY_H
#define SERVICE_PRODUCE_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "service/shard_frame.h"

/* It was refused. `number` is the request's (produce_submit). */
void produce_refuse(struct call *call, uint64_t number, const struct grpc_failure *failure);
/* What became of it (service/pendings.h). */
void produce_outcome(struct call *call, uint64_t number, const struct frame_outcome *outcome);
/* ProduceStream: the client sends no more. */
void produce_end(struct call *call);

#endif
