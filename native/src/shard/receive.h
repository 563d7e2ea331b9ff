/* shard/receive.h: dispatches frames of other shards (service/shard_queues.h). */
#ifndef SHARD_RECEIVE_H
#define SHARD_RECEIVE_H

#include "service/shard_queues.h"

struct shard;

/* Everything that had arrived in one of the two queues when the turn came to it. */
void shard_receive(struct shard *shard, enum queue_kind queue);

#endif
