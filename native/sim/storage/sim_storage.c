/* storage/sim_storage.c: see storage/sim_storage.h. */
#include "storage/sim_files.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"

size_t sim_storage_memory_bytes(void)
{
    size_t pages = (size_t)SIM_PAGES_MAX * (SIM_PAGE_BYTES + sizeof(uint16_t));
    size_t files = (size_t)SIM_FILES_MAX * sizeof(struct sim_file)
                   + (size_t)SIM_NAMES_MAX * sizeof(struct sim_name);
    return pages + files + 8 * SIM_PAGE_BYTES;
}

static enum status sim_perform(void *context, struct io_request *request);

static void sim_submit(void *context, struct io_request *request)
{
    struct sim_storage *storage = context;
    request->next = NULL;
    if (storage->queue_tail)
        storage->queue_tail->next = request;
    else
        storage->queue_head = request;
    storage->queue_tail = request;
}

void sim_storage_init(struct sim_storage *storage, struct arena *arena, uint64_t seed)
{
    memset(storage, 0, sizeof *storage);
    storage->page_memory =
        arena_take_aligned(arena, (size_t)SIM_PAGES_MAX * SIM_PAGE_BYTES, SIM_PAGE_BYTES);
    storage->page_users = arena_take(arena, SIM_PAGES_MAX * sizeof(uint16_t));
    storage->files = arena_take(arena, SIM_FILES_MAX * sizeof(struct sim_file));
    storage->names = arena_take(arena, SIM_NAMES_MAX * sizeof(struct sim_name));
    assert(storage->page_memory && storage->page_users && storage->files && storage->names);
    random_init(&storage->random, seed);
    storage->io = (struct io){.context = storage, .perform = sim_perform, .submit = sim_submit};
}

void sim_storage_copy(struct sim_storage *target, const struct sim_storage *source)
{
    uint8_t *page_memory = target->page_memory;
    uint16_t *page_users = target->page_users;
    struct sim_file *files = target->files;
    struct sim_name *names = target->names;
    *target = *source;
    target->page_memory = page_memory;
    target->page_users = page_users;
    target->files = files;
    target->names = names;
    target->io.context = target;
    memcpy(page_users, source->page_users, SIM_PAGES_MAX * sizeof(uint16_t));
    for (uint32_t page = 1; page < SIM_PAGES_MAX; page++) {
        if (page_users[page] > 0)
            memcpy(sim_page(target, page), sim_page(source, page), SIM_PAGE_BYTES);
    }
    for (uint32_t index = 0; index < SIM_FILES_MAX; index++) {
        if (source->files[index].used)
            files[index] = source->files[index];
        else
            files[index].used = 0;
    }
    memcpy(names, source->names, source->names_count * sizeof *names);
}

const char *sim_fault_name(uint32_t fault)
{
    static const char *const names[] = {
#define SIM_FAULT_NAME(name, text) #text,
        SIM_FAULT_TABLE(SIM_FAULT_NAME)
#undef SIM_FAULT_NAME
    };
    assert(fault < SIM_FAULTS_COUNT);
    return names[fault];
}

struct io *sim_storage_io(struct sim_storage *storage)
{
    return &storage->io;
}

static enum status sim_open(struct sim_storage *storage, const struct io_request *request)
{
    if (!sim_folder_exists(storage, request->path)) return STATUS_FILE_NOT_FOUND;
    struct sim_name *name = sim_name(storage, request->path, (request->flags & IO_CREATE) != 0);
    if (!name || (name->file == 0 && !(request->flags & IO_CREATE))) return STATUS_FILE_NOT_FOUND;
    if (name->file == 0) {
        uint32_t index;
        (void)sim_file_make(storage, &index);
        name->file = index + 1;
    }
    assert(request->file < SIM_SLOTS_MAX);
    assert(storage->slots[request->file] == 0);
    storage->slots[request->file] = name->file;
    return STATUS_OK;
}

static int sim_list_before(const struct sim_storage *storage, const char *folder, const char *after,
                           uint32_t *found)
{
    int any = 0;
    for (uint32_t index = 0; index < storage->names_count; index++) {
        const struct sim_name *name = &storage->names[index];
        if (name->file == 0 || !sim_name_in(name, folder)) continue;
        if (after && strcmp(name->path, after) <= 0) continue;
        if (!any || strcmp(name->path, storage->names[*found].path) < 0) *found = index;
        any = 1;
    }
    return any;
}

