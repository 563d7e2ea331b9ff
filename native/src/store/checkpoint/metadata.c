#include "store/checkpoint/metadata.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/admit.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_file.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/files/requests.h"
#include "store/outbox.h"
#include "store/propose.h"
#include "store/state.h"

enum {
    HEADERS_BYTES = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES,
    SNAPSHOT_AFTER_BYTES = 1048576,
};

struct snapshot {
    uint8_t *buffer;
    uint64_t size;
    uint64_t op;
    uint64_t slot; /* control ring position of its entry */
    uint8_t digest[16];
    uint8_t busy;
    uint8_t borrowed;     /* recovery's copy is still being read */
    uint8_t wanted;       /* asked for, not yet given */
    uint8_t checksum[16]; /* of `op` */
    int64_t time_us;
    uint64_t handed_op; /* the last op handed out, its checksum and time */
    uint8_t handed_checksum[16];
    int64_t handed_time_us;
    uint64_t ops_wanted; /* counters when it was asked for */
    uint64_t bytes_wanted;
    uint64_t ops_since;
    uint64_t bytes_since;
};

struct metadata {
    struct replica *replica;
    uint64_t handed; /* position in its ring: next to hand out, next to be applied */
    uint64_t applied;
    struct snapshot snapshot;
};

static size_t snapshot_bytes(int first)
{
    return first ? METADATA_SNAPSHOT_MAX : ARENA_PAGE_BYTES;
}

size_t metadata_memory_bytes(int first)
{
    return arena_size(sizeof(struct metadata)) + arena_size(snapshot_bytes(first));
}

struct metadata *metadata_make(struct arena *arena, int first)
{
    struct metadata *metadata = arena_take(arena, sizeof *metadata);
    if (!metadata) return NULL;
    metadata->snapshot.buffer = arena_take(arena, snapshot_bytes(first));
    return metadata->snapshot.buffer ? metadata : NULL;
}

void metadata_begin(struct store *store, struct replica *replica)
{
    assert(replica->is_metadata && !store->metadata->replica);
    store->metadata->replica = replica;
}

struct replica *metadata_replica(const struct store *store)
{
    return store->metadata->replica;
}

enum status store_metadata_submit(struct store *store, const uint8_t *command, size_t size,
                                  uint64_t token)
{
    struct replica *replica = store->metadata->replica;
    if (!replica) return STATUS_NOT_FOUND;
    if (replica->vsr.status == VSR_DAMAGED) return STATUS_DAMAGED;
    if (replica->unknown_op != 0) return STATUS_OP_UNKNOWN;
    uint64_t entry_size = HEADERS_BYTES + size;
    if (entry_size > journal_entry_bytes_max(&store->journal.config))
        return STATUS_MESSAGE_TOO_LARGE;
    uint64_t used = store->metadata->snapshot.bytes_since
                    + (store->metadata_ring.head - store->metadata_ring.settled);
    if (used + entry_size > store->metadata_ring.size / 2) return STATUS_BUSY;
    enum status status = admit_entry(store, &store->metadata_ring, entry_size + 512);
    if (status != STATUS_OK) return status;
    propose_op(store, replica, VSR_OPERATION_METADATA, command, size, token, 1);
    return STATUS_OK;
}

/* The next executed op at or behind `position`; the ring's durable end if there is none. */
static uint64_t ring_next(const struct store *store, uint64_t position)
{
    const struct prepare_ring *ring = &store->metadata_ring;
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
    struct snapshot *snapshot = &store->metadata->snapshot;
    uint64_t position = ring_next(store, store->metadata->handed);
    store->metadata->handed = position;
    if (position == store->metadata_ring.durable) return 0;
    struct ring_slot *slot = prepare_ring_at(&store->metadata_ring, position);
    const uint8_t *entry = ring_slot_entry(slot);
    struct entry_prepare prepare;
    vsr_prepare_read(entry + JOURNAL_ENTRY_HEADER_BYTES, &prepare);
    *op = prepare.op;
    *append_time_us = prepare.append_time_us;
    *command = entry + HEADERS_BYTES;
    *size = prepare.payload_bytes;
    snapshot->handed_op = prepare.op;
    snapshot->handed_time_us = prepare.append_time_us;
    memcpy(snapshot->handed_checksum, prepare.checksum, 16);
    snapshot->ops_since++;
    snapshot->bytes_since += prepare.payload_bytes + HEADERS_BYTES;
    store->metadata->handed = position + slot->size;
    return 1;
}

enum status store_metadata_applied(struct store *store, uint64_t op, const uint8_t *result,
                                   size_t size)
{
    struct replica *replica = store->metadata->replica;
    uint64_t position = ring_next(store, store->metadata->applied);
    if (position >= store->metadata->handed) return STATUS_INVALID;
    struct ring_slot *slot = prepare_ring_at(&store->metadata_ring, position);
    if (slot->op != op) return STATUS_INVALID;
    if (slot->outcome && !outbox_result_fits(store->outbox, size)) return STATUS_BUSY;

    struct entry_prepare prepare;
    vsr_prepare_read(ring_slot_body(slot), &prepare);
    struct vsr_event event = {.kind = VSR_EXECUTED, .op = op, .time_us = prepare.append_time_us};
    memcpy(event.checksum, prepare.checksum, 16);
    struct vsr_update update;
    vsr_step(&replica->vsr, &event, &update);
    store->metadata->applied = position + slot->size;
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
    prepare_ring_settle(&store->metadata_ring);
    return STATUS_OK;
}

