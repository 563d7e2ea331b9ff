/* service/fetch/fetch_wait.h: fetches that wait: for data, for a read, for memory. */
#ifndef SERVICE_FETCH_FETCH_WAIT_H
#define SERVICE_FETCH_FETCH_WAIT_H

#include "service/shard_frame.h"

struct engine_partition_id;
struct fetch;
struct queue;
struct service;
struct timer;

/* For data, until its deadline. */
void fetch_wait(struct service *service, struct fetch *fetch);
/* Until replies have left memory. Only a stream waits for ever: it asked for no answer by then. */
void fetch_wait_memory(struct service *service, struct fetch *fetch);
/* Asked again at the end of the turn. */
void fetch_queue(struct service *service, struct fetch *fetch);
/* Out of whatever it waits in. READING stays: the read is out and will come back. */
void fetch_unlink(struct service *service, struct fetch *fetch);
/* The queue that a fetch in its state lies in; NULL = in none. */
const struct queue *fetch_wait_queue(const struct service *service, const struct fetch *fetch);
/* The fetch of another shard's pending, if it waits for data or memory; else NULL. */
struct fetch *fetch_wait_find(struct service *service, const struct shard_frame *frame);

/* A partition has more to give (store_advance_next). */
void fetch_advance(struct service *service, const struct engine_partition_id *id);
void fetch_timeout(struct service *service, struct timer *timer);
/* Once a turn: fetches that waited for a free read, or must read more than they did. */
void fetch_go_on(struct service *service);
/* Answer every waiting fetch as if its time were up. */
void fetch_drain(struct service *service);

#endif
