#include "store/checkpoint/checkpoint.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/machine.h"
#include "store/accounting/shard_records.h"
#include "store/checkpoint/checkpoint_file.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/reappend.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/files/open_files.h"
#include "store/files/requests.h"
#include "store/files/retire.h"
#include "store/files/segment_writer.h"
#include "store/files/trim.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/round.h"
#include "store/state.h"

enum { ITEMS_MAX = 256 };

enum checkpoint_phase {
    CHECKPOINT_IDLE = 0,
    CHECKPOINT_COLLECT,
    CHECKPOINT_WRITES,
    CHECKPOINT_SYNCS,
    CHECKPOINT_FILE,
    CHECKPOINT_ROUND,
    CHECKPOINT_READ,
    CHECKPOINT_WITNESS,
    CHECKPOINT_PHASES_COUNT,
};

struct checkpoint_item {
    uint32_t replica;
    uint8_t withdrawn; /* its replica was doomed before the entry left */
    uint64_t slot;     /* in the control ring */
    uint64_t batches;  /* must be written before the entry may go */
    uint64_t pin;
    uint64_t live_bytes;
    uint32_t entry_bytes;
    uint64_t active; /* base offset + 1 of the segment that is active in it; 0 = none */
    struct entry_checkpoint entry;
};

struct checkpoint {
    enum checkpoint_phase phase;
    uint64_t extent_cycle; /* of the extent that is given back */
    uint32_t count;
    uint32_t syncs;
    uint32_t file_bytes;    /* of the one item that is a file; 0 = none is */
    uint32_t all_cursor;    /* the next replica to look at */
    uint8_t all;            /* no extent is given back: every replica gets one */
    uint8_t all_after;      /* .. when this one is over */
    uint64_t wait_position; /* of the control ring */
    uint64_t wait_lsn;
    uint32_t sync_cursor;
    struct checkpoint_item items[ITEMS_MAX];
};

size_t checkpoint_memory_bytes(void)
{
    return arena_size(sizeof(struct checkpoint));
}

struct checkpoint *checkpoint_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct checkpoint));
}

static int checkpoint_due(const struct store *store)
{
    const struct journal *journal = &store->journal;
    if (journal->extent_cycle_oldest >= journal->extent_cycle) return 0;
    uint32_t used = journal->config.extents_count - journal_extents_free(journal);
    return used >= journal->config.extents_count / 2;
}

struct entry_checkpoint checkpoint_entry(const struct replica *replica, int is_file,
                                         uint64_t encoded_bytes, const uint8_t digest[16])
{
    struct entry_checkpoint entry = {
        .view_state = vsr_view_state(&replica->vsr),
        .append_time_us = replica->vsr.executed_time_us,
        .is_file = is_file != 0,
        .size = (uint32_t)encoded_bytes,
    };
    memcpy(entry.checksum, replica->vsr.executed_checksum, 16);
    memcpy(entry.digest, digest, 16);
    return entry;
}

static int checkpoint_prefers_append(const struct replica *replica)
{
    if (retire_leaves(replica)) return 1; /* of which only the tombstone lives */
    if (replica->is_metadata || replica->vsr.status == VSR_DAMAGED) return 1;
    if (replica->unknown_op != 0) return 1;
    /* A file that a trim took waits for a checkpoint that does not name it. */
    if (trim_kept(replica)) return 0;
    return replica_checkpoint_is_file(replica)
           && live_entries_bytes_of(replica) < replica_checkpoint_bytes(replica);
}

