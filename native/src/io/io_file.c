#include "io/io_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "foundation/assert.h"
#include "foundation/thread.h"
#include "io/io_directory.h"
#include "io/io_errno.h"

enum { SECTOR_SIZE = 4096, ZEROS_SIZE = 1048576 };

size_t io_file_memory_bytes(void)
{
    return arena_size(sizeof(struct io_file_slot) * IO_FILES_COUNT_MAX) + arena_size(ZEROS_SIZE)
           + 2 * arena_size(ring_bytes(sizeof(struct io_request *), IO_RING_COUNT)) + SECTOR_SIZE;
}

static struct io_file_slot *slot_of(struct io_file *file, uint32_t slot)
{
    assert(slot < IO_FILES_COUNT_MAX);
    return &file->slots[slot];
}

static int slot_plain(struct io_file *file, uint32_t slot)
{
    return __atomic_load_n(&slot_of(file, slot)->plain, __ATOMIC_ACQUIRE) - 1;
}

static int moves_slot(const struct io_request *request)
{
    return request->operation == IO_OPEN || request->operation == IO_CLOSE;
}

static enum status execute_open(struct io_file *file, const struct io_request *request)
{
    struct io_file_slot *slot = slot_of(file, request->file);
    assert(slot->plain == 0);
    int flags = O_RDWR | O_CLOEXEC;
    if (request->flags & IO_CREATE) flags |= O_CREAT;
    if (request->flags & IO_EXCLUSIVE) flags |= O_EXCL;
    int plain = openat(file->root_fd, request->path, flags, 0640);
    if (plain < 0) return status_of_errno(errno);
    slot->poisoned = STATUS_OK;
    slot->direct = 0;
    if ((request->flags & IO_DIRECT) && file->direct_io) {
        int direct =
            openat(file->root_fd, request->path, O_WRONLY | O_CLOEXEC | O_DIRECT | O_DSYNC);
        /* Some file systems refuse O_DIRECT (EINVAL): plain writes and fdatasync are as durable. */
        slot->direct = direct < 0 ? 0 : direct + 1;
        file->direct_count += direct < 0 ? 0 : 1;
    }
    __atomic_store_n(&slot->plain, plain + 1, __ATOMIC_RELEASE);
    return STATUS_OK;
}

static enum status execute_close(struct io_file *file, const struct io_request *request)
{
    struct io_file_slot *slot = slot_of(file, request->file);
    if (slot->plain == 0) return STATUS_OK;
    int plain = slot->plain - 1;
    __atomic_store_n(&slot->plain, 0, __ATOMIC_RELEASE);
    close(plain);
    if (slot->direct != 0) close(slot->direct - 1);
    slot->direct = 0;
    slot->poisoned = STATUS_OK;
    return STATUS_OK;
}

