/* service/shard_queues.h: the queues between the shards of a node.
 *
 * From every shard to every shard two bounded rings: the main queue (requests, hand-overs) and the
 * reply queue (outcomes, releases). The main queue may refuse: the caller answers BUSY and the drop
 * is counted. The reply queue loses no frame: what finds it full waits in order in the sender's
 * memory (the backlog), and so do hand-overs of connections and tables. The receiver checks that it
 * is the target and owns the partition. */
#ifndef SERVICE_SHARD_QUEUES_H
#define SERVICE_SHARD_QUEUES_H

#include <stddef.h>
#include <stdint.h>

#include "service/shard_frame.h"

enum queue_kind { QUEUE_MAIN = 0, QUEUE_REPLY = 1, QUEUES_COUNT = 2 };

/* Frames that wait in one shard at most: every pending, every lent reply and every hand-over. */
enum { QUEUES_BACKLOG_COUNT = 131072 };

enum { QUEUE_SLOTS_MIN = 128, QUEUE_SLOTS_MAX = 4096 };

struct arena;
struct service;

/* Slots of one ring, for so many shards. */
uint32_t shard_queues_slots(uint16_t shards_count);
size_t shard_queues_memory_bytes(uint16_t shards_count);
/* The rings in which the others write, and the backlog. 0 = no memory. */
int shard_queues_make(struct service *service, struct arena *arena);
/* What `source` sends to `target` lies in a ring of the target. Before the threads start. */
void shard_queues_connect(struct service *source, const struct service *target);

/* 1 = taken, 0 = full (main queue, counted). */
int shard_queues_try(struct service *service, struct shard_frame *frame, uint16_t target);
/* Never lost. */
void shard_queues_post(struct service *service, struct shard_frame *frame, uint16_t target,
                       enum queue_kind queue);
/* Waiting frames into the room that there is, then the wakes of all shards written to. */
void shard_queues_flush(struct service *service);

/* Frames of a source that were there when it was asked for: no more are taken in a turn, a busy
 * neighbour must not delay the pump. */
uint32_t shard_queues_used(const struct service *service, uint16_t source, enum queue_kind queue);
/* 1 = the next one is in *frame. */
int shard_queues_next(struct service *service, uint16_t source, enum queue_kind queue,
                      struct shard_frame *frame);
/* 1 = something has arrived. */
int shard_queues_arrived(const struct service *service);
/* 1 = frames wait for room. */
int shard_queues_delayed(const struct service *service);
/* 1 = nothing waits, nothing is under way in either direction. */
int shard_queues_empty(const struct service *service);

int shard_queues_invariants(const struct service *service);

#endif
