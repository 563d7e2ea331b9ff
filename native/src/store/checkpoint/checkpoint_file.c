#include "store/checkpoint/checkpoint_file.h"

#include <stdio.h>
#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/metadata.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/files/requests.h"
#include "store/state.h"

enum { GARBAGE_MAX = 64, SLOTS_COUNT = 2 };

struct checkpoint_write {
    uint8_t failed;
    uint8_t again;
    uint8_t digest[16];
    uint8_t *data;
    uint64_t size;
};

struct checkpoint_garbage {
    uint64_t lsn; /* unlink once a round above it is durable */
    uint8_t digest[16];
};

struct checkpoint_files {
    struct checkpoint_write writes[SLOTS_COUNT];
    struct checkpoint_garbage garbage[GARBAGE_MAX];
    uint32_t garbage_count;
};

size_t checkpoint_files_memory_bytes(void)
{
    return arena_size(sizeof(struct checkpoint_files));
}

struct checkpoint_files *checkpoint_files_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct checkpoint_files));
}

void checkpoint_file_path(const uint8_t digest[16], char path[IO_PATH_SIZE])
{
    int at = snprintf(path, IO_PATH_SIZE, "checkpoints/");
    for (uint32_t index = 0; index < 16; index++) {
        at += snprintf(path + at, (size_t)(IO_PATH_SIZE - at), "%02x", digest[index]);
    }
    assert(at < IO_PATH_SIZE);
}

static struct checkpoint_write *write_of(const struct store *store, uint32_t slot)
{
    assert(slot == STORE_SLOT_CHECKPOINT || slot == STORE_SLOT_SNAPSHOT);
    return &store->checkpoint_files->writes[slot - STORE_SLOT_CHECKPOINT];
}

static void file_send(struct store *store, uint32_t slot)
{
    static const enum io_operation steps[] = {IO_OPEN, IO_TRUNCATE, IO_WRITE,
                                              IO_SYNC, IO_CLOSE,    IO_SYNC_DIR};
    enum { STEPS_COUNT = sizeof steps / sizeof *steps };
    struct checkpoint_write *write = write_of(store, slot);
    if (!requests_fit(store->requests, STEPS_COUNT)) {
        write->again = 1;
        return;
    }
    write->failed = 0;
    for (uint32_t step = 0; step < STEPS_COUNT; step++) {
        int last = step + 1 == STEPS_COUNT;
        struct file_request *request = requests_take(
            store->requests, last ? REQUEST_FILE_DONE : REQUEST_FILE_STEP, steps[step]);
        assert(request != NULL);
        request->request.file = slot;
        if (steps[step] == IO_OPEN) {
            request->request.flags = IO_CREATE;
            checkpoint_file_path(write->digest, request->request.path);
        } else if (steps[step] == IO_WRITE) {
            request->request.buffer = write->data;
            request->request.size = write->size;
        } else if (steps[step] == IO_SYNC_DIR) {
            snprintf(request->request.path, IO_PATH_SIZE, "checkpoints");
        }
        requests_send(store, request);
    }
}

void checkpoint_file_write(struct store *store, uint32_t slot, const uint8_t digest[16],
                           uint8_t *data, uint64_t size)
{
    struct checkpoint_write *write = write_of(store, slot);
    memcpy(write->digest, digest, 16);
    write->data = data;
    write->size = size;
    file_send(store, slot);
}

void checkpoint_file_again(struct store *store, uint32_t slot)
{
    write_of(store, slot)->again = 1;
}

void checkpoint_files_tick(struct store *store)
{
    for (uint32_t slot = STORE_SLOT_CHECKPOINT; slot <= STORE_SLOT_SNAPSHOT; slot++) {
        struct checkpoint_write *write = write_of(store, slot);
        if (!write->again || requests_disk_is_full(store)) continue;
        write->again = 0;
        file_send(store, slot);
    }
}

void checkpoint_file_step_done(struct store *store, const struct file_request *done)
{
    uint32_t slot = done->request.file;
    struct checkpoint_write *write = write_of(store, slot);
    enum status status = done->request.status;
    if (status == STATUS_STORAGE_FULL)
        write->failed = 1; /* what follows finds no open file: all of it again later */
    else if (status != STATUS_OK && !write->failed)
        store_fail(store, status);
    if (done->request.kind != REQUEST_FILE_DONE || store->failed != STATUS_OK) return;
    if (write->failed)
        write->again = 1;
    else if (slot == STORE_SLOT_SNAPSHOT)
        metadata_file_durable(store);
    else
        checkpoint_file_durable(store);
}

void checkpoint_file_replaced(struct store *store, const uint8_t digest[16])
{
    struct checkpoint_files *files = store->checkpoint_files;
    if (files->garbage_count == GARBAGE_MAX) return; /* the next start sweeps it */
    struct checkpoint_garbage *garbage = &files->garbage[files->garbage_count++];
    garbage->lsn = store->journal.lsn_previous;
    memcpy(garbage->digest, digest, 16);
}

/* Equal states have equal names: somebody else's checkpoint, or one under way, may be this file. */
static int file_wanted(const struct store *store, const uint8_t digest[16])
{
    return metadata_names_file(store, digest) || checkpoint_names_file(store, digest)
           || replica_checkpoint_any_names_file(store, digest);
}

void checkpoint_files_witnessed(struct store *store)
{
    struct checkpoint_files *files = store->checkpoint_files;
    uint32_t kept = 0;
    for (uint32_t index = 0; index < files->garbage_count; index++) {
        struct checkpoint_garbage garbage = files->garbage[index];
        struct file_request *unlink = NULL;
        int due = store->journal.lsn_previous > garbage.lsn;
        if (due && file_wanted(store, garbage.digest)) continue;
        if (due) unlink = requests_take(store->requests, REQUEST_CONTROL, IO_UNLINK);
        if (!unlink) {
            files->garbage[kept++] = garbage;
            continue;
        }
        checkpoint_file_path(garbage.digest, unlink->request.path);
        requests_send(store, unlink);
    }
    files->garbage_count = kept;
}

void checkpoint_files_invariants(const struct checkpoint_files *files)
{
    assert(files->garbage_count <= GARBAGE_MAX);
    for (uint32_t index = 0; index < SLOTS_COUNT; index++)
        ergo(files->writes[index].again, files->writes[index].data != NULL);
}
