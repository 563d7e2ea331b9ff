#include "stream_fetch.h"

#include <string.h>

#include "assert.h"
#include "grpc_server.h"
#include "owner.h"
#include "shard.h"
#include "stream_access.h"
#include "stream_fetch_reply.h"
#include "stream_messages.h"

/* A caller whose deadline is its wait wants EMPTY, not DEADLINE_EXCEEDED: answer a part earlier. */
enum {
    FETCH_HEAD_START_NS_MIN = 20000000,
    FETCH_HEAD_START_NS_MAX = 250000000,
    FETCH_HEAD_START_PART = 8,
    FETCH_ATTEMPTS_MAX = 4,
};

static struct queue *bucket_of(struct shard *shard, const struct engine_partition_id *id)
{
    uint64_t mixed = (id->topic * 31 + id->partition) * UINT64_C(0x9E3779B97F4A7C15);
    return &shard->fetch_buckets[(mixed >> 40) % SHARD_FETCH_BUCKETS_COUNT];
}

/* Out of whatever it waits in. READING stays: the read is out and will come back. */
static void fetch_unlink(struct shard *shard, struct fetch *fetch)
{
    timer_clear(&shard->timers, &fetch->timer);
    if (fetch->state == FETCH_WAITING)
        queue_remove(bucket_of(shard, &fetch->request.id), &fetch->link);
    if (fetch->state == FETCH_QUEUED) queue_remove(&shard->reads_waiting, &fetch->link);
    fetch->state = FETCH_RUNNING;
}

/* The one answer; `reply` is given away. Frees the fetch. */
static void fetch_answer(struct shard *shard, struct fetch *fetch, enum status status,
                         uint64_t expected, struct reply *reply)
{
    ergo(status == STATUS_OK, reply != NULL);
    if (fetch->remote) {
        struct lane_frame frame = {
            .kind = LANE_FETCHED,
            .token = fetch->token,
            .fetched = {.status = status, .expected = expected, .reply = reply},
        };
        lanes_post(shard, &frame, fetch->shard, LANE_REPLY);
        fetch_give(shard, fetch);
        return;
    }
    struct call *call = call_find(shard, fetch->call_index, fetch->call_generation);
    assert(call != NULL);
    assert(call->fetch_index == fetch->index + 1);
    call->fetch_index = 0;
    fetch_give(shard, fetch);
    if (status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(status);
        failure.expected = expected;
        grpc_finish(call, &failure);
        return;
    }
    grpc_reply_queue(call, reply);
    grpc_finish_ok(call);
}

static void answer_messages(struct shard *shard, struct fetch *fetch,
                            enum proto_fetch_status status, const struct store_fetch *found,
                            const struct io_vector *batches, uint32_t batches_count)
{
    enum status failed = STATUS_OK;
    uint64_t expected = 0;
    struct reply *reply = stream_messages_reply(shard, &fetch->request, status, found, batches,
                                                batches_count, &failed, &expected);
    fetch_answer(shard, fetch, failed, expected, reply);
}

static void answer_status(struct shard *shard, struct fetch *fetch, enum proto_fetch_status status,
                          const struct store_fetch *found)
{
    if (fetch->request.messages_max > 0) {
        answer_messages(shard, fetch, status, found, NULL, 0);
        return;
    }
    struct reply *reply = grpc_reply_make(shard, FETCH_ROOM);
    if (reply == NULL) {
        fetch_answer(shard, fetch, STATUS_NO_MEMORY, 0, NULL);
        return;
    }
    struct proto_fetch_reply header = fetch_reply_header(status, found, 0);
    fetch_reply_shape(reply, &header, 0);
    fetch_answer(shard, fetch, STATUS_OK, 0, reply);
}

static void fetch_memory(struct shard *shard, struct fetch *fetch, const struct store_fetch *found)
{
    if (fetch->request.messages_max > 0) {
        answer_messages(shard, fetch, PROTO_FETCH_OK, found, found->batches, found->batches_count);
        return;
    }
    struct reply *reply = fetch_reply_memory(shard, found);
    enum status status = reply != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    fetch_answer(shard, fetch, status, 0, reply);
}

