/* faults/sim_io_faults.c: requests that fail, or lie. See SIM_FAULT_TABLE.
 *
 * A full disk refuses writes and new names until there is room again. Everything else is an ambush:
 * laid for the first fitting request behind a moment, sprung once. After a failed sync the pages
 * that did not reach the disk are dropped: readable, clean as far as the system knows, and gone
 * with the power. */
#include "storage/sim_files.h"

#include <string.h>

#include "foundation/assert.h"

static int sim_is_write(enum io_operation operation)
{
    return operation == IO_WRITE || operation == IO_WRITE_SYNC;
}

static int sim_is_sync(enum io_operation operation)
{
    return operation == IO_SYNC || operation == IO_WRITE_SYNC;
}

/* Files have no names of their own: the first that leads there. */
static void sim_note_path(struct sim_storage *storage, uint32_t file)
{
    for (uint32_t index = 0; index < storage->names_count; index++) {
        if (storage->names[index].file == file) {
            memcpy(storage->ambush.path, storage->names[index].path, IO_PATH_SIZE);
            return;
        }
    }
}

static int sim_fits(enum sim_fault kind, enum io_operation operation)
{
    switch (kind) {
    case SIM_WRITE_FAILED: return operation == IO_WRITE;
    case SIM_SYNC_FAILED: return sim_is_sync(operation);
    case SIM_READ_FAILED:
    case SIM_SHORT_READ:
    case SIM_MISDIRECTED_READ: return operation == IO_READ;
    case SIM_MISDIRECTED_WRITE: return sim_is_write(operation);
    default: return 0;
    }
}

/* Some of the bytes made it, of the rest the system knows no more. */
static void sim_drop(struct sim_storage *storage, struct sim_file *file)
{
    for (uint64_t index = 0; index < SIM_FILE_PAGES_MAX; index++) {
        if (file->pages[index] == file->pages_durable[index]) continue;
        if (random_chance(&storage->random, 1, 2)) {
            sim_page_persist(storage, file, index);
            continue;
        }
        file->dropped[index / 64] |= UINT64_C(1) << index % 64;
        storage->faults[SIM_DROPPED_PAGE]++;
    }
}

/* Elsewhere in the same file, a whole number of pages away. 0 = the file is too small. */
static uint64_t sim_elsewhere(struct sim_storage *storage, const struct sim_file *file,
                              const struct io_request *request)
{
    uint64_t within = request->offset % SIM_PAGE_BYTES;
    uint64_t first = 2; /* never over the journal's own header */
    uint64_t pages = file->size / SIM_PAGE_BYTES;
    uint64_t own = (request->size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
    if (pages < first + own + 1) return 0;
    uint64_t page = random_between(&storage->random, first, pages - own);
    return page * SIM_PAGE_BYTES + within;
}

static int sim_misdirect(struct sim_storage *storage, struct sim_file *file,
                         struct io_request *request, enum status *status)
{
    uint64_t offset = sim_elsewhere(storage, file, request);
    if (offset == 0 || offset == request->offset) return 0;
    if (request->operation == IO_READ && offset + request->size > file->size) return 0;
    struct io_request other = *request;
    other.offset = offset;
    storage->ambush.at = 0;
    *status = sim_carry_out(storage, &other);
    request->result_bytes = other.result_bytes;
    return 1;
}

static int sim_spring(struct sim_storage *storage, struct io_request *request, enum status *status)
{
    struct sim_ambush *ambush = &storage->ambush;
    uint32_t slot = storage->slots[request->file];
    if (slot == 0) return 0;
    struct sim_file *file = &storage->files[slot - 1];
    *status = STATUS_IO_FAILED;
    switch (ambush->kind) {
    case SIM_MISDIRECTED_READ:
    case SIM_MISDIRECTED_WRITE:
        if (!sim_misdirect(storage, file, request, status)) return 0;
        break;
    case SIM_SHORT_READ:
        if (request->size < 2 || request->offset + request->size > file->size) return 0;
        request->result_bytes = random_below(&storage->random, request->size);
        sim_read(storage, file, request->offset, request->buffer, request->result_bytes);
        *status = STATUS_OK;
        break;
    case SIM_SYNC_FAILED:
        if (request->operation == IO_WRITE_SYNC)
            sim_write(storage, file, request->offset, request->buffer, request->size);
        sim_drop(storage, file);
        storage->poisoned[request->file] = 1;
        break;
    default: break;
    }
    storage->faults[ambush->kind]++;
    ambush->at = 0;
    ambush->fired = 1;
    sim_note_path(storage, slot);
    return 1;
}

static int sim_is_full(struct sim_storage *storage, const struct io_request *request)
{
    if (!storage->disk_full) return 0;
    if (request->operation == IO_WRITE) {
        storage->faults[SIM_DISK_FULL]++;
        return 1;
    }
    int makes = request->operation == IO_MKDIR;
    if (request->operation == IO_OPEN && (request->flags & IO_CREATE))
        makes = sim_file_at(storage, request->path) == NULL;
    if (makes && storage->disk_full > 1) storage->faults[SIM_DISK_FULL_NAME]++;
    return makes && storage->disk_full > 1;
}

int sim_io_fault(struct sim_storage *storage, struct io_request *request, enum status *status)
{
    int touches = sim_is_write(request->operation) || sim_is_sync(request->operation);
    if (touches && storage->poisoned[request->file]) {
        *status = STATUS_IO_POISONED;
        return 1;
    }
    if (sim_is_full(storage, request)) {
        *status = STATUS_STORAGE_FULL;
        return 1;
    }
    const struct sim_ambush *ambush = &storage->ambush;
    if (ambush->at == 0 || storage->requests < ambush->at) return 0;
    return sim_fits(ambush->kind, request->operation) && sim_spring(storage, request, status);
}
