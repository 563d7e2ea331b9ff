/* store/checkpoint/checkpoint.c: an extent is given back once nothing in it is needed (J6, J7).
 *
 *     collect --> writes --> syncs --> (file) --> round --> collect .. --> read, append again -->
 *     witness --> free
 *
 * collect   replicas whose oldest live entry is in the extent: a checkpoint is encoded into the
 *           control ring, held back
 * writes    until all batches that it covers are in segment files
 * syncs     one sync per dirty segment and folder, all in one batch
 * round     the entries become durable
 * read      replicas for which their live entries are smaller than a checkpoint, or that must not be
 *           checkpointed (damaged; the metadata replica, whose snapshots come from the host): the
 *           extent is read and what lives appended with its origin (J5)
 * witness   a later round is durable, which says that the extent is dead: recovery can no longer
 *           lose the entries to a torn tail, nor look for them where they were
 *
 * A replica's pin is the oldest generation that may hold a live entry of it. */
#include "store/state.h"

#include <stdio.h>

int store_release_due(const struct store *store)
{
    const struct journal *journal = &store->journal;
    if (journal->generation_oldest >= journal->generation) return 0;
    uint32_t used = journal->config.extents_count - journal_extents_free(journal);
    return used >= journal->config.extents_count / 2;
}

struct entry_checkpoint store_checkpoint_entry(const struct replica *replica, int is_file,
                                               uint64_t blob_size, const uint8_t digest[16])
{
    const struct segment_limit limit = {.bytes = replica->state.config.segment_bytes,
                                        .time_us = replica->state.config.segment_us};
    struct entry_checkpoint checkpoint = {
        .view_state = store_view_state(replica, &limit),
        .append_time_us = replica->vsr.executed_time_us,
        .is_file = is_file != 0,
        .size = (uint32_t)blob_size,
    };
    memcpy(checkpoint.checksum, replica->vsr.executed_checksum, 16);
    memcpy(checkpoint.digest, digest, 16);
    return checkpoint;
}

static int release_prefers_append(const struct store *store, const struct replica *replica)
{
    if (replica->removal.phase != REMOVAL_NONE) return 1; /* of which only the tombstone lives */
    if (replica == store->metadata_replica || replica->vsr.status == VSR_DAMAGED) return 1;
    if (replica->unknown_op != 0) return 1;
    /* A file that a trim took waits for a checkpoint that does not name it. */
    if (replica->trim.kept) return 0;
    return replica->checkpoint_is_file && replica->live_bytes < replica->checkpoint_bytes;
}

/* 0 = no room now. */
static int release_encode(struct store *store, struct replica *replica)
{
    struct store_release *release = &store->release;
    uint64_t blob_size = partition_checkpoint_bytes(&replica->state);
    int is_file = blob_size > store->config.checkpoint_inline_bytes
                  || blob_size > journal_entry_bytes_max(&store->journal.config) / 2;
    assert(blob_size <= STORE_BLOB_MAX);
    if (release->count == STORE_RELEASE_BATCH_MAX || (is_file && release->blob_used)) return 0;
    const struct journal_entry entry = {.size = (uint32_t)(JOURNAL_ENTRY_HEADER_BYTES
                                                           + ENTRY_CHECKPOINT_BYTES
                                                           + (is_file ? 0 : blob_size)),
                                        .kind = JOURNAL_CHECKPOINT,
                                        .topic = replica->topic,
                                        .partition = replica->partition,
                                        .created_revision = replica->created_revision,
                                        .op = replica->vsr.commit_min,
                                        .log_view = replica->vsr.log_view,
                                        .tenure = replica->vsr.tenure,
                                        .epoch = replica->vsr.epoch};
    if (!prepare_ring_fits(&store->control, entry.size)) return 0;
    assert(replica->state.applied_op == replica->vsr.commit_min);

    struct store_release_item *item = &release->items[release->count];
    *item = (struct store_release_item){.replica = registry_index(store, replica),
                                        .is_file = is_file != 0};
    struct ring_slot *slot = store_entry_begin(store, &store->control, &entry, &item->slot);
    uint8_t *body = ring_slot_body(slot);
    uint8_t *blob = is_file ? store->blob : body + ENTRY_CHECKPOINT_BYTES;
    partition_checkpoint_encode(&replica->state, blob, blob_size);
    vsr_digest(blob, blob_size, item->digest);
    const struct entry_checkpoint checkpoint =
        store_checkpoint_entry(replica, is_file, blob_size, item->digest);
    entry_checkpoint_put(body, &checkpoint);
    slot->replica = item->replica;
    slot->token = release->count++;
    item->batches = replica->batches_executed;
    item->pin = store->journal.generation > 0 ? store->journal.generation : 1;
    const struct segment *active = segment_active(&replica->state.segments);
    item->active = active ? active->base_offset + 1 : 0;
    segment_checkpoint_begun(&replica->state.segments);
    item->live_bytes = replica->live_bytes;
    item->entry_bytes = entry.size;
    item->blob_bytes = (uint32_t)blob_size;
    if (is_file) release->blob_used = (uint32_t)blob_size;
    replica->in_release = 1;
    return 1;
}