/* Bytes of a segment are in the reply's buffer: cut to whole verified batches and answer. */
static void fetch_trimmed(struct shard *shard, struct fetch *fetch, struct reply *reply,
                          size_t size)
{
    struct store_fetch found = {0};
    struct engine_partition_state state = {0};
    size_t begin = 0;
    size_t end = 0;
    const uint8_t *bytes = reply->data + GRPC_PREFIX_SIZE + FETCH_ROOM;
    enum status status = store_fetch_trim(shard->store, &fetch->request.id, fetch->request.offset,
                                          fetch->request.bytes_max, bytes, size, &begin, &end);
    if (status == STATUS_OK) status = store_describe(shard->store, &fetch->request.id, &state);
    found.log_start = state.log_start;
    found.high_watermark = state.high_watermark;
    found.log_end = state.log_end;
    if (status != STATUS_OK) {
        grpc_reply_release(shard, reply);
        if (status == STATUS_CORRUPT)
            answer_status(shard, fetch, PROTO_FETCH_CORRUPT, &found);
        else
            fetch_answer(shard, fetch, status, 0, NULL);
        return;
    }
    assert(begin <= end);
    assert(end <= size);
    if (begin == end && fetch->attempts < FETCH_ATTEMPTS_MAX) {
        /* The store has learnt how much must be read: ask again at the end of the turn. */
        grpc_reply_release(shard, reply);
        fetch->attempts++;
        fetch->state = FETCH_QUEUED;
        queue_push(&shard->reads_waiting, &fetch->link);
        return;
    }
    if (begin == end) {
        grpc_reply_release(shard, reply);
        fetch_answer(shard, fetch, STATUS_BUSY, 0, NULL);
        return;
    }
    if (fetch->request.messages_max > 0) {
        struct io_vector batches = {.data = bytes + begin, .size = end - begin};
        answer_messages(shard, fetch, PROTO_FETCH_OK, &found, &batches, 1);
        grpc_reply_release(shard, reply);
        return;
    }
    struct proto_fetch_reply header = fetch_reply_header(PROTO_FETCH_OK, &found, end - begin);
    fetch_reply_shape(reply, &header, begin);
    shard->counters.fetch_bytes += end - begin;
    fetch_answer(shard, fetch, STATUS_OK, 0, reply);
}

static void fetch_file(struct shard *shard, struct fetch *fetch, const struct store_fetch *found)
{
    struct reply *reply = grpc_reply_make(shard, FETCH_ROOM + found->size);
    if (reply == NULL) {
        fetch_answer(shard, fetch, STATUS_NO_MEMORY, 0, NULL);
        return;
    }
    uint8_t *target = reply->data + GRPC_PREFIX_SIZE + FETCH_ROOM;
    if (io_file_read_now(&shard->file, found->file, found->file_offset, target, found->size)
        == STATUS_OK) {
        fetch_trimmed(shard, fetch, reply, found->size);
        return;
    }
    struct fetch_read *read = fetch_read_take(shard, &fetch->read);
    if (read == NULL) {
        /* Asked again when a read is free: by then the place may be another one. */
        grpc_reply_release(shard, reply);
        fetch->state = FETCH_QUEUED;
        queue_push(&shard->reads_waiting, &fetch->link);
        return;
    }
    fetch->state = FETCH_READING;
    read->fetch_index = fetch->index;
    read->fetch_generation = fetch->generation;
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
    fetch->state = FETCH_WAITING;
    queue_push(bucket_of(shard, &fetch->request.id), &fetch->link);
    if (fetch->timer.deadline_ns == 0) timer_set(&shard->timers, &fetch->timer, fetch->deadline_ns);
    shard->counters.fetch_waits++;
}

