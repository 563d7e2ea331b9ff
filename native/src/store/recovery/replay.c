/* store/recovery/replay.c: what the walks over the journal's entries do, and the segments between
 * them. */
#include "store/state.h"
#include "store/turn.h"

#include <stdio.h>

/* Its checkpoint or its segments are damaged: nothing above them can be executed. */
static void recover_damage(struct store_group *group)
{
    group->corrupt = 1;
    const struct vsr_event event = {.kind = VSR_DAMAGE_FOUND, .op = group->vsr.op + 1};
    struct vsr_update update;
    vsr_step(&group->vsr, &event, &update);
}

static struct store_group *recover_group(struct store *store, const struct journal_entry *entry)
{
    if (entry->topic == 0 && !store->metadata_group) return NULL;
    struct store_group *group = store_group_find(store, entry->topic, entry->partition);
    if (group && group != store->metadata_group
        && group->created_revision != entry->created_revision) {
        store_group_drop(store, group);
        group = NULL;
    }
    if (!group)
        group = store_group_make(store, entry->topic, entry->created_revision, entry->partition,
                                 &store_limit_unknown, 0);
    return group;
}

static enum status recover_configure(struct store *store, struct store_group *group,
                                     const struct entry_view_state *state)
{
    if (state->segment_bytes == 0 && group != store->metadata_group) return STATUS_JOURNAL_DAMAGED;
    group->metered = group->metered_wanted = state->metered;
    group->segment_limit =
        (struct segment_limit){.bytes = state->segment_bytes, .time_us = state->segment_us};
    group->state.config.metered = group->metered;
    group->state.config.segment_bytes = state->segment_bytes;
    group->state.config.segment_us = state->segment_us;
    group->vsr.view = state->view;
    group->vsr.log_view = state->log_view;
    group->vsr.epoch = state->epoch;
    group->vsr.tenure = state->tenure;
    group->configured = 1;
    return STATUS_OK;
}

static enum status recover_view_state(struct store *store, struct store_group *group,
                                      const uint8_t *body, uint64_t body_size)
{
    struct entry_view_state state;
    enum status status = entry_view_state_get(body, body_size, &state);
    return status == STATUS_OK ? recover_configure(store, group, &state) : status;
}

static enum status recover_blob(struct store *store, struct store_group *group, const uint8_t *blob,
                                uint64_t size)
{
    uint8_t digest[16];
    vsr_digest(blob, size, digest);
    if (memcmp(digest, group->checkpoint_digest, 16) != 0) return STATUS_CHECKPOINT_DAMAGED;
    const struct partition_config config = group->state.config;
    partition_deinit(&group->state);
    partition_init(&group->state, &store->pools, &config);
    return partition_checkpoint_decode(&group->state, blob, size);
}

/* The latest stands for all before it. */
static enum status recover_checkpoint(struct store *store, struct store_group *group,
                                      const uint8_t *body, uint64_t body_size,
                                      const struct journal_entry *entry, uint64_t generation)
{
    if (body_size < ENTRY_CHECKPOINT_BYTES) return STATUS_CHECKPOINT_DAMAGED;
    if (entry->op < group->checkpoint_op) return STATUS_OK;
    struct entry_checkpoint found;
    enum status status = entry_checkpoint_get(body, body_size, &found);
    if (status == STATUS_OK) status = recover_configure(store, group, &found.view_state);
    if (status != STATUS_OK) return status;
    struct vsr_event event = {
        .kind = VSR_CHECKPOINT_FOUND, .op = entry->op, .time_us = found.append_time_us};
    memcpy(event.checksum, found.checksum, 16);
    struct vsr_update update;
    vsr_step(&group->vsr, &event, &update);
    group->checkpoint_op = entry->op;
    group->checkpoint_is_file = found.is_file;
    group->checkpoint_bytes = found.size;
    memcpy(group->checkpoint_digest, found.digest, 16);
    /* What stopped the group lies further back than a checkpoint appended again: it lives (J4). */
    if (group->pin == 0 || group->vsr.damaged_from == 0) group->pin = generation;
    store->live_bytes += entry->size - group->live_bytes;
    group->live_bytes = entry->size;
    if (group->checkpoint_is_file) return STATUS_OK;
    if (group->checkpoint_bytes != body_size - ENTRY_CHECKPOINT_BYTES)
        return STATUS_CHECKPOINT_DAMAGED;
    return recover_blob(store, group, body + ENTRY_CHECKPOINT_BYTES, group->checkpoint_bytes);
}

