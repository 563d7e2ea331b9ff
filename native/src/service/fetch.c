#include "service/fetch.h"

#include <string.h>

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "grpc/reply_budget.h"
#include "grpc/server.h"
#include "service/fetch_messages.h"
#include "service/fetch_reply.h"
#include "shard/shard.h"

enum {
    FETCH_ATTEMPTS_MAX = 4,
    FETCH_ATTEMPTS_WORK_MAX = 200,
    FETCH_HELD_PER_TURN = 64,
};

static int is_consume(const struct fetch *fetch)
{
    return (fetch->request.flags & FETCH_CONSUME) != 0;
}

/* Asked by the node, which goes on by itself: nobody repeats it, and failures are statuses. */
static int is_work(const struct fetch *fetch)
{
    return (fetch->request.flags & (FETCH_CONSUME | FETCH_SEARCH)) != 0;
}

static struct queue *bucket_of(struct shard *shard, const struct engine_partition_id *id)
{
    uint64_t mixed = (id->topic * 31 + id->partition) * UINT64_C(0x9E3779B97F4A7C15);
    return &shard->fetch_buckets[(mixed >> 40) % SHARD_FETCH_BUCKETS_COUNT];
}

/* Out of whatever it waits in. READING stays: the read is out and will come back. */
static void fetch_unlink(struct shard *shard, struct fetch *fetch)
{
    timer_clear(&shard->timers, &fetch->timer);
    if (fetch->state == FETCH_POLLING)
        queue_remove(bucket_of(shard, &fetch->request.id), &fetch->link);
    if (fetch->state == FETCH_QUEUED) queue_remove(&shard->reads_waiting, &fetch->link);
    if (fetch->state == FETCH_WAITING) queue_remove(&shard->fetches_held, &fetch->link);
    fetch->state = FETCH_RUNNING;
}

/* The one answer; its reply is given away. Frees the fetch. */
static void fetch_answer(struct shard *shard, struct fetch *fetch,
                         const struct fetch_result *fetched)
{
    ergo(fetched->status == STATUS_OK, fetched->reply != NULL);
    if (fetch->remote) {
        struct shard_frame frame = {
            .kind = FRAME_FETCHED, .token = fetch->token, .fetched = *fetched};
        queues_post(shard, &frame, fetch->shard, QUEUE_REPLY);
        fetch_give(shard, fetch);
        return;
    }
    struct call *call = grpc_call_find(shard->grpc, fetch->call_index, fetch->call_tag);
    assert(call != NULL);
    assert(work_of(call)->fetch_index == fetch->index + 1);
    work_of(call)->fetch_index = 0;
    fetch_give(shard, fetch);
    stream_fetch_answer(call, fetched);
}

static void fetch_fail(struct shard *shard, struct fetch *fetch, enum status status,
                       uint64_t expected)
{
    struct fetch_result fetched = {.status = status, .expected = expected};
    fetch_answer(shard, fetch, &fetched);
}

/* Batches are in `reply`, shaped. */
static void fetch_deliver(struct shard *shard, struct fetch *fetch, struct reply *reply,
                          const uint8_t *batches, size_t size)
{
    struct fetch_result fetched = {
        .status = STATUS_OK, .fetch_status = PROTO_FETCH_OK, .reply = reply};
    if (is_work(fetch)) {
        fetched.next_offset = store_fetch_next(batches, size);
        fetched.batches_bytes = size;
    }
    fetch_answer(shard, fetch, &fetched);
}

/* What a search reads is gone before it reads on: nobody can keep it. */
static int is_budgeted(const struct fetch *fetch)
{
    return (fetch->request.flags & FETCH_SEARCH) == 0;
}

static void fetch_charge(struct shard *shard, const struct fetch *fetch, struct reply *reply)
{
    if (is_budgeted(fetch))
        reply_budget_charge(shard->grpc, REPLY_BATCHES, reply, fetch->request.principal);
}

static void answer_messages(struct shard *shard, struct fetch *fetch,
                            enum proto_fetch_status status, const struct store_fetch *found,
                            const struct io_vector *batches, uint32_t batches_count)
{
    enum status failed = STATUS_OK;
    uint64_t expected = 0;
    struct reply *reply = stream_messages_reply(shard, &fetch->request, status, found, batches,
                                                batches_count, &failed, &expected);
    if (reply != NULL) fetch_charge(shard, fetch, reply);
    struct fetch_result fetched = {
        .status = failed, .expected = expected, .fetch_status = (uint32_t)status, .reply = reply};
    fetch_answer(shard, fetch, &fetched);
}

