#include "store/accounting/shard_records.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/propose.h"
#include "store/state.h"

struct shard_records {
    uint8_t *pins;       /* by cycle mod extents: 1 = such entries lie there */
    uint64_t floor_op;   /* in the journal, or on its way */
    uint64_t floor_seen; /* cycle of the newest entry that says so, as recovery found it */
    /* Damage that names no replica may have taken the only round of a partition: topics up to this
     * metadata op of which the journal shows nothing are stopped like the others. */
    uint64_t unseen_op;     /* 0 = none */
    uint64_t unseen_seen;   /* cycle of the newest entry of it, as recovery found it */
    uint64_t unseen_lsn;    /* where that one was first appended */
    uint8_t unseen_pending; /* damage since then: the op is that of the first tables to come */
};

size_t shard_records_memory_bytes(uint32_t extents_count)
{
    return arena_size(sizeof(struct shard_records)) + arena_size(extents_count);
}

struct shard_records *shard_records_make(struct arena *arena, uint32_t extents_count)
{
    struct shard_records *records = arena_take(arena, sizeof *records);
    if (!records) return NULL;
    records->pins = arena_take(arena, extents_count);
    return records->pins ? records : NULL;
}

static uint8_t *pin_at(const struct store *store, uint64_t extent_cycle)
{
    return &store->shard_records->pins[extent_cycle % store->journal.config.extents_count];
}

void shard_records_pin(struct store *store, uint64_t extent_cycle)
{
    *pin_at(store, extent_cycle) = 1;
}

void shard_records_unpin(struct store *store, uint64_t extent_cycle)
{
    *pin_at(store, extent_cycle) = 0;
}

int shard_records_pinned(const struct store *store, uint64_t extent_cycle)
{
    return *pin_at(store, extent_cycle);
}

int shard_records_are_live(const struct store *store, const struct journal_entry *entry)
{
    /* What a newer release wrote is kept for it (J13). */
    return entry->kind != JOURNAL_METADATA_FLOOR || entry->op == store->shard_records->floor_op;
}

static void floor_entry(struct store *store, uint64_t op)
{
    const struct journal_entry entry = {.size =
                                            JOURNAL_ENTRY_HEADER_BYTES + ENTRY_METADATA_FLOOR_BYTES,
                                        .kind = JOURNAL_METADATA_FLOOR,
                                        .topic = SHARD_RECORDS_TOPIC,
                                        .op = op};
    uint64_t position;
    struct ring_slot *slot = propose_begin(store, &store->control_ring, NULL, &entry, &position);
    entry_metadata_floor_put(ring_slot_body(slot), op);
    propose_ready(slot);
    store->shard_records->floor_op = op;
}

void shard_records_floor(struct store *store, uint64_t op)
{
    if (op > store->shard_records->floor_op) floor_entry(store, op);
}

/* `op` 0 = not known yet. */
static void unseen_entry(struct store *store, struct prepare_ring *ring, uint64_t op)
{
    const struct journal_entry entry = {.size = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_ABSTAIN_BYTES,
                                        .kind = JOURNAL_ABSTAIN,
                                        .topic = SHARD_RECORDS_TOPIC,
                                        .op = op};
    const struct entry_abstain abstain = {0};
    uint64_t position;
    struct ring_slot *slot = propose_begin(store, ring, NULL, &entry, &position);
    entry_abstain_put(ring_slot_body(slot), &abstain);
    propose_ready(slot);
}

void shard_records_damaged(struct store *store)
{
    struct shard_records *records = store->shard_records;
    if (!records->unseen_pending) unseen_entry(store, &store->control_ring, 0);
    records->unseen_pending = 1;
}

int shard_records_settle(struct store *store, uint64_t op)
{
    struct shard_records *records = store->shard_records;
    if (!records->unseen_pending) return 1;
    if (!prepare_ring_fits(&store->data_ring, 256)) return 0;
    unseen_entry(store, &store->data_ring, op);
    records->unseen_op = op;
    records->unseen_pending = 0;
    return 1;
}

int shard_records_unseen(const struct store *store, uint64_t created_revision)
{
    const struct shard_records *records = store->shard_records;
    return records->unseen_pending || created_revision <= records->unseen_op;
}

void shard_records_found(struct store *store, const struct journal_entry *entry,
                         uint64_t extent_cycle)
{
    struct shard_records *records = store->shard_records;
    shard_records_pin(store, extent_cycle);
    if (entry->kind == JOURNAL_METADATA_FLOOR && entry->op >= records->floor_op) {
        records->floor_op = entry->op;
        records->floor_seen = extent_cycle;
    }
    if (entry->kind != JOURNAL_ABSTAIN) return;
    records->unseen_seen = extent_cycle;
    if (entry->op > records->unseen_op) records->unseen_op = entry->op;
    /* A copy that was appended later is not said later. */
    if (entry->origin_lsn < records->unseen_lsn) return;
    records->unseen_lsn = entry->origin_lsn;
    records->unseen_pending = entry->op == 0;
}

void shard_records_recovered(struct store *store)
{
    const struct shard_records *records = store->shard_records;
    uint64_t oldest = store->journal.extent_cycle_oldest;
    if (records->floor_op != 0 && records->floor_seen < oldest)
        floor_entry(store, records->floor_op);
    if (records->unseen_seen != 0 && records->unseen_seen < oldest) {
        unseen_entry(store, &store->control_ring, records->unseen_pending ? 0 : records->unseen_op);
    }
}

void shard_records_invariants(const struct store *store)
{
    const struct shard_records *records = store->shard_records;
    ergo(records->floor_seen != 0, records->floor_op != 0);
    ergo(records->unseen_lsn != 0, records->unseen_seen != 0);
}
