#include "service/fetch/fetch_table.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "service/fetch/fetch_wait.h"
#include "service/state.h"

size_t fetch_table_memory_bytes(void)
{
    return arena_size(sizeof(struct fetch) * FETCHES_COUNT_MAX)
           + arena_size(sizeof(uint32_t) * FETCHES_COUNT_MAX)
           + arena_size(sizeof(struct queue) * FETCH_BUCKETS_COUNT)
           + arena_size(sizeof(struct fetch_read) * FETCH_READS_COUNT_MAX);
}

int fetch_table_make(struct service *service, struct arena *arena)
{
    struct fetches *fetches = &service->fetches;
    fetches->slots = arena_take(arena, sizeof(struct fetch) * FETCHES_COUNT_MAX);
    fetches->free = arena_take(arena, sizeof(uint32_t) * FETCHES_COUNT_MAX);
    fetches->buckets = arena_take(arena, sizeof(struct queue) * FETCH_BUCKETS_COUNT);
    fetches->reads = arena_take(arena, sizeof(struct fetch_read) * FETCH_READS_COUNT_MAX);
    if (!fetches->slots || !fetches->free || !fetches->buckets || !fetches->reads) return 0;
    for (uint32_t index = FETCHES_COUNT_MAX; index-- > 0;) {
        fetches->slots[index] = (struct fetch){.index = index, .slot_tag = 1};
        fetches->free[fetches->free_count++] = index;
    }
    return 1;
}

struct fetch *fetch_take(struct service *service)
{
    struct fetches *fetches = &service->fetches;
    if (fetches->free_count == 0) return NULL;
    struct fetch *fetch = &fetches->slots[fetches->free[--fetches->free_count]];
    assert(fetch->state == FETCH_FREE);
    fetch->state = FETCH_RUNNING;
    fetch->timer.kind = SERVICE_TIMER;
    return fetch;
}

void fetch_give(struct service *service, struct fetch *fetch)
{
    assert(fetch->state == FETCH_RUNNING);
    assert(fetch->timer.deadline_ns == 0);
    uint32_t index = fetch->index;
    uint32_t tag = fetch->slot_tag + 1;
    *fetch = (struct fetch){.index = index, .slot_tag = tag == 0 ? 1 : tag};
    service->fetches.free[service->fetches.free_count++] = index;
}

struct fetch_read *fetch_read_take(struct service *service, uint16_t *index)
{
    for (uint16_t at = 0; at < FETCH_READS_COUNT_MAX; at++) {
        struct fetch_read *read = &service->fetches.reads[at];
        if (read->used) continue;
        read->used = 1;
        *index = at;
        return read;
    }
    return NULL;
}

/* Between turns nothing runs, and each fetch is where its state says. */
static void fetch_invariants(const struct service *service, const struct fetch *fetch)
{
    const struct fetches *fetches = &service->fetches;
    assert(fetch->slot_tag != 0);
    assert(fetch->state != FETCH_RUNNING);
    assert(fetch->link.queue == fetch_wait_queue(service, fetch));
    ergo(fetch->state == FETCH_FREE, fetch->timer.deadline_ns == 0);
    ergo(fetch->cancelled, fetch->state == FETCH_READING);
    if (fetch->state != FETCH_READING) return;
    assert(fetches->reads[fetch->read].used);
    assert(fetches->reads[fetch->read].fetch_index == fetch->index);
    assert(fetches->reads[fetch->read].fetch_tag == fetch->slot_tag);
}

int fetch_table_invariants(const struct service *service, int all)
{
    const struct fetches *fetches = &service->fetches;
    assert(fetches->free_count <= FETCHES_COUNT_MAX);
    assert(fetches->waiting_to_retry <= FETCHES_COUNT_MAX);
    uint32_t used = FETCHES_COUNT_MAX - fetches->free_count;
    uint32_t reading = 0;
    for (uint32_t index = 0; index < FETCH_READS_COUNT_MAX; index++) {
        const struct fetch_read *read = &fetches->reads[index];
        if (!read->used) continue;
        assert(read->reply != NULL);
        fetch_invariants(service, &fetches->slots[read->fetch_index]);
        reading++;
    }
    assert(reading + fetches->queued.count + fetches->waiting.count <= used);
    if (!all) return 1;
    for (uint32_t index = 0; index < FETCHES_COUNT_MAX; index++) {
        assert(fetches->slots[index].index == index);
        fetch_invariants(service, &fetches->slots[index]);
        used -= fetches->slots[index].state != FETCH_FREE;
    }
    assert(used == 0);
    return 1;
}
