#include "shard/queues.h"

#include <string.h>

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "host/metadata.h"
#include "host/node.h"
#include "io/io_socket.h"
#include "service/commit_offsets.h"
#include "service/fetch.h"
#include "service/fetch_offsets.h"
#include "service/list_offsets.h"
#include "service/pendings.h"
#include "service/produce.h"
#include "shard/shard.h"

uint32_t queues_slots(uint16_t shards_count)
{
    /* N * N rings: fewer slots each the more shards there are. */
    uint32_t slots = QUEUE_SLOTS_MAX;
    for (uint32_t count = 4; count < shards_count && slots > QUEUE_SLOTS_MIN; count *= 2)
        slots /= 4;
    return slots < QUEUE_SLOTS_MIN ? QUEUE_SLOTS_MIN : slots;
}

static void frame_address(const struct shard *shard, struct shard_frame *frame, uint16_t target)
{
    assert(target < shard->shards_count);
    assert(target != shard->index);
    frame->source = shard->index;
    frame->target = target;
}

int queues_try(struct shard *shard, struct shard_frame *frame, uint16_t target)
{
    frame_address(shard, frame, target);
    struct queue_end *end = &shard->queues.out[target][QUEUE_MAIN];
    if (end->backlog_head != NULL || !ring_push(end->ring, frame)) {
        shard->counters.frame_drops_main++;
        return 0;
    }
    shard->queues.raise |= UINT64_C(1) << target;
    return 1;
}

void queues_post(struct shard *shard, struct shard_frame *frame, uint16_t target,
                 enum queue_kind queue)
{
    frame_address(shard, frame, target);
    struct queue_end *end = &shard->queues.out[target][queue];
    shard->queues.raise |= UINT64_C(1) << target;
    if (end->backlog_head == NULL && ring_push(end->ring, frame)) return;
    struct frame_waiting *waiting = shard->queues.backlog_free;
    /* As many as there can be pendings, lent replies and hand-overs: more is our own error. */
    assert(waiting != NULL);
    shard->queues.backlog_free = waiting->next;
    waiting->next = NULL;
    waiting->frame = *frame;
    if (end->backlog_tail != NULL)
        end->backlog_tail->next = waiting;
    else
        end->backlog_head = waiting;
    end->backlog_tail = waiting;
    shard->queues.backlog_count++;
    shard->counters.frames_delayed_reply++;
}

static void backlog_flush(struct shard *shard, uint16_t target, enum queue_kind queue)
{
    struct queue_end *end = &shard->queues.out[target][queue];
    while (end->backlog_head != NULL && ring_push(end->ring, &end->backlog_head->frame)) {
        struct frame_waiting *waiting = end->backlog_head;
        end->backlog_head = waiting->next;
        if (end->backlog_head == NULL) end->backlog_tail = NULL;
        waiting->next = shard->queues.backlog_free;
        shard->queues.backlog_free = waiting;
        shard->queues.backlog_count--;
        shard->queues.raise |= UINT64_C(1) << target;
    }
}

void queues_flush(struct shard *shard)
{
    for (uint16_t target = 0; shard->queues.backlog_count > 0 && target < shard->shards_count;
         target++) {
        if (target == shard->index) continue;
        backlog_flush(shard, target, QUEUE_REPLY);
        backlog_flush(shard, target, QUEUE_MAIN);
    }
    while (shard->queues.raise != 0) {
        uint16_t target = (uint16_t)__builtin_ctzll(shard->queues.raise);
        shard->queues.raise &= shard->queues.raise - 1;
        wake_raise(shard->node->shard_wakes[target]);
    }
}

int queues_empty(const struct shard *shard)
{
    if (shard->queues.backlog_count > 0) return 0;
    for (uint16_t other = 0; other < shard->shards_count; other++) {
        if (other == shard->index) continue;
        for (int queue = 0; queue < QUEUES_COUNT; queue++) {
            if (ring_used(shard->queues.in[other][queue]) > 0) return 0;
            if (ring_used(shard->queues.out[other][queue].ring) > 0) return 0;
        }
    }
    return 1;
}

static const struct engine_partition_id *frame_partition(const struct shard_frame *frame)
{
    switch (frame->kind) {
    case FRAME_PRODUCE: return &frame->produce.id;
    case FRAME_COMMIT:
    case FRAME_FETCH_OFFSETS: return &frame->commit.id;
    case FRAME_FETCH:
    case FRAME_FETCH_CANCEL: return &frame->fetch.id;
    case FRAME_TIME: return &frame->time.id;
    default: return NULL;
    }
}

static void receive_main(struct shard *shard, const struct shard_frame *frame)
{
    const struct engine_partition_id *id = frame_partition(frame);
    /* Routing is a pure function: a frame for a partition of somebody else is our own error. */
    if (id != NULL) assert(owner_of(id->topic, id->partition, shard->shards_count) == shard->index);
    switch (frame->kind) {
    case FRAME_PRODUCE: produce_remote(shard, frame); return;
    case FRAME_COMMIT: commit_offsets_remote(shard, frame); return;
    case FRAME_FETCH_OFFSETS: fetch_offsets_remote(shard, frame); return;
    case FRAME_FETCH: stream_remote_fetch(shard, frame); return;
    case FRAME_FETCH_CANCEL: stream_remote_fetch_cancel(shard, frame); return;
    case FRAME_TIME: stream_remote_time(shard, frame); return;
    case FRAME_CONNECTION:
        if (http2_connection_open(grpc_server_transport(shard->grpc), frame->fd) == STATUS_OK)
            return;
        shard->counters.connections_refused++;
        socket_close(frame->fd);
        return;
    case FRAME_TABLES: host_metadata_tables(shard, frame); return;
    case FRAME_READY:
        store_tables_complete(shard->store, frame->token);
        shard->ready = 1;
        grpc_server_ready(shard->grpc);
        return;
    default: unreachable();
    }
}

static void receive_reply(struct shard *shard, const struct shard_frame *frame)
{
    if (frame->kind == FRAME_RELEASE) {
        assert(frame->released->owner == shard->index);
        grpc_reply_give(shard->grpc, frame->released);
        return;
    }
    if (frame->kind == FRAME_TABLES_DONE) {
        host_metadata_spread(shard);
        return;
    }
    struct pending *pending = pending_find(shard, frame->token);
    /* A pending lives until its answer, whatever became of its call. */
    assert(pending != NULL);
    switch (frame->kind) {
    case FRAME_OUTCOME:
        if (pending->kind == PENDING_HOST) unreachable();
        pending_outcome(shard, pending, &frame->outcome);
        return;
    case FRAME_OFFSETS: fetch_offsets_answered(shard, pending, &frame->offsets); return;
    case FRAME_TIME_FOUND: stream_time_found(shard, pending, &frame->time_found); return;
    case FRAME_FETCHED: stream_fetched(shard, pending, &frame->fetched); return;
    default: unreachable();
    }
}

void queues_receive(struct shard *shard, enum queue_kind queue)
{
    struct shard_frame frame;
    for (uint16_t source = 0; source < shard->shards_count; source++) {
        if (source == shard->index) continue;
        struct ring *ring = shard->queues.in[source][queue];
        /* No more than were there at the start: a busy neighbour must not hold the pump. */
        for (uint32_t left = ring_used(ring); left > 0 && ring_pop(ring, &frame); left--) {
            assert(frame.target == shard->index);
            assert(frame.source == source);
            if (queue == QUEUE_MAIN)
                receive_main(shard, &frame);
            else
                receive_reply(shard, &frame);
        }
    }
}
