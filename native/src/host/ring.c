#include "host/ring.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "host/calls.h"
#include "host/counters.h"
#include "host/metadata.h"
#include "host/node.h"
#include "host/partitions.h"
#include "host/state.h"
#include "service/health.h"

size_t host_ring_memory_bytes(void)
{
    return 2 * arena_size(HOST_RING_BYTES) + arena_size(ENGINE_FRAME_SIZE_MAX);
}

int host_ring_make(struct host *host, struct arena *arena)
{
    uint8_t *out = arena_take(arena, HOST_RING_BYTES);
    uint8_t *in = arena_take(arena, HOST_RING_BYTES);
    host->scratch = arena_take(arena, ENGINE_FRAME_SIZE_MAX);
    if (!out || !in || !host->scratch) return 0;
    frame_ring_init(&host->out, out, HOST_RING_BYTES);
    frame_ring_init(&host->in, in, HOST_RING_BYTES);
    return 1;
}

int host_try(struct host *host, struct engine_frame *frame, const struct host_body *body)
{
    static const struct host_body nothing = {0};
    if (body == NULL) body = &nothing;
    frame->size = (uint32_t)(sizeof *frame + body->size + body->tail_size);
    frame->shard = host->index;
    if (host->backlog_head != NULL) return 0;
    if (!frame_ring_push(&host->out, frame, body->data, body->size, body->tail, body->tail_size))
        return 0;
    host->posted = 1;
    host->counters.host_frames_out++;
    return 1;
}

enum status host_post(struct host *host, struct engine_frame *frame, const struct host_body *body)
{
    if (host_try(host, frame, body)) return STATUS_OK;
    size_t size = frame->size - sizeof *frame;
    struct host_waiting *waiting = buffer_take(host->pool, sizeof *waiting + size);
    if (waiting == NULL) return STATUS_NO_MEMORY;
    *waiting = (struct host_waiting){.body_size = size, .frame = *frame};
    uint8_t *target = (uint8_t *)(waiting + 1);
    if (body != NULL && body->size > 0) memcpy(target, body->data, body->size);
    if (body != NULL && body->tail_size > 0)
        memcpy(target + body->size, body->tail, body->tail_size);
    if (host->backlog_tail != NULL)
        host->backlog_tail->next = waiting;
    else
        host->backlog_head = waiting;
    host->backlog_tail = waiting;
    host->backlog_count++;
    return STATUS_OK;
}

void host_fail(struct host *host, enum status status)
{
    if (!node_fail(host->node, status)) return;
    struct engine_frame frame = {.kind = ENGINE_STOPPED,
                                 .arg0 = (uint64_t)node_result(status),
                                 .arg1 = (uint64_t)(uint32_t)-status};
    (void)host_post(host, &frame, NULL);
    node_raise_shards(host->node);
}

void host_post_surely(struct host *host, struct engine_frame *frame, const struct host_body *body)
{
    enum status status = host_post(host, frame, body);
    if (status != STATUS_OK) host_fail(host, status);
}

void host_reply(struct host *host, uint64_t cookie, enum engine_result result, const void *body,
                size_t size)
{
    struct engine_frame frame = {.kind = ENGINE_REPLY, .arg0 = cookie, .arg1 = (uint64_t)result};
    struct host_body reply = {.data = body, .size = size};
    host_post_surely(host, &frame, &reply);
}

void host_flush(struct host *host)
{
    while (host->backlog_head != NULL) {
        struct host_waiting *waiting = host->backlog_head;
        const uint8_t *body = (const uint8_t *)(waiting + 1);
        if (!frame_ring_push(&host->out, &waiting->frame, body, (size_t)waiting->body_size, NULL,
                             0))
            break;
        host->backlog_head = waiting->next;
        if (waiting->next == NULL) host->backlog_tail = NULL;
        host->backlog_count--;
        buffer_give(host->pool, waiting);
        host->posted = 1;
        host->counters.host_frames_out++;
    }
    if (!host->posted) return;
    host->posted = 0;
    node_raise_host(host->node);
}

int host_empty(const struct host *host)
{
    return host->backlog_head == NULL;
}

int host_arrived(const struct host *host)
{
    return host->in.consumer.position
           != __atomic_load_n(&host->in.producer.position, __ATOMIC_ACQUIRE);
}

int host_ring_invariants(const struct host *host)
{
    const struct host_waiting *last = NULL;
    uint64_t count = 0;
    for (const struct host_waiting *at = host->backlog_head; at != NULL; at = at->next) {
        assert(at->frame.size == sizeof at->frame + at->body_size);
        assert(at->frame.shard == host->index);
        last = at;
        count++;
    }
    assert(host->backlog_tail == last);
    assert(host->backlog_count == count);
    return 1;
}

size_t host_take(struct host *host, uint8_t *target, size_t size, int *left)
{
    size_t taken = frame_ring_take(&host->out, target, size);
    struct engine_frame frame;
    *left = frame_ring_peek(&host->out, &frame);
    return taken;
}

int host_give(struct host *host, const struct engine_frame *frame, const uint8_t *body)
{
    return frame_ring_push(&host->in, frame, body, frame->size - sizeof *frame, NULL, 0);
}

static void receive_frame(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                          size_t size)
{
    switch (frame->kind) {
    case ENGINE_SEND_MESSAGE:
    case ENGINE_SEND_CREDIT:
    case ENGINE_SEND_STATUS: host_call_frame(host, frame, body, size); return;
    case ENGINE_METADATA_SUBMIT:
    case ENGINE_METADATA_APPLIED:
    case ENGINE_METADATA_RESTORED:
    case ENGINE_METADATA_SNAPSHOT_IS: host_metadata_frame(host, frame, body, size); return;
    case ENGINE_PUBLISH:
    case ENGINE_GROUP_FENCE:
    case ENGINE_METER_ACK:
    case ENGINE_METER_FLUSH:
    case ENGINE_SEAL:
    case ENGINE_TRIM_ACK:
    case ENGINE_PURGE:
    case ENGINE_HOLD:
    case ENGINE_DESCRIBE: host_partition_frame(host, frame, body, size); return;
    case ENGINE_COUNTERS_FLUSH: host_counters_flush(host, frame); return;
    case ENGINE_CLOCK_CONFIRM: store_clock_confirm(host->store, *host->now); return;
    case ENGINE_HOST_FAILED: host_fail(host, STATUS_MESSAGE_TOO_LARGE); return;
    case ENGINE_HOST_BEAT: health_beat(host->service); return;
    default:
        /* engine_send lets no other kind pass. */
        unreachable();
    }
}

void host_receive(struct host *host)
{
    size_t taken = frame_ring_take(&host->in, host->scratch, ENGINE_FRAME_SIZE_MAX);
    if (taken == 0) return;
    for (size_t at = 0; at < taken;) {
        struct engine_frame frame;
        memcpy(&frame, host->scratch + at, sizeof frame);
        host->counters.host_frames_in++;
        receive_frame(host, &frame, host->scratch + at + sizeof frame, frame.size - sizeof frame);
        at += (size_t)frame_padded(frame.size);
    }
    if (__atomic_exchange_n(&host->node->host_blocked, 0, __ATOMIC_ACQ_REL) != 0) {
        wake_raise_always(&host->node->host_wake);
    }
}