/* Whatever is still needed of the extent is durable elsewhere: the next round to begin says so. */
static void release_begin_witness(struct store *store)
{
    struct store_release *release = &store->release;
    const struct journal *journal = &store->journal;
    release->wait_lsn = journal->writing ? journal->lsn_next : journal->lsn_previous;
    release->phase = STORE_RELEASE_WITNESS;
    if (!release->all) journal_free_below(&store->journal, release->generation + 1);
}

static void release_finish_collect(struct store *store)
{
    struct store_release *release = &store->release;
    if (release->count > 0) {
        release->sync_cursor = 0;
        release->phase = STORE_RELEASE_WRITES;
    } else if (!release->all
               && (release->reappend.count > 0
                   || store_nobody_pinned(store, release->generation))) {
        release->skip = 0;
        release->read_done = 0;
        release->phase = STORE_RELEASE_READ;
    } else {
        release_begin_witness(store);
    }
}

/* Before a stop: every replica that has something above its checkpoint. */
static int release_collect_all(struct store *store)
{
    struct store_release *release = &store->release;
    for (; release->all_cursor < store->replicas_max; release->all_cursor++) {
        struct replica *replica = &store->replicas[release->all_cursor];
        if (!replica->used || replica->removal.phase != REMOVAL_NONE || replica->pin == 0
            || release_prefers_append(store, replica))
            continue;
        if (replica->vsr.commit_min == replica->checkpoint_op) continue;
        if (!release_encode(store, replica)) return release->count > 0;
    }
    release_finish_collect(store);
    return 1;
}

static int release_collect(struct store *store)
{
    struct store_release *release = &store->release;
    if (release->all) {
        int moved = release_collect_all(store);
        if (moved && release->phase == STORE_RELEASE_COLLECT) release_finish_collect(store);
        return moved;
    }
    struct queue *pins = &store->pins[release->generation % store->journal.config.extents_count];
    while (!queue_empty(pins)) {
        struct replica *replica = queue_element(pins->head, struct replica, pin_link);
        assert(replica->pin == release->generation);
        if (replica->removal.phase == REMOVAL_DOOMED
            || replica->removal.phase == REMOVAL_FORGETTING) {
            /* Its tombstone is about to stand behind all of its entries: then they die in order. */
            if (release->count == 0) return 0;
            break;
        }
        if (release_prefers_append(store, replica)) {
            queue_remove(pins, &replica->pin_link);
            queue_push(&release->reappend, &replica->pin_link);
        } else {
            if (!release_encode(store, replica)) {
                if (release->count == 0) return 0;
                break;
            }
            /* Until its entry is durable it belongs to no extent but to this release. */
            queue_remove(pins, &replica->pin_link);
        }
    }
    release_finish_collect(store);
    return 1;
}