static void fetch_run(struct shard *shard, struct fetch *fetch)
{
    assert(fetch->state == FETCH_RUNNING);
    struct store_fetch found = {0};
    const struct lane_fetch *request = &fetch->request;
    store_fetch(shard->store, &request->id, request->offset, request->bytes_max, request->group,
                request->generation, &found);
    int nothing = found.status == STATUS_OK && found.place == STORE_FETCH_NOTHING;
    int may_wait = fetch->deadline_ns > shard->now.monotonic_ns && !shard->draining;
    if ((nothing || found.status == STATUS_GROUP_PENDING) && may_wait) {
        fetch_wait(shard, fetch);
        return;
    }
    timer_clear(&shard->timers, &fetch->timer);
    switch (found.status) {
    case STATUS_OK:
        if (nothing)
            answer_status(shard, fetch, PROTO_FETCH_EMPTY, &found);
        else if (found.place == STORE_FETCH_MEMORY)
            fetch_memory(shard, fetch, &found);
        else
            fetch_file(shard, fetch, &found);
        return;
    case STATUS_TRUNCATED: answer_status(shard, fetch, PROTO_FETCH_TRUNCATED, &found); return;
    case STATUS_CORRUPT: answer_status(shard, fetch, PROTO_FETCH_CORRUPT, &found); return;
    case STATUS_NOT_PRIMARY: answer_status(shard, fetch, PROTO_FETCH_NOT_PRIMARY, &found); return;
    case STATUS_REBUILDING: answer_status(shard, fetch, PROTO_FETCH_REBUILDING, &found); return;
    default: fetch_answer(shard, fetch, found.status, found.log_start, NULL); return;
    }
}

