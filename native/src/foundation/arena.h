/* foundation/arena.h: all memory of a shard, taken once at the start, then sealed.
 *
 * Life: arena_open (or arena_init over memory of the caller) -> arena_take .. -> arena_seal -> ..
 * -> arena_close. Nothing is given back before the close, so there is no fragmentation and no free
 * to forget. Taking after the seal is our error: a node that started once cannot run out of memory
 * later. Taken memory is zero. */
#ifndef FOUNDATION_ARENA_H
#define FOUNDATION_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"

enum arena_state { ARENA_TAKING = 1, ARENA_SEALED = 2, ARENA_CLOSED = 3 };

enum { ARENA_ALIGNMENT = 64, ARENA_PAGE_BYTES = 4096 };

struct arena {
    uint8_t *memory;
    size_t size;
    size_t used;
    enum arena_state state;
    int mapped; /* 1 = ours to unmap */
};

/* Map `size` bytes, page-aligned. STATUS_NO_MEMORY if the system has not so much. */
enum status arena_open(struct arena *arena, size_t size);

/* Use memory of the caller: 64-byte aligned, zero. */
void arena_init(struct arena *arena, void *memory, size_t size);

/* Zeroed memory, aligned (a power of two up to a page). NULL when the arena is used up: the
 * configuration asked for more than it gave, which is an error of the environment and must be
 * reported by the caller that sized it. */
void *arena_take_aligned(struct arena *arena, size_t size, size_t alignment);

/* The same with ARENA_ALIGNMENT. */
void *arena_take(struct arena *arena, size_t size);

/* What arena_take will really use for `size`: for sizing an arena as a sum. */
size_t arena_size(size_t size);

size_t arena_left(const struct arena *arena);
void arena_seal(struct arena *arena);
void arena_close(struct arena *arena);

#endif