static int release_writes(struct store *store)
{
    struct store_release *release = &store->release;
    for (uint32_t index = 0; index < release->count; index++) {
        const struct store_release_item *item = &release->items[index];
        if (item->withdrawn) continue;
        if (store->replicas[item->replica].batches_written < item->batches) return 0;
    }
    release->phase = STORE_RELEASE_SYNCS;
    return 1;
}

static int release_sync_folder(struct store *store, struct replica *replica)
{
    for (uint32_t level = 0; level < 2; level++) {
        struct store_io *io = store_io_take(store, STORE_IO_RELEASE_SYNC, IO_SYNC_DIR);
        if (!io) return 0;
        if (level == 0)
            replica_path(replica, io->request.path);
        else
            snprintf(io->request.path, IO_PATH_SIZE, "topics");
        store->release.syncs++;
        store_io_send(store, io);
    }
    replica->folder_dirty = 0;
    return 1;
}

static int release_sync_data(struct store *store, struct replica *replica)
{
    struct store_file *file = store_file_open(store, replica, replica->written_segment, IO_CREATE);
    if (!file) return 0;
    struct store_io *io = store_io_take(store, STORE_IO_RELEASE_SYNC, IO_SYNC);
    if (!io) return 0;
    io->request.file = store_file_slot(store, file);
    io->file = (uint32_t)(file - store->files) + 1;
    file->users++;
    replica->data_dirty = 0;
    store->release.syncs++;
    store->statistics.syncs++;
    store_io_send(store, io);
    return 1;
}

static int release_syncs(struct store *store)
{
    struct store_release *release = &store->release;
    for (; release->sync_cursor < release->count; release->sync_cursor++) {
        if (release->items[release->sync_cursor].withdrawn) continue;
        struct replica *replica = &store->replicas[release->items[release->sync_cursor].replica];
        if (replica->folder_dirty && !release_sync_folder(store, replica)) return 0;
        if (replica->data_dirty && !release_sync_data(store, replica)) return 0;
    }
    if (release->syncs > 0 || store->failed != STATUS_OK) return 0;
    if (release->blob_used) {
        release->phase = STORE_RELEASE_BLOB;
        for (uint32_t index = 0; index < release->count; index++) {
            const struct store_release_item *item = &release->items[index];
            if (item->is_file && !item->withdrawn) {
                (void)store_blob_write(store, STORE_SLOT_CHECKPOINT, item->digest, store->blob,
                                       item->blob_bytes);
            }
        }
        return 1;
    }
    store_release_blob_done(store);
    return 1;
}

/* What the entries name is durable: they may go. */
void store_release_blob_done(struct store *store)
{
    struct store_release *release = &store->release;
    for (uint32_t index = 0; index < release->count; index++) {
        if (release->items[index].withdrawn) continue;
        store_entry_ready(prepare_ring_at(&store->control, release->items[index].slot));
    }
    release->blob_used = 0;
    release->wait_position = store->control.head;
    release->phase = STORE_RELEASE_ROUND;
}

/* 1 = checkpoints of this release are still held back: one can be taken out again. */
int store_release_holds(const struct store *store)
{
    enum store_release_phase phase = store->release.phase;
    return phase == STORE_RELEASE_COLLECT || phase == STORE_RELEASE_WRITES
           || phase == STORE_RELEASE_SYNCS;
}

/* The replica's topic is gone: its checkpoint would wait for writes that a full disk refuses, and
 * stand in the way of the tombstone. */
void store_release_withdraw(struct store *store, struct replica *replica)
{
    struct store_release *release = &store->release;
    assert(replica->in_release && store_release_holds(store));
    uint32_t index = 0;
    while (release->items[index].replica != registry_index(store, replica)) index++;
    assert(index < release->count);
    struct store_release_item *item = &release->items[index];
    struct ring_slot *slot = prepare_ring_at(&store->control, item->slot);
    assert(slot->state == RING_SLOT_HELD && !item->withdrawn);
    slot->state = RING_SLOT_PAD;
    item->withdrawn = 1;
    if (item->is_file) release->blob_used = 0;
    replica->in_release = 0;
}

