#include "store/accounting/shard_records.h"

#include "store/state.h"

void store_nobody_make(struct store *store, struct arena *arena)
{
    store->nobody.pins = arena_take(arena, store->journal.config.extents_count);
}

static uint8_t *nobody_at(const struct store *store, uint64_t generation)
{
    return &store->nobody.pins[generation % store->journal.config.extents_count];
}

void store_nobody_pin(struct store *store, uint64_t generation)
{
    *nobody_at(store, generation) = 1;
}

void store_nobody_unpin(struct store *store, uint64_t generation)
{
    *nobody_at(store, generation) = 0;
}

int store_nobody_pinned(const struct store *store, uint64_t generation)
{
    return *nobody_at(store, generation);
}

int store_nobody_is_live(const struct store *store, const struct journal_entry *entry)
{
    return entry->kind == JOURNAL_TAIL_CLOSED || entry->kind == JOURNAL_ABSTAIN
           || entry->op == store->nobody.floor_op;
}

void store_floor_entry(struct store *store, uint64_t op)
{
    const struct journal_entry entry = {.size =
                                            JOURNAL_ENTRY_HEADER_BYTES + ENTRY_METADATA_FLOOR_BYTES,
                                        .kind = JOURNAL_METADATA_FLOOR,
                                        .topic = STORE_NOBODY,
                                        .op = op};
    uint64_t position;
    struct ring_slot *slot = store_entry_begin(store, &store->control, &entry, &position);
    entry_metadata_floor_put(ring_slot_body(slot), op);
    store_entry_ready(slot);
    store->nobody.floor_op = op;
}

/* `op` 0 = not known yet. */
static void unseen_entry(struct store *store, struct prepare_ring *ring, uint64_t op)
{
    const struct journal_entry entry = {.size = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_ABSTAIN_BYTES,
                                        .kind = JOURNAL_ABSTAIN,
                                        .topic = STORE_NOBODY,
                                        .op = op};
    uint64_t position;
    struct ring_slot *slot = store_entry_begin(store, ring, &entry, &position);
    const struct entry_abstain abstain = {0};
    entry_abstain_put(ring_slot_body(slot), &abstain);
    slot->replica = UINT32_MAX;
    store_entry_ready(slot);
}

void store_unseen_found(struct store *store)
{
    if (!store->nobody.unseen_pending) unseen_entry(store, &store->control, 0);
    store->nobody.unseen_pending = 1;
}

int store_unseen_settle(struct store *store, uint64_t op)
{
    if (!store->nobody.unseen_pending) return 1;
    if (!prepare_ring_fits(&store->data, 256)) return 0;
    unseen_entry(store, &store->data, op);
    store->nobody.unseen_op = op;
    store->nobody.unseen_pending = 0;
    return 1;
}

int store_unseen(const struct store *store, uint64_t created_revision)
{
    return store->nobody.unseen_pending || created_revision <= store->nobody.unseen_op;
}

void store_nobody_found(struct store *store, const struct journal_entry *entry, uint64_t generation)
{
    struct store_nobody *nobody = &store->nobody;
    store_nobody_pin(store, generation);
    if (entry->kind == JOURNAL_METADATA_FLOOR && entry->op >= nobody->floor_op) {
        nobody->floor_op = entry->op;
        nobody->floor_seen = generation;
    }
    if (entry->kind != JOURNAL_ABSTAIN) return;
    nobody->unseen_seen = generation;
    if (entry->op > nobody->unseen_op) nobody->unseen_op = entry->op;
    /* A copy that was appended later is not said later. */
    if (entry->origin_lsn < nobody->unseen_lsn) return;
    nobody->unseen_lsn = entry->origin_lsn;
    nobody->unseen_pending = entry->op == 0;
}

void store_nobody_recovered(struct store *store)
{
    const struct store_nobody *nobody = &store->nobody;
    uint64_t oldest = store->journal.generation_oldest;
    if (nobody->floor_op != 0 && nobody->floor_seen < oldest)
        store_floor_entry(store, nobody->floor_op);
    if (nobody->unseen_seen != 0 && nobody->unseen_seen < oldest)
        unseen_entry(store, &store->control, nobody->unseen_pending ? 0 : nobody->unseen_op);
}
