#include "store/checkpoint/live_entries.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/queue.h"
#include "store/registry.h"
#include "store/state.h"

struct live_entries {
    struct queue *pins; /* by cycle mod extents */
    struct queue leaving;
    uint64_t bytes;
};

size_t live_entries_memory_bytes(uint32_t extents_count)
{
    return arena_size(sizeof(struct live_entries))
           + arena_size(extents_count * sizeof(struct queue));
}

struct live_entries *live_entries_make(struct arena *arena, uint32_t extents_count)
{
    struct live_entries *live = arena_take(arena, sizeof *live);
    if (!live) return NULL;
    live->pins = arena_take(arena, extents_count * sizeof *live->pins);
    return live->pins ? live : NULL;
}

static struct queue *pins_of(const struct store *store, uint64_t extent_cycle)
{
    return &store->live_entries->pins[extent_cycle % store->journal.config.extents_count];
}

static void live_unlink(struct replica *replica)
{
    struct queue_link *link = &replica->live.link;
    if (link->queue) queue_remove((struct queue *)(uintptr_t)link->queue, link);
}

void live_entries_pin(struct store *store, struct replica *replica, uint64_t extent_cycle)
{
    assert(extent_cycle >= store->journal.extent_cycle_oldest);
    live_unlink(replica);
    replica->live.pin = extent_cycle;
    queue_push(pins_of(store, extent_cycle), &replica->live.link);
}

void live_entries_pin_first(struct store *store, struct replica *replica, uint64_t extent_cycle)
{
    if (replica->live.pin == 0) live_entries_pin(store, replica, extent_cycle);
}

int live_entries_pinned(const struct replica *replica)
{
    return replica->live.pin != 0;
}

void live_entries_add(struct store *store, struct replica *replica, uint64_t bytes)
{
    replica->live.bytes += bytes;
    store->live_entries->bytes += bytes;
}

void live_entries_replace(struct store *store, struct replica *replica, uint64_t before,
                          uint64_t bytes)
{
    assert(replica->live.bytes >= before);
    replica->live.bytes = replica->live.bytes - before + bytes;
    store->live_entries->bytes = store->live_entries->bytes - before + bytes;
}

void live_entries_drop(struct store *store, struct replica *replica, uint64_t bytes)
{
    uint64_t dead = bytes < replica->live.bytes ? bytes : replica->live.bytes;
    live_entries_replace(store, replica, dead, 0);
}

uint64_t live_entries_bytes(const struct store *store)
{
    return store->live_entries->bytes;
}

uint64_t live_entries_bytes_of(const struct replica *replica)
{
    return replica->live.bytes;
}

struct replica *live_entries_oldest(const struct store *store, uint64_t extent_cycle)
{
    struct replica *replica =
        queue_element(pins_of(store, extent_cycle)->head, struct replica, live.link);
    ergo(replica != NULL, replica->live.pin == extent_cycle);
    return replica;
}

void live_entries_release(struct store *store, struct replica *replica)
{
    queue_remove(pins_of(store, replica->live.pin), &replica->live.link);
}

void live_entries_leave(struct store *store, struct replica *replica)
{
    live_entries_release(store, replica);
    queue_push(&store->live_entries->leaving, &replica->live.link);
}

int live_entries_leaves(const struct store *store, const struct replica *replica)
{
    return replica->live.link.queue == &store->live_entries->leaving;
}

struct replica *live_entries_leaving(const struct store *store)
{
    return queue_element(store->live_entries->leaving.head, struct replica, live.link);
}

void live_entries_found(struct replica *replica, uint64_t extent_cycle)
{
    replica->live.pin = extent_cycle;
}

void live_entries_found_first(struct replica *replica, uint64_t extent_cycle)
{
    if (replica->live.pin == 0) replica->live.pin = extent_cycle;
}

void live_entries_found_oldest(struct replica *replica, uint64_t extent_cycle)
{
    if (replica->live.pin == 0 || extent_cycle < replica->live.pin)
        replica->live.pin = extent_cycle;
}

void live_entries_recovered(struct store *store, struct replica *replica)
{
    if (replica->live.pin == 0) return;
    uint64_t oldest = store->journal.extent_cycle_oldest;
    live_entries_pin(store, replica, replica->live.pin > oldest ? replica->live.pin : oldest);
}

void live_entries_forget(struct store *store, struct replica *replica)
{
    live_unlink(replica);
    live_entries_replace(store, replica, replica->live.bytes, 0);
}

void live_entries_invariants(const struct store *store)
{
    uint64_t bytes = 0;
    uint32_t cursor = 0;
    const struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        bytes += replica->live.bytes;
        ergo(replica->live.link.queue != NULL, replica->live.pin != 0);
    }
    assert(bytes == store->live_entries->bytes);
}
