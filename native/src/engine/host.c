/* engine/host.c: the host's side of the rings: frames taken from every shard, frames checked and
 * routed to the shard they are for. Refuses whatever a shard would have to distrust. */
#include <string.h>

#include "catalog/owner.h"
#include "engine/state.h"
#include "foundation/assert.h"
#include "foundation/ring.h"
#include "host/calls.h"
#include "host/ring.h"
#include "shard/shard.h"

size_t engine_receive(struct engine *engine, uint8_t *target, size_t size)
{
    /* In this order: emptied, then down, then the rings. A shard that finds the flag still up has
     * pushed before the rings are read; one that finds it down writes again. The other way round a
     * write could be swallowed with the flag up. */
    wake_drain(&engine->node.host_wake);
    (void)__atomic_exchange_n(&engine->node.host_raised, 0, __ATOMIC_ACQ_REL);
    size_t taken = 0;
    int left = 0;
    for (uint16_t step = 0; step < engine->node.shards_count; step++) {
        uint16_t index = (uint16_t)((engine->receive_next + step) % engine->node.shards_count);
        int more;
        taken += host_take(engine->shards[index].host, target + taken, size - taken, &more);
        left |= more;
    }
    engine->receive_next = (uint16_t)((engine->receive_next + 1) % engine->node.shards_count);
    if (left) node_raise_host(&engine->node);
    return taken;
}

enum target { TARGET_MALFORMED = -1, TARGET_ALL = -2 };

/* The shard a frame is for, or enum target. */
static int frame_target(const struct engine *engine, const struct engine_frame *frame,
                        const uint8_t *body)
{
    size_t size = frame->size - sizeof *frame;
    struct engine_partition_id id;
    switch (frame->kind) {
    case ENGINE_SEND_MESSAGE:
    case ENGINE_SEND_CREDIT:
    case ENGINE_SEND_STATUS:
    case ENGINE_COUNTERS_FLUSH:
        return frame->shard < engine->node.shards_count ? frame->shard : TARGET_MALFORMED;
    case ENGINE_METADATA_SUBMIT:
    case ENGINE_METADATA_APPLIED:
    case ENGINE_METADATA_RESTORED:
    case ENGINE_METADATA_SNAPSHOT_IS:
    case ENGINE_HOST_FAILED: return OWNER_METADATA_SHARD;
    case ENGINE_PUBLISH:
    case ENGINE_GROUP_FENCE:
    case ENGINE_METER_ACK:
    case ENGINE_METER_FLUSH:
    case ENGINE_SEAL:
    case ENGINE_TRIM_ACK:
    case ENGINE_PURGE:
    case ENGINE_HOLD:
    case ENGINE_DESCRIBE:
        if (size < sizeof id) return TARGET_MALFORMED;
        memcpy(&id, body, sizeof id);
        /* The metadata group is reached by METADATA_SUBMIT only. */
        if (id.topic == OWNER_METADATA_TOPIC) return TARGET_MALFORMED;
        return owner_of(id.topic, id.partition, engine->node.shards_count);
    case ENGINE_CLOCK_CONFIRM:
    case ENGINE_HOST_BEAT: return TARGET_ALL;
    default: return TARGET_MALFORMED;
    }
}

static int frame_give(struct shard *shard, const struct engine_frame *frame, const uint8_t *body)
{
    if (!host_give(shard->host, frame, body)) return 0;
    wake_raise(&shard->wake);
    return 1;
}

static int frame_route(struct engine *engine, int target, const struct engine_frame *frame,
                       const uint8_t *body)
{
    if (target != TARGET_ALL) return frame_give(&engine->shards[target], frame, body);
    int all = 1;
    for (uint16_t index = 0; index < engine->node.shards_count; index++)
        all &= frame_give(&engine->shards[index], frame, body);
    /* A beat that one shard has no room for is not missed: its ring is full of other signs of life.
     * A confirmation is sent again to all: twice is the same. */
    return all || frame->kind == ENGINE_HOST_BEAT;
}

static long send_locked(struct engine *engine, const uint8_t *source, size_t size)
{
    size_t at = 0;
    while (at < size) {
        struct engine_frame frame;
        if (size - at < sizeof frame) return STATUS_INVALID;
        memcpy(&frame, source + at, sizeof frame);
        if (frame.size < sizeof frame || frame.size > ENGINE_FRAME_SIZE_MAX) return STATUS_INVALID;
        uint64_t padded = frame_padded(frame.size);
        if (padded > size - at) return STATUS_INVALID;
        const uint8_t *body = source + at + sizeof frame;
        int target = frame_target(engine, &frame, body);
        if (target == TARGET_MALFORMED) return STATUS_INVALID;
        if (!frame_route(engine, target, &frame, body)) {
            __atomic_store_n(&engine->node.host_blocked, 1, __ATOMIC_SEQ_CST);
            /* The shard may have made room just before it could see the flag: one more try settles
             * it. */
            if (!frame_route(engine, target, &frame, body)) break;
        }
        at += (size_t)padded;
    }
    return (long)at;
}

long engine_send(struct engine *engine, const uint8_t *source, size_t size)
{
    pthread_mutex_lock(&engine->send_mutex);
    long taken = send_locked(engine, source, size);
    pthread_mutex_unlock(&engine->send_mutex);
    return taken;
}

size_t engine_cancelled(struct engine *engine, struct engine_frame *calls, size_t count)
{
    size_t found = 0;
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
        found +=
            host_calls_cancelled_take(engine->shards[index].host, &engine->cancelled_seen[index],
                                      calls + found, count - found);
    }
    return found;
}
