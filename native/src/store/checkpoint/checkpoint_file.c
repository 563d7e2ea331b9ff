/* store/checkpoint/checkpoint_file.c: checkpoints too large for an entry are files named by
 * their checksum (J7).
 *
 *     open, cut, write, sync, close, sync the folder     and only then the entry that names it may
 *                                                        enter a round
 *
 * A file that a newer one replaces goes when the newer entry is witnessed; what a crash leaves
 * behind the next start sweeps. */
#include "store/state.h"

#include <stdio.h>

void store_blob_path(const uint8_t digest[16], char path[IO_PATH_SIZE])
{
    int at = snprintf(path, IO_PATH_SIZE, "checkpoints/");
    for (uint32_t index = 0; index < 16; index++) {
        at += snprintf(path + at, (size_t)(IO_PATH_SIZE - at), "%02x", digest[index]);
    }
    assert(at < IO_PATH_SIZE);
}

static uint32_t store_blob_index(uint32_t slot)
{
    assert(slot == STORE_SLOT_CHECKPOINT || slot == STORE_SLOT_SNAPSHOT);
    return slot - STORE_SLOT_CHECKPOINT;
}

/* 0 = too few requests are free: later. `data` stays until store_blob_done. */
int store_blob_write(struct store *store, uint32_t slot, const uint8_t digest[16], uint8_t *data,
                     uint64_t size)
{
    static const enum io_operation steps[] = {IO_OPEN, IO_TRUNCATE, IO_WRITE,
                                              IO_SYNC, IO_CLOSE,    IO_SYNC_DIR};
    enum { STEPS_COUNT = sizeof steps / sizeof *steps };
    uint32_t which = store_blob_index(slot);
    memmove(store->blob_digest[which], digest, 16);
    store->blob_size[which] = size;
    if (store->ios_in_flight + STEPS_COUNT > STORE_IOS_MAX) {
        store->blob_retry[which] = 1;
        return 0;
    }
    store->blob_failed[which] = 0;
    for (uint32_t step = 0; step < STEPS_COUNT; step++) {
        int last = step + 1 == STEPS_COUNT;
        struct store_io *io =
            store_io_take(store, last ? STORE_IO_BLOB_DONE : STORE_IO_BLOB, steps[step]);
        assert(io != NULL);
        io->request.file = slot;
        if (steps[step] == IO_OPEN) {
            io->request.flags = IO_CREATE;
            store_blob_path(digest, io->request.path);
        } else if (steps[step] == IO_WRITE) {
            io->request.buffer = data;
            io->request.size = size;
        } else if (steps[step] == IO_SYNC_DIR) {
            snprintf(io->request.path, IO_PATH_SIZE, "checkpoints");
        }
        store_io_send(store, io);
    }
    return 1;
}

void store_blob_done(struct store *store, uint32_t slot)
{
    if (store->blob_failed[store_blob_index(slot)]) {
        store->blob_retry[store_blob_index(slot)] = 1;
        return;
    }
    if (slot == STORE_SLOT_SNAPSHOT)
        store_snapshot_blob_done(store);
    else
        store_release_blob_done(store);
}

/* The entry in use was replaced by one that has just become durable. */
void store_garbage_add(struct store *store, const uint8_t digest[16])
{
    if (store->garbage_count == STORE_GARBAGE_MAX) return; /* the next start sweeps it */
    struct store_garbage *garbage = &store->garbage[store->garbage_count++];
    garbage->lsn = store->journal.lsn_previous;
    memcpy(garbage->digest, digest, 16);
}

/* Equal states have equal names: somebody else's checkpoint, or one under way, may be this file. */
static int store_blob_wanted(const struct store *store, const uint8_t digest[16])
{
    if (store->snapshot.busy && memcmp(store->snapshot.digest, digest, 16) == 0) return 1;
    for (uint32_t index = 0; index < store->release.count; index++) {
        if (memcmp(store->release.items[index].digest, digest, 16) == 0) return 1;
    }
    for (uint32_t index = 0; index < store->replicas_max; index++) {
        const struct replica *replica = &store->replicas[index];
        if (!replica->used || !replica->checkpoint_is_file) continue;
        if (memcmp(replica->checkpoint_digest, digest, 16) == 0) return 1;
    }
    return 0;
}

void store_garbage_witnessed(struct store *store)
{
    uint32_t kept = 0;
    for (uint32_t index = 0; index < store->garbage_count; index++) {
        struct store_garbage garbage = store->garbage[index];
        struct store_io *io = NULL;
        int due = store->journal.lsn_previous > garbage.lsn;
        if (due && store_blob_wanted(store, garbage.digest)) continue;
        if (due) io = store_io_take(store, STORE_IO_CONTROL, IO_UNLINK);
        if (!io) {
            store->garbage[kept++] = garbage;
            continue;
        }
        store_blob_path(garbage.digest, io->request.path);
        store_io_send(store, io);
    }
    store->garbage_count = kept;
}
