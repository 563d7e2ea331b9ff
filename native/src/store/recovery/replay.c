/* store/recovery/replay.c: what the walks over the journal's entries do, and the segments between
 * them. */
#include <stdio.h>
#include <string.h>

#include "catalog/owner.h"
#include "foundation/assert.h"
#include "store/accounting/shard_records.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_file.h"
#include "store/checkpoint/duplicate_entries.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/metadata.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/execute.h"
#include "store/files/paths.h"
#include "store/files/requests.h"
#include "store/files/retire.h"
#include "store/files/segment_writer.h"
#include "store/recovery/recovery.h"
#include "store/registry.h"
#include "store/state.h"
#include "store/turn.h"

/* Its checkpoint or its segments are damaged: nothing above them can be executed. */
static void recover_damage(struct replica *replica)
{
    replica->corrupt = 1;
    const struct vsr_event event = {.kind = VSR_DAMAGE_FOUND, .op = replica->vsr.op + 1};
    struct vsr_update update;
    vsr_step(&replica->vsr, &event, &update);
}

/* J13: its replica waits for a release that knows it; its entries stay, all others go on. */
static void recover_unknown(struct store *store, struct replica *replica, uint64_t op)
{
    if (replica->unknown_op == 0) store->statistics.replicas_op_unknown++;
    replica->unknown_op = op;
}

static struct replica *recover_group(struct store *store, const struct journal_entry *entry)
{
    if (entry->topic == OWNER_METADATA_TOPIC && !metadata_replica(store)) return NULL;
    struct replica *replica = registry_find(store, entry->topic, entry->partition);
    if (replica && !replica->is_metadata && replica->created_revision != entry->created_revision) {
        registry_drop(store, replica);
        replica = NULL;
    }
    if (!replica)
        replica = registry_make_replica(store, entry->topic, entry->created_revision,
                                        entry->partition, &registry_configuration_unknown);
    return replica;
}

/* As of which view, with which members. */
static void recover_view(struct replica *replica, const struct entry_view_state *state)
{
    const struct vsr_event event = {.kind = VSR_VIEW_FOUND, .view_state = state};
    struct vsr_update update;
    vsr_step(&replica->vsr, &event, &update);
    replica->founded = 1;
}

static enum status recover_view_state(struct replica *replica, const uint8_t *body,
                                      uint64_t body_size)
{
    struct entry_view_state state;
    enum status status = entry_view_state_get(body, body_size, &state);
    if (status == STATUS_OK) recover_view(replica, &state);
    return status;
}

static enum status recover_checkpoint_bytes(struct store *store, struct replica *replica,
                                            const uint8_t *encoded, uint64_t size)
{
    uint8_t digest[16];
    vsr_digest(encoded, size, digest);
    if (memcmp(digest, replica_checkpoint_digest(replica), 16) != 0)
        return STATUS_CHECKPOINT_DAMAGED;
    const struct partition_config config = replica->state.config;
    partition_deinit(&replica->state);
    partition_init(&replica->state, &store->pools, &config);
    return partition_checkpoint_decode(&replica->state, encoded, size);
}

/* The latest stands for all before it. */
static enum status recover_checkpoint(struct store *store, struct replica *replica,
                                      const uint8_t *body, uint64_t body_size,
                                      const struct journal_entry *entry, uint64_t extent_cycle)
{
    if (body_size < ENTRY_CHECKPOINT_BYTES) return STATUS_CHECKPOINT_DAMAGED;
    if (entry->op < replica_checkpoint_op(replica)) return STATUS_OK;
    struct entry_checkpoint found;
    enum status status = entry_checkpoint_get(body, body_size, &found);
    if (status != STATUS_OK) return status;
    recover_view(replica, &found.view_state);
    struct vsr_event event = {
        .kind = VSR_CHECKPOINT_FOUND, .op = entry->op, .time_us = found.append_time_us};
    memcpy(event.checksum, found.checksum, 16);
    struct vsr_update update;
    vsr_step(&replica->vsr, &event, &update);
    replica_checkpoint_found(replica, entry->op, &found);
    /* What stopped it lies further back than a checkpoint appended again: it lives (J4). */
    if (replica->vsr.damaged_from == 0)
        live_entries_found(replica, extent_cycle);
    else
        live_entries_found_first(replica, extent_cycle);
    live_entries_replace(store, replica, live_entries_bytes_of(replica), entry->size);
    if (found.is_file) return STATUS_OK;
    if (found.size != body_size - ENTRY_CHECKPOINT_BYTES) return STATUS_CHECKPOINT_DAMAGED;
    return recover_checkpoint_bytes(store, replica, body + ENTRY_CHECKPOINT_BYTES, found.size);
}

