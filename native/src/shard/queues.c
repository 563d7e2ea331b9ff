#include "shard/queues.h"

#include <string.h>

#include "catalog/owner.h"
#include "engine/state.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "host/metadata.h"
#include "io/io_socket.h"
#include "service/fetch.h"
#include "service/list_offsets.h"
#include "service/produce.h"
#include "shard/shard.h"

uint32_t lanes_slots(uint16_t shards_count)
{
    /* N * N rings: fewer slots each the more shards there are. */
    uint32_t slots = LANE_SLOTS_MAX;
    for (uint32_t count = 4; count < shards_count && slots > LANE_SLOTS_MIN; count *= 2) slots /= 4;
    return slots < LANE_SLOTS_MIN ? LANE_SLOTS_MIN : slots;
}

static void lane_address(const struct shard *shard, struct lane_frame *frame, uint16_t target)
{
    assert(target < shard->shards_count);
    assert(target != shard->index);
    frame->source = shard->index;
    frame->target = target;
}

int lanes_try(struct shard *shard, struct lane_frame *frame, uint16_t target)
{
    lane_address(shard, frame, target);
    struct lane_end *end = &shard->lanes.out[target][LANE_MAIN];
    if (end->letters_head != NULL || !ring_push(end->ring, frame)) {
        shard->counters.frame_drops_main++;
        return 0;
    }
    shard->lanes.raise |= UINT64_C(1) << target;
    return 1;
}

void lanes_post(struct shard *shard, struct lane_frame *frame, uint16_t target, enum lane lane)
{
    lane_address(shard, frame, target);
    struct lane_end *end = &shard->lanes.out[target][lane];
    shard->lanes.raise |= UINT64_C(1) << target;
    if (end->letters_head == NULL && ring_push(end->ring, frame)) return;
    struct lane_letter *letter = shard->lanes.letters_free;
    /* As many letters as there can be pendings, lent replies and hand-overs: more is our own error.
     */
    assert(letter != NULL);
    shard->lanes.letters_free = letter->next;
    letter->next = NULL;
    letter->frame = *frame;
    if (end->letters_tail != NULL)
        end->letters_tail->next = letter;
    else
        end->letters_head = letter;
    end->letters_tail = letter;
    shard->lanes.waiting++;
    shard->counters.frames_delayed_reply++;
}

static void letters_flush(struct shard *shard, uint16_t target, enum lane lane)
{
    struct lane_end *end = &shard->lanes.out[target][lane];
    while (end->letters_head != NULL && ring_push(end->ring, &end->letters_head->frame)) {
        struct lane_letter *letter = end->letters_head;
        end->letters_head = letter->next;
        if (end->letters_head == NULL) end->letters_tail = NULL;
        letter->next = shard->lanes.letters_free;
        shard->lanes.letters_free = letter;
        shard->lanes.waiting--;
        shard->lanes.raise |= UINT64_C(1) << target;
    }
}

void lanes_flush(struct shard *shard)
{
    for (uint16_t target = 0; shard->lanes.waiting > 0 && target < shard->shards_count; target++) {
        if (target == shard->index) continue;
        letters_flush(shard, target, LANE_REPLY);
        letters_flush(shard, target, LANE_MAIN);
    }
    while (shard->lanes.raise != 0) {
        uint16_t target = (uint16_t)__builtin_ctzll(shard->lanes.raise);
        shard->lanes.raise &= shard->lanes.raise - 1;
        wake_raise(&engine_shard(shard->engine, target)->wake);
    }
}

int lanes_empty(const struct shard *shard)
{
    if (shard->lanes.waiting > 0) return 0;
    for (uint16_t other = 0; other < shard->shards_count; other++) {
        if (other == shard->index) continue;
        for (int lane = 0; lane < LANES_COUNT; lane++) {
            if (ring_used(shard->lanes.in[other][lane]) > 0) return 0;
            if (ring_used(shard->lanes.out[other][lane].ring) > 0) return 0;
        }
    }
    return 1;
}

static const struct engine_partition_id *frame_partition(const struct lane_frame *frame)
{
    switch (frame->kind) {
    case LANE_PRODUCE: return &frame->produce.id;
    case LANE_COMMIT:
    case LANE_FETCH_OFFSETS: return &frame->commit.id;
    case LANE_FETCH:
    case LANE_FETCH_CANCEL: return &frame->fetch.id;
    case LANE_TIME: return &frame->time.id;
    default: return NULL;
    }
}

static void receive_main(struct shard *shard, const struct lane_frame *frame)
{
    const struct engine_partition_id *id = frame_partition(frame);
    /* Routing is a pure function: a frame for a partition of somebody else is our own error. */
    if (id != NULL) assert(owner_of(id->topic, id->partition, shard->shards_count) == shard->index);
    switch (frame->kind) {
    case LANE_PRODUCE: stream_remote_produce(shard, frame); return;
    case LANE_COMMIT: stream_remote_commit(shard, frame); return;
    case LANE_FETCH_OFFSETS: stream_remote_offsets(shard, frame); return;
    case LANE_FETCH: stream_remote_fetch(shard, frame); return;
    case LANE_FETCH_CANCEL: stream_remote_fetch_cancel(shard, frame); return;
    case LANE_TIME: stream_remote_time(shard, frame); return;
    case LANE_CONNECTION:
        if (http2_connection_open(shard, frame->fd) == STATUS_OK) return;
        shard->counters.connections_refused++;
        socket_close(frame->fd);
        return;
    case LANE_TABLES: host_metadata_tables(shard, frame); return;
    case LANE_READY:
        store_tables_complete(shard->store, frame->token);
        shard->ready = 1;
        return;
    default: unreachable();
    }
}

static void receive_reply(struct shard *shard, const struct lane_frame *frame)
{
    if (frame->kind == LANE_RELEASE) {
        assert(frame->released->owner == shard->index);
        grpc_reply_give(shard, frame->released);
        return;
    }
    if (frame->kind == LANE_TABLES_DONE) {
        host_metadata_spread(shard);
        return;
    }
    struct pending *pending = pending_find(shard, frame->token);
    /* A pending lives until its answer, whatever became of its call. */
    assert(pending != NULL);
    switch (frame->kind) {
    case LANE_OUTCOME:
        if (pending->kind == PENDING_HOST) unreachable();
        stream_outcome(shard, pending, &frame->outcome);
        return;
    case LANE_OFFSETS: stream_offsets(shard, pending, &frame->offsets); return;
    case LANE_TIME_FOUND: stream_time_found(shard, pending, &frame->time_found); return;
    case LANE_FETCHED: stream_fetched(shard, pending, &frame->fetched); return;
    default: unreachable();
    }
}

void lanes_receive(struct shard *shard, enum lane lane)
{
    struct lane_frame frame;
    for (uint16_t source = 0; source < shard->shards_count; source++) {
        if (source == shard->index) continue;
        struct ring *ring = shard->lanes.in[source][lane];
        /* No more than were there at the start: a busy neighbour must not hold the pump. */
        for (uint32_t left = ring_used(ring); left > 0 && ring_pop(ring, &frame); left--) {
            assert(frame.target == shard->index);
            assert(frame.source == source);
            if (lane == LANE_MAIN)
                receive_main(shard, &frame);
            else
                receive_reply(shard, &frame);
        }
    }
}
