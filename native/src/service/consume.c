#include "service/consume.h"

#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/fetch/fetch_remote.h"
#include "service/methods.h"
#include "service/ready_queue.h"
#include "service/state.h"

static struct consume *consume_of(const struct call *call)
{
    assert(is_method(call, METHOD_CONSUME));
    return &service_of(call)->works[call->index].consume;
}

/* The error is the last message; the call itself ends well. */
static void consume_end(struct call *call, const struct grpc_failure *failure)
{
    if (call->finished) return;
    grpc_failure_count(call, failure->error);
    struct proto_error error;
    grpc_failure_proto(failure, &error);
    uint8_t message[PROTO_CONSUME_ERROR_SIZE_MAX];
    grpc_reply_small(call, message, proto_encode_consume_error(&error, message));
    grpc_finish_ok(call);
}

static void consume_end_error(struct call *call, enum grpc_error error)
{
    struct grpc_failure failure = {.error = error};
    consume_end(call, &failure);
}

static enum grpc_error consume_access(const struct call *call, const struct table_topic **topic)
{
    const struct service *service = service_of(call);
    return access_check(service->tables, &call->caller, &consume_of(call)->request.id,
                        ENGINE_VERB_CONSUME, topic);
}

static void credit_add(struct consume *consume, uint64_t credit)
{
    uint64_t room = (uint64_t)INT64_MAX - (uint64_t)(consume->credit > 0 ? consume->credit : 0);
    consume->credit += (int64_t)(credit < room ? credit : room);
}

static void consume_begin(struct call *call, const struct proto_consume_begin *begin)
{
    struct consume *consume = consume_of(call);
    assert(!consume->begun);
    uint32_t bytes_max = begin->bytes_max == 0 ? CONSUME_REPLY_BYTES_MAX : begin->bytes_max;
    *consume = (struct consume){
        .request =
            {
                .id = {.topic = begin->topic,
                       .created_revision = begin->created_revision,
                       .partition = begin->partition},
                .offset = begin->offset,
                .group = begin->group,
                .generation = begin->generation,
                .deadline_ns = FETCH_FOREVER,
                .principal = call->caller.principal,
            },
        .bytes_max = bytes_max < CONSUME_REPLY_BYTES_MAX ? bytes_max : CONSUME_REPLY_BYTES_MAX,
        .begun = 1,
    };
    credit_add(consume, begin->credit);
    const struct table_topic *topic;
    enum grpc_error error = consume_access(call, &topic);
    if (error == GRPC_ERROR_NONE && service_of(call)->draining) error = GRPC_ERROR_STOPPING;
    if (error != GRPC_ERROR_NONE)
        consume_end_error(call, error);
    else
        attribution_request(call, topic);
}

void consume_message(struct call *call, struct grpc_message *message)
{
    struct consume *consume = consume_of(call);
    struct proto_consume_request request;
    struct proto_consume_begin begin = {0};
    enum status status = proto_decode_consume(message->data, message->size, &request);
    int begins = request.begin.data != NULL;
    if (status == STATUS_OK && begins) status = proto_decode_consume_begin(request.begin, &begin);
    /* The first message begins, and no other. */
    if (status != STATUS_OK || begins == consume->begun) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    if (begins)
        consume_begin(call, &begin);
    else
        credit_add(consume, request.credit);
    consume_ready(call);
}

void consume_ready(struct call *call)
{
    if (consume_of(call)->begun) work_ready(call);
}

/* Whatever is in the way makes the stream ready again when it has gone. */
void consume_step(struct call *call)
{
    struct consume *consume = consume_of(call);
    assert(!call->finished && consume->begun);
    assert(work_of(call)->fetch_index == 0 && work_of(call)->fetch_pending == 0);
    if (consume->credit <= 0) {
        /* No more credit can come: everything that was asked for was sent. */
        if (call->stream.half_closed) grpc_finish_ok(call);
        return;
    }
    if (call->stream.bodies_bytes >= CONSUME_AHEAD_BYTES) return;
    if (!reply_share_room(call)) return;
    const struct table_topic *topic;
    enum grpc_error error = consume_access(call, &topic);
    if (error == GRPC_ERROR_NONE) {
        struct fetch_request *request = &consume->request;
        request->flags = FETCH_CONSUME | (consume->caught_up ? 0 : FETCH_ANSWER_EMPTY);
        request->bytes_max = consume->credit < (int64_t)consume->bytes_max
                                 ? (uint32_t)consume->credit
                                 : consume->bytes_max;
        error = fetch_begin(call, request);
    }
    if (error != GRPC_ERROR_NONE) consume_end_error(call, error);
}

void consume_fetched(struct call *call, const struct fetch_result *fetched)
{
    struct service *service = service_of(call);
    struct consume *consume = consume_of(call);
    if (call->finished) {
        if (fetched->reply != NULL) grpc_reply_release(service->grpc, fetched->reply);
        return;
    }
    if (fetched->status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(fetched->status);
        failure.expected = fetched->expected;
        consume_end(call, &failure);
        return;
    }
    if (fetched->fetch_status == PROTO_FETCH_EMPTY) {
        if (consume->caught_up) {
            /* A wait ends without data only where the owner stops. */
            grpc_reply_release(service->grpc, fetched->reply);
            consume_end_error(call, GRPC_ERROR_STOPPING);
            return;
        }
        consume->caught_up = 1;
    } else {
        assert(fetched->next_offset > consume->request.offset);
        consume->request.offset = fetched->next_offset;
        consume->credit -= (int64_t)fetched->batches_bytes;
        consume->caught_up = 0;
    }
    struct reply *reply = fetched->reply;
    reply_share_take(call, reply);
    attribution_reply(call, reply);
    grpc_reply_queue(call, reply);
    consume_ready(call);
}

void consume_pushable(struct http2_connection *connection)
{
    queue_each(http2_streams(connection), link)
    {
        struct call *call = queue_element(link, struct call, stream.link);
        if (is_method(call, METHOD_CONSUME)) consume_ready(call);
    }
}

void consume_again(struct call *call)
{
    if (call->finished || !consume_of(call)->begun) return;
    const struct table_topic *topic;
    enum grpc_error error = consume_access(call, &topic);
    if (error == GRPC_ERROR_NONE) return;
    grpc_server_counters(call->server)->access_ended++;
    consume_end_error(call, error);
}

void consume_drain(struct service *service)
{
    for (uint32_t index = 0; index < GRPC_CALLS_COUNT_MAX; index++) {
        struct call *call = grpc_call_at(service->grpc, index);
        if (call == NULL || !is_method(call, METHOD_CONSUME)) continue;
        if (consume_of(call)->begun)
            consume_end_error(call, GRPC_ERROR_STOPPING);
        else
            grpc_finish_error(call, GRPC_ERROR_STOPPING);
    }
}