static void answer_status(struct shard *shard, struct fetch *fetch, enum proto_fetch_status status,
                          const struct store_fetch *found)
{
    if (fetch->request.messages_max > 0) {
        answer_messages(shard, fetch, status, found, NULL, 0);
        return;
    }
    struct reply *reply = grpc_reply_make(shard->grpc, FETCH_ROOM);
    if (reply == NULL) {
        fetch_fail(shard, fetch, STATUS_NO_MEMORY, 0);
        return;
    }
    struct proto_fetch_reply header = fetch_reply_header(status, found, 0);
    fetch_reply_shape(reply, &header, 0, is_consume(fetch));
    struct fetch_result fetched = {
        .status = STATUS_OK,
        .fetch_status = (uint32_t)status,
        .reply = reply,
        .next_offset = found->log_start,
    };
    fetch_answer(shard, fetch, &fetched);
}

static void fetch_memory(struct shard *shard, struct fetch *fetch, const struct store_fetch *found)
{
    if (fetch->request.messages_max > 0) {
        answer_messages(shard, fetch, PROTO_FETCH_OK, found, found->batches, found->batches_count);
        return;
    }
    struct reply *reply = fetch_reply_memory(shard, found, is_consume(fetch));
    if (reply == NULL) {
        fetch_fail(shard, fetch, STATUS_NO_MEMORY, 0);
        return;
    }
    fetch_charge(shard, fetch, reply);
    fetch_deliver(shard, fetch, reply, reply->body.data + reply->body.size - found->size,
                  found->size);
}

/* Bytes of a segment are in the reply's buffer: cut to whole verified batches and answer. */
static void fetch_trimmed(struct shard *shard, struct fetch *fetch, struct reply *reply,
                          size_t size)
{
    struct store_fetch found = {0};
    struct engine_partition_state state = {0};
    size_t begin = 0;
    size_t end = 0;
    const uint8_t *bytes = reply->body.data + GRPC_PREFIX_SIZE + FETCH_ROOM;
    enum status status = store_fetch_trim(shard->store, &fetch->request.id, fetch->request.offset,
                                          fetch->request.bytes_max, bytes, size, &begin, &end);
    if (status == STATUS_OK) status = store_describe(shard->store, &fetch->request.id, &state);
    found.log_start = state.log_start;
    found.high_watermark = state.high_watermark;
    found.log_end = state.log_end;
    if (status != STATUS_OK) {
        grpc_reply_release(shard->grpc, reply);
        if (status == STATUS_CORRUPT && !is_work(fetch))
            answer_status(shard, fetch, PROTO_FETCH_CORRUPT, &found);
        else
            fetch_fail(shard, fetch, status, 0);
        return;
    }
    assert(begin <= end && end <= size);
    int attempts_max = is_work(fetch) ? FETCH_ATTEMPTS_WORK_MAX : FETCH_ATTEMPTS_MAX;
    if (begin == end && fetch->attempts < attempts_max) {
        /* The store has learnt how much must be read: ask again at the end of the turn. */
        grpc_reply_release(shard->grpc, reply);
        fetch->attempts++;
        fetch->state = FETCH_QUEUED;
        queue_push(&shard->reads_waiting, &fetch->link);
        return;
    }
    if (begin == end) {
        grpc_reply_release(shard->grpc, reply);
        fetch_fail(shard, fetch, STATUS_BUSY, 0);
        return;
    }
    if (fetch->request.messages_max > 0) {
        struct io_vector batches = {.data = bytes + begin, .size = end - begin};
        answer_messages(shard, fetch, PROTO_FETCH_OK, &found, &batches, 1);
        grpc_reply_release(shard->grpc, reply);
        return;
    }
    struct proto_fetch_reply header = fetch_reply_header(PROTO_FETCH_OK, &found, end - begin);
    fetch_reply_shape(reply, &header, begin, is_consume(fetch));
    shard->counters.fetch_bytes += end - begin;
    fetch_deliver(shard, fetch, reply, bytes + begin, end - begin);
}

