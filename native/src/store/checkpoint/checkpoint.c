/* store/checkpoint/checkpoint.c: an extent is given back once nothing in it is needed (J6, J7).
 *
 *     collect --> writes --> syncs --> (file) --> round --> collect .. --> read, append again -->
 *     witness --> free
 *
 * collect   groups whose oldest live entry is in the extent: a checkpoint is encoded into the
 *           control ring, held back
 * writes    until all batches that it covers are in segment files
 * syncs     one sync per dirty segment and folder, all in one batch
 * round     the entries become durable
 * read      groups for which their live entries are smaller than a checkpoint, or that must not be
 *           checkpointed (damaged; the metadata group, whose snapshots come from the host): the
 *           extent is read and what lives appended with its origin (J5)
 * witness   a later round is durable, which says that the extent is dead: recovery can no longer
 *           lose the entries to a torn tail, nor look for them where they were
 *
 * A group's pin is the oldest generation that may hold a live entry of it. */
#include "store/state.h"

#include <stdio.h>

int store_release_due(const struct store *store)
{
    const struct journal *journal = &store->journal;
    if (journal->generation_oldest >= journal->generation) return 0;
    uint32_t used = journal->config.extents_count - journal_extents_free(journal);
    return used >= journal->config.extents_count / 2;
}

struct entry_checkpoint store_checkpoint_entry(const struct store_group *group, int is_file,
                                               uint64_t blob_size, const uint8_t digest[16])
{
    const struct segment_limit limit = {.bytes = group->state.config.segment_bytes,
                                        .time_us = group->state.config.segment_us};
    struct entry_checkpoint checkpoint = {
        .view_state = store_view_state(group, &limit),
        .append_time_us = group->vsr.executed_time_us,
        .is_file = is_file != 0,
        .size = (uint32_t)blob_size,
    };
    memcpy(checkpoint.checksum, group->vsr.executed_checksum, 16);
    memcpy(checkpoint.digest, digest, 16);
    return checkpoint;
}

static int release_prefers_append(const struct store *store, const struct store_group *group)
{
    if (group->removal.phase != RECONCILE_NONE) return 1; /* of which only the tombstone lives */
    if (group == store->metadata_group || group->vsr.status == VSR_DAMAGED) return 1;
    if (group->unknown_op != 0) return 1;
    /* A file that a trim took waits for a checkpoint that does not name it. */
    if (group->trim.kept) return 0;
    return group->checkpoint_is_file && group->live_bytes < group->checkpoint_bytes;
}

