#include "store/recovery/recovery.h"

#include <stdio.h>
#include <string.h>

#include "catalog/owner.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/accounting/retention.h"
#include "store/accounting/shard_records.h"
#include "store/accounting/storage_meter.h"
#include "store/accounting/usage_windows.h"
#include "store/checkpoint/checkpoint_file.h"
#include "store/checkpoint/duplicate_entries.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/metadata.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/clock.h"
#include "store/files/paths.h"
#include "store/files/requests.h"
#include "store/files/retire.h"
#include "store/files/trim.h"
#include "store/outbox.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/round.h"
#include "store/state.h"
#include "store/turn.h"

size_t recovery_memory_bytes(void)
{
    return arena_size(sizeof(struct journal_report));
}

struct journal_report *recovery_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct journal_report));
}

static enum status open_perform(struct store *store, enum io_operation operation, uint32_t slot,
                                const char *path, uint32_t flags)
{
    struct io_request request = {.operation = operation, .file = slot, .flags = flags};
    snprintf(request.path, sizeof request.path, "%s", path);
    return requests_perform(store, &request);
}

static enum status format_journal(struct store *store)
{
    const struct journal_config *config = &store->journal.config;
    enum status status =
        open_perform(store, IO_OPEN, STORE_SLOT_JOURNAL, "journal.new", IO_CREATE | IO_DIRECT);
    if (status != STATUS_OK) return status;
    struct io_request zero = {
        .operation = IO_ZERO, .file = STORE_SLOT_JOURNAL, .size = journal_file_bytes(config)};
    status = requests_perform(store, &zero);
    if (status != STATUS_OK) return status;
    journal_file_header_put(store->extent_buffer, config);
    struct io_request write = {.operation = IO_WRITE_SYNC,
                               .file = STORE_SLOT_JOURNAL,
                               .size = JOURNAL_FILE_HEADER_BYTES,
                               .buffer = store->extent_buffer};
    status = requests_perform(store, &write);
    if (status != STATUS_OK) return status;
    status = open_perform(store, IO_CLOSE, STORE_SLOT_JOURNAL, "", 0);
    if (status != STATUS_OK) return status;
    struct io_request rename = {.operation = IO_RENAME};
    snprintf(rename.path, sizeof rename.path, "journal.new");
    snprintf(rename.path_to, sizeof rename.path_to, "journal");
    status = requests_perform(store, &rename);
    if (status != STATUS_OK) return status;
    return open_perform(store, IO_SYNC_DIR, 0, ".", 0);
}

/* One of the two header blocks is damaged: made whole from the other, before that one goes too. */
static enum status heal_journal(struct store *store)
{
    const struct journal_config *config = &store->journal.config;
    struct journal_block fields;
    int whole = 1;
    for (uint32_t copy = 0; copy < 2; copy++) {
        const uint8_t *block = store->extent_buffer + copy * JOURNAL_BLOCK_BYTES;
        whole &= journal_block_get(block, config->id, copy * JOURNAL_BLOCK_BYTES, &fields);
    }
    if (whole) return STATUS_OK;
    journal_file_header_put(store->extent_buffer, config);
    struct io_request write = {.operation = IO_WRITE_SYNC,
                               .file = STORE_SLOT_JOURNAL,
                               .size = JOURNAL_FILE_HEADER_BYTES,
                               .buffer = store->extent_buffer};
    return requests_perform(store, &write);
}

static enum status open_journal(struct store_recovery *recovery)
{
    struct store *store = recovery->store;
    uint32_t flags = IO_DIRECT;
    enum status status = open_perform(store, IO_OPEN, STORE_SLOT_JOURNAL, "journal", flags);
    if (status == STATUS_FILE_NOT_FOUND && store->config.formatted) {
        snprintf(recovery->detail, sizeof recovery->detail, "shard %u: journal",
                 (unsigned)store->config.shard);
        return STATUS_JOURNAL_MISSING;
    }
    if (status == STATUS_FILE_NOT_FOUND) {
        status = format_journal(store);
        if (status != STATUS_OK) return status;
        status = open_perform(store, IO_OPEN, STORE_SLOT_JOURNAL, "journal", flags);
    }
    if (status != STATUS_OK) return status;
    struct io_request read = {.operation = IO_READ,
                              .file = STORE_SLOT_JOURNAL,
                              .size = JOURNAL_FILE_HEADER_BYTES,
                              .buffer = store->extent_buffer};
    status = requests_perform(store, &read);
    if (status != STATUS_OK) return status;
    struct journal_config found;
    memcpy(store->checkpoint_buffer, store->extent_buffer, JOURNAL_FILE_HEADER_BYTES);
    if (read.result_bytes != read.size
        || !journal_file_header_get(store->checkpoint_buffer, store->journal.config.id, &found)) {
        snprintf(recovery->detail, sizeof recovery->detail,
                 "journal: both header blocks are damaged or of another node");
        return STATUS_JOURNAL_DAMAGED;
    }
    const struct journal_config *config = &store->journal.config;
    if (found.extents_count != config->extents_count
        || found.extent_blocks != config->extent_blocks) {
        snprintf(recovery->detail, sizeof recovery->detail,
                 "the journal was made with %u extents of %u blocks, the configuration asks for %u "
                 "of %u",
                 found.extents_count, found.extent_blocks, config->extents_count,
                 config->extent_blocks);
        return STATUS_CONFIG_INVALID;
    }
    return heal_journal(store);
}