/* 0 = no room now. */
static int checkpoint_encode(struct store *store, struct replica *replica)
{
    struct checkpoint *checkpoint = store->checkpoint;
    uint64_t encoded_bytes = partition_checkpoint_bytes(&replica->state);
    int is_file = encoded_bytes > store->config.checkpoint_inline_bytes
                  || encoded_bytes > journal_entry_bytes_max(&store->journal.config) / 2;
    assert(encoded_bytes <= CHECKPOINT_BYTES_MAX);
    if (checkpoint->count == ITEMS_MAX || (is_file && checkpoint->file_bytes)) return 0;
    const struct journal_entry entry =
        propose_entry(replica, JOURNAL_CHECKPOINT, replica->vsr.commit_min,
                      ENTRY_CHECKPOINT_BYTES + (is_file ? 0 : encoded_bytes));
    if (!prepare_ring_fits(&store->control_ring, entry.size)) return 0;
    assert(replica->state.applied_op == replica->vsr.commit_min);

    struct checkpoint_item *item = &checkpoint->items[checkpoint->count];
    *item = (struct checkpoint_item){.replica = registry_index(store, replica)};
    struct ring_slot *slot =
        propose_begin(store, &store->control_ring, replica, &entry, &item->slot);
    uint8_t *body = ring_slot_body(slot);
    uint8_t *encoded = is_file ? store->checkpoint_buffer : body + ENTRY_CHECKPOINT_BYTES;
    uint8_t digest[16];
    partition_checkpoint_encode(&replica->state, encoded, encoded_bytes);
    vsr_digest(encoded, encoded_bytes, digest);
    item->entry = checkpoint_entry(replica, is_file, encoded_bytes, digest);
    entry_checkpoint_put(body, &item->entry);
    slot->token = checkpoint->count++;
    item->batches = segment_writer_executed(replica);
    item->pin = store->journal.extent_cycle > 0 ? store->journal.extent_cycle : 1;
    const struct segment *active = segment_active(&replica->state.segments);
    item->active = active ? active->base_offset + 1 : 0;
    segment_checkpoint_begun(&replica->state.segments);
    item->live_bytes = live_entries_bytes_of(replica);
    item->entry_bytes = entry.size;
    if (is_file) checkpoint->file_bytes = (uint32_t)encoded_bytes;
    replica->checkpoint_under_way = 1;
    return 1;
}

/* Whatever is still needed of the extent is durable elsewhere: the next round to begin says so. */
static void checkpoint_begin_witness(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    const struct journal *journal = &store->journal;
    checkpoint->wait_lsn = journal->writing ? journal->lsn_next : journal->lsn_previous;
    checkpoint->phase = CHECKPOINT_WITNESS;
    if (!checkpoint->all) journal_free_below(&store->journal, checkpoint->extent_cycle + 1);
}

static void checkpoint_finish_collect(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    if (checkpoint->count > 0) {
        checkpoint->sync_cursor = 0;
        checkpoint->phase = CHECKPOINT_WRITES;
    } else if (!checkpoint->all
               && (live_entries_leaving(store) != NULL
                   || shard_records_pinned(store, checkpoint->extent_cycle))) {
        reappend_begin(store, checkpoint->extent_cycle);
        checkpoint->phase = CHECKPOINT_READ;
    } else {
        checkpoint_begin_witness(store);
    }
}

/* Before a stop: every replica that has something above its checkpoint. */
static int checkpoint_collect_all(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    struct replica *replica;
    while ((replica = registry_next(store, &checkpoint->all_cursor)) != NULL) {
        int due = !retire_leaves(replica) && live_entries_pinned(replica)
                  && !checkpoint_prefers_append(replica)
                  && replica->vsr.commit_min != replica_checkpoint_op(replica);
        if (due && !checkpoint_encode(store, replica)) {
            checkpoint->all_cursor--; /* this one again, when there is room */
            return checkpoint->count > 0;
        }
    }
    checkpoint_finish_collect(store);
    return 1;
}

static int checkpoint_collect(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    if (checkpoint->all) {
        int moved = checkpoint_collect_all(store);
        if (moved && checkpoint->phase == CHECKPOINT_COLLECT) checkpoint_finish_collect(store);
        return moved;
    }
    struct replica *replica;
    while ((replica = live_entries_oldest(store, checkpoint->extent_cycle)) != NULL) {
        if (retire_waits_for_tombstone(replica)) {
            /* Its tombstone is about to stand behind all of its entries: then they die in order. */
            if (checkpoint->count == 0) return 0;
            break;
        }
        if (checkpoint_prefers_append(replica)) {
            live_entries_leave(store, replica);
        } else {
            if (!checkpoint_encode(store, replica)) {
                if (checkpoint->count == 0) return 0;
                break;
            }
            /* Until its entry is durable it belongs to no extent but to this checkpoint. */
            live_entries_release(store, replica);
        }
    }
    checkpoint_finish_collect(store);
    return 1;
}

static int checkpoint_writes(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    for (uint32_t index = 0; index < checkpoint->count; index++) {
        const struct checkpoint_item *item = &checkpoint->items[index];
        if (item->withdrawn) continue;
        const struct replica *replica = registry_at(store, item->replica);
        if (!segment_writer_has_written(replica, item->batches)) return 0;
    }
    checkpoint->phase = CHECKPOINT_SYNCS;
    return 1;
}

