/* foundation/arena.c: see foundation/arena.h. The only place of the engine that asks the system
 * for memory. */
#include "foundation/arena.h"

#include <string.h>
#include <sys/mman.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum status arena_open(struct arena *arena, size_t size)
{
    assert(size > 0);
    size = (size_t)bytes_round_up(size, ARENA_PAGE_BYTES);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        memset(arena, 0, sizeof *arena);
        return STATUS_MEMORY_REFUSED;
    }
    arena_init(arena, memory, size);
    arena->mapped = 1;
    return STATUS_OK;
}

void arena_init(struct arena *arena, void *memory, size_t size)
{
    assert(memory != NULL);
    assert((uintptr_t)memory % ARENA_ALIGNMENT == 0);
    memset(arena, 0, sizeof *arena);
    arena->memory = memory;
    arena->size = size;
    arena->state = ARENA_TAKING;
}

void *arena_take_aligned(struct arena *arena, size_t size, size_t alignment)
{
    assert(arena->state == ARENA_TAKING);
    assert(alignment > 0 && alignment <= ARENA_PAGE_BYTES && (alignment & (alignment - 1)) == 0);
    uintptr_t base = (uintptr_t)arena->memory;
    size_t at = (size_t)(bytes_round_up(base + arena->used, alignment) - base);
    if (at > arena->size || size > arena->size - at) return NULL;
    arena->used = at + size;
    return arena->memory + at;
}

void *arena_take(struct arena *arena, size_t size)
{
    return arena_take_aligned(arena, arena_size(size), ARENA_ALIGNMENT);
}

size_t arena_size(size_t size)
{
    return (size_t)bytes_round_up(size, ARENA_ALIGNMENT);
}

size_t arena_left(const struct arena *arena)
{
    assert(arena->used <= arena->size);
    return arena->size - arena->used;
}

void arena_seal(struct arena *arena)
{
    assert(arena->state == ARENA_TAKING);
    arena->state = ARENA_SEALED;
}

void arena_close(struct arena *arena)
{
    maybe(arena->state == ARENA_SEALED);
    if (arena->mapped) {
        int failed = munmap(arena->memory, arena->size);
        assert(!failed);
    }
    memset(arena, 0, sizeof *arena);
    arena->state = ARENA_CLOSED;
}
