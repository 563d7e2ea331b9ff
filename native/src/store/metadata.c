/* store/metadata.c: the metadata replica: its ops are journaled like any other's and executed by
 * the host (A8).
 *
 *     submit -> prepare -> round -> committed -> handed out in order -> [host] -> applied ->
 *     commit_min + 1 -> outcome
 *
 * Its ring is its own: a host that is slow or stuck pins nobody else's memory, and past half of the
 * ring metadata stops accepting (V9). A snapshot is asked for behind the last op handed out, so
 * that the host, which takes frames in order, stands exactly there. */
#include "store/state.h"

enum { METADATA_HEADERS_BYTES = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES };

enum status store_metadata_submit(struct store *store, const uint8_t *command, size_t size,
                                  uint64_t token)
{
    struct replica *replica = store->metadata_replica;
    if (!replica) return STATUS_NOT_FOUND;
    if (replica->vsr.status == VSR_DAMAGED) return STATUS_DAMAGED;
    uint64_t entry_size = METADATA_HEADERS_BYTES + size;
    if (entry_size > journal_entry_bytes_max(&store->journal.config))
        return STATUS_MESSAGE_TOO_LARGE;
    uint64_t held = store->snapshot.bytes_since + (store->metadata.head - store->metadata.settled);
    if (held + entry_size > store->metadata.size / 2) return STATUS_BUSY;
    enum status status = store_admit(store, &store->metadata, entry_size + 512);
    if (status != STATUS_OK) return status;
    store_prepare_op(store, &store->metadata, replica, VSR_OPERATION_METADATA, command, size, token,
                     1);
    return STATUS_OK;
}

/* The next executed op at or behind `position`; the ring's durable end if there is none. */
static uint64_t store_metadata_at(const struct store *store, uint64_t position)
{
    const struct prepare_ring *ring = &store->metadata;
    if (position < ring->settled) position = ring->settled;
    while (position < ring->durable) {
        const struct ring_slot *slot = prepare_ring_at(ring, position);
        if (slot->state == RING_SLOT_EXECUTED) break;
        position += slot->size;
    }
    return position;
}

int store_metadata_next(struct store *store, uint64_t *op, int64_t *append_time_us,
                        const uint8_t **command, size_t *size)
{
    struct store_snapshot *snapshot = &store->snapshot;
    uint64_t position = store_metadata_at(store, store->metadata_handed);
    store->metadata_handed = position;
    if (position == store->metadata.durable) return 0;
    struct ring_slot *slot = prepare_ring_at(&store->metadata, position);
    const uint8_t *entry = ring_slot_entry(slot);
    struct entry_prepare prepare;
    vsr_prepare_read(entry + JOURNAL_ENTRY_HEADER_BYTES, &prepare);
    *op = prepare.op;
    *append_time_us = prepare.append_time_us;
    *command = entry + METADATA_HEADERS_BYTES;
    *size = prepare.payload_bytes;
    snapshot->handed_op = prepare.op;
    snapshot->handed_time_us = prepare.append_time_us;
    memcpy(snapshot->handed_checksum, prepare.checksum, 16);
    snapshot->ops_since++;
    snapshot->bytes_since += prepare.payload_bytes + METADATA_HEADERS_BYTES;
    store->metadata_handed = position + slot->size;
    return 1;
}

enum status store_metadata_applied(struct store *store, uint64_t op, const uint8_t *result,
                                   size_t size)
{
    struct replica *replica = store->metadata_replica;
    uint64_t position = store_metadata_at(store, store->metadata_applied);
    if (position >= store->metadata_handed) return STATUS_INVALID;
    struct ring_slot *slot = prepare_ring_at(&store->metadata, position);
    if (slot->op != op) return STATUS_INVALID;
    if (slot->outcome && !outbox_result_fits(store->outbox, size)) return STATUS_BUSY;

    struct entry_prepare prepare;
    vsr_prepare_read(ring_slot_body(slot), &prepare);
    struct vsr_event event = {.kind = VSR_EXECUTED, .op = op, .time_us = prepare.append_time_us};
    memcpy(event.checksum, prepare.checksum, 16);
    struct vsr_update update;
    vsr_step(&replica->vsr, &event, &update);
    store->metadata_applied = position + slot->size;
    slot->state = RING_SLOT_DONE;
    if (slot->outcome) {
        struct store_outcome outcome = {.token = slot->token,
                                        .status = STATUS_OK,
                                        .base_offset = op,
                                        .append_time_us = prepare.append_time_us,
                                        .body = outbox_result(store->outbox, result, size),
                                        .body_size = size};
        outbox_answer(store->outbox, replica, &outcome);
    }
    prepare_ring_settle(&store->metadata);
    return STATUS_OK;
}

