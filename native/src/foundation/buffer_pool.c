#include "foundation/buffer_pool.h"

#include <string.h>

#include "foundation/assert.h"

enum {
    PAGE_SIZE_BYTES = 8192,
    SMALL_SIZE_MIN = 32,
    SMALL_SIZE_MAX = 4096,
    SMALL_CHUNK = 65536,
    TOP_ORDER = 11, /* 8 KiB << 11 = 16 MiB */
    MARK_USED = 0x5553,
    MARK_FREE = 0x4652,
};

struct buffer_block {
    uint32_t size; /* of the whole block */
    uint16_t mark;
    uint8_t is_small;
    uint8_t class; /* small class or buddy order */
    uint64_t reserved;
    /* only while free: in the place of the caller's bytes */
    struct buffer_block *next;
    struct buffer_block *previous;
};

enum { HEADER_SIZE = 16 };

_Static_assert(offsetof(struct buffer_block, next) == HEADER_SIZE, "links lie behind the header");
_Static_assert(sizeof(struct buffer_block) <= SMALL_SIZE_MIN, "the smallest block holds the links");

size_t buffer_pool_table_bytes(uint64_t region_size)
{
    return (size_t)(region_size / PAGE_SIZE_BYTES);
}

static uint64_t order_size(uint32_t order)
{
    return (uint64_t)PAGE_SIZE_BYTES << order;
}

static size_t page_of(const struct buffer_pool *pool, const struct buffer_block *block)
{
    return (size_t)((const uint8_t *)block - pool->region) / PAGE_SIZE_BYTES;
}

static void large_link(struct buffer_pool *pool, struct buffer_block *block, uint32_t order)
{
    block->size = (uint32_t)order_size(order);
    block->mark = MARK_FREE;
    block->is_small = 0;
    block->class = (uint8_t)order;
    block->previous = NULL;
    block->next = pool->large[order];
    if (block->next != NULL) block->next->previous = block;
    pool->large[order] = block;
    pool->order_of[page_of(pool, block)] = (uint8_t)(order + 1);
}

static void large_unlink(struct buffer_pool *pool, struct buffer_block *block, uint32_t order)
{
    assert(block->mark == MARK_FREE);
    assert(pool->order_of[page_of(pool, block)] == order + 1);
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        pool->large[order] = block->next;
    if (block->next != NULL) block->next->previous = block->previous;
    pool->order_of[page_of(pool, block)] = 0;
}

void buffer_pool_init(struct buffer_pool *pool, uint8_t *region, uint64_t region_size,
                      uint8_t *table)
{
    assert(region_size > 0);
    assert(region_size % order_size(TOP_ORDER) == 0);
    *pool = (struct buffer_pool){.region = region, .region_size = region_size, .order_of = table};
    pool->orders_count = TOP_ORDER + 1;
    memset(table, 0, buffer_pool_table_bytes(region_size));
    /* Last block first, so that the region fills from its front and untouched pages stay untouched.
     */
    for (uint64_t at = region_size; at > 0; at -= order_size(TOP_ORDER)) {
        large_link(pool, (struct buffer_block *)(void *)(region + at - order_size(TOP_ORDER)),
                   TOP_ORDER);
    }
}

static struct buffer_block *large_take(struct buffer_pool *pool, uint32_t order)
{
    uint32_t found = order;
    while (found < pool->orders_count && pool->large[found] == NULL) found++;
    if (found == pool->orders_count) return NULL;
    struct buffer_block *block = pool->large[found];
    large_unlink(pool, block, found);
    while (found > order) {
        found--;
        large_link(pool, (struct buffer_block *)(void *)((uint8_t *)block + order_size(found)),
                   found);
    }
    block->size = (uint32_t)order_size(order);
    block->is_small = 0;
    block->class = (uint8_t)order;
    return block;
}

static void large_give(struct buffer_pool *pool, struct buffer_block *block)
{
    uint32_t order = block->class;
    while (order < TOP_ORDER) {
        uint64_t at = (uint64_t)((uint8_t *)block - pool->region);
        uint64_t buddy_at = at ^ order_size(order);
        assert(buddy_at < pool->region_size);
        struct buffer_block *buddy = (struct buffer_block *)(void *)(pool->region + buddy_at);
        if (pool->order_of[page_of(pool, buddy)] != order + 1) break;
        large_unlink(pool, buddy, order);
        if (buddy_at < at) block = buddy;
        order++;
    }
    large_link(pool, block, order);
}

