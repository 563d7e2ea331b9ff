/* foundation/buffer_pool.h: a shard's memory for what lives as long as a call or a connection:
 * HTTP/2 state, messages, replies.
 *
 * One region of the arena, one thread, no system call and no libc allocation. Two layers:
 *   small  up to 4096 bytes: free lists of 8 power-of-two classes, carved from 64 KiB blocks that
 *          stay with their class
 *   large  8 KiB to 16 MiB, a buddy allocator: neighbours merge when both are free
 * A full pool answers NULL, which is the world failing: the caller refuses the call or closes the
 * connection. Every block has a header of 16 bytes with its class and a mark that catches a double
 * free. */
#ifndef FOUNDATION_BUFFER_POOL_H
#define FOUNDATION_BUFFER_POOL_H

#include <stddef.h>
#include <stdint.h>

enum {
    BUFFER_POOL_SMALL_CLASSES = 8, /* 32 .. 4096 bytes, header included */
    BUFFER_POOL_ORDERS_MAX = 24,   /* 8 KiB << 23 = 64 GiB: more than any region */
};

struct buffer_block;

struct buffer_pool {
    uint8_t *region;
    uint64_t region_size; /* a multiple of the largest block */
    uint32_t orders_count;
    struct buffer_block *small[BUFFER_POOL_SMALL_CLASSES];
    struct buffer_block *large[BUFFER_POOL_ORDERS_MAX];
    uint8_t *order_of;   /* per 8 KiB page: order + 1 of a free block that begins there, else 0 */
    uint64_t used_bytes; /* handed out, headers included */
    uint64_t used_bytes_peak;
    uint64_t refused_count;
};

/* Bytes of the page table that a region of this size needs. */
size_t buffer_pool_table_bytes(uint64_t region_size);
/* `region` is aligned to 4096, region_size a multiple of 16 MiB. */
void buffer_pool_init(struct buffer_pool *pool, uint8_t *region, uint64_t region_size,
                      uint8_t *table);

/* Aligned to 16. NULL = no room. */
void *buffer_take(struct buffer_pool *pool, size_t size);
void buffer_give(struct buffer_pool *pool, void *buffer);
/* Like realloc: NULL leaves the old buffer as it is. */
void *buffer_resize(struct buffer_pool *pool, void *buffer, size_t size);
/* Bytes that a buffer can hold. */
size_t buffer_capacity(const void *buffer);

/* 1; checked builds look after every change. */
int buffer_pool_invariants(const struct buffer_pool *pool);

#endif
