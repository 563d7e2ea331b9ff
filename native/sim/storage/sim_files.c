/* storage/sim_files.c: the pages, names and files of the simulated disk. See
 * storage/sim_files.h. */
#include "storage/sim_files.h"

#include <string.h>

#include "foundation/assert.h"

uint8_t *sim_page(const struct sim_storage *storage, uint32_t page)
{
    return storage->page_memory + (size_t)page * SIM_PAGE_BYTES;
}

void sim_page_release(struct sim_storage *storage, uint32_t page)
{
    if (page == 0) return;
    assert(storage->page_users[page] > 0);
    if (--storage->page_users[page] == 0) storage->pages_used--;
}

uint32_t sim_page_take(struct sim_storage *storage, uint32_t copied)
{
    for (uint32_t tries = 1; tries < SIM_PAGES_MAX; tries++) {
        storage->page_hint = storage->page_hint % (SIM_PAGES_MAX - 1) + 1;
        uint32_t page = storage->page_hint;
        if (storage->page_users[page] > 0) continue;
        storage->page_users[page] = 1;
        storage->pages_used++;
        memcpy(sim_page(storage, page), sim_page(storage, copied), SIM_PAGE_BYTES);
        return page;
    }
    unreachable();
}

struct sim_name *sim_name(struct sim_storage *storage, const char *path, int make)
{
    for (uint32_t index = 0; index < storage->names_count; index++) {
        if (strcmp(storage->names[index].path, path) == 0) return &storage->names[index];
    }
    if (!make) return NULL;
    struct sim_name *name = NULL;
    for (uint32_t index = 0; index < storage->names_count && !name; index++) {
        const struct sim_name *each = &storage->names[index];
        if (each->file == 0 && each->file_durable == 0) name = &storage->names[index];
    }
    if (!name) {
        assert(storage->names_count < SIM_NAMES_MAX);
        name = &storage->names[storage->names_count++];
    }
    memset(name, 0, sizeof *name);
    memcpy(name->path, path, strlen(path) + 1);
    return name;
}

struct sim_file *sim_file_make(struct sim_storage *storage, uint32_t *index)
{
    for (*index = 0; *index < SIM_FILES_MAX; (*index)++) {
        struct sim_file *file = &storage->files[*index];
        if (file->used) continue;
        memset(file, 0, sizeof *file);
        file->used = 1;
        return file;
    }
    unreachable();
}

/* A file without a name, now or durably, is gone. */
void sim_files_collect(struct sim_storage *storage)
{
    for (uint32_t index = 0; index < SIM_FILES_MAX; index++) {
        struct sim_file *file = &storage->files[index];
        if (!file->used) continue;
        int named = 0;
        for (uint32_t name = 0; name < storage->names_count; name++) {
            named |= storage->names[name].file == index + 1
                     || storage->names[name].file_durable == index + 1;
        }
        for (uint32_t slot = 0; slot < SIM_SLOTS_MAX; slot++)
            named |= storage->slots[slot] == index + 1;
        if (named) continue;
        for (uint32_t page = 0; page < SIM_FILE_PAGES_MAX; page++) {
            sim_page_release(storage, file->pages[page]);
            sim_page_release(storage, file->pages_durable[page]);
        }
        file->used = 0;
    }
}

void sim_write(struct sim_storage *storage, struct sim_file *file, uint64_t offset,
               const uint8_t *bytes, uint64_t size)
{
    assert(offset + size <= (uint64_t)SIM_FILE_PAGES_MAX * SIM_PAGE_BYTES);
    if (offset + size > file->size) file->size = offset + size;
    while (size > 0) {
        uint64_t index = offset / SIM_PAGE_BYTES;
        uint64_t within = offset % SIM_PAGE_BYTES;
        uint64_t part = SIM_PAGE_BYTES - within < size ? SIM_PAGE_BYTES - within : size;
        uint32_t page = file->pages[index];
        file->dropped[index / 64] &= ~(UINT64_C(1) << index % 64);
        if (page == 0 || storage->page_users[page] > 1) {
            file->pages[index] = sim_page_take(storage, page);
            sim_page_release(storage, page);
        }
        memcpy(sim_page(storage, file->pages[index]) + within, bytes, part);
        offset += part;
        bytes += part;
        size -= part;
    }
}

void sim_page_persist(struct sim_storage *storage, struct sim_file *file, uint64_t index)
{
    if (file->pages[index] == file->pages_durable[index]) return;
    sim_page_release(storage, file->pages_durable[index]);
    file->pages_durable[index] = file->pages[index];
    if (file->pages[index] != 0) storage->page_users[file->pages[index]]++;
}

int sim_page_dropped(const struct sim_file *file, uint64_t index)
{
    return (file->dropped[index / 64] >> index % 64) & 1;
}

void sim_sync(struct sim_storage *storage, struct sim_file *file, uint64_t first, uint64_t end)
{
    for (uint64_t index = first; index < end; index++) {
        if (!sim_page_dropped(file, index)) sim_page_persist(storage, file, index);
    }
    file->size_durable = file->size;
}

void sim_truncate(struct sim_storage *storage, struct sim_file *file, uint64_t size)
{
    file->size = size;
    uint64_t keep = (size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
    for (uint64_t index = keep; index < SIM_FILE_PAGES_MAX; index++) {
        sim_page_release(storage, file->pages[index]);
        file->pages[index] = 0;
    }
    uint64_t within = size % SIM_PAGE_BYTES;
    if (within == 0 || file->pages[keep - 1] == 0) return;
    uint32_t page = file->pages[keep - 1];
    if (storage->page_users[page] > 1) {
        file->pages[keep - 1] = sim_page_take(storage, page);
        sim_page_release(storage, page);
    }
    memset(sim_page(storage, file->pages[keep - 1]) + within, 0, SIM_PAGE_BYTES - within);
}

int sim_name_in(const struct sim_name *name, const char *folder)
{
    const char *slash = strrchr(name->path, '/');
    size_t length = slash ? (size_t)(slash - name->path) : 0;
    if (strcmp(folder, ".") == 0) return length == 0;
    return length == strlen(folder) && strncmp(name->path, folder, length) == 0;
}

void sim_read(const struct sim_storage *storage, const struct sim_file *file, uint64_t offset,
              uint8_t *target, uint64_t size)
{
    while (size > 0) {
        uint64_t within = offset % SIM_PAGE_BYTES;
        uint64_t part = SIM_PAGE_BYTES - within < size ? SIM_PAGE_BYTES - within : size;
        memcpy(target, sim_page(storage, file->pages[offset / SIM_PAGE_BYTES]) + within, part);
        offset += part;
        target += part;
        size -= part;
    }
}

int sim_folder_exists(struct sim_storage *storage, const char *path)
{
    char folder[IO_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    if (!slash) return 1;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = 0;
    return sim_file_at(storage, folder) != NULL;
}

void sim_folder_make(struct sim_storage *storage, const char *path)
{
    struct sim_name *name = sim_name(storage, path, 1);
    if (name->file != 0) return;
    uint32_t index;
    sim_file_make(storage, &index)->folder = 1;
    name->file = index + 1;
}