static int checkpoint_syncs(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    for (; checkpoint->sync_cursor < checkpoint->count; checkpoint->sync_cursor++) {
        const struct checkpoint_item *item = &checkpoint->items[checkpoint->sync_cursor];
        if (item->withdrawn) continue;
        struct replica *replica = registry_at(store, item->replica);
        if (!segment_writer_sync(store, replica, &checkpoint->syncs)) return 0;
    }
    if (checkpoint->syncs > 0 || store->failed != STATUS_OK) return 0;
    if (!checkpoint->file_bytes) {
        checkpoint_file_durable(store);
        return 1;
    }
    checkpoint->phase = CHECKPOINT_FILE;
    for (uint32_t index = 0; index < checkpoint->count; index++) {
        const struct checkpoint_item *item = &checkpoint->items[index];
        if (!item->entry.is_file || item->withdrawn) continue;
        checkpoint_file_write(store, STORE_SLOT_CHECKPOINT, item->entry.digest,
                              store->checkpoint_buffer, item->entry.size);
    }
    return 1;
}

void checkpoint_sync_done(struct store *store, const struct file_request *done)
{
    assert(store->checkpoint->syncs > 0);
    store->checkpoint->syncs--;
    if (done->file != 0) open_files_unuse(store->files, done->file);
    if (done->request.status != STATUS_OK) store_fail(store, done->request.status);
}

/* What the entries name is durable: they may go. */
void checkpoint_file_durable(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    for (uint32_t index = 0; index < checkpoint->count; index++) {
        if (checkpoint->items[index].withdrawn) continue;
        propose_ready(prepare_ring_at(&store->control_ring, checkpoint->items[index].slot));
    }
    checkpoint->file_bytes = 0;
    checkpoint->wait_position = store->control_ring.head;
    checkpoint->phase = CHECKPOINT_ROUND;
}

int checkpoint_can_withdraw(const struct store *store, const struct replica *replica)
{
    enum checkpoint_phase phase = store->checkpoint->phase;
    return replica->checkpoint_under_way
           && (phase == CHECKPOINT_COLLECT || phase == CHECKPOINT_WRITES
               || phase == CHECKPOINT_SYNCS);
}

void checkpoint_withdraw(struct store *store, struct replica *replica)
{
    struct checkpoint *checkpoint = store->checkpoint;
    assert(checkpoint_can_withdraw(store, replica));
    uint32_t index = 0;
    while (checkpoint->items[index].replica != registry_index(store, replica)) index++;
    assert(index < checkpoint->count);
    struct checkpoint_item *item = &checkpoint->items[index];
    struct ring_slot *slot = prepare_ring_at(&store->control_ring, item->slot);
    assert(slot->state == RING_SLOT_RESERVED && !item->withdrawn);
    slot->state = RING_SLOT_PAD;
    item->withdrawn = 1;
    if (item->entry.is_file) checkpoint->file_bytes = 0;
    replica->checkpoint_under_way = 0;
}

static int checkpoint_round(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    if (store->control_ring.durable < checkpoint->wait_position) return 0;
    for (uint32_t index = 0; index < checkpoint->count; index++) {
        const struct checkpoint_item *item = &checkpoint->items[index];
        if (!item->withdrawn) registry_at(store, item->replica)->checkpoint_under_way = 0;
    }
    checkpoint->count = 0;
    if (reappend_is_over(store))
        checkpoint_begin_witness(store);
    else
        checkpoint->phase = reappend_has_more(store) ? CHECKPOINT_READ : CHECKPOINT_COLLECT;
    return 1;
}

void checkpoint_durable(struct store *store, struct replica *replica, const struct ring_slot *slot)
{
    const struct checkpoint_item *item = &store->checkpoint->items[slot->token];
    assert(slot->token < store->checkpoint->count);
    assert(item->replica == registry_index(store, replica));
    replica_checkpoint_replace(store, replica, slot->op, &item->entry);
    replica_checkpoint_set_active(replica, item->active);
    segment_checkpoint_done(&replica->state.segments);
    live_entries_replace(store, replica, item->live_bytes, item->entry_bytes);
    live_entries_pin(store, replica, item->pin);
}

static int checkpoint_read(struct store *store)
{
    if (!reappend_read(store)) return 0;
    store->checkpoint->phase = CHECKPOINT_ROUND;
    int reads = !reappend_is_over(store);
    store->checkpoint->wait_position = reads ? UINT64_MAX : store->control_ring.head;
    return !reads;
}