static enum status recover_abstention(struct store_group *group, const uint8_t *body,
                                      uint64_t body_size, uint64_t generation)
{
    struct entry_abstain abstain;
    enum status status = entry_abstain_get(body, body_size, &abstain);
    if (status != STATUS_OK) return status;
    const struct vsr_event event = {
        .kind = VSR_ABSTAINED, .op = abstain.op_good, .op_to = abstain.op_lost};
    struct vsr_update update;
    vsr_step(&group->vsr, &event, &update);
    group->stop_generation = generation;
    if (group->pin == 0) group->pin = generation;
    return STATUS_OK;
}

static enum status recover_visit_states(void *context, uint8_t *bytes,
                                        const struct journal_entry *entry, uint64_t generation,
                                        uint64_t lsn)
{
    struct store *store = ((struct store_recovery *)context)->store;
    const uint8_t *body = bytes + JOURNAL_ENTRY_HEADER_BYTES;
    uint64_t body_size = entry->size - JOURNAL_ENTRY_HEADER_BYTES;
    struct store_group *group = NULL;
    enum status status;
    store_copy_note(store, bytes, entry->origin_lsn, lsn);
    if (entry->topic == STORE_NOBODY) store_nobody_found(store, entry, generation);
    switch ((enum journal_entry_kind)entry->kind) {
    case JOURNAL_PREPARE: return STATUS_OK;
    case JOURNAL_CHECKPOINT:
        group = recover_group(store, entry);
        if (!group) return STATUS_NO_MEMORY;
        status = recover_checkpoint(store, group, body, body_size, entry, generation);
        /* Pools smaller than before are no damage: the operator can give them back. */
        if (status == STATUS_NO_MEMORY || status == STATUS_JOURNAL_DAMAGED) return status;
        if (status != STATUS_OK) recover_damage(group);
        return STATUS_OK;
    case JOURNAL_VIEW_STATE:
        if (body_size < ENTRY_VIEW_STATE_BYTES) return STATUS_JOURNAL_DAMAGED;
        group = recover_group(store, entry);
        if (!group) return STATUS_NO_MEMORY;
        status = group->configured ? STATUS_OK : recover_view_state(store, group, body, body_size);
        if (group->pin == 0) group->pin = generation;
        return status;
    case JOURNAL_ABSTAIN:
        if (entry->topic == STORE_NOBODY) return STATUS_OK;
        group = recover_group(store, entry);
        if (!group) return STATUS_NO_MEMORY;
        return recover_abstention(group, body, body_size, generation);
    case JOURNAL_FORGET: return store_removal_found(store, entry, generation);
    case JOURNAL_METADATA_FLOOR:
    case JOURNAL_TAIL_CLOSED: return STATUS_OK;
    case JOURNAL_SUFFIX_INSTALLED: return STATUS_OP_UNKNOWN;
    }
    return STATUS_OP_UNKNOWN;
}

