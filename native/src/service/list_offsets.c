#include "service/list_offsets.h"

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/fetch/fetch_remote.h"
#include "service/methods.h"
#include "service/ready_queue.h"
#include "service/state.h"

enum {
    SEARCH_BYTES = 262144,   /* of one fetch: some strides */
    SEARCH_ATTEMPTS_MAX = 8, /* then the log's start moves faster than we look: BUSY */
};

static struct time_search *search_of(const struct call *call)
{
    assert(is_method(call, METHOD_LIST_OFFSETS));
    return &service_of(call)->works[call->index].search;
}

static void search_fail(struct call *call, enum status status)
{
    struct grpc_failure failure = grpc_failure_of(status);
    grpc_finish(call, &failure);
}

static void search_answer(struct call *call)
{
    const struct store_time *found = &search_of(call)->found;
    struct proto_list_reply reply = {
        .found = found->answer == STORE_TIME_FOUND,
        .offset = found->offset,
        .append_time_us = found->append_time_us,
        .log_start = found->log_start,
        .high_watermark = found->high_watermark,
    };
    uint8_t message[PROTO_OFFSETS_REPLY_SIZE_MAX];
    grpc_reply_small(call, message, proto_encode_list_reply(&reply, message));
    grpc_finish_ok(call);
}

static void search_found(struct call *call, const struct store_time *found)
{
    struct time_search *search = search_of(call);
    if (found->status != STATUS_OK) {
        search_fail(call, found->status);
        return;
    }
    search->found = *found;
    if (found->answer != STORE_TIME_WALK) {
        search_answer(call);
        return;
    }
    search->request.offset = found->offset;
    work_ready(call);
}

/* Where does the log say that the time lies? Here, or on the owning shard. */
static void search_begin(struct call *call)
{
    struct service *service = service_of(call);
    const struct time_search *search = search_of(call);
    const struct engine_partition_id *id = &search->request.id;
    uint16_t owner = owner_of(id->topic, id->partition, service->shards_count);
    if (owner == service->index) {
        struct store_time found;
        store_time_find(service->store, id, search->time_us, &found);
        search_found(call, &found);
        return;
    }
    struct pending values = {
        .kind = PENDING_TIME, .call_index = call->index, .call_tag = call->slot_tag};
    struct shard_frame frame = {
        .kind = FRAME_TIME,
        .token = pending_take(service, &values),
        .time = {.id = *id, .time_us = search->time_us},
    };
    if (frame.token != 0 && shard_queues_try(service, &frame, owner)) {
        work_of(call)->pending_count++;
        return;
    }
    if (frame.token != 0) pending_give(service, pending_find(service, frame.token));
    grpc_finish_error(call, GRPC_ERROR_BUSY);
}

void list_offsets_message(struct call *call, struct grpc_message *message)
{
    struct service *service = service_of(call);
    struct proto_list_request request;
    if (proto_decode_list(message->data, message->size, &request) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    struct time_search *search = search_of(call);
    *search = (struct time_search){
        .request =
            {
                .id = {.topic = request.topic,
                       .created_revision = request.created_revision,
                       .partition = request.partition},
                .bytes_max = SEARCH_BYTES,
                .flags = FETCH_SEARCH,
            },
        .time_us = request.time_us,
    };
    const struct table_topic *topic;
    enum grpc_error error = access_check(service->tables, &call->caller, &search->request.id,
                                         ENGINE_VERB_CONSUME, &topic);
    if (error != GRPC_ERROR_NONE) {
        grpc_finish_error(call, error);
        return;
    }
    attribution_request(call, topic);
    search_begin(call);
}

void list_offsets_remote(struct service *service, const struct shard_frame *frame)
{
    struct shard_frame answer = {.kind = FRAME_TIME_FOUND, .token = frame->token};
    store_time_find(service->store, &frame->time.id, frame->time.time_us, &answer.time_found);
    shard_queues_post(service, &answer, frame->source, QUEUE_REPLY);
}

void list_offsets_answered(struct service *service, struct pending *pending,
                           const struct store_time *found)
{
    assert(pending->kind == PENDING_TIME);
    struct call *call = grpc_call_find(service->grpc, pending->call_index, pending->call_tag);
    pending_give(service, pending);
    if (call == NULL) {
        service->counters.late_outcomes++;
        return;
    }
    assert(work_of(call)->pending_count > 0);
    work_of(call)->pending_count--;
    if (!call->finished) search_found(call, found);
}

void list_offsets_step(struct call *call)
{
    enum grpc_error error = fetch_begin(call, &search_of(call)->request);
    if (error != GRPC_ERROR_NONE) grpc_finish_error(call, error);
}

/* The log's start has moved past where we looked: the answer is another one now. */
static void search_again(struct call *call)
{
    struct time_search *search = search_of(call);
    search->attempts++;
    if (search->attempts < SEARCH_ATTEMPTS_MAX)
        search_begin(call);
    else
        grpc_finish_error(call, GRPC_ERROR_BUSY);
}

void list_offsets_fetched(struct call *call, const struct fetch_result *fetched)
{
    struct time_search *search = search_of(call);
    struct reply *reply = fetched->reply;
    int done = call->finished;
    int again = 0;
    if (!done && fetched->status == STATUS_OK && fetched->fetch_status == PROTO_FETCH_OK) {
        assert(fetched->batches_bytes <= reply->body.size);
        assert(fetched->next_offset > search->request.offset);
        const uint8_t *batches = reply->body.data + reply->body.size - fetched->batches_bytes;
        search->request.offset = fetched->next_offset;
        (void)store_time_scan(batches, fetched->batches_bytes, search->time_us, &search->found);
    } else {
        again = fetched->status == STATUS_OK;
    }
    if (reply != NULL) grpc_reply_release(service_of(call)->grpc, reply);
    if (done) return;
    if (fetched->status != STATUS_OK)
        search_fail(call, fetched->status);
    else if (again)
        search_again(call);
    else if (search->found.answer == STORE_TIME_FOUND)
        search_answer(call);
    else
        work_ready(call);
}
