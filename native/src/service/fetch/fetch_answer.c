#include "service/fetch/fetch_answer.h"

#include "foundation/assert.h"
#include "grpc/reply_budget.h"
#include "grpc/server.h"
#include "service/fetch/fetch.h"
#include "service/fetch/fetch_messages.h"
#include "service/fetch/fetch_reply.h"
#include "service/shard_queues.h"
#include "service/state.h"

/* The one answer; its reply is given away. Frees the fetch. */
void fetch_answer(struct service *service, struct fetch *fetch, const struct fetch_result *fetched)
{
    ergo(fetched->status == STATUS_OK, fetched->reply != NULL);
    if (fetch->remote) {
        struct shard_frame frame = {
            .kind = FRAME_FETCHED, .token = fetch->token, .fetched = *fetched};
        shard_queues_post(service, &frame, fetch->shard, QUEUE_REPLY);
        fetch_give(service, fetch);
        return;
    }
    struct call *call = grpc_call_find(service->grpc, fetch->call_index, fetch->call_tag);
    assert(call != NULL);
    assert(work_of(call)->fetch_index == fetch->index + 1);
    work_of(call)->fetch_index = 0;
    fetch_give(service, fetch);
    fetch_call_answer(call, fetched);
}

void fetch_fail(struct service *service, struct fetch *fetch, enum status status, uint64_t expected)
{
    struct fetch_result fetched = {.status = status, .expected = expected};
    fetch_answer(service, fetch, &fetched);
}

/* Batches are in `reply`, shaped. */
void fetch_deliver(struct service *service, struct fetch *fetch, struct reply *reply,
                   const uint8_t *batches, size_t size)
{
    struct fetch_result fetched = {
        .status = STATUS_OK, .fetch_status = PROTO_FETCH_OK, .reply = reply};
    if (fetch_is_work(fetch)) {
        fetched.next_offset = store_fetch_next(batches, size);
        fetched.batches_bytes = size;
    }
    fetch_answer(service, fetch, &fetched);
}

void fetch_charge(struct service *service, const struct fetch *fetch, struct reply *reply)
{
    if (fetch_is_budgeted(fetch))
        reply_budget_charge(service->grpc, REPLY_BATCHES, reply, fetch->request.principal);
}

void fetch_answer_messages(struct service *service, struct fetch *fetch,
                           enum proto_fetch_status status, const struct store_fetch *found,
                           const struct io_vector *batches, uint32_t batches_count)
{
    enum status failed = STATUS_OK;
    uint64_t expected = 0;
    struct reply *reply = fetch_messages_reply(service, &fetch->request, status, found, batches,
                                               batches_count, &failed, &expected);
    if (reply != NULL) fetch_charge(service, fetch, reply);
    struct fetch_result fetched = {
        .status = failed, .expected = expected, .fetch_status = (uint32_t)status, .reply = reply};
    fetch_answer(service, fetch, &fetched);
}

void fetch_answer_status(struct service *service, struct fetch *fetch,
                         enum proto_fetch_status status, const struct store_fetch *found)
{
    if (fetch->request.messages_max > 0) {
        fetch_answer_messages(service, fetch, status, found, NULL, 0);
        return;
    }
    struct reply *reply = grpc_reply_make(service->grpc, FETCH_ROOM);
    if (reply == NULL) {
        fetch_fail(service, fetch, STATUS_NO_MEMORY, 0);
        return;
    }
    struct proto_fetch_reply header = fetch_reply_header(status, found, 0);
    fetch_reply_shape(reply, &header, 0, fetch_is_consume(fetch));
    struct fetch_result fetched = {
        .status = STATUS_OK,
        .fetch_status = (uint32_t)status,
        .reply = reply,
        .next_offset = found->log_start,
    };
    fetch_answer(service, fetch, &fetched);
}
