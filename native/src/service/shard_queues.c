#include "service/shard_queues.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/ring.h"
#include "io/io_poll.h"
#include "service/state.h"

uint32_t shard_queues_slots(uint16_t shards_count)
{
    /* N * N rings: fewer slots each the more shards there are. */
    uint32_t slots = QUEUE_SLOTS_MAX;
    for (uint32_t count = 4; count < shards_count && slots > QUEUE_SLOTS_MIN; count *= 2)
        slots /= 4;
    return slots < QUEUE_SLOTS_MIN ? QUEUE_SLOTS_MIN : slots;
}

size_t shard_queues_memory_bytes(uint16_t shards_count)
{
    size_t rings = (size_t)shards_count * QUEUES_COUNT;
    size_t slots = ring_bytes(sizeof(struct shard_frame), shard_queues_slots(shards_count));
    return rings * (arena_size(slots) + arena_size(sizeof(struct ring)))
           + arena_size(sizeof(struct frame_waiting) * QUEUES_BACKLOG_COUNT);
}

int shard_queues_make(struct service *service, struct arena *arena)
{
    uint32_t slots = shard_queues_slots(service->shards_count);
    for (uint16_t source = 0; source < service->shards_count; source++) {
        for (int queue = 0; queue < QUEUES_COUNT; queue++) {
            struct ring *ring = arena_take(arena, sizeof *ring);
            uint8_t *memory = arena_take(arena, ring_bytes(sizeof(struct shard_frame), slots));
            if (!ring || !memory) return 0;
            ring_init(ring, memory, sizeof(struct shard_frame), slots);
            service->queues.in[source][queue] = ring;
        }
    }
    struct frame_waiting *waiting = arena_take(arena, sizeof *waiting * QUEUES_BACKLOG_COUNT);
    if (!waiting) return 0;
    for (uint32_t index = QUEUES_BACKLOG_COUNT; index-- > 0;) {
        waiting[index].next = service->queues.backlog_free;
        service->queues.backlog_free = &waiting[index];
    }
    return 1;
}

void shard_queues_connect(struct service *source, const struct service *target)
{
    for (int queue = 0; queue < QUEUES_COUNT; queue++)
        source->queues.out[target->index][queue].ring = target->queues.in[source->index][queue];
}

static void frame_address(const struct service *service, struct shard_frame *frame, uint16_t target)
{
    assert(target < service->shards_count);
    assert(target != service->index);
    frame->source = service->index;
    frame->target = target;
}

int shard_queues_try(struct service *service, struct shard_frame *frame, uint16_t target)
{
    frame_address(service, frame, target);
    struct queue_end *end = &service->queues.out[target][QUEUE_MAIN];
    if (end->backlog_head != NULL || !ring_push(end->ring, frame)) {
        service->counters.frame_drops_main++;
        return 0;
    }
    service->queues.raise |= UINT64_C(1) << target;
    return 1;
}

void shard_queues_post(struct service *service, struct shard_frame *frame, uint16_t target,
                       enum queue_kind queue)
{
    frame_address(service, frame, target);
    struct queue_end *end = &service->queues.out[target][queue];
    service->queues.raise |= UINT64_C(1) << target;
    if (end->backlog_head == NULL && ring_push(end->ring, frame)) return;
    struct frame_waiting *waiting = service->queues.backlog_free;
    /* As many as there can be pendings, lent replies and hand-overs: more is our own error. */
    assert(waiting != NULL);
    service->queues.backlog_free = waiting->next;
    waiting->next = NULL;
    waiting->frame = *frame;
    if (end->backlog_tail != NULL)
        end->backlog_tail->next = waiting;
    else
        end->backlog_head = waiting;
    end->backlog_tail = waiting;
    service->queues.backlog_count++;
    service->counters.frames_delayed_reply++;
}

static void backlog_flush(struct service *service, uint16_t target, enum queue_kind queue)
{
    struct queue_end *end = &service->queues.out[target][queue];
    while (end->backlog_head != NULL && ring_push(end->ring, &end->backlog_head->frame)) {
        struct frame_waiting *waiting = end->backlog_head;
        end->backlog_head = waiting->next;
        if (end->backlog_head == NULL) end->backlog_tail = NULL;
        waiting->next = service->queues.backlog_free;
        service->queues.backlog_free = waiting;
        service->queues.backlog_count--;
        service->queues.raise |= UINT64_C(1) << target;
    }
}

void shard_queues_flush(struct service *service)
{
    struct shard_queues *queues = &service->queues;
    for (uint16_t target = 0; queues->backlog_count > 0 && target < service->shards_count;
         target++) {
        if (target == service->index) continue;
        backlog_flush(service, target, QUEUE_REPLY);
        backlog_flush(service, target, QUEUE_MAIN);
    }
    while (queues->raise != 0) {
        uint16_t target = (uint16_t)__builtin_ctzll(queues->raise);
        queues->raise &= queues->raise - 1;
        wake_raise(service->shard_wakes[target]);
    }
}

uint32_t shard_queues_used(const struct service *service, uint16_t source, enum queue_kind queue)
{
    return ring_used(service->queues.in[source][queue]);
}

int shard_queues_next(struct service *service, uint16_t source, enum queue_kind queue,
                      struct shard_frame *frame)
{
    if (!ring_pop(service->queues.in[source][queue], frame)) return 0;
    assert(frame->target == service->index);
    assert(frame->source == source);
    return 1;
}

int shard_queues_arrived(const struct service *service)
{
    for (uint16_t other = 0; other < service->shards_count; other++) {
        if (other == service->index) continue;
        if (ring_used(service->queues.in[other][QUEUE_MAIN]) > 0) return 1;
        if (ring_used(service->queues.in[other][QUEUE_REPLY]) > 0) return 1;
    }
    return 0;
}

int shard_queues_delayed(const struct service *service)
{
    return service->queues.backlog_count > 0;
}

int shard_queues_empty(const struct service *service)
{
    if (shard_queues_delayed(service) || shard_queues_arrived(service)) return 0;
    for (uint16_t other = 0; other < service->shards_count; other++) {
        if (other == service->index) continue;
        for (int queue = 0; queue < QUEUES_COUNT; queue++)
            if (ring_used(service->queues.out[other][queue].ring) > 0) return 0;
    }
    return 1;
}

int shard_queues_invariants(const struct service *service)
{
    uint64_t waiting = 0;
    for (uint16_t target = 0; target < service->shards_count; target++) {
        for (int queue = 0; queue < QUEUES_COUNT; queue++) {
            const struct queue_end *end = &service->queues.out[target][queue];
            const struct frame_waiting *last = NULL;
            for (const struct frame_waiting *at = end->backlog_head; at != NULL; at = at->next) {
                assert(at->frame.target == target);
                assert(at->frame.source == service->index);
                last = at;
                waiting++;
            }
            assert(end->backlog_tail == last);
        }
    }
    assert(waiting == service->queues.backlog_count);
    assert(waiting <= QUEUES_BACKLOG_COUNT);
    return 1;
}