static uint64_t wait_deadline(const struct call *call, uint32_t wait_ms_max, uint64_t now_ns)
{
    if (wait_ms_max == 0) return 0;
    if (wait_ms_max > SHARD_WAIT_MS_MAX) wait_ms_max = SHARD_WAIT_MS_MAX;
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

static void fetch_forward(struct call *call, const struct lane_fetch *request, uint16_t owner)
{
    struct shard *shard = call->connection->shard;
    struct pending values = {
        .kind = PENDING_FETCH, .call_index = call->index, .call_generation = call->generation};
    struct lane_frame frame = {
        .kind = LANE_FETCH, .token = pending_take(shard, &values), .fetch = *request};
    if (frame.token != 0 && lanes_try(shard, &frame, owner)) {
        call->fetch_pending = frame.token;
        call->fetch_owner = owner;
        call->fetch_id = request->id;
        call->pending_count++;
        shard->counters.fetch_forwarded++;
        return;
    }
    if (frame.token != 0) pending_give(shard, pending_find(shard, frame.token));
    grpc_finish_error(call, GRPC_ERROR_BUSY);
}

void stream_fetch(struct call *call, const uint8_t *message, size_t size)
{
    struct shard *shard = call->connection->shard;
    struct proto_fetch_request request;
    if (proto_decode_fetch(message, size, &request) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    uint32_t bytes_max = request.bytes_max == 0 ? SHARD_FETCH_BYTES_DEFAULT : request.bytes_max;
    if (bytes_max > SHARD_FETCH_BYTES_MAX) bytes_max = SHARD_FETCH_BYTES_MAX;
    struct lane_fetch wanted = {
        .id = {.topic = request.topic,
               .created_revision = request.created_revision,
               .partition = request.partition},
        .offset = request.offset,
        .group = request.group,
        .generation = request.generation,
        .bytes_max = bytes_max,
    };
    const struct table_topic *topic;
    enum grpc_error error =
        stream_access(&shard->tables, &call->caller, &wanted.id, ENGINE_VERB_CONSUME, &topic);
    if (error != GRPC_ERROR_NONE) {
        grpc_finish_error(call, error);
        return;
    }
    stream_fetch_begin(call, &wanted, request.wait_ms_max);
}

void stream_fetch_begin(struct call *call, struct lane_fetch *wanted, uint32_t wait_ms_max)
{
    struct shard *shard = call->connection->shard;
    wanted->deadline_ns = wait_deadline(call, wait_ms_max, shard->now.monotonic_ns);
    uint16_t owner = owner_of(wanted->id.topic, wanted->id.partition, shard->shards_count);
    if (owner != shard->index) {
        fetch_forward(call, wanted, owner);
        return;
    }
    struct fetch *fetch = fetch_take(shard);
    if (fetch == NULL) {
        grpc_finish_error(call, GRPC_ERROR_BUSY);
        return;
    }
    fetch->request = *wanted;
    fetch->deadline_ns = wanted->deadline_ns;
    fetch->call_index = call->index;
    fetch->call_generation = call->generation;
    call->fetch_index = fetch->index + 1;
    fetch_run(shard, fetch);
}

void stream_remote_fetch(struct shard *shard, const struct lane_frame *frame)
{
    struct fetch *fetch = fetch_take(shard);
    if (fetch == NULL) {
        struct lane_frame answer = {
            .kind = LANE_FETCHED, .token = frame->token, .fetched = {.status = STATUS_BUSY}};
        lanes_post(shard, &answer, frame->source, LANE_REPLY);
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

void stream_remote_fetch_cancel(struct shard *shard, const struct lane_frame *frame)
{
    /* Rare enough for a walk over those that wait for this partition. */
    queue_each(bucket_of(shard, &frame->fetch.id), link)
    {
        struct fetch *fetch = queue_element(link, struct fetch, link);
        if (!fetch->remote || fetch->token != frame->token || fetch->shard != frame->source)
            continue;
        fetch_unlink(shard, fetch);
        fetch_answer(shard, fetch, STATUS_CANCELLED, 0, NULL);
        return;
    }
}

void stream_fetch_cancel(struct call *call)
{
    struct shard *shard = call->connection->shard;
    if (call->fetch_index != 0) {
        fetch_cancel(shard, &shard->fetches[call->fetch_index - 1]);
        call->fetch_index = 0;
        return;
    }
    /* Its pending stays until the owner answers CANCELLED, or with data that it had sent already.
     */
    struct lane_frame frame = {
        .kind = LANE_FETCH_CANCEL, .token = call->fetch_pending, .fetch = {.id = call->fetch_id}};
    lanes_post(shard, &frame, call->fetch_owner, LANE_MAIN);
    call->fetch_pending = 0;
}

void stream_fetched(struct shard *shard, struct pending *pending,
                    const struct lane_fetched *fetched)
{
    struct call *call = call_find(shard, pending->call_index, pending->call_generation);
    pending_give(shard, pending);
    if (call == NULL) {
        shard->counters.late_outcomes++;
        if (fetched->reply != NULL) grpc_reply_release(shard, fetched->reply);
        return;
    }
    assert(call->pending_count > 0);
    call->pending_count--;
    call->fetch_pending = 0;
    if (fetched->status != STATUS_OK) {
        struct grpc_failure failure = grpc_failure_of(fetched->status);
        failure.expected = fetched->expected;
        grpc_finish(call, &failure);
        return;
    }
    grpc_reply_queue(call, fetched->reply);
    grpc_finish_ok(call);
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
    assert(fetch->state == FETCH_WAITING);
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
}

int stream_fetch_read_done(struct shard *shard, struct io_request *request)
{
    uintptr_t at = (uintptr_t)request;
    uintptr_t first = (uintptr_t)&shard->reads[0];
    if (at < first || at >= (uintptr_t)&shard->reads[SHARD_READS_COUNT_MAX]) return 0;
    struct fetch_read *read = &shard->reads[(at - first) / sizeof(struct fetch_read)];
    assert(read->used);
    struct fetch *fetch = &shard->fetches[read->fetch_index];
    assert(fetch->generation == read->fetch_generation);
    assert(fetch->state == FETCH_READING);
    fetch->state = FETCH_RUNNING;
    struct reply *reply = read->reply;
    read->used = 0;
    if (fetch->cancelled) {
        grpc_reply_release(shard, reply);
        fetch_give(shard, fetch);
    } else if (request->status != STATUS_OK) {
        grpc_reply_release(shard, reply);
        fetch_answer(shard, fetch, request->status, 0, NULL);
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
        if (fetch->state != FETCH_WAITING) continue;
        fetch->deadline_ns = 0;
        fetch_unlink(shard, fetch);
        fetch_run(shard, fetch);
    }
}
