#include "service/pendings.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/commit_offsets.h"
#include "service/produce_reply.h"
#include "service/state.h"

size_t pendings_memory_bytes(void)
{
    return arena_size(sizeof(struct pending) * PENDINGS_COUNT_MAX);
}

int pendings_make(struct service *service, struct arena *arena)
{
    struct pendings *pendings = &service->pendings;
    pendings->slots = arena_take(arena, sizeof(struct pending) * PENDINGS_COUNT_MAX);
    if (!pendings->slots) return 0;
    for (uint32_t index = PENDINGS_COUNT_MAX; index-- > 0;) {
        pendings->slots[index] = (struct pending){.slot_tag = 1, .next_free = pendings->free};
        pendings->free = index + 1;
    }
    return 1;
}

uint32_t pendings_count(const struct service *service)
{
    return service->pendings.count;
}

static uint32_t tag_next(uint32_t tag)
{
    return tag == UINT32_MAX ? 1 : tag + 1;
}

uint64_t pending_take(struct service *service, const struct pending *values)
{
    struct pendings *pendings = &service->pendings;
    if (pendings->free == 0) return 0;
    uint32_t index = pendings->free - 1;
    struct pending *pending = &pendings->slots[index];
    assert(pending->kind == PENDING_FREE);
    assert(values->kind != PENDING_FREE);
    uint32_t tag = pending->slot_tag;
    pendings->free = pending->next_free;
    pendings->count++;
    *pending = *values;
    pending->slot_tag = tag;
    pending->next_free = 0;
    return (uint64_t)tag << 32 | index;
}

struct pending *pending_find(struct service *service, uint64_t token)
{
    uint32_t index = (uint32_t)token;
    assert(index < PENDINGS_COUNT_MAX);
    struct pending *pending = &service->pendings.slots[index];
    if (pending->kind == PENDING_FREE || pending->slot_tag != token >> 32) return NULL;
    return pending;
}

void pending_give(struct service *service, struct pending *pending)
{
    struct pendings *pendings = &service->pendings;
    assert(pending->kind != PENDING_FREE);
    uint32_t tag = tag_next(pending->slot_tag);
    *pending = (struct pending){.slot_tag = tag, .next_free = pendings->free};
    pendings->free = (uint32_t)(pending - pendings->slots) + 1;
    assert(pendings->count > 0);
    pendings->count--;
}

uint64_t pending_of_call(struct call *call, enum pending_kind kind, uint64_t number)
{
    struct pending values = {
        .kind = (uint8_t)kind,
        .call_index = call->index,
        .call_tag = call->slot_tag,
        .number = number,
    };
    return pending_take(service_of(call), &values);
}

struct call *pending_answered(struct service *service, struct pending *pending)
{
    struct call *call = grpc_call_find(service->grpc, pending->call_index, pending->call_tag);
    buffer_give(service->pool, pending->loan);
    pending_give(service, pending);
    if (call != NULL) {
        struct call_work *work = work_of(call);
        assert(work->pending_count > 0);
        work->pending_count--;
    } else {
        service->counters.late_outcomes++;
    }
    return call;
}

void pending_outcome(struct service *service, struct pending *pending,
                     const struct frame_outcome *outcome)
{
    const struct pending done = *pending;
    assert(done.kind == PENDING_COMMIT || done.kind == PENDING_PRODUCE);
    struct call *call = pending_answered(service, pending);
    if (call != NULL && done.kind == PENDING_COMMIT) commit_offsets_outcome(call, outcome);
    if (call != NULL && done.kind == PENDING_PRODUCE) produce_outcome(call, done.number, outcome);
}

static int waits_for_call(const struct pending *pending)
{
    return pending->kind != PENDING_FREE && pending->kind != PENDING_REMOTE
           && pending->kind != PENDING_HOST;
}

/* Every operation of a call that is still there is counted at the call. */
static void calls_invariants(const struct service *service)
{
    uint32_t waits[GRPC_CALLS_COUNT_MAX] = {0};
    uint32_t used = 0;
    for (uint32_t index = 0; index < PENDINGS_COUNT_MAX; index++) {
        const struct pending *pending = &service->pendings.slots[index];
        assert(pending->slot_tag != 0);
        used += pending->kind != PENDING_FREE;
        if (!waits_for_call(pending)) continue;
        waits[pending->call_index] +=
            grpc_call_find(service->grpc, pending->call_index, pending->call_tag) != NULL;
    }
    assert(used == service->pendings.count);
    for (uint32_t index = 0; index < GRPC_CALLS_COUNT_MAX; index++)
        assert(service->works[index].pending_count == waits[index]);
}

int pendings_invariants(const struct service *service, int all)
{
    const struct pendings *pendings = &service->pendings;
    assert(pendings->count <= PENDINGS_COUNT_MAX);
    assert((pendings->free == 0) == (pendings->count == PENDINGS_COUNT_MAX));
    if (!all) return 1;
    uint32_t free_count = 0;
    for (uint32_t at = pendings->free; at != 0; at = pendings->slots[at - 1].next_free) {
        assert(at <= PENDINGS_COUNT_MAX);
        assert(pendings->slots[at - 1].kind == PENDING_FREE);
        assert(free_count < PENDINGS_COUNT_MAX);
        free_count++;
    }
    assert(free_count + pendings->count == PENDINGS_COUNT_MAX);
    calls_invariants(service);
    return 1;
}
