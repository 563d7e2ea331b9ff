/* shard/slots.c: the slots of pendings and fetches: taken, found by (index, tag),
 * given back. A tag grows when its slot is given back and is never 0: an old name finds
 * nothing. */
#include "foundation/assert.h"
#include "shard/shard.h"

static uint32_t tag_next(uint32_t tag)
{
    return tag == UINT32_MAX ? 1 : tag + 1;
}

uint64_t pending_take(struct shard *shard, const struct pending *values)
{
    if (shard->pendings_free == 0) return 0;
    uint32_t index = shard->pendings_free - 1;
    struct pending *pending = &shard->pendings[index];
    assert(pending->kind == PENDING_FREE);
    assert(values->kind != PENDING_FREE);
    uint32_t tag = pending->slot_tag;
    shard->pendings_free = pending->next_free;
    shard->pendings_count++;
    *pending = *values;
    pending->slot_tag = tag;
    pending->next_free = 0;
    return (uint64_t)tag << 32 | index;
}

struct pending *pending_find(struct shard *shard, uint64_t token)
{
    uint32_t index = (uint32_t)token;
    assert(index < SHARD_PENDINGS_COUNT_MAX);
    struct pending *pending = &shard->pendings[index];
    if (pending->kind == PENDING_FREE || pending->slot_tag != token >> 32) return NULL;
    return pending;
}

void pending_give(struct shard *shard, struct pending *pending)
{
    assert(pending->kind != PENDING_FREE);
    uint32_t tag = tag_next(pending->slot_tag);
    *pending = (struct pending){.slot_tag = tag, .next_free = shard->pendings_free};
    shard->pendings_free = (uint32_t)(pending - shard->pendings) + 1;
    assert(shard->pendings_count > 0);
    shard->pendings_count--;
}

struct fetch *fetch_take(struct shard *shard)
{
    if (shard->fetches_free_count == 0) return NULL;
    struct fetch *fetch = &shard->fetches[shard->fetches_free[--shard->fetches_free_count]];
    assert(fetch->state == FETCH_FREE);
    fetch->state = FETCH_RUNNING;
    fetch->timer.kind = TIMER_FETCH;
    return fetch;
}

void fetch_give(struct shard *shard, struct fetch *fetch)
{
    assert(fetch->state == FETCH_RUNNING);
    assert(fetch->timer.deadline_ns == 0);
    uint32_t index = fetch->index;
    uint32_t tag = fetch->slot_tag + 1;
    *fetch = (struct fetch){.index = index, .slot_tag = tag == 0 ? 1 : tag};
    shard->fetches_free[shard->fetches_free_count++] = index;
}

struct fetch_read *fetch_read_take(struct shard *shard, uint16_t *index)
{
    for (uint16_t at = 0; at < SHARD_READS_COUNT_MAX; at++) {
        if (shard->reads[at].used) continue;
        shard->reads[at].used = 1;
        *index = at;
        return &shard->reads[at];
    }
    return NULL;
}