static void fetch_file(struct shard *shard, struct fetch *fetch, const struct store_fetch *found)
{
    struct reply *reply = grpc_reply_make(shard->grpc, FETCH_ROOM + found->size);
    if (reply == NULL) {
        fetch_fail(shard, fetch, STATUS_NO_MEMORY, 0);
        return;
    }
    uint8_t *target = reply->body.data + GRPC_PREFIX_SIZE + FETCH_ROOM;
    if (io_file_read_now(&shard->file, found->file, found->file_offset, target, found->size)
        == STATUS_OK) {
        fetch_charge(shard, fetch, reply);
        fetch_trimmed(shard, fetch, reply, found->size);
        return;
    }
    struct fetch_read *read = fetch_read_take(shard, &fetch->read);
    if (read == NULL) {
        /* Asked again when a read is free: by then the place may be another one. */
        grpc_reply_release(shard->grpc, reply);
        fetch->state = FETCH_QUEUED;
        queue_push(&shard->reads_waiting, &fetch->link);
        return;
    }
    fetch_charge(shard, fetch, reply);
    fetch->state = FETCH_READING;
    read->fetch_index = fetch->index;
    read->fetch_tag = fetch->slot_tag;
    read->reply = reply;
    read->request = (struct io_request){
        .operation = IO_READ,
        .file = found->file,
        .offset = found->file_offset,
        .size = found->size,
        .buffer = target,
    };
    shard->counters.fetch_reads++;
    shard->file.io.submit(shard->file.io.context, &read->request);
}

static void fetch_wait(struct shard *shard, struct fetch *fetch)
{
    fetch->state = FETCH_POLLING;
    queue_push(bucket_of(shard, &fetch->request.id), &fetch->link);
    if (fetch->timer.deadline_ns == 0 && fetch->deadline_ns != FETCH_FOREVER)
        timer_set(&shard->timers, &fetch->timer, fetch->deadline_ns);
    shard->counters.fetch_waits++;
}

/* Until replies have left memory. Only a stream waits for ever: it asked for no answer by then. */
static void fetch_hold(struct shard *shard, struct fetch *fetch)
{
    if (is_consume(fetch)) {
        shard->counters.consume_holds_memory++;
    } else if (fetch->held_ns == 0) {
        shard->counters.fetch_holds++;
        fetch->held_ns = shard->now.monotonic_ns + SHARD_HOLD_MS_MIN * UINT64_C(1000000);
        if (fetch->held_ns < fetch->deadline_ns) fetch->held_ns = fetch->deadline_ns;
    } else if (fetch->held_ns <= shard->now.monotonic_ns) {
        fetch_fail(shard, fetch, STATUS_REPLIES_FULL, 0);
        return;
    }
    if (shard->draining) {
        fetch_fail(shard, fetch, STATUS_STOPPING, 0);
        return;
    }
    fetch->state = FETCH_WAITING;
    queue_push(&shard->fetches_held, &fetch->link);
    if (!is_consume(fetch)) timer_set(&shard->timers, &fetch->timer, fetch->held_ns);
}

static void fetch_found(struct shard *shard, struct fetch *fetch, const struct store_fetch *found)
{
    uint32_t principal = fetch->request.principal;
    if (found->place == STORE_FETCH_NOTHING)
        answer_status(shard, fetch, PROTO_FETCH_EMPTY, found);
    else if (is_budgeted(fetch)
             && !reply_budget_room(shard->grpc, REPLY_BATCHES, principal, found->size))
        fetch_hold(shard, fetch);
    else if (found->place == STORE_FETCH_MEMORY)
        fetch_memory(shard, fetch, found);
    else
        fetch_file(shard, fetch, found);
}

