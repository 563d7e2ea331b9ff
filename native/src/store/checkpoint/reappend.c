#include "store/checkpoint/reappend.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/accounting/shard_records.h"
#include "store/checkpoint/duplicate_entries.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/files/requests.h"
#include "store/files/retire.h"
#include "store/registry.h"
#include "store/state.h"

struct reappend {
    uint64_t extent_cycle; /* 0 = nothing is appended again */
    uint64_t skip;         /* live entries of the extent appended already */
    uint64_t seen;
    uint8_t over;
};

size_t reappend_memory_bytes(void)
{
    return arena_size(sizeof(struct reappend));
}

struct reappend *reappend_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct reappend));
}

void reappend_begin(struct store *store, uint64_t extent_cycle)
{
    assert(extent_cycle != 0);
    *store->reappend = (struct reappend){.extent_cycle = extent_cycle};
}

void reappend_end(struct store *store)
{
    *store->reappend = (struct reappend){0};
}

int reappend_is_over(const struct store *store)
{
    return store->reappend->over;
}

int reappend_has_more(const struct store *store)
{
    return store->reappend->skip > 0;
}

/* Is this entry still needed, and not in a checkpoint just written? */
static int entry_is_live(struct store *store, const struct journal_entry *entry,
                         struct replica **replica)
{
    *replica = NULL;
    if (entry->topic == SHARD_RECORDS_TOPIC) return shard_records_are_live(store, entry);
    *replica = registry_find(store, entry->topic, entry->partition);
    if (!*replica || (*replica)->created_revision != entry->created_revision) return 0;
    if (!live_entries_leaves(store, *replica)) return 0;
    int forgotten = retire_has_tombstone(*replica);
    if (forgotten || entry->kind == JOURNAL_FORGET)
        return forgotten && entry->kind == JOURNAL_FORGET;
    if ((*replica)->vsr.status == VSR_DAMAGED || (*replica)->unknown_op != 0) return 1;
    uint64_t op = replica_checkpoint_op(*replica);
    switch ((enum journal_entry_kind)entry->kind) {
    case JOURNAL_PREPARE: return entry->op > op;
    case JOURNAL_CHECKPOINT: return entry->op == op;
    case JOURNAL_VIEW_STATE: return entry->op >= op;
    default: return 0;
    }
}

static enum status reappend_visit(void *context, uint8_t *bytes, const struct journal_entry *entry,
                                  uint64_t extent_cycle, uint64_t lsn)
{
    struct store *store = context;
    struct reappend *reappend = store->reappend;
    struct replica *replica;
    maybe(extent_cycle > 0);
    if (!entry_is_live(store, entry, &replica)) return STATUS_OK;
    if (!duplicate_entries_is_newest(store->duplicates, bytes, lsn)) return STATUS_OK;
    if (reappend->seen++ < reappend->skip) return STATUS_OK;
    if (!prepare_ring_fits(&store->control_ring, entry->size)) {
        reappend->seen--;
        return STATUS_BUSY;
    }
    uint64_t position;
    struct ring_slot *slot =
        prepare_ring_reserve(&store->control_ring, entry->kind, entry->size, &position);
    memcpy(ring_slot_entry(slot), bytes, entry->size);
    slot->op = entry->op;
    slot->replica = replica ? registry_index(store, replica) : UINT32_MAX;
    slot->reappended = 1;
    slot->state = RING_SLOT_READY; /* sealed when it was made; origin and checksum stay */
    store->statistics.entries++;
    return STATUS_OK;
}

static void reappend_finish(struct store *store)
{
    struct replica *replica;
    store->reappend->over = 1;
    while ((replica = live_entries_leaving(store)) != NULL)
        live_entries_pin(store, replica, store->reappend->extent_cycle + 1);
}

int reappend_read(struct store *store)
{
    uint64_t extent_cycle = store->reappend->extent_cycle;
    if (!journal_holds(&store->journal, extent_cycle)) {
        reappend_finish(store);
        return 1;
    }
    struct file_request *read = requests_take(store->requests, REQUEST_CHECKPOINT_READ, IO_READ);
    if (!read) return 0;
    const struct journal_config *config = &store->journal.config;
    read->request.file = STORE_SLOT_JOURNAL;
    read->request.offset =
        journal_extent_offset(config, journal_extent_of(&store->journal, extent_cycle));
    read->request.size = (uint64_t)config->extent_blocks * JOURNAL_BLOCK_BYTES;
    read->request.buffer = store->extent_buffer;
    requests_send(store, read);
    return 1;
}

void reappend_done(struct store *store, const struct file_request *done)
{
    struct reappend *reappend = store->reappend;
    reappend->seen = 0;
    enum status status = done->request.status;
    if (status == STATUS_OK) {
        status = journal_scan_extent(&store->journal, reappend->extent_cycle, store->extent_buffer,
                                     reappend_visit, store);
    }
    if (status == STATUS_BUSY)
        reappend->skip = reappend->seen;
    else if (status != STATUS_OK)
        store_fail(store, status);
    else
        reappend_finish(store);
}

void reappend_invariants(const struct store *store)
{
    const struct reappend *reappend = store->reappend;
    ergo(reappend->extent_cycle == 0, !reappend->over && reappend->skip == 0);
    ergo(reappend->over, live_entries_leaving(store) == NULL);
    int reads = reappend->extent_cycle != 0 && !reappend->over;
    ergo(reads, reappend->extent_cycle >= store->journal.extent_cycle_oldest);
}
