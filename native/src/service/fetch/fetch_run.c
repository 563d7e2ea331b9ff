#include "service/fetch/fetch_run.h"

#include "foundation/assert.h"
#include "grpc/reply_budget.h"
#include "service/fetch/fetch_answer.h"
#include "service/fetch/fetch_read.h"
#include "service/fetch/fetch_reply.h"
#include "service/fetch/fetch_wait.h"
#include "service/state.h"

static void fetch_memory(struct service *service, struct fetch *fetch,
                         const struct store_fetch *found)
{
    if (fetch->request.messages_max > 0) {
        fetch_answer_messages(service, fetch, PROTO_FETCH_OK, found, found->batches,
                              found->batches_count);
        return;
    }
    struct reply *reply = fetch_reply_memory(service, found, fetch_is_consume(fetch));
    if (reply == NULL) {
        fetch_fail(service, fetch, STATUS_NO_MEMORY, 0);
        return;
    }
    fetch_charge(service, fetch, reply);
    fetch_deliver(service, fetch, reply, reply->body.data + reply->body.size - found->size,
                  found->size);
}

static void fetch_found(struct service *service, struct fetch *fetch,
                        const struct store_fetch *found)
{
    uint32_t principal = fetch->request.principal;
    if (found->place == STORE_FETCH_NOTHING)
        fetch_answer_status(service, fetch, PROTO_FETCH_EMPTY, found);
    else if (fetch_is_budgeted(fetch)
             && !reply_budget_room(service->grpc, REPLY_BATCHES, principal, found->size))
        fetch_wait_memory(service, fetch);
    else if (found->place == STORE_FETCH_MEMORY)
        fetch_memory(service, fetch, found);
    else
        fetch_file(service, fetch, found);
}

void fetch_run(struct service *service, struct fetch *fetch)
{
    assert(fetch->state == FETCH_RUNNING);
    struct store_fetch found = {0};
    const struct fetch_request *request = &fetch->request;
    store_fetch(service->store, &request->id, request->offset, request->bytes_max, request->group,
                request->generation, &found);
    int nothing = found.status == STATUS_OK && found.place == STORE_FETCH_NOTHING;
    int may_wait = fetch->deadline_ns > service->now->monotonic_ns && !service->draining;
    int waits =
        nothing ? !(request->flags & FETCH_ANSWER_EMPTY) : found.status == STATUS_GROUP_PENDING;
    if (waits && may_wait) {
        fetch_wait(service, fetch);
        return;
    }
    timer_clear(service->timers, &fetch->timer);
    if (found.status == STATUS_OK) {
        fetch_found(service, fetch, &found);
        return;
    }
    if (found.status == STATUS_TRUNCATED) {
        fetch_answer_status(service, fetch, PROTO_FETCH_TRUNCATED, &found);
        return;
    }
    if (fetch_is_work(fetch)) {
        fetch_fail(service, fetch, found.status, found.log_start);
        return;
    }
    switch (found.status) {
    case STATUS_CORRUPT: fetch_answer_status(service, fetch, PROTO_FETCH_CORRUPT, &found); break;
    case STATUS_NOT_PRIMARY:
        fetch_answer_status(service, fetch, PROTO_FETCH_NOT_PRIMARY, &found);
        break;
    case STATUS_REBUILDING:
        fetch_answer_status(service, fetch, PROTO_FETCH_REBUILDING, &found);
        break;
    default: fetch_fail(service, fetch, found.status, found.log_start);
    }
}