int store_metadata_snapshot_due(struct store *store, uint64_t *op)
{
    struct store_snapshot *snapshot = &store->snapshot;
    if (!store->metadata_replica || snapshot->busy || snapshot->wanted || snapshot->borrowed)
        return 0;
    if (snapshot->ops_since < store->config.snapshot_ops
        && snapshot->bytes_since < STORE_SNAPSHOT_BYTES)
        return 0;
    *op = snapshot->op = snapshot->handed_op;
    snapshot->time_us = snapshot->handed_time_us;
    memcpy(snapshot->checksum, snapshot->handed_checksum, 16);
    snapshot->ops_wanted = snapshot->ops_since;
    snapshot->bytes_wanted = snapshot->bytes_since;
    snapshot->wanted = 1;
    return 1;
}

enum status store_metadata_snapshot(struct store *store, uint64_t op, const uint8_t *bytes,
                                    size_t size)
{
    struct store_snapshot *snapshot = &store->snapshot;
    struct replica *replica = store->metadata_replica;
    if (!replica || !snapshot->wanted || snapshot->busy || op != snapshot->op)
        return STATUS_INVALID;
    /* Whatever comes of it: one that cannot be taken now is wanted again. */
    snapshot->wanted = 0;
    /* No bytes is "not now", never an empty state: storing it would wipe the metadata. */
    if (size == 0) return STATUS_INVALID;
    if (size > STORE_SNAPSHOT_MAX) return STATUS_MESSAGE_TOO_LARGE;
    const struct journal_entry entry = {.size = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_CHECKPOINT_BYTES,
                                        .kind = JOURNAL_CHECKPOINT,
                                        .op = op,
                                        .log_view = replica->vsr.log_view,
                                        .tenure = replica->vsr.tenure,
                                        .epoch = replica->vsr.epoch};
    if (!prepare_ring_fits(&store->control, entry.size)) return STATUS_BUSY;
    memcpy(snapshot->buffer, bytes, size);
    snapshot->size = size;
    vsr_digest(snapshot->buffer, size, snapshot->digest);
    snapshot->busy = 1;

    /* Its name is unknown to the journal until the file is synced: only then is the entry made. */
    (void)store_blob_write(store, STORE_SLOT_SNAPSHOT, snapshot->digest, snapshot->buffer, size);
    return STATUS_OK;
}

void store_snapshot_blob_done(struct store *store)
{
    struct store_snapshot *snapshot = &store->snapshot;
    struct replica *replica = store->metadata_replica;
    assert(snapshot->busy);
    const struct journal_entry entry = {.size = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_CHECKPOINT_BYTES,
                                        .kind = JOURNAL_CHECKPOINT,
                                        .op = snapshot->op,
                                        .log_view = replica->vsr.log_view,
                                        .tenure = replica->vsr.tenure,
                                        .epoch = replica->vsr.epoch};
    if (!prepare_ring_fits(&store->control, entry.size)) {
        store->blob_retry[1] = 1; /* the ring drains by itself: write the file again then */
        return;
    }
    struct ring_slot *slot = store_entry_begin(store, &store->control, &entry, &snapshot->slot);
    struct entry_checkpoint checkpoint =
        store_checkpoint_entry(replica, 1, snapshot->size, snapshot->digest);
    memcpy(checkpoint.checksum, snapshot->checksum, 16);
    checkpoint.append_time_us = snapshot->time_us;
    entry_checkpoint_put(ring_slot_body(slot), &checkpoint);
    slot->replica = registry_index(store, replica);
    slot->token = UINT64_MAX;
    store_entry_ready(slot);
}

/* The entry that names the new file is durable: ops up to it are dead. */
void store_snapshot_durable(struct store *store, const struct ring_slot *slot)
{
    struct store_snapshot *snapshot = &store->snapshot;
    struct replica *replica = store->metadata_replica;
    if (replica->checkpoint_is_file
        && memcmp(replica->checkpoint_digest, snapshot->digest, 16) != 0) {
        store_garbage_add(store, replica->checkpoint_digest);
    }
    replica->checkpoint_op = slot->op;
    replica->checkpoint_is_file = 1;
    replica->checkpoint_bytes = (uint32_t)snapshot->size;
    memcpy(replica->checkpoint_digest, snapshot->digest, 16);
    snapshot->ops_since -= snapshot->ops_wanted;
    snapshot->bytes_since -= snapshot->bytes_wanted;
    uint64_t dead =
        snapshot->bytes_wanted < replica->live_bytes ? snapshot->bytes_wanted : replica->live_bytes;
    replica->live_bytes -= dead;
    store->live_bytes -= dead;
    snapshot->busy = 0;
    store->statistics.checkpoints++;
}

void store_metadata_recovery(struct store *store, uint64_t *snapshot_op, const uint8_t **bytes,
                             size_t *size, uint64_t *last_op)
{
    struct replica *replica = store->metadata_replica;
    assert(replica != NULL);
    *snapshot_op = replica->checkpoint_is_file ? replica->checkpoint_op : 0;
    *bytes = store->snapshot.buffer;
    *size = replica->checkpoint_is_file ? store->snapshot.size : 0;
    *last_op = replica->vsr.op;
}

void store_metadata_recovered(struct store *store)
{
    store->snapshot.borrowed = 0;
}
