#include "store/read/read_cursor.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/state.h"

/* By hash in sets of CURSOR_WAYS: one that is forgotten is begun again. */
enum { CURSORS_MAX = 1024, CURSOR_WAYS = 4 };

struct read_cursors {
    struct read_cursor all[CURSORS_MAX];
    uint32_t next; /* the way to be given up next */
};

size_t read_cursors_memory_bytes(void)
{
    return arena_size(sizeof(struct read_cursors));
}

struct read_cursors *read_cursors_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct read_cursors));
}

static uint32_t cursor_set(const struct replica *replica, uint64_t offset)
{
    uint64_t mixed = (replica->topic * 31 + replica->partition) * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ offset) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(mixed >> 40) % (CURSORS_MAX / CURSOR_WAYS) * CURSOR_WAYS;
}

const struct read_cursor *read_cursor_find(const struct store *store, const struct replica *replica,
                                           uint64_t offset)
{
    uint32_t set = cursor_set(replica, offset);
    for (uint32_t way = 0; way < CURSOR_WAYS; way++) {
        const struct read_cursor *cursor = &store->read_cursors->all[set + way];
        if (cursor->used && cursor->offset == offset && cursor->topic == replica->topic
            && cursor->partition == replica->partition
            && cursor->created_revision == replica->created_revision)
            return cursor;
    }
    return NULL;
}

void read_cursor_keep(struct store *store, const struct replica *replica,
                      const struct read_cursor *found)
{
    struct read_cursors *cursors = store->read_cursors;
    assert(found->segment <= found->batch_offset && found->batch_offset <= found->offset);
    const struct read_cursor *known = read_cursor_find(store, replica, found->offset);
    /* Two read for the same offset: the further one counts. */
    if (known && known->position > found->position) return;
    uint32_t place = known ? (uint32_t)(known - cursors->all)
                           : cursor_set(replica, found->offset) + cursors->next++ % CURSOR_WAYS;
    struct read_cursor *cursor = &cursors->all[place];
    *cursor = *found;
    cursor->topic = replica->topic;
    cursor->created_revision = replica->created_revision;
    cursor->partition = replica->partition;
    cursor->used = 1;
}

void read_cursors_invariants(const struct read_cursors *cursors)
{
    const struct read_cursor *cursor = &cursors->all[cursors->next % CURSORS_MAX];
    ergo(cursor->used, cursor->batch_offset <= cursor->offset);
    ergo(cursor->used, cursor->segment <= cursor->batch_offset);
}
