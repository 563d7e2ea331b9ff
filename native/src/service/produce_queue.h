/* service/produce_queue.h: batches that the store has no room for just now.
 *
 * A full journal or ring is a matter of milliseconds: answering BUSY at once would make clients
 * repeat (and pay for) what a short wait settles. So a bounded number of batches waits here in
 * order, and everything that comes later waits behind them; streams that fill it get no more
 * HTTP/2 window. Only STATUS_BUSY waits: every other refusal is of the batch and is answered at
 * once. One principal gets at most three quarters of the room, so that others find some. Beyond the
 * bounds, or after PRODUCE_QUEUE_MS_MAX, the answer is BUSY after all. */
#ifndef SERVICE_PRODUCE_QUEUE_H
#define SERVICE_PRODUCE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"
#include "store/store.h"

enum {
    PRODUCE_QUEUE_COUNT_MAX = 16384,
    PRODUCE_QUEUE_POOL_PART = 4,  /* bytes waiting: at most this part of the pool */
    PRODUCE_QUEUE_DEEP_PART = 32, /* from there on streams get no more window */
    PRODUCE_QUEUE_MS_MAX = 2000,
    PRODUCE_UNREAD_BYTES = 262144, /* unsent answers of a stream from where on it gets no window */
    PRODUCE_QUEUE_PRINCIPALS = 64, /* buckets of principals, by number */
    /* Of the bytes, to one bucket: more than one stream's window beyond a deep queue, in the
     * smallest pool too. */
    PRODUCE_QUEUE_PRINCIPAL_PERCENT = 75,
};

struct call;
struct service;

struct produce_waiting {
    struct produce_waiting *next;
    struct store_produce produce;
    uint8_t *owned; /* the batch's buffer, if it is ours; else lent by another shard */
    uint64_t since_ns;
};

struct produce_queue {
    struct produce_waiting *head;
    struct produce_waiting *tail;
    uint32_t count;
    uint64_t bytes;
    uint64_t bytes_of[PRODUCE_QUEUE_PRINCIPALS];
};

/* Is there room for a batch of `size` bytes in the queue of a shard with such a pool? The first of
 * a principal is let in whatever its share. */
int produce_queue_fits(const struct produce_queue *queue, uint64_t pool_bytes, uint32_t principal,
                       uint64_t size);
/* Like store_produce; OK may also mean that the batch waits. Its bytes must stay until the outcome
 * if `lent`; otherwise they are copied, or *owned (the buffer they lie in) is taken over and set to
 * NULL. */
enum status produce_queue_offer(struct service *service, const struct store_produce *produce,
                                int lent, uint8_t **owned);
/* 1 = the queue is deep, or the stream's client does not read its answers: this ProduceStream's
 * window is withheld until neither is true. */
int produce_queue_withhold(struct call *call);
/* Some of its answers have left. */
void produce_queue_read(struct call *call, size_t size);
/* Once a turn: whatever has room now. */
void produce_queue_retry(struct service *service);

/* `all`: however many wait. */
int produce_queue_invariants(const struct service *service, int all);

#endif
