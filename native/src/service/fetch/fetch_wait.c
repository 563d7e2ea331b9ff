#include "service/fetch/fetch_wait.h"

#include "foundation/assert.h"
#include "service/fetch/fetch_answer.h"
#include "service/fetch/fetch_run.h"
#include "service/state.h"

enum { FETCH_WAIT_MS_MIN = 1000, FETCH_RETRIES_PER_TURN = 64 };

static struct queue *bucket_of(const struct service *service, const struct engine_partition_id *id)
{
    uint64_t mixed = (id->topic * 31 + id->partition) * UINT64_C(0x9E3779B97F4A7C15);
    return &service->fetches.buckets[(mixed >> 40) % FETCH_BUCKETS_COUNT];
}

static struct fetch *remote_find(const struct queue *queue, const struct shard_frame *frame)
{
    queue_each(queue, link)
    {
        struct fetch *fetch = queue_element(link, struct fetch, link);
        if (fetch->remote && fetch->token == frame->token && fetch->shard == frame->source)
            return fetch;
    }
    return NULL;
}

/* Out of whatever it waits in. READING stays: the read is out and will come back. */
void fetch_unlink(struct service *service, struct fetch *fetch)
{
    timer_clear(service->timers, &fetch->timer);
    if (fetch->state == FETCH_POLLING)
        queue_remove(bucket_of(service, &fetch->request.id), &fetch->link);
    if (fetch->state == FETCH_QUEUED) queue_remove(&service->fetches.queued, &fetch->link);
    if (fetch->state == FETCH_WAITING) queue_remove(&service->fetches.waiting, &fetch->link);
    fetch->state = FETCH_RUNNING;
}

struct fetch *fetch_wait_find(struct service *service, const struct shard_frame *frame)
{
    /* Rare enough for a walk over those that wait for this partition, or for memory. */
    struct fetch *fetch = remote_find(bucket_of(service, &frame->fetch.id), frame);
    return fetch != NULL ? fetch : remote_find(&service->fetches.waiting, frame);
}

const struct queue *fetch_wait_queue(const struct service *service, const struct fetch *fetch)
{
    switch (fetch->state) {
    case FETCH_POLLING: return bucket_of(service, &fetch->request.id);
    case FETCH_QUEUED: return &service->fetches.queued;
    case FETCH_WAITING: return &service->fetches.waiting;
    default: return NULL;
    }
}

void fetch_queue(struct service *service, struct fetch *fetch)
{
    fetch->state = FETCH_QUEUED;
    queue_push(&service->fetches.queued, &fetch->link);
}

void fetch_wait(struct service *service, struct fetch *fetch)
{
    fetch->state = FETCH_POLLING;
    queue_push(bucket_of(service, &fetch->request.id), &fetch->link);
    if (fetch->timer.deadline_ns == 0 && fetch->deadline_ns != FETCH_FOREVER)
        timer_set(service->timers, &fetch->timer, fetch->deadline_ns);
    service->counters.fetch_waits++;
}

/* Until replies have left memory. Only a stream waits for ever: it asked for no answer by then. */
void fetch_wait_memory(struct service *service, struct fetch *fetch)
{
    if (fetch_is_consume(fetch)) {
        service->counters.consume_memory_waits++;
    } else if (fetch->wait_until_ns == 0) {
        service->counters.fetch_memory_waits++;
        fetch->wait_until_ns = service->now->monotonic_ns + FETCH_WAIT_MS_MIN * UINT64_C(1000000);
        if (fetch->wait_until_ns < fetch->deadline_ns) fetch->wait_until_ns = fetch->deadline_ns;
    } else if (fetch->wait_until_ns <= service->now->monotonic_ns) {
        fetch_fail(service, fetch, STATUS_REPLIES_FULL, 0);
        return;
    }
    if (service->draining) {
        fetch_fail(service, fetch, STATUS_STOPPING, 0);
        return;
    }
    fetch->state = FETCH_WAITING;
    queue_push(&service->fetches.waiting, &fetch->link);
    if (!fetch_is_consume(fetch)) timer_set(service->timers, &fetch->timer, fetch->wait_until_ns);
}

void fetch_advance(struct service *service, const struct engine_partition_id *id)
{
    struct queue *bucket = bucket_of(service, id);
    /* As many as are in it now: one that waits again joins behind. */
    for (uint64_t left = bucket->count; left > 0; left--) {
        struct fetch *fetch = queue_element(queue_pop(bucket), struct fetch, link);
        if (fetch->request.id.topic != id->topic || fetch->request.id.partition != id->partition) {
            queue_push(bucket, &fetch->link);
            continue;
        }
        fetch->state = FETCH_RUNNING;
        fetch_run(service, fetch);
    }
}

void fetch_timeout(struct service *service, struct timer *timer)
{
    struct fetch *fetch = queue_element(&timer->link, struct fetch, timer.link);
    if (fetch->state == FETCH_QUEUED) return;
    assert(fetch->state == FETCH_POLLING || fetch->state == FETCH_WAITING);
    fetch->deadline_ns = 0;
    fetch_unlink(service, fetch);
    fetch_run(service, fetch);
}

void fetch_go_on(struct service *service)
{
    /* As many as are in it now: one that still finds no read joins behind. */
    for (uint64_t left = service->fetches.queued.count; left > 0; left--) {
        struct fetch *fetch =
            queue_element(queue_pop(&service->fetches.queued), struct fetch, link);
        fetch->state = FETCH_RUNNING;
        fetch_run(service, fetch);
    }
    /* Some of those that wait for memory: the others in the next turns. */
    uint64_t *left = &service->fetches.waiting_to_retry;
    if (*left > service->fetches.waiting.count) *left = service->fetches.waiting.count;
    for (uint64_t turn = 0; *left > 0 && turn < FETCH_RETRIES_PER_TURN; turn++, (*left)--) {
        struct fetch *fetch = queue_element(service->fetches.waiting.head, struct fetch, link);
        fetch_unlink(service, fetch);
        fetch_run(service, fetch);
    }
}

void fetch_drain(struct service *service)
{
    assert(service->draining);
    for (uint32_t index = 0; index < FETCHES_COUNT_MAX; index++) {
        struct fetch *fetch = &service->fetches.slots[index];
        if (fetch->state != FETCH_POLLING && fetch->state != FETCH_WAITING) continue;
        fetch->deadline_ns = 0;
        fetch_unlink(service, fetch);
        fetch_run(service, fetch);
    }
}
