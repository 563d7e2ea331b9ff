/* faults/sim_crash.c: what a crash leaves of what was not synced. See storage/sim_storage.h. */
#include "storage/sim_files.h"

#include <string.h>

#include "foundation/assert.h"

/* One dirty page: its sectors, each by itself. */
static void sim_crash_page(struct sim_storage *storage, struct sim_file *file, uint64_t index,
                           uint32_t policy)
{
    uint32_t current = file->pages[index];
    uint32_t durable = file->pages_durable[index];
    if (current == durable) return;
    if (sim_page_dropped(file, index)) policy = 0;
    if (policy == 2)
        policy =
            random_chance(&storage->random, 1, 2) ? (uint32_t)random_below(&storage->random, 2) : 3;
    if (policy == 0) {
        storage->faults[SIM_LOST_WRITE]++;
        file->pages[index] = durable;
        if (durable != 0) storage->page_users[durable]++;
        sim_page_release(storage, current);
        return;
    }
    if (policy == 3) {
        storage->faults[SIM_TORN_SECTOR]++;
        uint32_t mixed = sim_page_take(storage, current);
        for (uint32_t sector = 0; sector < SIM_SECTORS_COUNT; sector++) {
            if (random_chance(&storage->random, 1, 2)) continue;
            memcpy(sim_page(storage, mixed) + sector * SIM_SECTOR_BYTES,
                   sim_page(storage, durable) + sector * SIM_SECTOR_BYTES, SIM_SECTOR_BYTES);
        }
        file->pages[index] = mixed;
        sim_page_release(storage, current);
    }
    sim_page_persist(storage, file, index);
}

/* In flight: it may have reached the disk in parts, or up to any of its sectors. */
static void sim_crash_request(struct sim_storage *storage, const struct io_request *request)
{
    struct io_request half = *request;
    struct sim_file *file = &storage->files[storage->slots[request->file] - 1];
    if (request->operation == IO_WRITE_SYNC && random_chance(&storage->random, 1, 3)) {
        uint64_t sectors = request->size / SIM_SECTOR_BYTES;
        half.size = random_below(&storage->random, sectors + 1) * SIM_SECTOR_BYTES;
        sim_write(storage, file, half.offset, half.buffer, half.size);
        sim_sync(storage, file, half.offset / SIM_PAGE_BYTES,
                 (half.offset + half.size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES);
        storage->faults[SIM_TORN_CUT]++;
        return;
    }
    half.operation = IO_WRITE;
    storage->disk_full = 0;
    (void)sim_carry_out(storage, &half);
    storage->faults[SIM_CUT_REQUEST]++;
}

void sim_storage_crash(struct sim_storage *storage)
{
    storage->faults[SIM_CRASH]++;
    storage->ambush.at = 0;
    struct io_request *head = storage->queue_head;
    storage->queue_head = storage->queue_tail = NULL;
    if (head && (head->operation == IO_WRITE_SYNC || head->operation == IO_WRITE)
        && storage->slots[head->file] != 0) {
        sim_crash_request(storage, head);
    }
    memset(storage->slots, 0, sizeof storage->slots);
    memset(storage->poisoned, 0, sizeof storage->poisoned);
    storage->dead = 0;
    storage->disk_full = 0;
    storage->crash_at = 0;
    if (storage->fate == SIM_FATE_KILL
        || (storage->fate == SIM_FATE_ANY && random_chance(&storage->random, 1, 3))) {
        /* Only the process died: what it wrote is still there, and still not durable. */
        storage->faults[SIM_KILL]++;
        return;
    }
    int lose = storage->fate == SIM_FATE_LOSE;
    uint32_t policy = lose ? 0 : (uint32_t)random_below(&storage->random, 4);
    for (uint32_t index = 0; index < storage->names_count; index++) {
        struct sim_name *name = &storage->names[index];
        if (name->file != name->file_durable && policy != 1
            && (lose || random_chance(&storage->random, 1, 2))) {
            name->file = name->file_durable;
            storage->faults[SIM_LOST_NAME]++;
        }
        name->file_durable = name->file;
    }
    for (uint32_t index = 0; index < storage->names_count; index++) {
        struct sim_name *name = &storage->names[index];
        if (name->file == 0 || sim_folder_exists(storage, name->path)) continue;
        name->file = name->file_durable = 0;
        storage->faults[SIM_LOST_NAME]++;
    }
    for (uint32_t index = 0; index < SIM_FILES_MAX; index++) {
        struct sim_file *file = &storage->files[index];
        if (!file->used) continue;
        if (file->size != file->size_durable && policy != 1
            && (lose || random_chance(&storage->random, 1, 2))) {
            sim_truncate(storage, file, file->size_durable);
            storage->faults[SIM_LOST_SIZE]++;
        }
        for (uint64_t page = 0; page < SIM_FILE_PAGES_MAX; page++)
            sim_crash_page(storage, file, page, policy);
        memset(file->dropped, 0, sizeof file->dropped);
        sim_sync(storage, file, 0, SIM_FILE_PAGES_MAX);
    }
    sim_files_collect(storage);
}