static uint32_t small_class(size_t total)
{
    uint32_t class = 0;
    while (((size_t)SMALL_SIZE_MIN << class) < total) class ++;
    assert(class < BUFFER_POOL_SMALL_CLASSES);
    return class;
}

static struct buffer_block *small_take(struct buffer_pool *pool, uint32_t class)
{
    if (pool->small[class] == NULL) {
        struct buffer_block *chunk = large_take(pool, 3);
        if (chunk == NULL) return NULL;
        _Static_assert((PAGE_SIZE_BYTES << 3) == SMALL_CHUNK, "a chunk is one block of order 3");
        uint32_t size = (uint32_t)SMALL_SIZE_MIN << class;
        for (uint32_t at = SMALL_CHUNK; at > 0; at -= size) {
            struct buffer_block *block =
                (struct buffer_block *)(void *)((uint8_t *)chunk + at - size);
            block->size = size;
            block->mark = MARK_FREE;
            block->is_small = 1;
            block->class = (uint8_t)class;
            block->next = pool->small[class];
            pool->small[class] = block;
        }
    }
    struct buffer_block *block = pool->small[class];
    pool->small[class] = block->next;
    assert(block->mark == MARK_FREE);
    return block;
}

void *buffer_take(struct buffer_pool *pool, size_t size)
{
    if (size > order_size(TOP_ORDER) - HEADER_SIZE) {
        pool->refused_count++;
        return NULL;
    }
    size_t total = size + HEADER_SIZE;
    struct buffer_block *block;
    if (total <= SMALL_SIZE_MAX) {
        block = small_take(pool, small_class(total));
    } else {
        uint32_t order = 0;
        while (order_size(order) < total) order++;
        block = large_take(pool, order);
    }
    if (block == NULL) {
        pool->refused_count++;
        return NULL;
    }
    block->mark = MARK_USED;
    pool->used_bytes += block->size;
    if (pool->used_bytes > pool->used_bytes_peak) pool->used_bytes_peak = pool->used_bytes;
    checked(buffer_pool_invariants(pool));
    return (uint8_t *)block + HEADER_SIZE;
}

static struct buffer_block *block_of(const void *buffer)
{
    struct buffer_block *block = (struct buffer_block *)(void *)((uintptr_t)buffer - HEADER_SIZE);
    assert(block->mark == MARK_USED);
    return block;
}

void buffer_give(struct buffer_pool *pool, void *buffer)
{
    if (buffer == NULL) return;
    struct buffer_block *block = block_of(buffer);
    assert((uint8_t *)block >= pool->region);
    assert((uint8_t *)block < pool->region + pool->region_size);
    assert(pool->used_bytes >= block->size);
    pool->used_bytes -= block->size;
    block->mark = MARK_FREE;
    if (block->is_small) {
        block->next = pool->small[block->class];
        pool->small[block->class] = block;
    } else {
        large_give(pool, block);
    }
    checked(buffer_pool_invariants(pool));
}

size_t buffer_capacity(const void *buffer)
{
    return block_of(buffer)->size - HEADER_SIZE;
}

void *buffer_resize(struct buffer_pool *pool, void *buffer, size_t size)
{
    if (buffer == NULL) return buffer_take(pool, size);
    size_t capacity = buffer_capacity(buffer);
    if (size <= capacity) return buffer;
    void *larger = buffer_take(pool, size);
    if (larger == NULL) return NULL;
    memcpy(larger, buffer, capacity);
    buffer_give(pool, buffer);
    return larger;
}

int buffer_pool_invariants(const struct buffer_pool *pool)
{
    uint64_t free_bytes = 0;
    for (uint32_t order = 0; order < pool->orders_count; order++) {
        const struct buffer_block *previous = NULL;
        for (const struct buffer_block *block = pool->large[order]; block; block = block->next) {
            assert(block->mark == MARK_FREE);
            assert(!block->is_small && block->class == order);
            assert(block->previous == previous);
            assert(pool->order_of[page_of(pool, block)] == order + 1);
            free_bytes += order_size(order);
            previous = block;
        }
    }
    for (uint32_t class = 0; class < BUFFER_POOL_SMALL_CLASSES; class ++) {
        const struct buffer_block *block = pool->small[class];
        ergo(block != NULL, block->mark == MARK_FREE && block->is_small && block->class == class);
    }
    /* What is handed out and what is free never overlap. */
    assert(pool->used_bytes + free_bytes <= pool->region_size);
    assert(pool->used_bytes <= pool->used_bytes_peak);
    return 1;
}
