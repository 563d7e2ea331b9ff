/* service/ready_queue.c: see service/ready_queue.h. */
#include "service/ready_queue.h"

#include "foundation/assert.h"
#include "service/consume.h"
#include "service/fetch.h"
#include "service/list_offsets.h"
#include "service/methods.h"
#include "shard/shard.h"

void stream_work_ready(struct call *call)
{
    struct shard *shard = shard_of(call);
    struct call_work *work = &shard->works[call->index];
    if (call->finished || work->link.queue != NULL) return;
    if (work_of(call)->fetch_index != 0 || work_of(call)->fetch_pending != 0) return;
    queue_push(&shard->works_ready, &work->link);
}

void stream_work_fetched(struct call *call, const struct fetch_result *fetched)
{
    if (is_method(call, METHOD_CONSUME))
        stream_consume_fetched(call, fetched);
    else
        stream_offsets_fetched(call, fetched);
}

void stream_work_forget(struct call *call)
{
    struct shard *shard = shard_of(call);
    struct call_work *work = &shard->works[call->index];
    if (work->fetch_index != 0 || work->fetch_pending != 0) stream_fetch_cancel(call);
    if (work->link.queue != NULL) queue_remove(&shard->works_ready, &work->link);
    if (work->held_link.queue != NULL) queue_remove(&shard->produce_held, &work->held_link);
    *work = (struct call_work){0};
}

void stream_works_go_on(struct shard *shard)
{
    /* As many as are in it now: one that is ready again has its turn in the next one. */
    for (uint64_t left = shard->works_ready.count; left > 0; left--) {
        struct call_work *work =
            queue_element(queue_pop(&shard->works_ready), struct call_work, link);
        struct call *call = grpc_call_at(shard->grpc, (uint32_t)(work - shard->works));
        assert(call != NULL);
        if (call->finished) continue;
        if (is_method(call, METHOD_CONSUME))
            stream_consume_step(call);
        else
            stream_offsets_step(call);
    }
}