/* Checkpoint files that no entry names: left behind between their making and their entry, or after
 * their replacement. */
static enum status sweep_checkpoints(struct store *store)
{
    struct io_request list = {
        .operation = IO_LIST, .buffer = store->extent_buffer, .size = store->config.extent_bytes};
    snprintf(list.path, sizeof list.path, "checkpoints");
    enum status status = requests_perform(store, &list);
    if (status != STATUS_OK) return status;
    uint64_t at = 0;
    while (at < list.result_bytes) {
        const char *name = (const char *)store->extent_buffer + at;
        int wanted = 0;
        uint32_t cursor = 0;
        const struct replica *replica;
        while (!wanted && (replica = registry_next(store, &cursor)) != NULL) {
            if (!replica_checkpoint_is_file(replica)) continue;
            char path[IO_PATH_SIZE];
            checkpoint_file_path(replica_checkpoint_digest(replica), path);
            wanted = strcmp(path + strlen("checkpoints/"), name) == 0;
        }
        struct io_request unlink = {.operation = IO_UNLINK};
        int size = snprintf(unlink.path, sizeof unlink.path, "checkpoints/%.64s", name);
        assert(size > 0);
        at += strlen(name) + 1;
        if (!wanted) (void)requests_perform(store, &unlink);
    }
    return STATUS_OK;
}

/* Whose ops may be lost. What the journal cannot name concerns every replica. */
static void apply_damage(struct store *store)
{
    const struct journal_report *report = store->report;
    int everybody = report->overflow;
    for (uint32_t index = 0; index < report->damages_count; index++) {
        const struct journal_damage *damage = &report->damages[index];
        if (!damage->named) {
            everybody = 1;
            continue;
        }
        uint32_t abstained = damage->item.kinds >> JOURNAL_ABSTAIN & 1;
        if (damage->item.topic == SHARD_RECORDS_TOPIC) {
            everybody |= (int)abstained;
            continue;
        }
        struct replica *replica = registry_find(store, damage->item.topic, damage->item.partition);
        if (!replica)
            replica =
                registry_make_replica(store, damage->item.topic, damage->item.created_revision,
                                      damage->item.partition, &registry_configuration_unknown);
        if (!replica || retire_leaves(replica)) continue;
        /* What stopped it may be known from nowhere else. */
        const struct vsr_event event = {.kind = VSR_DAMAGE_FOUND,
                                        .op = damage->item.op_last + abstained};
        struct vsr_update update;
        vsr_step(&replica->vsr, &event, &update);
    }
    if (!everybody) return;
    shard_records_damaged(store);
    uint32_t cursor = 0;
    struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        if (retire_leaves(replica)) continue;
        const struct vsr_event event = {.kind = VSR_DAMAGE_FOUND, .op = replica->vsr.op + 1};
        struct vsr_update update;
        vsr_step(&replica->vsr, &event, &update);
    }
}

static void close_range(struct store *store, const struct entry_tail_closed *closed)
{
    const struct journal_entry entry = {.size =
                                            JOURNAL_ENTRY_HEADER_BYTES + ENTRY_TAIL_CLOSED_BYTES,
                                        .kind = JOURNAL_TAIL_CLOSED,
                                        .topic = SHARD_RECORDS_TOPIC};
    uint64_t position;
    struct ring_slot *slot = propose_begin(store, &store->control_ring, NULL, &entry, &position);
    entry_tail_closed_put(ring_slot_body(slot), closed);
    propose_ready(slot);
}

/* One entry for each range of damage, never for what lies between two (J11). */
static void close_tail(struct store *store)
{
    const struct journal_report *report = store->report;
    struct entry_tail_closed last = {0};
    for (uint32_t index = 0; index < report->damages_count; index++) {
        const struct journal_damage *damage = &report->damages[index];
        const struct entry_tail_closed closed = {.lsn_from = damage->lsn_from,
                                                 .lsn_to = damage->lsn_to};
        /* Every replica of one round has an item of its own. */
        if (closed.lsn_from == last.lsn_from && closed.lsn_to == last.lsn_to) continue;
        close_range(store, &closed);
        last = closed;
    }
}