static void fetch_run(struct shard *shard, struct fetch *fetch)
{
    assert(fetch->state == FETCH_RUNNING);
    struct store_fetch found = {0};
    const struct fetch_request *request = &fetch->request;
    store_fetch(shard->store, &request->id, request->offset, request->bytes_max, request->group,
                request->generation, &found);
    int nothing = found.status == STATUS_OK && found.place == STORE_FETCH_NOTHING;
    int may_wait = fetch->deadline_ns > shard->now.monotonic_ns && !shard->draining;
    int waits =
        nothing ? !(request->flags & FETCH_ANSWER_EMPTY) : found.status == STATUS_GROUP_PENDING;
    if (waits && may_wait) {
        fetch_wait(shard, fetch);
        return;
    }
    timer_clear(&shard->timers, &fetch->timer);
    if (found.status == STATUS_OK) {
        fetch_found(shard, fetch, &found);
        return;
    }
    if (found.status == STATUS_TRUNCATED) {
        answer_status(shard, fetch, PROTO_FETCH_TRUNCATED, &found);
        return;
    }
    if (is_work(fetch)) {
        fetch_fail(shard, fetch, found.status, found.log_start);
        return;
    }
    switch (found.status) {
    case STATUS_CORRUPT: answer_status(shard, fetch, PROTO_FETCH_CORRUPT, &found); break;
    case STATUS_NOT_PRIMARY: answer_status(shard, fetch, PROTO_FETCH_NOT_PRIMARY, &found); break;
    case STATUS_REBUILDING: answer_status(shard, fetch, PROTO_FETCH_REBUILDING, &found); break;
    default: fetch_fail(shard, fetch, found.status, found.log_start);
    }
}

static enum grpc_error fetch_forward(struct call *call, const struct fetch_request *request,
                                     uint16_t owner)
{
    struct shard *shard = shard_of(call);
    struct pending values = {
        .kind = PENDING_FETCH, .call_index = call->index, .call_tag = call->slot_tag};
    struct shard_frame frame = {
        .kind = FRAME_FETCH, .token = pending_take(shard, &values), .fetch = *request};
    if (frame.token != 0 && queues_try(shard, &frame, owner)) {
        work_of(call)->fetch_pending = frame.token;
        work_of(call)->fetch_owner = owner;
        work_of(call)->fetch_id = request->id;
        work_of(call)->pending_count++;
        shard->counters.fetch_forwarded++;
        return GRPC_ERROR_NONE;
    }
    if (frame.token != 0) pending_give(shard, pending_find(shard, frame.token));
    return GRPC_ERROR_BUSY;
}

enum grpc_error stream_fetch_begin(struct call *call, const struct fetch_request *wanted)
{
    struct shard *shard = shard_of(call);
    uint16_t owner = owner_of(wanted->id.topic, wanted->id.partition, shard->shards_count);
    if (owner != shard->index) return fetch_forward(call, wanted, owner);
    struct fetch *fetch = fetch_take(shard);
    if (fetch == NULL) return GRPC_ERROR_BUSY;
    fetch->request = *wanted;
    fetch->deadline_ns = wanted->deadline_ns;
    fetch->call_index = call->index;
    fetch->call_tag = call->slot_tag;
    work_of(call)->fetch_index = fetch->index + 1;
    fetch_run(shard, fetch);
    return GRPC_ERROR_NONE;
}

void stream_remote_fetch(struct shard *shard, const struct shard_frame *frame)
{
    struct fetch *fetch = fetch_take(shard);
    if (fetch == NULL) {
        struct shard_frame answer = {
            .kind = FRAME_FETCHED, .token = frame->token, .fetched = {.status = STATUS_BUSY}};
        queues_post(shard, &answer, frame->source, QUEUE_REPLY);
        return;
    }
    fetch->request = frame->fetch;
    fetch->deadline_ns = frame->fetch.deadline_ns;
    fetch->remote = 1;
    fetch->shard = frame->source;
    fetch->token = frame->token;
    fetch_run(shard, fetch);
}

