#include "service/queue.h"

#include <string.h>

#include "foundation/assert.h"
#include "grpc/server.h"
#include "shard/shard.h"

int produce_queue_fits(const struct produce_queue *queue, uint64_t pool_bytes, uint32_t principal,
                       uint64_t size)
{
    uint64_t bytes_max = pool_bytes / PRODUCE_QUEUE_POOL_PART;
    if (queue->count == PRODUCE_QUEUE_COUNT_MAX) return 0;
    if (queue->bytes + size > bytes_max) return 0;
    uint64_t own = queue->bytes_of[principal % PRODUCE_QUEUE_PRINCIPALS];
    return own == 0 || own + size <= bytes_max / 100 * PRODUCE_QUEUE_PRINCIPAL_PERCENT;
}

static uint64_t *bytes_of(struct produce_queue *queue, uint32_t principal)
{
    return &queue->bytes_of[principal % PRODUCE_QUEUE_PRINCIPALS];
}

static enum status produce_wait(struct shard *shard, const struct store_produce *produce, int lent,
                                uint8_t **owned)
{
    struct produce_queue *queue = &shard->produce_queue;
    if (!produce_queue_fits(queue, shard->pool.region_size, produce->principal,
                            produce->batch_size))
        return STATUS_BUSY;
    struct produce_waiting *waiting = buffer_take(&shard->pool, sizeof *waiting);
    if (waiting == NULL) return STATUS_BUSY;
    *waiting = (struct produce_waiting){.produce = *produce, .since_ns = shard->now.monotonic_ns};
    if (!lent && *owned == NULL) {
        waiting->owned = buffer_take(&shard->pool, produce->batch_size);
        if (waiting->owned == NULL) {
            buffer_give(&shard->pool, waiting);
            return STATUS_BUSY;
        }
        memcpy(waiting->owned, produce->batch, produce->batch_size);
        waiting->produce.batch = waiting->owned;
    } else if (!lent) {
        waiting->owned = *owned;
        *owned = NULL;
    }
    if (queue->tail != NULL)
        queue->tail->next = waiting;
    else
        queue->head = waiting;
    queue->tail = waiting;
    queue->count++;
    queue->bytes += produce->batch_size;
    *bytes_of(queue, produce->principal) += produce->batch_size;
    shard->counters.produce_waits++;
    return STATUS_OK;
}

enum status produce_admit(struct shard *shard, const struct store_produce *produce, int lent,
                          uint8_t **owned)
{
    assert(produce->token != 0);
    if (shard->produce_queue.head == NULL) {
        enum status status = store_produce(shard->store, produce);
        if (status != STATUS_BUSY) return status;
    }
    return produce_wait(shard, produce, lent, owned);
}

/* Nobody waits for it any more, and nothing of it was stored. */
static int is_abandoned(struct shard *shard, const struct pending *pending)
{
    if (pending->kind != PENDING_PRODUCE) return 0;
    return grpc_call_find(shard->grpc, pending->call_index, pending->call_tag) == NULL;
}

static int is_deep(const struct shard *shard)
{
    return shard->produce_queue.bytes > shard->pool.region_size / PRODUCE_QUEUE_DEEP_PART;
}

int produce_queue_hold(struct call *call)
{
    struct shard *shard = shard_of(call);
    if (call->stream.bodies_bytes > PRODUCE_UNREAD_BYTES) return 1;
    if (!is_deep(shard)) return 0;
    struct call_work *work = work_of(call);
    if (work->held_link.queue == NULL) queue_push(&shard->produce_held, &work->held_link);
    call->window_held = 1;
    return 1;
}

void produce_queue_read(struct call *call, size_t size)
{
    (void)size;
    if (work_of(call)->held_link.queue != NULL
        || call->stream.bodies_bytes > PRODUCE_UNREAD_BYTES / 2)
        return;
    grpc_window_return(call, UINT64_MAX);
}

static void held_release(struct shard *shard)
{
    if (is_deep(shard)) return;
    while (!queue_empty(&shard->produce_held)) {
        struct call_work *work =
            queue_element(queue_pop(&shard->produce_held), struct call_work, held_link);
        struct call *call = grpc_call_at(shard->grpc, (uint32_t)(work - shard->works));
        assert(call != NULL);
        call->window_held = 0;
        if (call->stream.bodies_bytes <= PRODUCE_UNREAD_BYTES) grpc_window_return(call, UINT64_MAX);
    }
}

static void queue_advance(struct shard *shard)
{
    struct produce_queue *queue = &shard->produce_queue;
    while (queue->head != NULL) {
        struct produce_waiting *waiting = queue->head;
        struct pending *pending = pending_find(shard, waiting->produce.token);
        assert(pending != NULL);
        uint64_t waited_ns = shard->now.monotonic_ns - waiting->since_ns;
        struct store_outcome outcome = {.token = waiting->produce.token,
                                        .status = STATUS_CANCELLED};
        if (!is_abandoned(shard, pending))
            outcome.status = store_produce(shard->store, &waiting->produce);
        int patient = waited_ns < PRODUCE_QUEUE_MS_MAX * UINT64_C(1000000);
        if (outcome.status == STATUS_BUSY && patient) return;
        queue->head = waiting->next;
        if (queue->head == NULL) queue->tail = NULL;
        assert(queue->count > 0);
        queue->count--;
        queue->bytes -= waiting->produce.batch_size;
        *bytes_of(queue, waiting->produce.principal) -= waiting->produce.batch_size;
        buffer_give(&shard->pool, waiting->owned);
        buffer_give(&shard->pool, waiting);
        if (outcome.status != STATUS_OK) shard_outcome(shard, &outcome);
    }
}

void produce_queue_retry(struct shard *shard)
{
    queue_advance(shard);
    held_release(shard);
}