/* 0 = no room now. */
static int release_encode(struct store *store, struct store_group *group)
{
    struct store_release *release = &store->release;
    uint64_t blob_size = partition_checkpoint_bytes(&group->state);
    int is_file = blob_size > store->config.checkpoint_inline_bytes
                  || blob_size > journal_entry_bytes_max(&store->journal.config) / 2;
    assert(blob_size <= STORE_BLOB_MAX);
    if (release->count == STORE_RELEASE_BATCH_MAX || (is_file && release->blob_used)) return 0;
    const struct journal_entry entry = {.size = (uint32_t)(JOURNAL_ENTRY_HEADER_BYTES
                                                           + ENTRY_CHECKPOINT_BYTES
                                                           + (is_file ? 0 : blob_size)),
                                        .kind = JOURNAL_CHECKPOINT,
                                        .topic = group->topic,
                                        .partition = group->partition,
                                        .created_revision = group->created_revision,
                                        .op = group->vsr.commit_min,
                                        .log_view = group->vsr.log_view,
                                        .tenure = group->vsr.tenure,
                                        .epoch = group->vsr.epoch};
    if (!store_ring_fits(&store->control, entry.size)) return 0;
    assert(group->state.applied_op == group->vsr.commit_min);

    struct store_release_item *item = &release->items[release->count];
    *item = (struct store_release_item){.group = store_group_index(store, group),
                                        .is_file = is_file != 0};
    struct store_record *record = store_entry_begin(store, &store->control, &entry, &item->record);
    uint8_t *body = store_record_body(record);
    uint8_t *blob = is_file ? store->blob : body + ENTRY_CHECKPOINT_BYTES;
    partition_checkpoint_encode(&group->state, blob, blob_size);
    vsr_digest(blob, blob_size, item->digest);
    const struct entry_checkpoint checkpoint =
        store_checkpoint_entry(group, is_file, blob_size, item->digest);
    entry_checkpoint_put(body, &checkpoint);
    record->group = item->group;
    record->token = release->count++;
    item->batches = group->batches_executed;
    item->pin = store->journal.generation > 0 ? store->journal.generation : 1;
    const struct segment *active = segment_active(&group->state.segments);
    item->active = active ? active->base_offset + 1 : 0;
    segment_checkpoint_begun(&group->state.segments);
    item->live_bytes = group->live_bytes;
    item->entry_bytes = entry.size;
    item->blob_bytes = (uint32_t)blob_size;
    if (is_file) release->blob_used = (uint32_t)blob_size;
    group->in_release = 1;
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

/* Before a stop: every group that has something above its checkpoint. */
static int release_collect_all(struct store *store)
{
    struct store_release *release = &store->release;
    for (; release->all_cursor < store->groups_max; release->all_cursor++) {
        struct store_group *group = &store->groups[release->all_cursor];
        if (!group->used || group->removal.phase != RECONCILE_NONE || group->pin == 0
            || release_prefers_append(store, group))
            continue;
        if (group->vsr.commit_min == group->checkpoint_op) continue;
        if (!release_encode(store, group)) return release->count > 0;
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
        struct store_group *group = queue_element(pins->head, struct store_group, pin_link);
        assert(group->pin == release->generation);
        if (group->removal.phase == RECONCILE_DOOMED
            || group->removal.phase == RECONCILE_FORGETTING) {
            /* Its tombstone is about to stand behind all of its entries: then they die in order. */
            if (release->count == 0) return 0;
            break;
        }
        if (release_prefers_append(store, group)) {
            queue_remove(pins, &group->pin_link);
            queue_push(&release->reappend, &group->pin_link);
        } else {
            if (!release_encode(store, group)) {
                if (release->count == 0) return 0;
                break;
            }
            /* Until its entry is durable it belongs to no extent but to this release. */
            queue_remove(pins, &group->pin_link);
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
        if (store->groups[item->group].batches_written < item->batches) return 0;
    }
    release->phase = STORE_RELEASE_SYNCS;
    return 1;
}

static int release_sync_folder(struct store *store, struct store_group *group)
{
    for (uint32_t level = 0; level < 2; level++) {
        struct store_io *io = store_io_take(store, STORE_IO_RELEASE_SYNC, IO_SYNC_DIR);
        if (!io) return 0;
        if (level == 0)
            store_group_path(group, io->request.path);
        else
            snprintf(io->request.path, IO_PATH_SIZE, "topics");
        store->release.syncs++;
        store_io_send(store, io);
    }
    group->folder_dirty = 0;
    return 1;
}

static int release_sync_data(struct store *store, struct store_group *group)
{
    struct store_file *file = store_file_open(store, group, group->written_segment, IO_CREATE);
    if (!file) return 0;
    struct store_io *io = store_io_take(store, STORE_IO_RELEASE_SYNC, IO_SYNC);
    if (!io) return 0;
    io->request.file = store_file_slot(store, file);
    io->file = (uint32_t)(file - store->files) + 1;
    file->users++;
    group->data_dirty = 0;
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
        struct store_group *group = &store->groups[release->items[release->sync_cursor].group];
        if (group->folder_dirty && !release_sync_folder(store, group)) return 0;
        if (group->data_dirty && !release_sync_data(store, group)) return 0;
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
        store_entry_ready(store_ring_at(&store->control, release->items[index].record));
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

/* The group's topic is gone: its checkpoint would wait for writes that a full disk refuses, and
 * stand in the way of the tombstone. */
void store_release_withdraw(struct store *store, struct store_group *group)
{
    struct store_release *release = &store->release;
    assert(group->in_release && store_release_holds(store));
    uint32_t index = 0;
    while (release->items[index].group != store_group_index(store, group)) index++;
    assert(index < release->count);
    struct store_release_item *item = &release->items[index];
    struct store_record *record = store_ring_at(&store->control, item->record);
    assert(record->state == STORE_RECORD_HELD && !item->withdrawn);
    record->state = STORE_RECORD_PAD;
    item->withdrawn = 1;
    if (item->is_file) release->blob_used = 0;
    group->in_release = 0;
}

static int release_round(struct store *store)
{
    struct store_release *release = &store->release;
    if (store->control.durable < release->wait_position) return 0;
    for (uint32_t index = 0; index < release->count; index++) {
        const struct store_release_item *item = &release->items[index];
        if (!item->withdrawn) store->groups[item->group].in_release = 0;
    }
    release->count = 0;
    if (release->read_done) {
        release_begin_witness(store);
    } else {
        release->phase = release->skip > 0 ? STORE_RELEASE_READ : STORE_RELEASE_COLLECT;
    }
    return 1;
}

void store_checkpoint_durable(struct store *store, struct store_group *group,
                              const struct store_record *record)
{
    const struct store_release_item *item = &store->release.items[record->token];
    assert(record->token < store->release.count);
    assert(item->group == store_group_index(store, group));
    if (group->checkpoint_is_file && memcmp(group->checkpoint_digest, item->digest, 16) != 0) {
        store_garbage_add(store, group->checkpoint_digest);
    }
    group->checkpoint_op = record->op;
    group->checkpoint_is_file = item->is_file;
    group->checkpoint_active = item->active;
    segment_checkpoint_done(&group->state.segments);
    group->checkpoint_bytes = item->blob_bytes;
    memcpy(group->checkpoint_digest, item->digest, 16);
    group->live_bytes = group->live_bytes - item->live_bytes + item->entry_bytes;
    store->live_bytes = store->live_bytes - item->live_bytes + item->entry_bytes;
    store_group_pin(store, group, item->pin);
    store->statistics.checkpoints++;
}

/* Is this entry of the extent being released still needed, and not in a checkpoint just written? */
static int release_is_live(struct store *store, const struct journal_entry *entry,
                           struct store_group **group)
{
    *group = NULL;
    if (entry->topic == STORE_NOBODY) return store_nobody_is_live(store, entry);
    *group = store_group_find(store, entry->topic, entry->partition);
    if (!*group || (*group)->created_revision != entry->created_revision) return 0;
    if ((*group)->pin_link.queue != &store->release.reappend) return 0;
    int forgotten = (*group)->removal.phase >= RECONCILE_FORGOTTEN;
    if (forgotten || entry->kind == JOURNAL_FORGET)
        return forgotten && entry->kind == JOURNAL_FORGET;
    if ((*group)->vsr.status == VSR_DAMAGED) return 1;
    switch ((enum journal_entry_kind)entry->kind) {
    case JOURNAL_PREPARE: return entry->op > (*group)->checkpoint_op;
    case JOURNAL_CHECKPOINT: return entry->op == (*group)->checkpoint_op;
    case JOURNAL_VIEW_STATE: return entry->op >= (*group)->checkpoint_op;
    default: return 0;
    }
}

static enum status release_visit(void *context, uint8_t *bytes, const struct journal_entry *entry,
                                 uint64_t generation, uint64_t lsn)
{
    struct store *store = context;
    struct store_group *group;
    maybe(generation > 0);
    if (!release_is_live(store, entry, &group)) return STATUS_OK;
    if (!store_copy_is_newest(store, bytes, lsn)) return STATUS_OK;
    if (store->release.seen++ < store->release.skip) return STATUS_OK;
    if (!store_ring_fits(&store->control, entry->size)) {
        store->release.seen--;
        return STATUS_BUSY;
    }
    uint64_t position;
    struct store_record *record =
        store_ring_reserve(&store->control, entry->kind, entry->size, &position);
    memcpy(store_record_entry(record), bytes, entry->size);
    record->op = entry->op;
    record->group = group ? store_group_index(store, group) : UINT32_MAX;
    record->reappended = 1;
    record->state = STORE_RECORD_READY; /* sealed when it was made; origin and checksum stay */
    store->statistics.entries++;
    return STATUS_OK;
}

static void release_read_over(struct store *store)
{
    struct store_release *release = &store->release;
    release->read_done = 1;
    while (!queue_empty(&release->reappend)) {
        struct store_group *group =
            queue_element(release->reappend.head, struct store_group, pin_link);
        store_group_pin(store, group, release->generation + 1);
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