static int release_round(struct store *store)
{
    struct store_release *release = &store->release;
    if (store->control.durable < release->wait_position) return 0;
    for (uint32_t index = 0; index < release->count; index++) {
        const struct store_release_item *item = &release->items[index];
        if (!item->withdrawn) store->replicas[item->replica].in_release = 0;
    }
    release->count = 0;
    if (release->read_done) {
        release_begin_witness(store);
    } else {
        release->phase = release->skip > 0 ? STORE_RELEASE_READ : STORE_RELEASE_COLLECT;
    }
    return 1;
}

void store_checkpoint_durable(struct store *store, struct replica *replica,
                              const struct ring_slot *slot)
{
    const struct store_release_item *item = &store->release.items[slot->token];
    assert(slot->token < store->release.count);
    assert(item->replica == registry_index(store, replica));
    if (replica->checkpoint_is_file && memcmp(replica->checkpoint_digest, item->digest, 16) != 0) {
        store_garbage_add(store, replica->checkpoint_digest);
    }
    replica->checkpoint_op = slot->op;
    replica->checkpoint_is_file = item->is_file;
    replica->checkpoint_active = item->active;
    segment_checkpoint_done(&replica->state.segments);
    replica->checkpoint_bytes = item->blob_bytes;
    memcpy(replica->checkpoint_digest, item->digest, 16);
    replica->live_bytes = replica->live_bytes - item->live_bytes + item->entry_bytes;
    store->live_bytes = store->live_bytes - item->live_bytes + item->entry_bytes;
    replica_pin(store, replica, item->pin);
    store->statistics.checkpoints++;
}

/* Is this entry of the extent being released still needed, and not in a checkpoint just written? */
static int release_is_live(struct store *store, const struct journal_entry *entry,
                           struct replica **replica)
{
    *replica = NULL;
    if (entry->topic == STORE_NOBODY) return store_nobody_is_live(store, entry);
    *replica = registry_find(store, entry->topic, entry->partition);
    if (!*replica || (*replica)->created_revision != entry->created_revision) return 0;
    if ((*replica)->pin_link.queue != &store->release.reappend) return 0;
    int forgotten = (*replica)->removal.phase >= REMOVAL_FORGOTTEN;
    if (forgotten || entry->kind == JOURNAL_FORGET)
        return forgotten && entry->kind == JOURNAL_FORGET;
    if ((*replica)->vsr.status == VSR_DAMAGED) return 1;
    switch ((enum journal_entry_kind)entry->kind) {
    case JOURNAL_PREPARE: return entry->op > (*replica)->checkpoint_op;
    case JOURNAL_CHECKPOINT: return entry->op == (*replica)->checkpoint_op;
    case JOURNAL_VIEW_STATE: return entry->op >= (*replica)->checkpoint_op;
    default: return 0;
    }
}

static enum status release_visit(void *context, uint8_t *bytes, const struct journal_entry *entry,
                                 uint64_t generation, uint64_t lsn)
{
    struct store *store = context;
    struct replica *replica;
    maybe(generation > 0);
    if (!release_is_live(store, entry, &replica)) return STATUS_OK;
    if (!store_copy_is_newest(store, bytes, lsn)) return STATUS_OK;
    if (store->release.seen++ < store->release.skip) return STATUS_OK;
    if (!prepare_ring_fits(&store->control, entry->size)) {
        store->release.seen--;
        return STATUS_BUSY;
    }
    uint64_t position;
    struct ring_slot *slot =
        prepare_ring_reserve(&store->control, entry->kind, entry->size, &position);
    memcpy(ring_slot_entry(slot), bytes, entry->size);
    slot->op = entry->op;
    slot->replica = replica ? registry_index(store, replica) : UINT32_MAX;
    slot->reappended = 1;
    slot->state = RING_SLOT_READY; /* sealed when it was made; origin and checksum stay */
    store->statistics.entries++;
    return STATUS_OK;
}

