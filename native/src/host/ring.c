#include "host/ring.h"

#include <string.h>

#include "foundation/assert.h"
#include "host/calls.h"
#include "host/counters.h"
#include "host/metadata.h"
#include "host/node.h"
#include "host/partitions.h"
#include "shard/shard.h"

int host_try(struct shard *shard, struct engine_frame *frame, const struct host_body *body)
{
    static const struct host_body nothing = {0};
    if (body == NULL) body = &nothing;
    frame->size = (uint32_t)(sizeof *frame + body->size + body->tail_size);
    frame->shard = shard->index;
    if (shard->host_backlog_head != NULL) return 0;
    if (!frame_ring_push(&shard->host_out, frame, body->data, body->size, body->tail,
                         body->tail_size))
        return 0;
    shard->host_posted = 1;
    shard->counters.host_frames_out++;
    return 1;
}

enum status host_post(struct shard *shard, struct engine_frame *frame, const struct host_body *body)
{
    if (host_try(shard, frame, body)) return STATUS_OK;
    size_t size = frame->size - sizeof *frame;
    struct host_waiting *waiting = buffer_take(&shard->pool, sizeof *waiting + size);
    if (waiting == NULL) return STATUS_NO_MEMORY;
    *waiting = (struct host_waiting){.body_size = size, .frame = *frame};
    uint8_t *target = (uint8_t *)(waiting + 1);
    if (body != NULL && body->size > 0) memcpy(target, body->data, body->size);
    if (body != NULL && body->tail_size > 0)
        memcpy(target + body->size, body->tail, body->tail_size);
    if (shard->host_backlog_tail != NULL)
        shard->host_backlog_tail->next = waiting;
    else
        shard->host_backlog_head = waiting;
    shard->host_backlog_tail = waiting;
    return STATUS_OK;
}

void host_fail(struct shard *shard, enum status status)
{
    if (!node_fail(shard->node, status)) return;
    struct engine_frame frame = {.kind = ENGINE_STOPPED,
                                 .arg0 = (uint64_t)node_result(status),
                                 .arg1 = (uint64_t)(uint32_t)-status};
    (void)host_post(shard, &frame, NULL);
    node_raise_shards(shard->node);
}

void host_post_surely(struct shard *shard, struct engine_frame *frame, const struct host_body *body)
{
    enum status status = host_post(shard, frame, body);
    if (status != STATUS_OK) host_fail(shard, status);
}

void host_reply(struct shard *shard, uint64_t cookie, enum engine_result result, const void *body,
                size_t size)
{
    struct engine_frame frame = {.kind = ENGINE_REPLY, .arg0 = cookie, .arg1 = (uint64_t)result};
    struct host_body reply = {.data = body, .size = size};
    host_post_surely(shard, &frame, &reply);
}

void host_flush(struct shard *shard)
{
    while (shard->host_backlog_head != NULL) {
        struct host_waiting *waiting = shard->host_backlog_head;
        const uint8_t *body = (const uint8_t *)(waiting + 1);
        if (!frame_ring_push(&shard->host_out, &waiting->frame, body, (size_t)waiting->body_size,
                             NULL, 0))
            break;
        shard->host_backlog_head = waiting->next;
        if (waiting->next == NULL) shard->host_backlog_tail = NULL;
        buffer_give(&shard->pool, waiting);
        shard->host_posted = 1;
        shard->counters.host_frames_out++;
    }
    if (!shard->host_posted) return;
    shard->host_posted = 0;
    node_raise_host(shard->node);
}

int host_empty(const struct shard *shard)
{
    return shard->host_backlog_head == NULL;
}

static void receive_frame(struct shard *shard, const struct engine_frame *frame,
                          const uint8_t *body, size_t size)
{
    switch (frame->kind) {
    case ENGINE_SEND_MESSAGE:
    case ENGINE_SEND_CREDIT:
    case ENGINE_SEND_STATUS: host_call_frame(shard, frame, body, size); return;
    case ENGINE_METADATA_SUBMIT:
    case ENGINE_METADATA_APPLIED:
    case ENGINE_METADATA_RESTORED:
    case ENGINE_METADATA_SNAPSHOT_IS: host_metadata_frame(shard, frame, body, size); return;
    case ENGINE_PUBLISH:
    case ENGINE_GROUP_FENCE:
    case ENGINE_METER_ACK:
    case ENGINE_METER_FLUSH:
    case ENGINE_SEAL:
    case ENGINE_TRIM_ACK:
    case ENGINE_PURGE:
    case ENGINE_HOLD:
    case ENGINE_DESCRIBE: host_partition_frame(shard, frame, body, size); return;
    case ENGINE_COUNTERS_FLUSH: host_counters_flush(shard, frame); return;
    case ENGINE_CLOCK_CONFIRM: store_clock_confirm(shard->store, shard->now); return;
    case ENGINE_HOST_FAILED: host_fail(shard, STATUS_MESSAGE_TOO_LARGE); return;
    case ENGINE_HOST_BEAT: shard->host_beat_ns = shard->now.monotonic_ns; return;
    default:
        /* engine_send lets no other kind pass. */
        unreachable();
    }
}

void host_receive(struct shard *shard)
{
    size_t taken = frame_ring_take(&shard->host_in, shard->host_scratch, ENGINE_FRAME_SIZE_MAX);
    if (taken == 0) return;
    for (size_t at = 0; at < taken;) {
        struct engine_frame frame;
        memcpy(&frame, shard->host_scratch + at, sizeof frame);
        shard->counters.host_frames_in++;
        receive_frame(shard, &frame, shard->host_scratch + at + sizeof frame,
                      frame.size - sizeof frame);
        at += (size_t)frame_padded(frame.size);
    }
    if (__atomic_exchange_n(&shard->node->host_blocked, 0, __ATOMIC_ACQ_REL) != 0) {
        wake_raise_always(&shard->node->host_wake);
    }
}