static enum status recover_abstention(struct replica *replica, const uint8_t *body,
                                      uint64_t body_size, uint64_t extent_cycle)
{
    struct entry_abstain abstain;
    enum status status = entry_abstain_get(body, body_size, &abstain);
    if (status != STATUS_OK) return status;
    const struct vsr_event event = {
        .kind = VSR_ABSTAINED, .op = abstain.op_good, .op_to = abstain.op_lost};
    struct vsr_update update;
    vsr_step(&replica->vsr, &event, &update);
    replica->recovery.stop_extent_cycle = extent_cycle;
    live_entries_found_first(replica, extent_cycle);
    return STATUS_OK;
}

/* Written by no release up to this one. */
static int entry_unknown(const struct journal_entry *entry)
{
    return entry->version > JOURNAL_VERSION || entry->kind == JOURNAL_SUFFIX_INSTALLED
           || entry->kind == 0 || entry->kind > JOURNAL_ENTRY_KIND_LAST;
}

/* J13: what it says of its replica set cannot be guessed: nothing of it is executed. Of the whole
 * shard it is only kept. */
static enum status recover_unknown_entry(struct store *store, const struct journal_entry *entry,
                                         uint64_t extent_cycle)
{
    if (entry->topic == SHARD_RECORDS_TOPIC) return STATUS_OK;
    struct replica *replica = recover_group(store, entry);
    if (!replica) return STATUS_NO_MEMORY;
    recover_unknown(store, replica, entry->op + 1);
    live_entries_found_first(replica, extent_cycle);
    return STATUS_OK;
}

static enum status recover_visit_states(void *context, uint8_t *bytes,
                                        const struct journal_entry *entry, uint64_t extent_cycle,
                                        uint64_t lsn)
{
    struct store *store = ((struct store_recovery *)context)->store;
    const uint8_t *body = bytes + JOURNAL_ENTRY_HEADER_BYTES;
    uint64_t body_size = entry->size - JOURNAL_ENTRY_HEADER_BYTES;
    struct replica *replica = NULL;
    enum status status;
    duplicate_entries_note(store->duplicates, bytes, entry->origin_lsn, lsn);
    if (entry->topic == SHARD_RECORDS_TOPIC) shard_records_found(store, entry, extent_cycle);
    if (entry->kind == JOURNAL_PREPARE) return STATUS_OK;
    if (entry_unknown(entry)) return recover_unknown_entry(store, entry, extent_cycle);
    switch ((enum journal_entry_kind)entry->kind) {
    case JOURNAL_CHECKPOINT:
        replica = recover_group(store, entry);
        if (!replica) return STATUS_NO_MEMORY;
        status = recover_checkpoint(store, replica, body, body_size, entry, extent_cycle);
        /* Pools smaller than before are no damage: the operator can give them back. */
        if (status == STATUS_NO_MEMORY || status == STATUS_JOURNAL_DAMAGED) return status;
        if (status == STATUS_OP_UNKNOWN || status == STATUS_CHECKPOINT_VERSION)
            return recover_unknown_entry(store, entry, extent_cycle);
        if (status != STATUS_OK) recover_damage(replica);
        return STATUS_OK;
    case JOURNAL_VIEW_STATE:
        replica = recover_group(store, entry);
        if (!replica) return STATUS_NO_MEMORY;
        status = recover_view_state(replica, body, body_size);
        if (status == STATUS_OP_UNKNOWN) return recover_unknown_entry(store, entry, extent_cycle);
        live_entries_found_first(replica, extent_cycle);
        return status;
    case JOURNAL_ABSTAIN:
        if (entry->topic == SHARD_RECORDS_TOPIC) return STATUS_OK;
        replica = recover_group(store, entry);
        if (!replica) return STATUS_NO_MEMORY;
        return recover_abstention(replica, body, body_size, extent_cycle);
    case JOURNAL_FORGET: return retire_found(store, entry, extent_cycle);
    case JOURNAL_METADATA_FLOOR:
    case JOURNAL_TAIL_CLOSED: return STATUS_OK;
    case JOURNAL_PREPARE:
    case JOURNAL_SUFFIX_INSTALLED: break;
    }
    unreachable();
}