static enum status recover_blob_file(struct store *store, struct store_group *group)
{
    int is_metadata = group == store->metadata_group;
    uint8_t *target = is_metadata ? store->snapshot.buffer : store->blob;
    uint64_t room = is_metadata ? STORE_SNAPSHOT_MAX : STORE_BLOB_MAX;
    if (group->checkpoint_bytes > room) return STATUS_CHECKPOINT_DAMAGED;
    struct io_request request = {.operation = IO_OPEN, .file = STORE_SLOT_CHECKPOINT};
    store_blob_path(group->checkpoint_digest, request.path);
    enum status status = store_perform(store, &request);
    if (status != STATUS_OK)
        return status == STATUS_FILE_NOT_FOUND ? STATUS_CHECKPOINT_DAMAGED : status;
    struct io_request read = {.operation = IO_READ,
                              .file = STORE_SLOT_CHECKPOINT,
                              .size = group->checkpoint_bytes,
                              .buffer = target};
    status = store_perform(store, &read);
    struct io_request close = {.operation = IO_CLOSE, .file = STORE_SLOT_CHECKPOINT};
    (void)store_perform(store, &close);
    if (status != STATUS_OK) return status;
    if (read.result_bytes != read.size) return STATUS_CHECKPOINT_DAMAGED;
    if (!is_metadata) return recover_blob(store, group, target, group->checkpoint_bytes);
    uint8_t digest[16];
    vsr_digest(target, group->checkpoint_bytes, digest);
    store->snapshot.size = group->checkpoint_bytes;
    store->snapshot.op = group->checkpoint_op;
    store->snapshot.borrowed = 1;
    return memcmp(digest, group->checkpoint_digest, 16) == 0 ? STATUS_OK
                                                             : STATUS_CHECKPOINT_DAMAGED;
}

enum status store_recover_states(struct store_recovery *recovery)
{
    struct store *store = recovery->store;
    enum status status =
        journal_scan(&store->journal, store->io, STORE_SLOT_JOURNAL, store->extent_buffer,
                     store->report, recover_visit_states, recovery);
    if (status != STATUS_OK) {
        snprintf(recovery->detail, sizeof recovery->detail, "journal: after round %llu",
                 (unsigned long long)store->report->lsn_last);
        return status;
    }
    for (uint32_t index = 0; index < store->groups_max; index++) {
        struct store_group *group = &store->groups[index];
        if (!group->used || !group->checkpoint_is_file) continue;
        status = recover_blob_file(store, group);
        if (status == STATUS_OK) continue;
        if (group == store->metadata_group || status != STATUS_CHECKPOINT_DAMAGED) {
            store_blob_path(group->checkpoint_digest, recovery->detail);
            return status;
        }
        recover_damage(group);
    }
    return STATUS_OK;
}

static enum status recover_segment_sealed(struct store *store, const struct segment *segment)
{
    uint8_t bytes[SEGMENT_FOOTER_BYTES];
    struct io_request read = {.operation = IO_READ,
                              .file = STORE_SLOT_CHECKPOINT,
                              .offset = segment->data_bytes,
                              .size = SEGMENT_FOOTER_BYTES,
                              .buffer = bytes};
    enum status status = store_perform(store, &read);
    if (status != STATUS_OK) return status;
    struct segment_footer footer;
    if (read.result_bytes != read.size) return STATUS_FOOTER_DAMAGED;
    status = segment_footer_decode(bytes, sizeof bytes, &footer);
    return status == STATUS_OK ? segment_footer_check(&footer, segment) : status;
}

/* Cut to the checkpointed length: what is above is written again from the journal (J3). Then read,
 * for index and digest. */
static enum status recover_segment_active(struct store *store, struct store_group *group,
                                          struct segment *segment)
{
    struct io_request size = {.operation = IO_SIZE, .file = STORE_SLOT_CHECKPOINT};
    enum status status = store_perform(store, &size);
    if (status != STATUS_OK) return status;
    if (size.result_bytes < segment->data_bytes) return STATUS_SEGMENT_DAMAGED;
    struct io_request cut = {
        .operation = IO_TRUNCATE, .file = STORE_SLOT_CHECKPOINT, .size = segment->data_bytes};
    status = store_perform(store, &cut);
    if (status != STATUS_OK) return status;
    segment_walk_begin(&group->state.segments, segment);
    uint64_t piece = store->config.extent_bytes; /* a batch fits: its round fitted an extent */
    uint64_t position = 0;
    while (position < segment->data_bytes) {
        struct io_request read = {.operation = IO_READ,
                                  .file = STORE_SLOT_CHECKPOINT,
                                  .offset = position,
                                  .size = piece,
                                  .buffer = store->extent_buffer};
        if (read.size > segment->data_bytes - position) read.size = segment->data_bytes - position;
        status = store_perform(store, &read);
        if (status != STATUS_OK) return status;
        size_t consumed = 0;
        status = segment_walk(&group->state.segments, segment, read.buffer, read.result_bytes,
                              &consumed);
        if (status != STATUS_OK) return status;
        if (consumed == 0) return STATUS_SEGMENT_DAMAGED;
        position += consumed;
    }
    group->written_segment = segment->base_offset;
    group->written_position = segment->data_bytes;
    return STATUS_OK;
}