void checkpoint_read_done(struct store *store, const struct file_request *done)
{
    reappend_done(store, done);
    store->checkpoint->wait_position = store->control_ring.head;
}

static int checkpoint_witness(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    if (store->journal.lsn_previous <= checkpoint->wait_lsn) {
        round_want_witness(store);
        return 0;
    }
    if (!checkpoint->all) {
        assert(store->journal.extent_cycle_kept > checkpoint->extent_cycle);
        shard_records_unpin(store, checkpoint->extent_cycle);
        store->statistics.extents_released++;
    }
    checkpoint->all = 0;
    reappend_end(store);
    checkpoint->phase = CHECKPOINT_IDLE;
    return 1;
}

static int checkpoint_idle(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    int due = checkpoint_due(store);
    if (!due && !checkpoint->all_after) return 0;
    /* A due extent first; everything that has no checkpoint after that. */
    checkpoint->all = !due;
    if (checkpoint->all) checkpoint->all_after = 0;
    checkpoint->extent_cycle = due ? store->journal.extent_cycle_oldest : 0;
    checkpoint->phase = CHECKPOINT_COLLECT;
    return 1;
}

void checkpoint_step(struct store *store)
{
    struct checkpoint *checkpoint = store->checkpoint;
    int moved = 1;
    while (moved && store->failed == STATUS_OK) {
        switch (checkpoint->phase) {
        case CHECKPOINT_IDLE: moved = checkpoint_idle(store); break;
        case CHECKPOINT_COLLECT: moved = checkpoint_collect(store); break;
        case CHECKPOINT_WRITES: moved = checkpoint_writes(store); break;
        case CHECKPOINT_SYNCS: moved = checkpoint_syncs(store); break;
        case CHECKPOINT_FILE: moved = 0; break;
        case CHECKPOINT_ROUND: moved = checkpoint_round(store); break;
        case CHECKPOINT_READ: moved = checkpoint_read(store); break;
        case CHECKPOINT_WITNESS: moved = checkpoint_witness(store); break;
        case CHECKPOINT_PHASES_COUNT: unreachable();
        }
    }
}

void store_checkpoint_all(struct store *store)
{
    store->checkpoint->all_cursor = 0;
    store->checkpoint->all_after = 1;
}

int checkpoint_rests(const struct store *store)
{
    return store->checkpoint->phase == CHECKPOINT_IDLE && !store->checkpoint->all_after
           && !checkpoint_due(store);
}

int checkpoint_has_work(const struct store *store)
{
    const struct checkpoint *checkpoint = store->checkpoint;
    if (checkpoint->phase == CHECKPOINT_IDLE) return checkpoint->all_after || checkpoint_due(store);
    return checkpoint->phase == CHECKPOINT_WITNESS && !store->journal.writing;
}

int checkpoint_names_file(const struct store *store, const uint8_t digest[16])
{
    const struct checkpoint *checkpoint = store->checkpoint;
    for (uint32_t index = 0; index < checkpoint->count; index++) {
        if (memcmp(checkpoint->items[index].entry.digest, digest, 16) == 0) return 1;
    }
    return 0;
}

int checkpoint_is_under_way(const struct replica *replica)
{
    return replica->checkpoint_under_way;
}

int checkpoint_appends(const struct store *store, const struct replica *replica)
{
    return replica->checkpoint_under_way || live_entries_leaves(store, replica);
}

void checkpoint_invariants(const struct store *store)
{
    const struct checkpoint *checkpoint = store->checkpoint;
    assert(checkpoint->count <= ITEMS_MAX);
    assert(checkpoint->sync_cursor <= checkpoint->count || checkpoint->phase != CHECKPOINT_SYNCS);
    ergo(checkpoint->phase == CHECKPOINT_IDLE, checkpoint->count == 0);
    ergo(checkpoint->phase == CHECKPOINT_IDLE, live_entries_leaving(store) == NULL);
    ergo(checkpoint->syncs > 0, checkpoint->phase == CHECKPOINT_SYNCS);
    for (uint32_t index = 0; index < checkpoint->count; index++) {
        const struct checkpoint_item *item = &checkpoint->items[index];
        const struct replica *replica = registry_at(store, item->replica);
        ergo(!item->withdrawn, replica->used && replica->checkpoint_under_way);
    }
}