int store_metadata_snapshot_due(struct store *store, uint64_t *op)
{
    struct snapshot *snapshot = &store->metadata->snapshot;
    if (!store->metadata->replica || snapshot->busy || snapshot->wanted || snapshot->borrowed)
        return 0;
    if (snapshot->ops_since < store->config.snapshot_ops
        && snapshot->bytes_since < SNAPSHOT_AFTER_BYTES)
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
    struct snapshot *snapshot = &store->metadata->snapshot;
    struct replica *replica = store->metadata->replica;
    if (!replica || !snapshot->wanted || snapshot->busy || op != snapshot->op)
        return STATUS_INVALID;
    /* Whatever comes of it: one that cannot be taken now is wanted again. */
    snapshot->wanted = 0;
    /* No bytes is "not now", never an empty state: storing it would wipe the metadata. */
    if (size == 0) return STATUS_INVALID;
    if (size > METADATA_SNAPSHOT_MAX) return STATUS_MESSAGE_TOO_LARGE;
    const struct journal_entry entry =
        propose_entry(replica, JOURNAL_CHECKPOINT, snapshot->op, ENTRY_CHECKPOINT_BYTES);
    if (!prepare_ring_fits(&store->control_ring, entry.size)) return STATUS_BUSY;
    memcpy(snapshot->buffer, bytes, size);
    snapshot->size = size;
    vsr_digest(snapshot->buffer, size, snapshot->digest);
    snapshot->busy = 1;

    /* Its name is unknown to the journal until the file is synced: only then is the entry made. */
    checkpoint_file_write(store, STORE_SLOT_SNAPSHOT, snapshot->digest, snapshot->buffer, size);
    return STATUS_OK;
}

static struct entry_checkpoint snapshot_entry(const struct replica *replica,
                                              const struct snapshot *snapshot)
{
    struct entry_checkpoint entry = checkpoint_entry(replica, 1, snapshot->size, snapshot->digest);
    memcpy(entry.checksum, snapshot->checksum, 16);
    entry.append_time_us = snapshot->time_us;
    return entry;
}

void metadata_file_durable(struct store *store)
{
    struct snapshot *snapshot = &store->metadata->snapshot;
    struct replica *replica = store->metadata->replica;
    assert(snapshot->busy);
    const struct journal_entry entry =
        propose_entry(replica, JOURNAL_CHECKPOINT, snapshot->op, ENTRY_CHECKPOINT_BYTES);
    if (!prepare_ring_fits(&store->control_ring, entry.size)) {
        /* The ring drains by itself: write the file again then. */
        checkpoint_file_again(store, STORE_SLOT_SNAPSHOT);
        return;
    }
    struct ring_slot *slot =
        propose_begin(store, &store->control_ring, replica, &entry, &snapshot->slot);
    const struct entry_checkpoint checkpoint = snapshot_entry(replica, snapshot);
    entry_checkpoint_put(ring_slot_body(slot), &checkpoint);
    propose_ready(slot);
}

/* The entry that names the new file is durable: ops up to it are dead. */
void metadata_snapshot_durable(struct store *store, const struct ring_slot *slot)
{
    struct snapshot *snapshot = &store->metadata->snapshot;
    struct replica *replica = store->metadata->replica;
    const struct entry_checkpoint entry = snapshot_entry(replica, snapshot);
    replica_checkpoint_replace(store, replica, slot->op, &entry);
    snapshot->ops_since -= snapshot->ops_wanted;
    snapshot->bytes_since -= snapshot->bytes_wanted;
    live_entries_drop(store, replica, snapshot->bytes_wanted);
    snapshot->busy = 0;
}

int metadata_names_file(const struct store *store, const uint8_t digest[16])
{
    const struct snapshot *snapshot = &store->metadata->snapshot;
    return snapshot->busy && memcmp(snapshot->digest, digest, 16) == 0;
}

uint8_t *metadata_snapshot_buffer(struct store *store)
{
    return store->metadata->snapshot.buffer;
}

void metadata_found(struct store *store, uint64_t op, uint64_t size)
{
    struct snapshot *snapshot = &store->metadata->snapshot;
    snapshot->size = size;
    snapshot->op = op;
    snapshot->borrowed = 1;
}

void store_metadata_recovery(struct store *store, uint64_t *snapshot_op, const uint8_t **bytes,
                             size_t *size, uint64_t *last_op)
{
    struct replica *replica = store->metadata->replica;
    assert(replica != NULL);
    int found = replica_checkpoint_is_file(replica);
    *snapshot_op = found ? replica_checkpoint_op(replica) : 0;
    *bytes = store->metadata->snapshot.buffer;
    *size = found ? store->metadata->snapshot.size : 0;
    *last_op = replica->vsr.op;
}

void store_metadata_recovered(struct store *store)
{
    store->metadata->snapshot.borrowed = 0;
}

void metadata_invariants(const struct store *store)
{
    const struct metadata *metadata = store->metadata;
    const struct snapshot *snapshot = &metadata->snapshot;
    const struct prepare_ring *ring = &store->metadata_ring;
    if (!metadata->replica) {
        assert(ring->head == 0 && metadata->handed == 0);
        return;
    }
    assert(metadata->replica->is_metadata);
    assert(metadata->applied <= metadata->handed || metadata->applied <= ring->settled);
    assert(metadata->handed <= ring->durable);
    assert(snapshot->handed_op <= metadata->replica->vsr.commit_max);
    ergo(snapshot->busy, !snapshot->wanted);
}