static enum status recover_checkpoint_file(struct store *store, struct replica *replica)
{
    int is_metadata = replica->is_metadata;
    uint32_t bytes = replica_checkpoint_bytes(replica);
    uint8_t *target = is_metadata ? metadata_snapshot_buffer(store) : store->checkpoint_buffer;
    uint64_t room = is_metadata ? METADATA_SNAPSHOT_MAX : CHECKPOINT_BYTES_MAX;
    if (bytes > room) return STATUS_CHECKPOINT_DAMAGED;
    struct io_request request = {.operation = IO_OPEN, .file = STORE_SLOT_CHECKPOINT};
    checkpoint_file_path(replica_checkpoint_digest(replica), request.path);
    enum status status = requests_perform(store, &request);
    if (status != STATUS_OK)
        return status == STATUS_FILE_NOT_FOUND ? STATUS_CHECKPOINT_DAMAGED : status;
    struct io_request read = {
        .operation = IO_READ, .file = STORE_SLOT_CHECKPOINT, .size = bytes, .buffer = target};
    status = requests_perform(store, &read);
    struct io_request close = {.operation = IO_CLOSE, .file = STORE_SLOT_CHECKPOINT};
    (void)requests_perform(store, &close);
    if (status != STATUS_OK) return status;
    if (read.result_bytes != read.size) return STATUS_CHECKPOINT_DAMAGED;
    if (!is_metadata) return recover_checkpoint_bytes(store, replica, target, bytes);
    uint8_t digest[16];
    vsr_digest(target, bytes, digest);
    metadata_found(store, replica_checkpoint_op(replica), bytes);
    return memcmp(digest, replica_checkpoint_digest(replica), 16) == 0 ? STATUS_OK
                                                                       : STATUS_CHECKPOINT_DAMAGED;
}

enum status recovery_states(struct store_recovery *recovery)
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
    uint32_t cursor = 0;
    struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        if (!replica_checkpoint_is_file(replica)) continue;
        status = recover_checkpoint_file(store, replica);
        if (status == STATUS_OK) continue;
        if (replica->is_metadata || status != STATUS_CHECKPOINT_DAMAGED) {
            checkpoint_file_path(replica_checkpoint_digest(replica), recovery->detail);
            return status;
        }
        recover_damage(replica);
    }
    return STATUS_OK;
}

static enum status recover_segment_sealed(struct store *store, const struct replica *replica,
                                          const struct segment *segment)
{
    uint8_t bytes[SEGMENT_FOOTER_BYTES];
    struct io_request read = {.operation = IO_READ,
                              .file = STORE_SLOT_CHECKPOINT,
                              .offset = segment->data_bytes,
                              .size = SEGMENT_FOOTER_BYTES,
                              .buffer = bytes};
    enum status status = requests_perform(store, &read);
    if (status != STATUS_OK) return status;
    struct segment_footer footer;
    if (read.result_bytes != read.size) return STATUS_FOOTER_DAMAGED;
    status =
        segment_footer_decode(bytes, sizeof bytes, replica->state.config.seeds.footer, &footer);
    return status == STATUS_OK ? segment_footer_check(&footer, segment) : status;
}

/* Cut to the checkpointed length: what is above is written again from the journal (J3). Then read,
 * for index and digest. */
