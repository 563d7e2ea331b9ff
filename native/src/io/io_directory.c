#include "io/io_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "foundation/assert.h"
#include "io/io_errno.h"

enum { PATH_SIZE_MAX = 512, ENTRIES_SIZE = 32768 };

enum status io_directory_make(int root_fd, const char *path)
{
    char part[PATH_SIZE_MAX];
    size_t length = strlen(path);
    if (length >= sizeof part) return STATUS_CONFIG_INVALID;
    for (size_t index = 1; index <= length; index++) {
        if (path[index] != '/' && path[index] != 0) continue;
        memcpy(part, path, index);
        part[index] = 0;
        if (mkdirat(root_fd, part, 0750) != 0 && errno != EEXIST) return status_of_errno(errno);
    }
    return STATUS_OK;
}

enum status io_directory_sync(int root_fd, const char *path)
{
    int fd = openat(root_fd, path[0] == 0 ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return status_of_errno(errno);
    enum status status = fsync(fd) == 0 ? STATUS_OK : status_of_errno(errno);
    close(fd);
    return status;
}

struct linux_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

static int name_compare(const void *left, const void *right)
{
    const char *const *first = left;
    const char *const *second = right;
    return strcmp(*first, *second);
}

/* Names sorted in place: the pointers to sort lie behind the names in the caller's buffer. */
static enum status names_sort(struct io_request *request, uint64_t names_size, uint32_t count)
{
    char *names = (char *)request->buffer;
    uint64_t scratch_at = (names_size + 7) & ~(uint64_t)7;
    uint64_t wanted = scratch_at + count * sizeof(char *) + names_size;
    if (wanted > request->size) return STATUS_BUFFER_SHORT;
    char **pointers = (char **)(void *)(names + scratch_at);
    char *copy = (char *)(pointers + count);
    memcpy(copy, names, names_size);
    char *at = copy;
    for (uint32_t index = 0; index < count; index++) {
        pointers[index] = at;
        at += strlen(at) + 1;
    }
    qsort(pointers, count, sizeof *pointers, name_compare);
    char *target = names;
    for (uint32_t index = 0; index < count; index++) {
        size_t size = strlen(pointers[index]) + 1;
        memcpy(target, pointers[index], size);
        target += size;
    }
    return STATUS_OK;
}

/* Append the names of one kernel buffer of entries. */
static enum status names_append(struct io_request *request, const uint8_t *entries, long size,
                                uint64_t *used, uint32_t *count)
{
    for (long at = 0; at < size;) {
        const struct linux_entry *entry = (const struct linux_entry *)(const void *)(entries + at);
        at += entry->size;
        if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0) continue;
        size_t length = strlen(entry->name) + 1;
        if (*used + length > request->size) return STATUS_BUFFER_SHORT;
        memcpy(request->buffer + *used, entry->name, length);
        *used += length;
        (*count)++;
    }
    return STATUS_OK;
}

/* getdents64 itself: opendir would allocate. */
static enum status list(int root_fd, struct io_request *request)
{
    int fd = openat(root_fd, request->path[0] == 0 ? "." : request->path,
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? STATUS_OK : status_of_errno(errno);
    uint8_t entries[ENTRIES_SIZE] __attribute__((aligned(8)));
    uint64_t used = 0;
    uint32_t count = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        long size = syscall(SYS_getdents64, fd, entries, sizeof entries);
        if (size < 0) status = status_of_errno(errno);
        if (size <= 0) break;
        status = names_append(request, entries, size, &used, &count);
    }
    close(fd);
    if (status == STATUS_OK && count > 1) status = names_sort(request, used, count);
    request->result_bytes = status == STATUS_OK ? used : 0;
    return status;
}

enum status io_directory_execute(int root_fd, struct io_request *request)
{
    switch (request->operation) {
    case IO_RENAME:
        if (renameat(root_fd, request->path, root_fd, request->path_to) == 0) return STATUS_OK;
        return status_of_errno(errno);
    case IO_UNLINK:
        if (unlinkat(root_fd, request->path, 0) == 0 || errno == ENOENT) return STATUS_OK;
        if (errno == EISDIR && unlinkat(root_fd, request->path, AT_REMOVEDIR) == 0)
            return STATUS_OK;
        return status_of_errno(errno);
    case IO_MKDIR: return io_directory_make(root_fd, request->path);
    case IO_SYNC_DIR: return io_directory_sync(root_fd, request->path);
    case IO_LIST: return list(root_fd, request);
    default: unreachable();
    }
}