static void sim_list(struct sim_storage *storage, struct io_request *request)
{
    const char *after = NULL;
    uint32_t found = 0;
    request->result_bytes = 0;
    while (sim_list_before(storage, request->path, after, &found)) {
        after = storage->names[found].path;
        const char *base = strrchr(after, '/');
        base = base ? base + 1 : after;
        size_t size = strlen(base) + 1;
        assert(request->result_bytes + size <= request->size);
        memcpy(request->buffer + request->result_bytes, base, size);
        request->result_bytes += size;
    }
}

static enum status sim_file_request(struct sim_storage *storage, struct io_request *request)
{
    assert(request->file < SIM_SLOTS_MAX);
    if (storage->slots[request->file] == 0) return STATUS_FILE_NOT_FOUND;
    struct sim_file *file = &storage->files[storage->slots[request->file] - 1];
    uint64_t first = request->offset / SIM_PAGE_BYTES;
    uint64_t end = (request->offset + request->size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
    switch (request->operation) {
    case IO_READ:
        request->result_bytes = request->offset >= file->size ? 0 : file->size - request->offset;
        if (request->result_bytes > request->size) request->result_bytes = request->size;
        sim_read(storage, file, request->offset, request->buffer, request->result_bytes);
        return STATUS_OK;
    case IO_WRITE: {
        uint64_t offset = request->offset;
        if (request->vectors_count == 0)
            sim_write(storage, file, offset, request->buffer, request->size);
        for (uint32_t index = 0; index < request->vectors_count; index++) {
            sim_write(storage, file, offset, request->vectors[index].data,
                      request->vectors[index].size);
            offset += request->vectors[index].size;
        }
        return STATUS_OK;
    }
    case IO_WRITE_SYNC:
        assert(request->offset % SIM_PAGE_BYTES == 0 && request->size % SIM_PAGE_BYTES == 0);
        assert((uintptr_t)request->buffer % SIM_PAGE_BYTES == 0);
        sim_write(storage, file, request->offset, request->buffer, request->size);
        sim_sync(storage, file, first, end);
        return STATUS_OK;
    case IO_SYNC: sim_sync(storage, file, 0, SIM_FILE_PAGES_MAX); return STATUS_OK;
    case IO_TRUNCATE: sim_truncate(storage, file, request->size); return STATUS_OK;
    case IO_ZERO:
        for (uint64_t index = first; index < end; index++) {
            sim_page_release(storage, file->pages[index]);
            file->pages[index] = 0;
        }
        if (request->offset + request->size > file->size)
            file->size = request->offset + request->size;
        sim_sync(storage, file, first, end);
        return STATUS_OK;
    case IO_SIZE: request->result_bytes = file->size; return STATUS_OK;
    case IO_CLOSE:
        storage->slots[request->file] = 0;
        storage->poisoned[request->file] = 0;
        return STATUS_OK;
    default: unreachable();
    }
}

enum status sim_carry_out(struct sim_storage *storage, struct io_request *request)
{
    enum status status;
    storage->requests++;
    if (sim_io_fault(storage, request, &status)) return status;
    switch (request->operation) {
    case IO_OPEN: return sim_open(storage, request);
    case IO_RENAME: {
        struct sim_name *from = sim_name(storage, request->path, 0);
        if (!from || from->file == 0) return STATUS_FILE_NOT_FOUND;
        sim_name(storage, request->path_to, 1)->file = from->file;
        from->file = 0;
        return STATUS_OK;
    }
    case IO_UNLINK: {
        struct sim_name *name = sim_name(storage, request->path, 0);
        if (name) name->file = 0;
        return STATUS_OK;
    }
    case IO_MKDIR: sim_folder_make(storage, request->path); return STATUS_OK;
    case IO_SYNC_DIR:
        for (uint32_t index = 0; index < storage->names_count; index++) {
            struct sim_name *name = &storage->names[index];
            if (sim_name_in(name, request->path)) name->file_durable = name->file;
        }
        sim_files_collect(storage);
        return STATUS_OK;
    case IO_LIST: sim_list(storage, request); return STATUS_OK;
    default: return sim_file_request(storage, request);
    }
}

static enum status sim_perform(void *context, struct io_request *request)
{
    struct sim_storage *storage = context;
    assert(storage->queue_head == NULL);
    if (storage->crash_at != 0 && storage->requests >= storage->crash_at) storage->dead = 1;
    if (storage->dead) return STATUS_IO_FAILED;
    request->status = sim_carry_out(storage, request);
    return request->status;
}

struct io_request *sim_storage_step(struct sim_storage *storage)
{
    struct io_request *request = storage->queue_head;
    if (!request) return NULL;
    storage->queue_head = request->next;
    if (!storage->queue_head) storage->queue_tail = NULL;
    request->next = NULL;
    request->status = sim_carry_out(storage, request);
    return request;
}

struct sim_file *sim_file_at(struct sim_storage *storage, const char *path)
{
    struct sim_name *name = sim_name(storage, path, 0);
    return name && name->file != 0 ? &storage->files[name->file - 1] : NULL;
}

long sim_storage_read(struct sim_storage *storage, const char *path, uint64_t offset,
                      uint8_t *target, uint64_t size)
{
    const struct sim_file *file = sim_file_at(storage, path);
    if (!file) return -1;
    if (offset < file->size) {
        sim_read(storage, file, offset, target,
                 size < file->size - offset ? size : file->size - offset);
    }
    return (long)file->size;
}

int sim_storage_durable(struct sim_storage *storage, const char *path, uint64_t offset,
                        uint64_t size)
{
    const struct sim_file *file = sim_file_at(storage, path);
    assert(file != NULL);
    for (uint64_t page = offset / SIM_PAGE_BYTES; page * SIM_PAGE_BYTES < offset + size; page++) {
        if (file->pages[page] != file->pages_durable[page]) return 0;
    }
    return 1;
}

void sim_storage_poke(struct sim_storage *storage, const char *path, uint64_t offset,
                      const uint8_t *bytes, uint64_t size)
{
    struct sim_file *file = sim_file_at(storage, path);
    assert(file != NULL);
    sim_write(storage, file, offset, bytes, size);
    sim_sync(storage, file, offset / SIM_PAGE_BYTES,
             (offset + size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES);
}

const char *sim_storage_name(const struct sim_storage *storage, uint32_t index)
{
    for (uint32_t name = 0; name < storage->names_count; name++) {
        if (storage->names[name].file != 0 && index-- == 0) return storage->names[name].path;
    }
    return NULL;
}

void sim_storage_remove(struct sim_storage *storage, const char *path)
{
    struct sim_name *name = sim_name(storage, path, 0);
    assert(name != NULL);
    name->file = name->file_durable = 0;
    sim_files_collect(storage);
}

void sim_storage_cut(struct sim_storage *storage, const char *path, uint64_t size)
{
    struct sim_file *file = sim_file_at(storage, path);
    assert(file != NULL);
    assert(size <= file->size);
    sim_truncate(storage, file, size);
    sim_sync(storage, file, 0, SIM_FILE_PAGES_MAX);
}

void sim_storage_swap(struct sim_storage *storage, const char *path, const char *other)
{
    struct sim_name *first = sim_name(storage, path, 0);
    struct sim_name *second = sim_name(storage, other, 0);
    assert(first && second);
    uint32_t file = first->file;
    first->file = first->file_durable = second->file;
    second->file = second->file_durable = file;
}

uint64_t sim_storage_digest(struct sim_storage *storage, const char *prefix)
{
    uint64_t digest = 0;
    for (uint32_t index = 0; index < storage->names_count; index++) {
        const struct sim_name *name = &storage->names[index];
        if (name->file == 0) continue;
        if (strncmp(name->path, prefix, strlen(prefix)) != 0) continue;
        const struct sim_file *file = &storage->files[name->file - 1];
        uint64_t own = XXH3_64bits_withSeed(name->path, strlen(name->path), file->size);
        for (uint64_t at = 0; at < file->size; at += SIM_PAGE_BYTES) {
            uint64_t part = file->size - at < SIM_PAGE_BYTES ? file->size - at : SIM_PAGE_BYTES;
            own = XXH3_64bits_withSeed(sim_page(storage, file->pages[at / SIM_PAGE_BYTES]), part,
                                       own);
        }
        digest += own;
    }
    return digest;
}