static enum status recover_group_segments(struct store *store, struct store_group *group)
{
    for (uint32_t position = 0;; position++) {
        struct segment *segment = partition_segment(&group->state, position);
        if (!segment) return STATUS_OK;
        group->folder_made = 1;
        struct io_request open = {.operation = IO_OPEN, .file = STORE_SLOT_CHECKPOINT};
        store_segment_path(group, segment->base_offset, open.path);
        enum status status = store_perform(store, &open);
        if (status == STATUS_FILE_NOT_FOUND && segment->sealed) {
            /* A trim behind the checkpoint may have taken it: the log will tell. */
            group->absent_end = segment->end_offset;
            continue;
        }
        if (status == STATUS_FILE_NOT_FOUND) return STATUS_SEGMENT_DAMAGED;
        if (status != STATUS_OK) return status;
        status = segment->sealed ? recover_segment_sealed(store, segment)
                                 : recover_segment_active(store, group, segment);
        struct io_request close = {.operation = IO_CLOSE, .file = STORE_SLOT_CHECKPOINT};
        enum status closed = store_perform(store, &close);
        if (status == STATUS_OK) status = closed;
        if (status != STATUS_OK) return status;
    }
}

enum status store_recover_segments(struct store_recovery *recovery)
{
    struct store *store = recovery->store;
    for (uint32_t index = 0; index < store->groups_max; index++) {
        struct store_group *group = &store->groups[index];
        if (!group->used || group == store->metadata_group) continue;
        const struct segment *active = segment_active(&group->state.segments);
        group->checkpoint_active = active ? active->base_offset + 1 : 0;
        enum status status = recover_group_segments(store, group);
        if (status == STATUS_OK) continue;
        store_group_path(group, recovery->detail);
        if (status == STATUS_IO_FAILED || status == STATUS_STORAGE_FULL) return status;
        recover_damage(group);
    }
    return STATUS_OK;
}

/* A step of every partition that waits for a segment write. */
static enum status recover_write(struct store *store)
{
    for (uint64_t count = store->writes.count; count > 0; count--) {
        int moved = store_segment_write(store);
        turn_completions(store);
        if (!moved) break;
    }
    return store->failed;
}

/* Into the ring, as if it had just become durable. */
static enum status recover_execute(struct store *store, struct store_group *group,
                                   const uint8_t *bytes, const struct journal_entry *entry,
                                   const struct entry_prepare *prepare, uint64_t generation)
{
    struct store_ring *ring = group == store->metadata_group ? &store->metadata : &store->data;
    enum status status = STATUS_OK;
    while (!store_ring_fits(ring, entry->size)) {
        if (store->storage_full) return STATUS_STORAGE_FULL;
        if (ring != &store->data || queue_empty(&store->writes)) return STATUS_NO_MEMORY;
        status = recover_write(store);
        if (status != STATUS_OK) return status;
    }
    uint64_t position;
    struct store_record *record = store_ring_reserve(ring, entry->kind, entry->size, &position);
    memcpy(store_record_entry(record), bytes, entry->size);
    record->group = store_group_index(store, group);
    record->op = entry->op;
    record->operation = prepare->operation;
    if (record->operation == PARTITION_BATCH) record->batch_bytes = prepare->payload_bytes;
    ring->durable = ring->rounded = ring->head;
    group->live_bytes += entry->size;
    store->live_bytes += entry->size;
    if (group->pin == 0 || generation < group->pin) group->pin = generation;
    store->committed.count = 0;
    committed_add(&store->committed, position);
    execute_committed(store, ring, &store->committed);
    store_ring_settle(ring);
    return store->failed;
}

