#include "service/fetch/fetch_remote.h"

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "service/fetch/fetch_answer.h"
#include "service/fetch/fetch_run.h"
#include "service/fetch/fetch_wait.h"
#include "service/pendings.h"
#include "service/shard_queues.h"
#include "service/state.h"

static enum grpc_error fetch_forward(struct call *call, const struct fetch_request *request,
                                     uint16_t owner)
{
    struct service *service = service_of(call);
    struct pending values = {
        .kind = PENDING_FETCH, .call_index = call->index, .call_tag = call->slot_tag};
    struct shard_frame frame = {
        .kind = FRAME_FETCH, .token = pending_take(service, &values), .fetch = *request};
    if (frame.token != 0 && shard_queues_try(service, &frame, owner)) {
        work_of(call)->fetch_pending = frame.token;
        work_of(call)->fetch_owner = owner;
        work_of(call)->fetch_id = request->id;
        work_of(call)->pending_count++;
        service->counters.fetch_forwarded++;
        return GRPC_ERROR_NONE;
    }
    if (frame.token != 0) pending_give(service, pending_find(service, frame.token));
    return GRPC_ERROR_BUSY;
}

enum grpc_error fetch_begin(struct call *call, const struct fetch_request *wanted)
{
    struct service *service = service_of(call);
    uint16_t owner = owner_of(wanted->id.topic, wanted->id.partition, service->shards_count);
    if (owner != service->index) return fetch_forward(call, wanted, owner);
    struct fetch *fetch = fetch_take(service);
    if (fetch == NULL) return GRPC_ERROR_BUSY;
    fetch->request = *wanted;
    fetch->deadline_ns = wanted->deadline_ns;
    fetch->call_index = call->index;
    fetch->call_tag = call->slot_tag;
    work_of(call)->fetch_index = fetch->index + 1;
    fetch_run(service, fetch);
    return GRPC_ERROR_NONE;
}

void fetch_remote(struct service *service, const struct shard_frame *frame)
{
    struct fetch *fetch = fetch_take(service);
    if (fetch == NULL) {
        struct shard_frame answer = {
            .kind = FRAME_FETCHED, .token = frame->token, .fetched = {.status = STATUS_BUSY}};
        shard_queues_post(service, &answer, frame->source, QUEUE_REPLY);
        return;
    }
    fetch->request = frame->fetch;
    fetch->deadline_ns = frame->fetch.deadline_ns;
    fetch->remote = 1;
    fetch->shard = frame->source;
    fetch->token = frame->token;
    fetch_run(service, fetch);
}

static void fetch_forget(struct service *service, struct fetch *fetch)
{
    if (fetch->state == FETCH_READING) {
        fetch->cancelled = 1;
        return;
    }
    fetch_unlink(service, fetch);
    fetch_give(service, fetch);
}

void fetch_remote_cancel(struct service *service, const struct shard_frame *frame)
{
    struct fetch *fetch = fetch_wait_find(service, frame);
    if (fetch == NULL) return;
    fetch_unlink(service, fetch);
    fetch_fail(service, fetch, STATUS_CANCELLED, 0);
}

void fetch_cancel(struct call *call)
{
    struct service *service = service_of(call);
    if (work_of(call)->fetch_index != 0) {
        fetch_forget(service, &service->fetches.slots[work_of(call)->fetch_index - 1]);
        work_of(call)->fetch_index = 0;
        return;
    }
    /* Its pending stays until the owner answers CANCELLED, or with data that it had sent already.
     */
    struct shard_frame frame = {.kind = FRAME_FETCH_CANCEL,
                                .token = work_of(call)->fetch_pending,
                                .fetch = {.id = work_of(call)->fetch_id}};
    shard_queues_post(service, &frame, work_of(call)->fetch_owner, QUEUE_MAIN);
    work_of(call)->fetch_pending = 0;
}
