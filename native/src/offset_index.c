/* offset_index.c: see offset_index.h. */
#include "offset_index.h"

#include <string.h>

#include "arena.h"
#include "assert.h"
#include "limits.h"

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

/* Every second entry goes, blocks that become empty return to the pool, the stride doubles. */
static void offset_index_thin(struct offset_index *index, struct offset_index_pool *pool)
{
    struct offset_index_block *source = index->first;
    struct offset_index_block *target = index->first;
    uint64_t target_count = 0;
    uint64_t seen = 0;
    for (; source; source = source->next) {
        uint64_t source_count = source->count;
        for (uint64_t slot = 0; slot < source_count; slot++) {
            if (seen++ % 2 != 0) continue;
            if (target_count == OFFSET_INDEX_BLOCK_ENTRIES) {
                target->count = target_count;
                target = target->next;
                target_count = 0;
            }
            /* The target never overtakes the source: it holds half as many entries. */
            target->entries[target_count++] = source->entries[slot];
        }
    }
    target->count = target_count;
    struct offset_index_block *spare = target->next;
    target->next = NULL;
    index->last = target;
    while (spare) {
        struct offset_index_block *next = spare->next;
        offset_index_give(pool, spare);
        spare = next;
    }
    index->noted_position = target->entries[target_count - 1].position;
    index->stride_bytes *= 2;
}

/* A block with room, or NULL: the pool is empty and there is nothing of ours to thin. */
static struct offset_index_block *offset_index_room(struct offset_index *index,
                                                    struct offset_index_pool *pool)
{
    if (index->last && index->last->count < OFFSET_INDEX_BLOCK_ENTRIES) return index->last;
    struct offset_index_block *block = pool->free;
    if (block) {
        pool->free = block->next;
        pool->free_count--;
        block->next = NULL;
        block->count = 0;
        if (index->last)
            index->last->next = block;
        else
            index->first = block;
        index->last = block;
        return block;
    }
    if (!index->first) return NULL;
    offset_index_thin(index, pool);
    assert(index->last->count < OFFSET_INDEX_BLOCK_ENTRIES);
    return index->last;
}

void offset_index_note(struct offset_index *index, struct offset_index_pool *pool, uint64_t offset,
                       uint64_t position, uint64_t size)
{
    assert(position == index->walked_bytes);
    assert(index->stride_bytes >= OFFSET_INDEX_STRIDE_BYTES);
    index->walked_bytes = position + size;
    if (position - index->noted_position < index->stride_bytes) return;
    struct offset_index_block *block = offset_index_room(index, pool);
    if (!block) return;
    /* Thinning doubled the stride: this batch may be too near by now. */
    if (position - index->noted_position < index->stride_bytes) return;
    block->entries[block->count++] =
        (struct offset_index_entry){.offset = offset, .position = position};
    index->noted_position = position;
}

struct offset_index_entry offset_index_find(const struct offset_index *index, uint64_t base_offset,
                                            uint64_t offset)
{
    assert(offset >= base_offset);
    struct offset_index_entry found = {.offset = base_offset, .position = 0};
    for (const struct offset_index_block *block = index->first; block; block = block->next) {
        if (block->count == 0 || block->entries[0].offset > offset) break;
        uint64_t low = 0;
        uint64_t high = block->count;
        while (high - low > 1) {
            uint64_t middle = (low + high) / 2;
            if (block->entries[middle].offset <= offset)
                low = middle;
            else
                high = middle;
        }
        found = block->entries[low];
    }
    return found;
}