static enum status recover_visit_ops(void *context, uint8_t *bytes,
                                     const struct journal_entry *entry, uint64_t generation,
                                     uint64_t lsn)
{
    struct store_recovery *recovery = context;
    struct store *store = recovery->store;
    maybe(lsn > 0);
    if (entry->kind != JOURNAL_PREPARE && entry->kind != JOURNAL_VIEW_STATE) return STATUS_OK;
    struct store_group *group = store_group_find(store, entry->topic, entry->partition);
    if (!group || group->created_revision != entry->created_revision) return STATUS_OK;
    if (group->removal.phase != RECONCILE_NONE) return STATUS_OK;
    if (entry->kind == JOURNAL_VIEW_STATE) {
        if (entry->op != group->vsr.op) return STATUS_OK;
        return recover_view_state(store, group, bytes + JOURNAL_ENTRY_HEADER_BYTES,
                                  entry->size - JOURNAL_ENTRY_HEADER_BYTES);
    }
    if (group->corrupt) return STATUS_OK;
    struct vsr_event event = {.kind = VSR_PREPARE_FOUND};
    if (entry->size < JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES)
        return STATUS_JOURNAL_DAMAGED;
    if (!vsr_prepare_decode(bytes + JOURNAL_ENTRY_HEADER_BYTES, &event.prepare))
        return STATUS_JOURNAL_DAMAGED;
    uint64_t bodies = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES;
    if (event.prepare.op != entry->op || event.prepare.payload_bytes != entry->size - bodies)
        return STATUS_JOURNAL_DAMAGED;
    if (group->unknown_op != 0) return STATUS_OK;
    int next = entry->op == group->vsr.op + 1 && group != store->metadata_group;
    if (next && event.prepare.operation > PARTITION_OP_LAST) {
        /* Its group waits for a release that knows it; its entries stay, all others go on. */
        group->unknown_op = entry->op;
        store->statistics.groups_op_unknown++;
        return STATUS_OK;
    }
    struct vsr_update update;
    vsr_step(&group->vsr, &event, &update);
    if (update.committed.count == 0) {
        if (entry->op > group->vsr.op) recovery->behind++;
        return STATUS_OK;
    }
    recovery->progress++;
    return recover_execute(store, group, bytes, entry, &event.prepare, generation);
}

/* Segments that a checkpoint names, and no trim behind it took, must be there. */
static void recover_absent(struct store *store)
{
    for (uint32_t index = 0; index < store->groups_max; index++) {
        struct store_group *group = &store->groups[index];
        if (!group->used || group->corrupt || group->unknown_op != 0) continue;
        if (group->absent_end > group->state.log_start) recover_damage(group);
    }
}

/* One walk takes the ops that lie in order. Those appended again lie behind later ones: walk until
 * nothing moves. */
enum status store_recover_ops(struct store_recovery *recovery)
{
    struct store *store = recovery->store;
    do {
        recovery->progress = recovery->behind = 0;
        enum status status = journal_scan(&store->journal, store->io, STORE_SLOT_JOURNAL,
                                          store->extent_buffer, NULL, recover_visit_ops, recovery);
        if (status != STATUS_OK) return status;
    } while (recovery->progress > 0 && recovery->behind > 0);
    recover_absent(store);
    /* What finds no room on the disk is in the journal and stays in the ring: it is read from there
     * and written once there is room, as if the disk had become full just now. */
    while (!queue_empty(&store->writes) && !store->storage_full) {
        enum status status = recover_write(store);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}
