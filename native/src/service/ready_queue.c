/* service/ready_queue.c: see service/ready_queue.h. */
#include "service/ready_queue.h"

#include "foundation/assert.h"
#include "service/consume.h"
#include "service/fetch/fetch_remote.h"
#include "service/list_offsets.h"
#include "service/methods.h"
#include "service/state.h"

void work_ready(struct call *call)
{
    struct service *service = service_of(call);
    struct call_work *work = &service->works[call->index];
    if (call->finished || work->link.queue != NULL) return;
    if (work_of(call)->fetch_index != 0 || work_of(call)->fetch_pending != 0) return;
    queue_push(&service->works_ready, &work->link);
}

void work_fetched(struct call *call, const struct fetch_result *fetched)
{
    if (is_method(call, METHOD_CONSUME))
        consume_fetched(call, fetched);
    else
        list_offsets_fetched(call, fetched);
}

void work_forget(struct call *call)
{
    struct service *service = service_of(call);
    struct call_work *work = &service->works[call->index];
    if (work->fetch_index != 0 || work->fetch_pending != 0) fetch_cancel(call);
    if (work->link.queue != NULL) queue_remove(&service->works_ready, &work->link);
    if (work->blocked_link.queue != NULL)
        queue_remove(&service->produce_blocked, &work->blocked_link);
    *work = (struct call_work){0};
}

void works_go_on(struct service *service)
{
    /* As many as are in it now: one that is ready again has its turn in the next one. */
    for (uint64_t left = service->works_ready.count; left > 0; left--) {
        struct call_work *work =
            queue_element(queue_pop(&service->works_ready), struct call_work, link);
        struct call *call = grpc_call_at(service->grpc, (uint32_t)(work - service->works));
        assert(call != NULL);
        if (call->finished) continue;
        if (is_method(call, METHOD_CONSUME))
            consume_step(call);
        else
            list_offsets_step(call);
    }
}

int ready_queue_invariants(const struct service *service)
{
    uint64_t count = 0;
    queue_each(&service->works_ready, link)
    {
        const struct call_work *work = queue_element(link, struct call_work, link);
        const struct call *call = grpc_call_at(service->grpc, (uint32_t)(work - service->works));
        assert(call != NULL);
        assert(is_method(call, METHOD_CONSUME) || is_method(call, METHOD_LIST_OFFSETS));
        assert(work->fetch_index == 0);
        assert(work->fetch_pending == 0);
        count++;
    }
    assert(count == service->works_ready.count);
    return 1;
}