static void release_read_over(struct store *store)
{
    struct store_release *release = &store->release;
    release->read_done = 1;
    while (!queue_empty(&release->reappend)) {
        struct replica *replica = queue_element(release->reappend.head, struct replica, pin_link);
        replica_pin(store, replica, release->generation + 1);
    }
}

static int release_read(struct store *store)
{
    if (!journal_holds(&store->journal, store->release.generation)) {
        /* Damage took all that told of the extent: recovery has named what it lost. */
        store->release.wait_position = store->control.head;
        store->release.phase = STORE_RELEASE_ROUND;
        release_read_over(store);
        return 1;
    }
    struct store_io *io = store_io_take(store, STORE_IO_RELEASE_READ, IO_READ);
    if (!io) return 0;
    const struct journal_config *config = &store->journal.config;
    uint32_t extent = journal_extent_of(&store->journal, store->release.generation);
    io->request.file = STORE_SLOT_JOURNAL;
    io->request.offset = journal_extent_offset(config, extent);
    io->request.size = (uint64_t)config->extent_blocks * JOURNAL_BLOCK_BYTES;
    io->request.buffer = store->extent_buffer;
    store->release.wait_position = UINT64_MAX;
    store->release.phase = STORE_RELEASE_ROUND;
    store_io_send(store, io);
    return 0;
}

void store_release_read_done(struct store *store)
{
    struct store_release *release = &store->release;
    release->seen = 0;
    enum status status = journal_scan_extent(&store->journal, release->generation,
                                             store->extent_buffer, release_visit, store);
    release->wait_position = store->control.head;
    if (status == STATUS_BUSY) {
        release->skip = release->seen;
        return;
    }
    if (status != STATUS_OK) {
        store_fail(store, status);
        return;
    }
    release_read_over(store);
}

static int release_witness(struct store *store)
{
    struct store_release *release = &store->release;
    if (store->journal.lsn_previous <= release->wait_lsn) {
        store->witness_now = 1;
        return 0;
    }
    if (!release->all) {
        assert(store->journal.generation_kept > release->generation);
        store_nobody_unpin(store, release->generation);
        store->statistics.extents_released++;
    }
    release->all = 0;
    release->read_done = 0;
    release->phase = STORE_RELEASE_IDLE;
    return 1;
}

static int release_idle(struct store *store)
{
    struct store_release *release = &store->release;
    int due = store_release_due(store);
    if (!due && !release->all_after) return 0;
    /* A due extent first; everything that has no checkpoint after that. */
    release->all = !due;
    if (release->all) release->all_after = 0;
    release->generation = due ? store->journal.generation_oldest : 0;
    release->skip = 0;
    release->read_done = 0;
    release->phase = STORE_RELEASE_COLLECT;
    return 1;
}

/* Go as far as possible without waiting. */
void store_release_step(struct store *store)
{
    struct store_release *release = &store->release;
    int moved = 1;
    while (moved && store->failed == STATUS_OK) {
        switch (release->phase) {
        case STORE_RELEASE_IDLE: moved = release_idle(store); break;
        case STORE_RELEASE_COLLECT: moved = release_collect(store); break;
        case STORE_RELEASE_WRITES: moved = release_writes(store); break;
        case STORE_RELEASE_SYNCS: moved = release_syncs(store); break;
        case STORE_RELEASE_BLOB: moved = 0; break;
        case STORE_RELEASE_ROUND: moved = release_round(store); break;
        case STORE_RELEASE_READ: moved = release_read(store); break;
        case STORE_RELEASE_WITNESS: moved = release_witness(store); break;
        case STORE_RELEASE_PHASES_COUNT: unreachable();
        }
    }
}

void store_checkpoint_all(struct store *store)
{
    store->release.all_cursor = 0;
    store->release.all_after = 1;
}