/* Every replica has been shown all there is: who goes on, who is stopped; what is live where; what
 * is open. */
static void recover_replicas(struct store *store)
{
    uint32_t cursor = 0;
    struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        const struct vsr_event event = {.kind = VSR_RECOVERED};
        struct vsr_update update;
        vsr_step(&replica->vsr, &event, &update);
        if (replica->vsr.op > 0 && !replica->is_metadata)
            replica->configured = replica->state.config.limits;
        uint64_t stopped = replica->recovery.stop_extent_cycle;
        int stop_dies = stopped != 0 && stopped < store->journal.extent_cycle_oldest;
        if (update.damaged || stop_dies) propose_abstention(store, replica);
        if (replica->vsr.status == VSR_DAMAGED) store->statistics.replicas_damaged++;
        store_clock_stamped(store->clock, replica->vsr.append_time_us);
        live_entries_recovered(store, replica);
        if (replica->vsr.status != VSR_NORMAL || replica->is_metadata) continue;
        if (replica->unknown_op != 0) continue;
        usage_windows_recovered(store, replica);
        store_retention_recovered(store, replica);
        storage_meter_recovered(store, replica);
        /* What the last trims left behind; a log that was never trimmed has nothing. */
        if (replica->state.log_start > 0) trim_begin(store, replica);
    }
    outbox_forget_advances(store->outbox);
}

/* J3's end: what recovery remembers, then a round without entries that witnesses all of it. */
static enum status recover_witness(struct store *store)
{
    if (store->report->lsn_last == 0 && !round_pending(store)) return STATUS_OK;
    int witnessed = store->report->lsn_last > 0 && store->report->last_entries == 0;
    while (round_pending(store)) {
        uint64_t before = store->journal.lsn_next;
        round_start(store);
        turn_completions(store);
        if (store->failed != STATUS_OK) return store->failed;
        if (store->journal.lsn_next == before) return STATUS_JOURNAL_FULL;
        witnessed = 0;
    }
    if (witnessed) return STATUS_OK;
    round_want_witness(store);
    round_start(store);
    turn_completions(store);
    return store->failed;
}

static enum status open_steps(struct store_recovery *recovery)
{
    struct store *store = recovery->store;
    static const char *const folders[] = {PATHS_TOPICS, "checkpoints"};
    for (uint32_t index = 0; index < 2; index++) {
        enum status made = open_perform(store, IO_MKDIR, 0, folders[index], 0);
        if (made != STATUS_OK) return made;
    }
    enum status status = open_journal(recovery);
    if (status == STATUS_OK) status = open_perform(store, IO_SYNC_DIR, 0, ".", 0);
    if (status == STATUS_OK) status = recovery_states(recovery);
    if (status == STATUS_OK)
        status = journal_clear_tail(&store->journal, store->io, STORE_SLOT_JOURNAL,
                                    store->extent_buffer, store->report);
    if (status == STATUS_OK) {
        status = journal_rewrite_last(&store->journal, store->io, STORE_SLOT_JOURNAL,
                                      store->extent_buffer, store->report);
    }
    if (status == STATUS_OK) status = recovery_segments(recovery);
    if (status == STATUS_OK) status = recovery_ops(recovery);
    if (status != STATUS_OK) return status;
    apply_damage(store);
    recover_replicas(store);
    shard_records_recovered(store);
    close_tail(store);
    status = recover_witness(store);
    if (status == STATUS_OK) status = sweep_checkpoints(store);
    return status;
}

enum status store_open(struct store *store, struct io *io, struct store_now now, char *detail,
                       size_t detail_size)
{
    assert(!store->io);
    store->io = io;
    store->now = now;
    store_clock_begin(store->clock, &now);
    store->recovering = 1;
    if (store->config.shard == 0) {
        /* A node has its metadata replica from the first start on, whatever its journal shows. */
        struct replica *replica = registry_make_replica(store, OWNER_METADATA_TOPIC, 0, 0,
                                                        &registry_configuration_unknown);
        assert(replica != NULL);
        metadata_begin(store, replica);
    }
    struct store_recovery recovery = {.store = store};
    enum status status = open_steps(&recovery);
    if (status == STATUS_OK) status = store->failed;
    if (status != STATUS_OK && detail && detail_size > 0 && recovery.detail[0] != 0)
        snprintf(detail, detail_size, "%s", recovery.detail);
    store->recovering = 0;
    if (status == STATUS_OK)
        checked(duplicate_entries_invariants(store->duplicates, store->journal.lsn_next));
    round_recovered(store);
    store_clock_recovered(store->clock, &now);
    return status;
}
