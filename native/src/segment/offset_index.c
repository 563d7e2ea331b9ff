/* segment/offset_index.c: see segment/offset_index.h. */
#include "segment/offset_index.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/limits.h"

size_t offset_index_pool_bytes(uint32_t blocks_count)
{
    return arena_size((size_t)blocks_count * sizeof(struct offset_index_block));
}

enum status offset_index_pool_init(struct offset_index_pool *pool, struct arena *arena,
                                   uint32_t blocks_count)
{
    assert(blocks_count > 0);
    memset(pool, 0, sizeof *pool);
    struct offset_index_block *blocks = arena_take(arena, (size_t)blocks_count * sizeof *blocks);
    if (!blocks) return STATUS_NO_MEMORY;
    for (uint32_t index = blocks_count; index > 0; index--) {
        blocks[index - 1].next = pool->free;
        pool->free = &blocks[index - 1];
    }
    pool->free_count = blocks_count;
    pool->count = blocks_count;
    return STATUS_OK;
}

void offset_index_init(struct offset_index *index)
{
    memset(index, 0, sizeof *index);
    index->stride_bytes = OFFSET_INDEX_STRIDE_BYTES;
}

static void offset_index_give(struct offset_index_pool *pool, struct offset_index_block *block)
{
    block->count = 0;
    block->next = pool->free;
    pool->free = block;
    pool->free_count++;
    assert(pool->free_count <= pool->count);
}

void offset_index_deinit(struct offset_index *index, struct offset_index_pool *pool)
{
    while (index->first) {
        struct offset_index_block *block = index->first;
        index->first = block->next;
        offset_index_give(pool, block);
    }
    offset_index_init(index);
}

/* Where an entry goes while thinning: the index's own first, then its blocks. */
struct offset_index_target {
    struct offset_index *index;
    struct offset_index_block *block; /* NULL = its own entries */
    uint64_t count;
};

static void offset_index_put(struct offset_index_target *target, struct offset_index_entry entry)
{
    if (!target->block && target->count == OFFSET_INDEX_OWN_ENTRIES) {
        target->block = target->index->first;
        target->count = 0;
    } else if (target->block && target->count == OFFSET_INDEX_BLOCK_ENTRIES) {
        target->block = target->block->next;
        target->count = 0;
    }
    struct offset_index_entry *entries =
        target->block ? target->block->entries : target->index->own;
    entries[target->count++] = entry;
    if (target->block)
        target->block->count = target->count;
    else
        target->index->own_count = target->count;
    target->index->noted_position = entry.position;
}

/* Every second entry goes, blocks that become empty return to the pool, the stride doubles. The
 * target never overtakes the source: it holds half as many entries. */
static void offset_index_thin(struct offset_index *index, struct offset_index_pool *pool)
{
    assert(index->own_count == OFFSET_INDEX_OWN_ENTRIES);
    struct offset_index_target target = {.index = index};
    uint64_t seen = 0;
    for (; seen < OFFSET_INDEX_OWN_ENTRIES; seen++) {
        if (seen % 2 == 0) offset_index_put(&target, index->own[seen]);
    }
    for (struct offset_index_block *source = index->first; source; source = source->next) {
        uint64_t source_count = source->count;
        for (uint64_t slot = 0; slot < source_count; slot++, seen++) {
            if (seen % 2 == 0) offset_index_put(&target, source->entries[slot]);
        }
    }
    struct offset_index_block **end = target.block ? &target.block->next : &index->first;
    struct offset_index_block *spare = *end;
    *end = NULL;
    index->last = target.block;
    while (spare) {
        struct offset_index_block *next = spare->next;
        offset_index_give(pool, spare);
        spare = next;
    }
    index->stride_bytes *= 2;
}

/* Room for one more entry: a block from the pool, or half of what there is. */
static void offset_index_room(struct offset_index *index, struct offset_index_pool *pool)
{
    if (index->own_count < OFFSET_INDEX_OWN_ENTRIES) return;
    if (index->last && index->last->count < OFFSET_INDEX_BLOCK_ENTRIES) return;
    struct offset_index_block *block = pool->free;
    if (!block) {
        offset_index_thin(index, pool);
        return;
    }
    pool->free = block->next;
    pool->free_count--;
    block->next = NULL;
    block->count = 0;
    if (index->last)
        index->last->next = block;
    else
        index->first = block;
    index->last = block;
}

void offset_index_note(struct offset_index *index, struct offset_index_pool *pool,
                       const struct offset_index_entry *batch, uint64_t size)
{
    uint64_t position = batch->position;
    assert(position == index->walked_bytes);
    assert(index->stride_bytes >= OFFSET_INDEX_STRIDE_BYTES);
    index->walked_bytes = position + size;
    if (position - index->noted_position < index->stride_bytes) return;
    offset_index_room(index, pool);
    /* Thinning doubled the stride: this batch may be too near by now. */
    if (position - index->noted_position < index->stride_bytes) return;
    if (index->own_count < OFFSET_INDEX_OWN_ENTRIES)
        index->own[index->own_count++] = *batch;
    else
        index->last->entries[index->last->count++] = *batch;
    index->noted_position = position;
}

/* What is looked for: one of both. */
struct offset_index_key {
    int by_time;
    uint64_t offset;
    int64_t time_us;
};

static int offset_index_reached(const struct offset_index_entry *entry,
                                const struct offset_index_key *key)
{
    return key->by_time ? entry->time_us <= key->time_us : entry->offset <= key->offset;
}

/* The last of `count` ordered entries at or before the key; the first is. */
static struct offset_index_entry offset_index_last(const struct offset_index_entry *entries,
                                                   uint64_t count,
                                                   const struct offset_index_key *key)
{
    uint64_t low = 0;
    uint64_t high = count;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (offset_index_reached(&entries[middle], key))
            low = middle;
        else
            high = middle;
    }
    return entries[low];
}

static struct offset_index_entry offset_index_search(const struct offset_index *index,
                                                     uint64_t base_offset,
                                                     const struct offset_index_key *key)
{
    struct offset_index_entry found = {.offset = base_offset, .position = 0};
    if (index->own_count == 0 || !offset_index_reached(&index->own[0], key)) return found;
    found = offset_index_last(index->own, index->own_count, key);
    for (const struct offset_index_block *block = index->first; block; block = block->next) {
        if (block->count == 0 || !offset_index_reached(&block->entries[0], key)) break;
        found = offset_index_last(block->entries, block->count, key);
    }
    return found;
}

struct offset_index_entry offset_index_find(const struct offset_index *index, uint64_t base_offset,
                                            uint64_t offset)
{
    assert(offset >= base_offset);
    struct offset_index_key key = {.offset = offset};
    return offset_index_search(index, base_offset, &key);
}

struct offset_index_entry offset_index_find_time(const struct offset_index *index,
                                                 uint64_t base_offset, int64_t time_us)
{
    struct offset_index_key key = {.by_time = 1, .time_us = time_us};
    return offset_index_search(index, base_offset, &key);
}
