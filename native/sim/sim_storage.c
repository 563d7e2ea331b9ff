/* sim_storage.c: see sim_storage.h. */
#include "sim_storage.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "arena.h"
#include "assert.h"
#include "bytes.h"

enum { SECTOR_BYTES = 512, SECTORS_COUNT = 8 };

size_t sim_storage_memory_bytes(void)
{
    size_t pages = (size_t)SIM_PAGES_MAX * (SIM_PAGE_BYTES + sizeof(uint16_t));
    size_t files = (size_t)SIM_FILES_MAX * sizeof(struct sim_file)
                   + (size_t)SIM_NAMES_MAX * sizeof(struct sim_name);
    return pages + files + 8 * SIM_PAGE_BYTES;
}

static uint8_t *sim_page(const struct sim_storage *storage, uint32_t page)
{
    return storage->page_memory + (size_t)page * SIM_PAGE_BYTES;
}

static void sim_page_release(struct sim_storage *storage, uint32_t page)
{
    if (page == 0) return;
    assert(storage->page_users[page] > 0);
    if (--storage->page_users[page] == 0) storage->pages_used--;
}

static uint32_t sim_page_take(struct sim_storage *storage, uint32_t copied)
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

struct io *sim_storage_io(struct sim_storage *storage)
{
    return &storage->io;
}

static struct sim_name *sim_name(struct sim_storage *storage, const char *path, int make)
{
    for (uint32_t index = 0; index < storage->names_count; index++) {
        if (strcmp(storage->names[index].path, path) == 0) return &storage->names[index];
    }
    if (!make) return NULL;
    assert(storage->names_count < SIM_NAMES_MAX);
    struct sim_name *name = &storage->names[storage->names_count++];
    memset(name, 0, sizeof *name);
    memcpy(name->path, path, strlen(path) + 1);
    return name;
}

static struct sim_file *sim_file_make(struct sim_storage *storage, uint32_t *index)
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
static void sim_files_collect(struct sim_storage *storage)
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

static void sim_write(struct sim_storage *storage, struct sim_file *file, uint64_t offset,
                      const uint8_t *bytes, uint64_t size)
{
    assert(offset + size <= (uint64_t)SIM_FILE_PAGES_MAX * SIM_PAGE_BYTES);
    if (offset + size > file->size) file->size = offset + size;
    while (size > 0) {
        uint64_t index = offset / SIM_PAGE_BYTES;
        uint64_t within = offset % SIM_PAGE_BYTES;
        uint64_t part = SIM_PAGE_BYTES - within < size ? SIM_PAGE_BYTES - within : size;
        uint32_t page = file->pages[index];
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

static void sim_page_persist(struct sim_storage *storage, struct sim_file *file, uint64_t index)
{
    if (file->pages[index] == file->pages_durable[index]) return;
    sim_page_release(storage, file->pages_durable[index]);
    file->pages_durable[index] = file->pages[index];
    if (file->pages[index] != 0) storage->page_users[file->pages[index]]++;
}

static void sim_sync(struct sim_storage *storage, struct sim_file *file, uint64_t first,
                     uint64_t end)
{
    for (uint64_t index = first; index < end; index++) sim_page_persist(storage, file, index);
    file->size_durable = file->size;
}

static void sim_truncate(struct sim_storage *storage, struct sim_file *file, uint64_t size)
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

static enum status sim_open(struct sim_storage *storage, const struct io_request *request)
{
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

static int sim_name_in(const struct sim_name *name, const char *folder)
{
    const char *slash = strrchr(name->path, '/');
    size_t length = slash ? (size_t)(slash - name->path) : 0;
    if (strcmp(folder, ".") == 0) return length == 0;
    return length == strlen(folder) && strncmp(name->path, folder, length) == 0;
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

static void sim_read(const struct sim_storage *storage, const struct sim_file *file,
                     uint64_t offset, uint8_t *target, uint64_t size)
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

static enum status sim_file_request(struct sim_storage *storage, struct io_request *request)
{
    assert(request->file < SIM_SLOTS_MAX);
    if (storage->slots[request->file] == 0) return STATUS_IO_FAILED;
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
        if (storage->disk_full) {
            storage->faults[SIM_DISK_FULL]++;
            return STATUS_STORAGE_FULL;
        }
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
    case IO_CLOSE: storage->slots[request->file] = 0; return STATUS_OK;
    default: unreachable();
    }
}

static enum status sim_carry_out(struct sim_storage *storage, struct io_request *request)
{
    storage->requests++;
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
    case IO_MKDIR: return STATUS_OK;
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

/* One dirty page: its sectors, each by itself. */
static void sim_crash_page(struct sim_storage *storage, struct sim_file *file, uint64_t index,
                           uint32_t policy)
{
    uint32_t current = file->pages[index];
    uint32_t durable = file->pages_durable[index];
    if (current == durable) return;
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
        for (uint32_t sector = 0; sector < SECTORS_COUNT; sector++) {
            if (random_chance(&storage->random, 1, 2)) continue;
            memcpy(sim_page(storage, mixed) + sector * SECTOR_BYTES,
                   sim_page(storage, durable) + sector * SECTOR_BYTES, SECTOR_BYTES);
        }
        file->pages[index] = mixed;
        sim_page_release(storage, current);
    }
    sim_page_persist(storage, file, index);
}

void sim_storage_crash(struct sim_storage *storage)
{
    storage->faults[SIM_CRASH]++;
    struct io_request *head = storage->queue_head;
    storage->queue_head = storage->queue_tail = NULL;
    if (head && (head->operation == IO_WRITE_SYNC || head->operation == IO_WRITE)
        && storage->slots[head->file] != 0) {
        /* In flight: it may have reached the disk in parts. */
        struct io_request half = *head;
        half.operation = IO_WRITE;
        (void)sim_carry_out(storage, &half);
        storage->faults[SIM_CUT_REQUEST]++;
    }
    memset(storage->slots, 0, sizeof storage->slots);
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
        sim_sync(storage, file, 0, SIM_FILE_PAGES_MAX);
    }
    sim_files_collect(storage);
}

static struct sim_file *sim_file_at(struct sim_storage *storage, const char *path)
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

void sim_storage_poke(struct sim_storage *storage, const char *path, uint64_t offset,
                      const uint8_t *bytes, uint64_t size)
{
    struct sim_file *file = sim_file_at(storage, path);
    assert(file != NULL);
    sim_write(storage, file, offset, bytes, size);
    sim_sync(storage, file, offset / SIM_PAGE_BYTES,
             (offset + size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES);
    storage->faults[SIM_BIT_ROT]++;
}

uint64_t sim_storage_digest(struct sim_storage *storage, int journal_too)
{
    uint64_t digest = 0;
    for (uint32_t index = 0; index < storage->names_count; index++) {
        const struct sim_name *name = &storage->names[index];
        if (name->file == 0) continue;
        if (!journal_too && strncmp(name->path, "topics/", 7) != 0) continue;
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