static enum status execute_read(struct io_file *file, struct io_request *request)
{
    int fd = slot_plain(file, request->file);
    if (fd < 0) return STATUS_FILE_NOT_FOUND;
    uint64_t done = 0;
    while (done < request->size) {
        ssize_t count = pread(fd, request->buffer + done, (size_t)(request->size - done),
                              (off_t)(request->offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return status_of_errno(errno);
        if (count == 0) break;
        done += (uint64_t)count;
    }
    request->result_bytes = done;
    return STATUS_OK;
}

static enum status write_whole(int fd, const uint8_t *bytes, uint64_t size, uint64_t offset)
{
    uint64_t done = 0;
    while (done < size) {
        ssize_t count = pwrite(fd, bytes + done, (size_t)(size - done), (off_t)(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return status_of_errno(errno);
        assert(count > 0);
        done += (uint64_t)count;
    }
    return STATUS_OK;
}

static enum status execute_gather(int fd, struct io_request *request)
{
    uint64_t done = 0;
    for (uint32_t index = 0; index < request->vectors_count; index++) {
        const struct io_vector *vector = &request->vectors[index];
        enum status status = write_whole(fd, vector->data, vector->size, request->offset + done);
        if (status != STATUS_OK) return status;
        done += vector->size;
    }
    request->result_bytes = done;
    return STATUS_OK;
}

static enum status gather_at_once(int fd, struct io_request *request)
{
    assert(request->vectors_count <= IO_VECTORS_MAX);
    struct iovec vectors[IO_VECTORS_MAX];
    uint64_t total = 0;
    for (uint32_t index = 0; index < request->vectors_count; index++) {
        vectors[index].iov_base = (void *)(uintptr_t)request->vectors[index].data;
        vectors[index].iov_len = (size_t)request->vectors[index].size;
        total += request->vectors[index].size;
    }
    ssize_t count = pwritev(fd, vectors, (int)request->vectors_count, (off_t)request->offset);
    if (count < 0 && errno != EINTR) return status_of_errno(errno);
    /* Short or interrupted: writing all of it again at the same place is the same. */
    if (count < 0 || (uint64_t)count != total) return execute_gather(fd, request);
    request->result_bytes = total;
    return STATUS_OK;
}

static enum status execute_write(struct io_file *file, struct io_request *request)
{
    struct io_file_slot *slot = slot_of(file, request->file);
    if (slot->plain == 0) return STATUS_FILE_NOT_FOUND;
    if (slot->poisoned != STATUS_OK) return slot->poisoned;
    if (request->vectors_count > 0) return gather_at_once(slot->plain - 1, request);
    request->result_bytes = request->size;
    return write_whole(slot->plain - 1, request->buffer, request->size, request->offset);
}

static enum status sync_slot(struct io_file_slot *slot, enum status written)
{
    if (written == STATUS_OK && fdatasync(slot->plain - 1) != 0) written = status_of_errno(errno);
    /* The kernel drops what it could not write: a later clean sync would lie about it. */
    if (written != STATUS_OK) slot->poisoned = STATUS_IO_POISONED;
    return written;
}

static enum status execute_write_sync(struct io_file *file, struct io_request *request)
{
    assert(request->size % SECTOR_SIZE == 0);
    assert(request->offset % SECTOR_SIZE == 0);
    assert((uintptr_t)request->buffer % SECTOR_SIZE == 0);
    struct io_file_slot *slot = slot_of(file, request->file);
    if (slot->plain == 0) return STATUS_FILE_NOT_FOUND;
    if (slot->poisoned != STATUS_OK) return slot->poisoned;
    request->result_bytes = request->size;
    if (slot->direct == 0) {
        return sync_slot(
            slot, write_whole(slot->plain - 1, request->buffer, request->size, request->offset));
    }
    enum status status =
        write_whole(slot->direct - 1, request->buffer, request->size, request->offset);
    if (status != STATUS_OK) slot->poisoned = STATUS_IO_POISONED;
    return status;
}

static enum status execute_sync(struct io_file *file, const struct io_request *request)
{
    struct io_file_slot *slot = slot_of(file, request->file);
    if (slot->plain == 0) return STATUS_FILE_NOT_FOUND;
    if (slot->poisoned != STATUS_OK) return slot->poisoned;
    return sync_slot(slot, STATUS_OK);
}

static enum status execute_zero(struct io_file *file, struct io_request *request)
{
    struct io_file_slot *slot = slot_of(file, request->file);
    if (slot->plain == 0) return STATUS_FILE_NOT_FOUND;
    if (slot->poisoned != STATUS_OK) return slot->poisoned;
    for (uint64_t done = 0; done < request->size;) {
        uint64_t part = request->size - done;
        if (part > ZEROS_SIZE) part = ZEROS_SIZE;
        enum status status =
            write_whole(slot->plain - 1, file->zeros, part, request->offset + done);
        if (status != STATUS_OK) return status;
        done += part;
    }
    request->result_bytes = request->size;
    return sync_slot(slot, STATUS_OK);
}

static enum status execute_truncate(struct io_file *file, const struct io_request *request)
{
    struct io_file_slot *slot = slot_of(file, request->file);
    if (slot->plain == 0) return STATUS_FILE_NOT_FOUND;
    if (slot->poisoned != STATUS_OK) return slot->poisoned;
    return ftruncate(slot->plain - 1, (off_t)request->size) == 0 ? STATUS_OK
                                                                 : status_of_errno(errno);
}

static enum status execute_size(struct io_file *file, struct io_request *request)
{
    int fd = slot_plain(file, request->file);
    if (fd < 0) return STATUS_FILE_NOT_FOUND;
    struct stat found;
    if (fstat(fd, &found) != 0) return status_of_errno(errno);
    request->result_bytes = (uint64_t)found.st_size;
    return STATUS_OK;
}

static enum status execute(struct io_file *file, struct io_request *request)
{
    request->result_bytes = 0;
    switch (request->operation) {
    case IO_OPEN: return execute_open(file, request);
    case IO_CLOSE: return execute_close(file, request);
    case IO_READ: return execute_read(file, request);
    case IO_WRITE: return execute_write(file, request);
    case IO_WRITE_SYNC: return execute_write_sync(file, request);
    case IO_SYNC: return execute_sync(file, request);
    case IO_TRUNCATE: return execute_truncate(file, request);
    case IO_ZERO: return execute_zero(file, request);
    case IO_SIZE: return execute_size(file, request);
    case IO_RENAME:
    case IO_UNLINK:
    case IO_MKDIR:
    case IO_SYNC_DIR:
    case IO_LIST: return io_directory_execute(file->root_fd, request);
    }
    unreachable();
}

static enum status perform(void *context, struct io_request *request)
{
    struct io_file *file = context;
    assert(!file->started);
    request->status = execute(file, request);
    return request->status;
}

static void submit(void *context, struct io_request *request)
{
    struct io_file *file = context;
    request->next = NULL;
    file->submitted_count++;
    if (moves_slot(request)) slot_of(file, request->file)->moving++;
    /* Behind those that wait already: order is a promise (io/io.h). */
    if (file->waiting_head == NULL && ring_push(&file->requests, &request)) {
        wake_raise(&file->thread_wake);
        return;
    }
    if (file->waiting_tail != NULL)
        file->waiting_tail->next = request;
    else
        file->waiting_head = request;
    file->waiting_tail = request;
}

void io_file_flush(struct io_file *file)
{
    int moved = 0;
    while (file->waiting_head != NULL) {
        struct io_request *request = file->waiting_head;
        struct io_request *next = request->next;
        if (!ring_push(&file->requests, &request)) break;
        file->waiting_head = next;
        if (next == NULL) file->waiting_tail = NULL;
        moved = 1;
    }
    if (moved) wake_raise(&file->thread_wake);
}

struct io_request *io_file_completed(struct io_file *file)
{
    struct io_request *request = NULL;
    if (!ring_pop(&file->completions, &request)) return NULL;
    file->completed_count++;
    assert(file->completed_count <= file->submitted_count);
    if (moves_slot(request)) {
        struct io_file_slot *slot = slot_of(file, request->file);
        assert(slot->moving > 0);
        slot->moving--;
    }
    return request;
}

enum status io_file_read_now(struct io_file *file, uint32_t slot, uint64_t offset, uint8_t *target,
                             size_t size)
{
    if (slot_of(file, slot)->moving > 0) return STATUS_BUSY;
    int fd = slot_plain(file, slot);
    if (fd < 0) return STATUS_BUSY;
    struct iovec vector = {.iov_base = target, .iov_len = size};
    ssize_t count = preadv2(fd, &vector, 1, (off_t)offset, RWF_NOWAIT);
    return count >= 0 && (size_t)count == size ? STATUS_OK : STATUS_BUSY;
}

static void completion_push(struct io_file *file, struct io_request *request)
{
    /* The pump drains every turn and is woken by each push, so this ends. */
    while (!ring_push(&file->completions, &request)) {
        wake_raise(file->pump_wake);
        struct timespec pause = {.tv_nsec = 50000};
        nanosleep(&pause, NULL);
    }
    wake_raise(file->pump_wake);
}

static void *thread_run(void *context)
{
    struct io_file *file = context;
    for (;;) {
        struct io_request *request = NULL;
        if (ring_pop(&file->requests, &request)) {
            request->status = execute(file, request);
            completion_push(file, request);
            continue;
        }
        wake_announce(&file->thread_wake);
        if (ring_used(&file->requests) > 0) {
            wake_settle(&file->thread_wake);
            continue;
        }
        if (__atomic_load_n(&file->stopping, __ATOMIC_ACQUIRE)) return NULL;
        wake_wait(&file->thread_wake);
        wake_settle(&file->thread_wake);
    }
}

enum status io_file_open(struct io_file *file, struct arena *arena, const char *root,
                         uint8_t direct_io, struct wake *pump_wake)
{
    *file = (struct io_file){.direct_io = direct_io, .pump_wake = pump_wake, .root_fd = -1};
    file->io = (struct io){.context = file, .perform = perform, .submit = submit};
    file->thread_wake.fd = -1;
    if (strlen(root) >= sizeof file->root) return STATUS_CONFIG_INVALID;
    snprintf(file->root, sizeof file->root, "%s", root);
    file->slots = arena_take(arena, sizeof(struct io_file_slot) * IO_FILES_COUNT_MAX);
    file->zeros = arena_take_aligned(arena, ZEROS_SIZE, SECTOR_SIZE);
    uint8_t *requests = arena_take(arena, ring_bytes(sizeof(struct io_request *), IO_RING_COUNT));
    uint8_t *completions =
        arena_take(arena, ring_bytes(sizeof(struct io_request *), IO_RING_COUNT));
    if (!file->slots || !file->zeros || !requests || !completions) return STATUS_NO_MEMORY;
    ring_init(&file->requests, requests, sizeof(struct io_request *), IO_RING_COUNT);
    ring_init(&file->completions, completions, sizeof(struct io_request *), IO_RING_COUNT);
    enum status status = io_directory_make(AT_FDCWD, root);
    if (status != STATUS_OK) return status;
    file->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->root_fd < 0) return status_of_errno(errno);
    return wake_open(&file->thread_wake);
}

enum status io_file_start(struct io_file *file)
{
    assert(!file->started);
    enum status status = thread_start(&file->thread, "headrace-io", thread_run, file);
    file->started = status == STATUS_OK;
    return status;
}

void io_file_stop(struct io_file *file)
{
    if (!file->started) return;
    __atomic_store_n(&file->stopping, 1, __ATOMIC_RELEASE);
    wake_raise_always(&file->thread_wake);
    thread_join(file->thread);
    file->started = 0;
}

void io_file_close(struct io_file *file)
{
    assert(!file->started);
    for (uint32_t index = 0; file->slots != NULL && index < IO_FILES_COUNT_MAX; index++) {
        struct io_request request = {.operation = IO_CLOSE, .file = index};
        (void)execute_close(file, &request);
    }
    if (file->root_fd >= 0) close(file->root_fd);
    file->root_fd = -1;
    wake_close(&file->thread_wake);
}
