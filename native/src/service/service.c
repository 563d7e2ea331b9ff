#include "service/service.h"

#include "batch/batch_records.h"
#include "catalog/owner.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/limits.h"
#include "grpc/server.h"
#include "service/commit_offsets.h"
#include "service/consume.h"
#include "service/fetch/fetch.h"
#include "service/fetch/fetch_read.h"
#include "service/fetch/fetch_remote.h"
#include "service/fetch/fetch_wait.h"
#include "service/fetch_offsets.h"
#include "service/list_offsets.h"
#include "service/methods.h"
#include "service/pendings.h"
#include "service/produce.h"
#include "service/ready_queue.h"
#include "service/state.h"

size_t service_memory_bytes(uint16_t shards_count)
{
    return arena_size(sizeof(struct service)) + pendings_memory_bytes()
           + shard_queues_memory_bytes(shards_count) + fetch_table_memory_bytes()
           + arena_size(sizeof(struct call_work) * GRPC_CALLS_COUNT_MAX)
           + arena_size(BATCH_RECORDS_BYTES_MAX);
}

static int make_opener(struct message_opener *opener, struct arena *arena)
{
    opener->records = arena_take(arena, BATCH_RECORDS_BYTES_MAX);
    /* Taken once: looking into a batch then allocates nothing. */
    opener->codec = batch_opener_make();
    return opener->records && opener->codec;
}

struct service *service_make(struct arena *arena, const struct service_config *config)
{
    struct service *service = arena_take(arena, sizeof *service);
    if (!service) return NULL;
    *service = (struct service){
        .index = config->shard,
        .shards_count = config->shards_count,
        .host_beat_ms = config->host_beat_ms,
        .shard_wakes = config->shard_wakes,
        .now = config->now,
        .store = config->store,
        .tables = config->tables,
        .tally = config->tally,
        .pool = config->pool,
        .timers = config->timers,
        .file = config->file,
        .grpc = config->grpc,
    };
    service->works = arena_take(arena, sizeof(struct call_work) * GRPC_CALLS_COUNT_MAX);
    if (!service->works || !pendings_make(service, arena) || !shard_queues_make(service, arena)
        || !fetch_table_make(service, arena) || !make_opener(&service->opener, arena))
        return NULL;
    const struct grpc_service methods = {service_methods, METHODS_COUNT, service};
    grpc_server_register(service->grpc, &methods);
    return service;
}

void service_close(struct service *service)
{
    if (service != NULL) batch_opener_free(service->opener.codec);
}

const struct service_counters *service_counters(const struct service *service)
{
    return &service->counters;
}

void service_ready(struct service *service)
{
    service->ready = 1;
    grpc_server_ready(service->grpc);
}

int service_is_ready(const struct service *service)
{
    return service->ready;
}

void service_drain(struct service *service)
{
    assert(!service->draining);
    service->draining = 1;
    consume_drain(service);
    fetch_drain(service);
}

void service_timeout(struct service *service, struct timer *timer)
{
    fetch_timeout(service, timer);
}

int service_read_done(struct service *service, struct io_request *request)
{
    return fetch_read_done(service, request);
}

void service_outcome(struct service *service, struct pending *pending,
                     const struct store_outcome *outcome)
{
    assert(pending->kind != PENDING_HOST);
    struct frame_outcome plain = {
        .status = outcome->status,
        .record_count = outcome->record_count,
        .persisted = outcome->persisted,
        .replicas = outcome->replicas,
        .base_offset = outcome->base_offset,
        .expected = outcome->expected,
        .append_time_us = outcome->append_time_us,
        .duplicate = outcome->duplicate,
    };
    if (pending->kind != PENDING_REMOTE) {
        pending_outcome(service, pending, &plain);
    } else {
        struct shard_frame frame = {
            .kind = FRAME_OUTCOME, .token = pending->number, .outcome = plain};
        shard_queues_post(service, &frame, pending->shard, QUEUE_REPLY);
        pending_give(service, pending);
    }
}

void service_advance(struct service *service, const struct engine_partition_id *id)
{
    fetch_advance(service, id);
}

void service_retry(struct service *service)
{
    produce_queue_retry(service);
}

void service_go_on(struct service *service)
{
    fetch_go_on(service);
    works_go_on(service);
}

void service_refunded(struct service *service)
{
    service->fetches.waiting_to_retry = service->fetches.waiting.count;
}

void service_pushable(struct http2_connection *connection)
{
    consume_pushable(connection);
}

static const struct engine_partition_id *request_partition(const struct shard_frame *frame)
{
    switch (frame->kind) {
    case FRAME_PRODUCE: return &frame->produce.id;
    case FRAME_COMMIT:
    case FRAME_FETCH_OFFSETS: return &frame->commit.id;
    case FRAME_FETCH:
    case FRAME_FETCH_CANCEL: return &frame->fetch.id;
    default: assert(frame->kind == FRAME_TIME); return &frame->time.id;
    }
}

void service_request(struct service *service, const struct shard_frame *frame)
{
    const struct engine_partition_id *id = request_partition(frame);
    /* Routing is a pure function: a frame for a partition of somebody else is our own error. */
    assert(owner_of(id->topic, id->partition, service->shards_count) == service->index);
    switch (frame->kind) {
    case FRAME_PRODUCE: produce_remote(service, frame); return;
    case FRAME_COMMIT: commit_offsets_remote(service, frame); return;
    case FRAME_FETCH_OFFSETS: fetch_offsets_remote(service, frame); return;
    case FRAME_FETCH: fetch_remote(service, frame); return;
    case FRAME_FETCH_CANCEL: fetch_remote_cancel(service, frame); return;
    case FRAME_TIME: list_offsets_remote(service, frame); return;
    default: unreachable();
    }
}

void service_answer(struct service *service, const struct shard_frame *frame)
{
    if (frame->kind == FRAME_RELEASE) {
        assert(frame->released->owner == service->index);
        grpc_reply_give(service->grpc, frame->released);
        return;
    }
    struct pending *pending = pending_find(service, frame->token);
    /* A pending lives until its answer, whatever became of its call. */
    assert(pending != NULL);
    assert(pending->kind != PENDING_HOST);
    switch (frame->kind) {
    case FRAME_OUTCOME: pending_outcome(service, pending, &frame->outcome); return;
    case FRAME_OFFSETS: fetch_offsets_answered(service, pending, &frame->offsets); return;
    case FRAME_TIME_FOUND: list_offsets_answered(service, pending, &frame->time_found); return;
    case FRAME_FETCHED: fetch_answered(service, pending, &frame->fetched); return;
    default: unreachable();
    }
}

int service_work(const struct service *service)
{
    return !queue_empty(&service->works_ready) || service->fetches.waiting_to_retry > 0;
}

int service_reads_wait(const struct service *service)
{
    return !queue_empty(&service->fetches.queued);
}

int service_invariants(const struct service *service, int all)
{
    assert(service->index < service->shards_count);
    assert(service->ready <= 1);
    assert(service->draining <= 1);
    return pendings_invariants(service, all) && shard_queues_invariants(service)
           && fetch_table_invariants(service, all) && produce_queue_invariants(service, all)
           && ready_queue_invariants(service);
}
