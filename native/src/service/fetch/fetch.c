#include "service/fetch/fetch.h"

#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/fetch/fetch_remote.h"
#include "service/methods.h"
#include "service/pendings.h"
#include "service/ready_queue.h"
#include "service/state.h"

/* A caller whose deadline is its wait wants EMPTY, not DEADLINE_EXCEEDED: answer a part earlier. */
enum {
    FETCH_HEAD_START_NS_MIN = 20000000,
    FETCH_HEAD_START_NS_MAX = 250000000,
    FETCH_HEAD_START_PART = 8,
};

uint64_t fetch_deadline(const struct call *call, uint32_t wait_ms_max)
{
    uint64_t now_ns = service_of(call)->now->monotonic_ns;
    if (wait_ms_max == 0) return 0;
    if (wait_ms_max > FETCH_WAIT_MS_MAX) wait_ms_max = FETCH_WAIT_MS_MAX;
    uint64_t deadline_ns = now_ns + wait_ms_max * UINT64_C(1000000);
    if (call->deadline_ns == 0) return deadline_ns;
    if (call->deadline_ns <= now_ns) return 0;
    uint64_t left_ns = call->deadline_ns - now_ns;
    uint64_t head_start_ns = left_ns / FETCH_HEAD_START_PART;
    if (head_start_ns < FETCH_HEAD_START_NS_MIN) head_start_ns = FETCH_HEAD_START_NS_MIN;
    if (head_start_ns > FETCH_HEAD_START_NS_MAX) head_start_ns = FETCH_HEAD_START_NS_MAX;
    if (left_ns <= head_start_ns) return 0;
    uint64_t answer_ns = call->deadline_ns - head_start_ns;
    return answer_ns < deadline_ns ? answer_ns : deadline_ns;
}

void fetch_message(struct call *call, struct grpc_message *message)
{
    struct service *service = service_of(call);
    struct proto_fetch_request request;
    if (proto_decode_fetch(message->data, message->size, &request) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    uint32_t bytes_max = request.bytes_max == 0 ? FETCH_BYTES_DEFAULT : request.bytes_max;
    if (bytes_max > FETCH_BYTES_MAX) bytes_max = FETCH_BYTES_MAX;
    struct fetch_request wanted = {
        .id = {.topic = request.topic,
               .created_revision = request.created_revision,
               .partition = request.partition},
        .offset = request.offset,
        .group = request.group,
        .generation = request.generation,
        .deadline_ns = fetch_deadline(call, request.wait_ms_max),
        .bytes_max = bytes_max,
        .principal = call->caller.principal,
    };
    const struct table_topic *topic;
    enum grpc_error error =
        access_check(service->tables, &call->caller, &wanted.id, ENGINE_VERB_CONSUME, &topic);
    if (error == GRPC_ERROR_NONE) {
        attribution_request(call, topic);
        error = fetch_begin(call, &wanted);
    }
    if (error != GRPC_ERROR_NONE) grpc_finish_error(call, error);
}

void fetch_call_answer(struct call *call, const struct fetch_result *fetched)
{
    if (!is_method(call, METHOD_FETCH) && !is_method(call, METHOD_FETCH_MESSAGES)) {
        work_fetched(call, fetched);
        return;
    }
    if (fetched->status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(fetched->status);
        failure.expected = fetched->expected;
        grpc_finish(call, &failure);
        return;
    }
    attribution_reply(call, fetched->reply);
    grpc_reply_queue(call, fetched->reply);
    grpc_finish_ok(call);
}

void fetch_answered(struct service *service, struct pending *pending,
                    const struct fetch_result *fetched)
{
    struct call *call = grpc_call_find(service->grpc, pending->call_index, pending->call_tag);
    pending_give(service, pending);
    if (call == NULL) {
        service->counters.late_outcomes++;
        if (fetched->reply != NULL) grpc_reply_release(service->grpc, fetched->reply);
        return;
    }
    assert(work_of(call)->pending_count > 0);
    work_of(call)->pending_count--;
    work_of(call)->fetch_pending = 0;
    fetch_call_answer(call, fetched);
}