static enum status recover_segment_active(struct store *store, struct replica *replica,
                                          struct segment *segment)
{
    struct io_request size = {.operation = IO_SIZE, .file = STORE_SLOT_CHECKPOINT};
    enum status status = requests_perform(store, &size);
    if (status != STATUS_OK) return status;
    if (size.result_bytes < segment->data_bytes) return STATUS_SEGMENT_DAMAGED;
    struct io_request cut = {
        .operation = IO_TRUNCATE, .file = STORE_SLOT_CHECKPOINT, .size = segment->data_bytes};
    status = requests_perform(store, &cut);
    if (status != STATUS_OK) return status;
    segment_walk_begin(&replica->state.segments, segment);
    uint64_t piece = store->config.extent_bytes; /* a batch fits: its round fitted an extent */
    uint64_t position = 0;
    while (position < segment->data_bytes) {
        struct io_request read = {.operation = IO_READ,
                                  .file = STORE_SLOT_CHECKPOINT,
                                  .offset = position,
                                  .size = piece,
                                  .buffer = store->extent_buffer};
        if (read.size > segment->data_bytes - position) read.size = segment->data_bytes - position;
        status = requests_perform(store, &read);
        if (status != STATUS_OK) return status;
        size_t consumed = 0;
        status = segment_walk(&replica->state.segments, segment, read.buffer, read.result_bytes,
                              &consumed);
        if (status != STATUS_OK) return status;
        if (consumed == 0) return STATUS_SEGMENT_DAMAGED;
        position += consumed;
    }
    segment_writer_found(replica, segment->base_offset, segment->data_bytes);
    return STATUS_OK;
}

static enum status recover_group_segments(struct store *store, struct replica *replica)
{
    for (uint32_t position = 0;; position++) {
        struct segment *segment = partition_segment(&replica->state, position);
        if (!segment) return STATUS_OK;
        segment_writer_found_folder(replica);
        struct io_request open = {.operation = IO_OPEN, .file = STORE_SLOT_CHECKPOINT};
        path_of_segment(replica, segment->base_offset, open.path);
        enum status status = requests_perform(store, &open);
        if (status == STATUS_FILE_NOT_FOUND && segment->sealed) {
            /* A trim behind the checkpoint may have taken it: the log will tell. */
            replica->recovery.absent_end = segment->end_offset;
            continue;
        }
        if (status == STATUS_FILE_NOT_FOUND) return STATUS_SEGMENT_DAMAGED;
        if (status != STATUS_OK) return status;
        status = segment->sealed ? recover_segment_sealed(store, replica, segment)
                                 : recover_segment_active(store, replica, segment);
        struct io_request close = {.operation = IO_CLOSE, .file = STORE_SLOT_CHECKPOINT};
        enum status closed = requests_perform(store, &close);
        if (status == STATUS_OK) status = closed;
        if (status != STATUS_OK) return status;
    }
}

enum status recovery_segments(struct store_recovery *recovery)
{
    struct store *store = recovery->store;
    uint32_t cursor = 0;
    struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        if (replica->is_metadata) continue;
        const struct segment *active = segment_active(&replica->state.segments);
        replica_checkpoint_set_active(replica, active ? active->base_offset + 1 : 0);
        enum status status = recover_group_segments(store, replica);
        if (status == STATUS_OK) continue;
        path_of_replica(replica, recovery->detail);
        if (status == STATUS_IO_FAILED || status == STATUS_STORAGE_FULL) return status;
        recover_damage(replica);
    }
    return STATUS_OK;
}

/* A step of every partition that waits for a segment write. */
static enum status recover_write(struct store *store)
{
    for (uint64_t count = segment_writer_waiting(store->segment_writer); count > 0; count--) {
        int moved = segment_writer_step_one(store);
        turn_completions(store);
        if (!moved) break;
    }
    return store->failed;
}

