#include "store/files/open_files.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/queue.h"
#include "store/files/paths.h"
#include "store/files/requests.h"
#include "store/files/segment_writer.h"
#include "store/registry.h"
#include "store/state.h"

struct open_file {
    struct queue_link link; /* least recently used first */
    uint64_t segment;
    uint32_t replica;
    uint32_t users; /* requests of ours in flight */
    uint32_t next;  /* in its bucket or the free list, number */
    uint8_t open;
    uint8_t broken;
};

struct open_files {
    struct open_file *all;
    uint32_t *buckets;
    struct queue used;
    uint32_t max;
    uint32_t opened; /* ever: from here on never used */
    uint32_t free;   /* closed ones, number */
};

size_t open_files_memory_bytes(void)
{
    return arena_size(sizeof(struct open_files))
           + arena_size(OPEN_FILES_MAX * sizeof(struct open_file))
           + arena_size(OPEN_FILES_MAX * sizeof(uint32_t));
}

struct open_files *open_files_make(struct arena *arena, uint32_t files_max)
{
    struct open_files *files = arena_take(arena, sizeof *files);
    if (!files) return NULL;
    assert(files_max > 0 && files_max <= OPEN_FILES_MAX);
    files->max = files_max;
    files->all = arena_take(arena, OPEN_FILES_MAX * sizeof *files->all);
    files->buckets = arena_take(arena, OPEN_FILES_MAX * sizeof *files->buckets);
    return files->all && files->buckets ? files : NULL;
}

static struct open_file *file_at(const struct open_files *files, uint32_t number)
{
    assert(number >= 1 && number <= OPEN_FILES_MAX);
    return &files->all[number - 1];
}

static uint32_t file_number(const struct open_files *files, const struct open_file *file)
{
    return (uint32_t)(file - files->all) + 1;
}

static uint32_t *file_bucket(struct open_files *files, uint32_t replica, uint64_t segment)
{
    uint64_t mixed = (segment * 31 + replica) * UINT64_C(0x9E3779B97F4A7C15);
    return &files->buckets[(mixed >> 32) & (OPEN_FILES_MAX - 1)];
}

static struct open_file *file_find(struct open_files *files, uint32_t replica, uint64_t segment)
{
    uint32_t number = *file_bucket(files, replica, segment);
    while (number != 0) {
        struct open_file *file = file_at(files, number);
        if (file->replica == replica && file->segment == segment) return file;
        number = file->next;
    }
    return NULL;
}

uint32_t open_files_slot(uint32_t file)
{
    assert(file >= 1 && file <= OPEN_FILES_MAX);
    return STORE_SLOT_FILES + file - 1;
}

void open_files_use(struct open_files *files, uint32_t file)
{
    file_at(files, file)->users++;
}

void open_files_unuse(struct open_files *files, uint32_t file)
{
    assert(file_at(files, file)->users > 0);
    file_at(files, file)->users--;
}

int open_files_broken(const struct open_files *files, uint32_t file)
{
    return file_at(files, file)->broken;
}

/* Out of its bucket and closed; its slot may be opened again at once, requests run in order. */
static int file_close(struct store *store, struct open_file *file)
{
    struct open_files *files = store->files;
    assert(file->open);
    assert(file->users == 0);
    struct file_request *close = requests_take(store->requests, REQUEST_CONTROL, IO_CLOSE);
    if (!close) return 0;
    uint32_t *number = file_bucket(files, file->replica, file->segment);
    uint32_t self = file_number(files, file);
    while (*number != self) number = &file_at(files, *number)->next;
    *number = file->next;
    file->open = 0;
    queue_remove(&files->used, &file->link);
    close->request.file = open_files_slot(self);
    requests_send(store, close);
    return 1;
}

int open_files_forget(struct store *store, const struct replica *replica, uint64_t below)
{
    struct open_files *files = store->files;
    uint32_t index = registry_index(store, replica);
    int left = 0;
    struct queue_link *next = NULL;
    for (struct queue_link *link = files->used.head; link; link = next) {
        next = link->next;
        struct open_file *file = queue_element(link, struct open_file, link);
        if (file->replica != index || file->segment >= below) continue;
        if (file->users > 0 || !file_close(store, file)) {
            left = 1;
            continue;
        }
        file->next = files->free;
        files->free = file_number(files, file);
    }
    return !left;
}

int open_files_any(const struct store *store, const struct replica *replica)
{
    uint32_t index = registry_index(store, replica);
    queue_each(&store->files->used, link)
    {
        if (queue_element(link, struct open_file, link)->replica == index) return 1;
    }
    return 0;
}

static struct open_file *file_free(struct store *store)
{
    struct open_files *files = store->files;
    if (files->free != 0) {
        struct open_file *file = file_at(files, files->free);
        assert(!file->open);
        files->free = file->next;
        return file;
    }
    if (files->opened < files->max) return &files->all[files->opened++];
    queue_each(&files->used, link)
    {
        struct open_file *file = queue_element(link, struct open_file, link);
        if (file->users == 0) return file_close(store, file) ? file : NULL;
    }
    return NULL;
}

uint32_t open_files_open(struct store *store, struct replica *replica, uint64_t segment,
                         uint32_t flags)
{
    struct open_files *files = store->files;
    uint32_t index = registry_index(store, replica);
    struct open_file *file = file_find(files, index, segment);
    if (file && file->broken && file->users == 0) {
        if (!file_close(store, file)) return 0;
        file->broken = 0;
    } else if (file) {
        queue_remove(&files->used, &file->link);
        queue_push(&files->used, &file->link);
        return file_number(files, file);
    } else {
        file = file_free(store);
        if (!file) return 0;
    }
    struct file_request *open = requests_take(store->requests, REQUEST_CONTROL, IO_OPEN);
    *file = (struct open_file){.replica = index, .segment = segment, .open = 1};
    uint32_t *bucket = file_bucket(files, index, segment);
    uint32_t number = file_number(files, file);
    file->next = *bucket;
    *bucket = number;
    queue_push(&files->used, &file->link);
    if (!open) {
        /* Not sent: the entry is broken until a later call closes and opens it. */
        file->broken = 1;
        return 0;
    }
    open->replica = index;
    open->file = number;
    open->request.file = open_files_slot(number);
    open->request.flags = flags;
    path_of_segment(replica, segment, open->request.path);
    requests_send(store, open);
    return number;
}

void open_files_done(struct store *store, const struct file_request *done)
{
    enum status status = done->request.status;
    if (status == STATUS_OK) return;
    if (done->request.operation == IO_UNLINK || done->request.operation == IO_CLOSE)
        return; /* the next start sweeps */
    struct replica *replica = registry_at(store, done->replica);
    struct open_file *file = done->file != 0 ? file_at(store->files, done->file) : NULL;
    /* What follows a folder or file that could not be made finds none: all of it again later. */
    int follows = file && status == STATUS_FILE_NOT_FOUND
                  && (file->broken || !segment_writer_has_folder(replica));
    if (file) file->broken = 1;
    if (done->request.operation == IO_MKDIR) segment_writer_lost_folder(replica);
    if (status == STATUS_STORAGE_FULL || follows)
        requests_disk_full(store);
    else
        store_fail(store, status);
}

void open_files_invariants(const struct open_files *files)
{
    assert(files->opened <= files->max);
    assert(files->used.count <= files->opened);
    queue_each(&files->used, link)
    {
        const struct open_file *file = queue_element(link, struct open_file, link);
        assert(file->open);
        assert(file->users <= REQUESTS_MAX);
    }
}