static void fetch_cancel(struct shard *shard, struct fetch *fetch)
{
    if (fetch->state == FETCH_READING) {
        fetch->cancelled = 1;
        return;
    }
    fetch_unlink(shard, fetch);
    fetch_give(shard, fetch);
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

void stream_remote_fetch_cancel(struct shard *shard, const struct shard_frame *frame)
{
    /* Rare enough for a walk over those that wait for this partition, or for memory. */
    struct fetch *fetch = remote_find(bucket_of(shard, &frame->fetch.id), frame);
    if (fetch == NULL) fetch = remote_find(&shard->fetches_held, frame);
    if (fetch == NULL) return;
    fetch_unlink(shard, fetch);
    fetch_fail(shard, fetch, STATUS_CANCELLED, 0);
}

void stream_fetch_cancel(struct call *call)
{
    struct shard *shard = shard_of(call);
    if (work_of(call)->fetch_index != 0) {
        fetch_cancel(shard, &shard->fetches[work_of(call)->fetch_index - 1]);
        work_of(call)->fetch_index = 0;
        return;
    }
    /* Its pending stays until the owner answers CANCELLED, or with data that it had sent already.
     */
    struct shard_frame frame = {.kind = FRAME_FETCH_CANCEL,
                                .token = work_of(call)->fetch_pending,
                                .fetch = {.id = work_of(call)->fetch_id}};
    queues_post(shard, &frame, work_of(call)->fetch_owner, QUEUE_MAIN);
    work_of(call)->fetch_pending = 0;
}

void stream_fetch_advance(struct shard *shard, const struct engine_partition_id *id)
{
    struct queue *bucket = bucket_of(shard, id);
    /* As many as are in it now: one that waits again joins behind. */
    for (uint64_t left = bucket->count; left > 0; left--) {
        struct fetch *fetch = queue_element(queue_pop(bucket), struct fetch, link);
        if (fetch->request.id.topic != id->topic || fetch->request.id.partition != id->partition) {
            queue_push(bucket, &fetch->link);
            continue;
        }
        fetch->state = FETCH_RUNNING;
        fetch_run(shard, fetch);
    }
}

void stream_fetch_timeout(struct shard *shard, struct timer *timer)
{
    struct fetch *fetch = queue_element(&timer->link, struct fetch, timer.link);
    if (fetch->state == FETCH_QUEUED) return;
    assert(fetch->state == FETCH_POLLING || fetch->state == FETCH_WAITING);
    fetch->deadline_ns = 0;
    fetch_unlink(shard, fetch);
    fetch_run(shard, fetch);
}

void stream_fetch_go_on(struct shard *shard)
{
    /* As many as are in it now: one that still finds no read joins behind. */
    for (uint64_t left = shard->reads_waiting.count; left > 0; left--) {
        struct fetch *fetch = queue_element(queue_pop(&shard->reads_waiting), struct fetch, link);
        fetch->state = FETCH_RUNNING;
        fetch_run(shard, fetch);
    }
    /* Some of those that wait for memory: the others in the next turns. */
    uint64_t *left = &shard->fetches_to_ask;
    if (*left > shard->fetches_held.count) *left = shard->fetches_held.count;
    for (uint64_t turn = 0; *left > 0 && turn < FETCH_HELD_PER_TURN; turn++, (*left)--) {
        struct fetch *fetch = queue_element(shard->fetches_held.head, struct fetch, link);
        fetch_unlink(shard, fetch);
        fetch_run(shard, fetch);
    }
}

int stream_fetch_read_done(struct shard *shard, struct io_request *request)
{
    uintptr_t at = (uintptr_t)request;
    uintptr_t first = (uintptr_t)&shard->reads[0];
    if (at < first || at >= (uintptr_t)&shard->reads[SHARD_READS_COUNT_MAX]) return 0;
    struct fetch_read *read = &shard->reads[(at - first) / sizeof(struct fetch_read)];
    assert(read->used);
    struct fetch *fetch = &shard->fetches[read->fetch_index];
    assert(fetch->slot_tag == read->fetch_tag);
    assert(fetch->state == FETCH_READING);
    fetch->state = FETCH_RUNNING;
    struct reply *reply = read->reply;
    read->used = 0;
    if (fetch->cancelled) {
        grpc_reply_release(shard->grpc, reply);
        fetch_give(shard, fetch);
    } else if (request->status != STATUS_OK) {
        grpc_reply_release(shard->grpc, reply);
        fetch_fail(shard, fetch, STATUS_READ_FAILED, 0);
    } else {
        fetch_trimmed(shard, fetch, reply, (size_t)request->result_bytes);
    }
    return 1;
}

void stream_fetch_drain(struct shard *shard)
{
    assert(shard->draining);
    for (uint32_t index = 0; index < SHARD_FETCHES_COUNT_MAX; index++) {
        struct fetch *fetch = &shard->fetches[index];
        if (fetch->state != FETCH_POLLING && fetch->state != FETCH_WAITING) continue;
        fetch->deadline_ns = 0;
        fetch_unlink(shard, fetch);
        fetch_run(shard, fetch);
    }
}