/* Into the ring, as if it had just become durable. */
static enum status recover_execute(struct store *store, struct replica *replica,
                                   const uint8_t *bytes, const struct journal_entry *entry,
                                   const struct entry_prepare *prepare, uint64_t extent_cycle)
{
    struct prepare_ring *ring = replica->is_metadata ? &store->metadata_ring : &store->data_ring;
    enum status status = STATUS_OK;
    while (!prepare_ring_fits(ring, entry->size)) {
        if (requests_disk_is_full(store)) return STATUS_STORAGE_FULL;
        if (ring != &store->data_ring || segment_writer_waiting(store->segment_writer) == 0)
            return STATUS_NO_MEMORY;
        status = recover_write(store);
        if (status != STATUS_OK) return status;
    }
    uint64_t position;
    struct ring_slot *slot = prepare_ring_reserve(ring, entry->kind, entry->size, &position);
    memcpy(ring_slot_entry(slot), bytes, entry->size);
    slot->replica = registry_index(store, replica);
    slot->state = RING_SLOT_ROUNDED;
    slot->op = entry->op;
    slot->operation = prepare->operation;
    if (slot->operation == PARTITION_BATCH) slot->batch_bytes = prepare->payload_bytes;
    ring->durable = ring->rounded = ring->head;
    live_entries_add(store, replica, entry->size);
    live_entries_found_oldest(replica, extent_cycle);
    store->committed->count = 0;
    committed_add(store->committed, position);
    execute_committed(store, ring, store->committed);
    prepare_ring_settle(ring);
    return store->failed;
}

/* Metadata's are the host's to know. */
static int op_known(const struct replica *replica, const struct entry_prepare *prepare,
                    const uint8_t *body)
{
    if (replica->is_metadata) return prepare->operation == VSR_OPERATION_METADATA;
    return partition_op_known(prepare->operation, body, prepare->payload_bytes);
}

static enum status recover_visit_ops(void *context, uint8_t *bytes,
                                     const struct journal_entry *entry, uint64_t extent_cycle,
                                     uint64_t lsn)
{
    struct store_recovery *recovery = context;
    struct store *store = recovery->store;
    maybe(lsn > 0);
    if (entry->kind != JOURNAL_PREPARE) return STATUS_OK;
    struct replica *replica = registry_find(store, entry->topic, entry->partition);
    if (!replica || replica->created_revision != entry->created_revision) return STATUS_OK;
    if (retire_leaves(replica)) return STATUS_OK;
    if (replica->corrupt) return STATUS_OK;
    struct vsr_event event = {.kind = VSR_PREPARE_FOUND};
    if (entry->size < JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES)
        return STATUS_JOURNAL_DAMAGED;
    enum status status = vsr_prepare_decode(bytes + JOURNAL_ENTRY_HEADER_BYTES, &event.prepare);
    if (status == STATUS_JOURNAL_DAMAGED) return status;
    int known = status == STATUS_OK && entry->version == JOURNAL_VERSION;
    uint64_t bodies = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES;
    if (known
        && (event.prepare.op != entry->op || event.prepare.payload_bytes != entry->size - bodies))
        return STATUS_JOURNAL_DAMAGED;
    if (replica->unknown_op != 0) return STATUS_OK;
    int next = entry->op == replica->vsr.op + 1;
    if (next && !(known && op_known(replica, &event.prepare, bytes + bodies))) {
        recover_unknown(store, replica, entry->op);
        return STATUS_OK;
    }
    struct vsr_update update;
    vsr_step(&replica->vsr, &event, &update);
    if (update.committed.count == 0) {
        if (entry->op > replica->vsr.op) recovery->behind++;
        return STATUS_OK;
    }
    recovery->progress++;
    return recover_execute(store, replica, bytes, entry, &event.prepare, extent_cycle);
}

/* Segments that a checkpoint names, and no trim behind it took, must be there. */
static void recover_absent(struct store *store)
{
    uint32_t cursor = 0;
    struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        if (replica->corrupt || replica->unknown_op != 0) continue;
        if (replica->recovery.absent_end > replica->state.log_start) recover_damage(replica);
    }
}

/* One walk takes the ops that lie in order. Those appended again lie behind later ones: walk until
 * nothing moves. */
enum status recovery_ops(struct store_recovery *recovery)
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
    while (segment_writer_waiting(store->segment_writer) > 0 && !requests_disk_is_full(store)) {
        enum status status = recover_write(store);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}
