#include "service/produce_queue.h"

#include <string.h>

#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/state.h"

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

static void waiting_push(struct service *service, struct produce_waiting *waiting)
{
    struct produce_queue *queue = &service->produce_queue;
    if (queue->tail != NULL)
        queue->tail->next = waiting;
    else
        queue->head = waiting;
    queue->tail = waiting;
    queue->count++;
    queue->bytes += waiting->produce.batch_size;
    *bytes_of(queue, waiting->produce.principal) += waiting->produce.batch_size;
    service->counters.produce_waits++;
}

static enum status produce_wait(struct service *service, const struct store_produce *produce,
                                int lent, uint8_t **owned)
{
    int copies = !lent && *owned == NULL;
    int fits = produce_queue_fits(&service->produce_queue, service->pool->region_size,
                                  produce->principal, produce->batch_size);
    struct produce_waiting *waiting = fits ? buffer_take(service->pool, sizeof *waiting) : NULL;
    uint8_t *copy =
        waiting != NULL && copies ? buffer_take(service->pool, produce->batch_size) : NULL;
    int taken = waiting != NULL && (!copies || copy != NULL);
    if (taken) {
        *waiting = (struct produce_waiting){
            .produce = *produce,
            .owned = copies ? copy : *owned,
            .since_ns = service->now->monotonic_ns,
        };
        if (copies) {
            memcpy(copy, produce->batch, produce->batch_size);
            waiting->produce.batch = copy;
        }
        *owned = NULL;
        waiting_push(service, waiting);
    } else {
        buffer_give(service->pool, waiting);
    }
    return taken ? STATUS_OK : STATUS_BUSY;
}

enum status produce_queue_offer(struct service *service, const struct store_produce *produce,
                                int lent, uint8_t **owned)
{
    assert(produce->token != 0);
    ergo(lent, *owned == NULL);
    /* What comes later waits behind what waits already. */
    enum status status = STATUS_BUSY;
    if (service->produce_queue.head == NULL) status = store_produce(service->store, produce);
    if (status == STATUS_BUSY) status = produce_wait(service, produce, lent, owned);
    return status;
}

/* No call waits for it any more, and nothing of it was stored. */
static int is_abandoned(struct service *service, const struct pending *pending)
{
    if (pending->kind != PENDING_PRODUCE) return 0;
    return grpc_call_find(service->grpc, pending->call_index, pending->call_tag) == NULL;
}

static int is_deep(const struct service *service)
{
    return service->produce_queue.bytes > service->pool->region_size / PRODUCE_QUEUE_DEEP_PART;
}

int produce_queue_withhold(struct call *call)
{
    struct service *service = service_of(call);
    if (call->stream.bodies_bytes > PRODUCE_UNREAD_BYTES) return 1;
    if (!is_deep(service)) return 0;
    struct call_work *work = work_of(call);
    if (work->blocked_link.queue == NULL)
        queue_push(&service->produce_blocked, &work->blocked_link);
    call->window_withheld = 1;
    return 1;
}

void produce_queue_read(struct call *call, size_t size)
{
    (void)size;
    if (work_of(call)->blocked_link.queue != NULL
        || call->stream.bodies_bytes > PRODUCE_UNREAD_BYTES / 2)
        return;
    grpc_window_return(call, UINT64_MAX);
}

static void blocked_release(struct service *service)
{
    if (is_deep(service)) return;
    while (!queue_empty(&service->produce_blocked)) {
        struct call_work *work =
            queue_element(queue_pop(&service->produce_blocked), struct call_work, blocked_link);
        struct call *call = grpc_call_at(service->grpc, (uint32_t)(work - service->works));
        assert(call != NULL);
        call->window_withheld = 0;
        if (call->stream.bodies_bytes <= PRODUCE_UNREAD_BYTES) grpc_window_return(call, UINT64_MAX);
    }
}

static void queue_advance(struct service *service)
{
    struct produce_queue *queue = &service->produce_queue;
    while (queue->head != NULL) {
        struct produce_waiting *waiting = queue->head;
        struct pending *pending = pending_find(service, waiting->produce.token);
        assert(pending != NULL);
        uint64_t waited_ns = service->now->monotonic_ns - waiting->since_ns;
        struct store_outcome outcome = {.token = waiting->produce.token,
                                        .status = STATUS_CANCELLED};
        if (!is_abandoned(service, pending))
            outcome.status = store_produce(service->store, &waiting->produce);
        int patient = waited_ns < PRODUCE_QUEUE_MS_MAX * UINT64_C(1000000);
        if (outcome.status == STATUS_BUSY && patient) return;
        queue->head = waiting->next;
        if (queue->head == NULL) queue->tail = NULL;
        assert(queue->count > 0);
        queue->count--;
        queue->bytes -= waiting->produce.batch_size;
        *bytes_of(queue, waiting->produce.principal) -= waiting->produce.batch_size;
        buffer_give(service->pool, waiting->owned);
        buffer_give(service->pool, waiting);
        if (outcome.status != STATUS_OK) service_outcome(service, pending, &outcome);
    }
}

void produce_queue_retry(struct service *service)
{
    queue_advance(service);
    blocked_release(service);
}

enum { WALKED_MAX = 64 /* a walk over more after every turn would be too dear */ };

static void waiting_invariants(const struct produce_queue *queue)
{
    uint64_t bytes = 0;
    uint64_t of[PRODUCE_QUEUE_PRINCIPALS] = {0};
    uint32_t count = 0;
    const struct produce_waiting *last = NULL;
    for (const struct produce_waiting *at = queue->head; at != NULL; at = at->next) {
        assert(at->produce.token != 0);
        ergo(at->owned != NULL, at->produce.batch >= at->owned);
        ergo(last != NULL, last->since_ns <= at->since_ns);
        bytes += at->produce.batch_size;
        of[at->produce.principal % PRODUCE_QUEUE_PRINCIPALS] += at->produce.batch_size;
        last = at;
        count++;
    }
    assert(queue->tail == last);
    assert(queue->count == count);
    assert(queue->bytes == bytes);
    assert(memcmp(queue->bytes_of, of, sizeof of) == 0);
}

int produce_queue_invariants(const struct service *service, int all)
{
    const struct produce_queue *queue = &service->produce_queue;
    assert((queue->head == NULL) == (queue->count == 0));
    assert(queue->count <= PRODUCE_QUEUE_COUNT_MAX);
    assert(queue->bytes <= service->pool->region_size / PRODUCE_QUEUE_POOL_PART);
    ergo(queue->count == 0, queue->bytes == 0);
    if (all || queue->count <= WALKED_MAX) waiting_invariants(queue);
    queue_each(&service->produce_blocked, link)
    {
        const struct call_work *work = queue_element(link, struct call_work, blocked_link);
        const struct call *call = grpc_call_at(service->grpc, (uint32_t)(work - service->works));
        assert(call != NULL);
        assert(call->window_withheld);
    }
    return 1;
}
