/* faults.c: a disk that fails and a clock that jumps, preloaded into a node (LD_PRELOAD).
 *
 * Owns the few calls through which a node reaches files and reads the wall clock. What fails is
 * said at any time in a small file that both sides map (FAULTS_FILE): an errno for each kind of
 * call, on files whose path holds `part`. Refuses to touch sockets, and the monotonic clock. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* As tests/support/processes/faults.py writes it. */
struct faults {
    int64_t wall_seconds; /* added to the wall clock */
    int32_t sync_errno;
    int32_t write_errno;
    int32_t read_errno;
    int32_t open_errno;
    uint64_t fired;
    char part[64];
};

static struct faults none;
static volatile struct faults *faults = &none;

__attribute__((constructor)) static void faults_map(void)
{
    const char *path = getenv("FAULTS_FILE");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) faults = mapped;
}

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) abort();
    return found;
}

static int hit_path(const char *path, int32_t error)
{
    char part[sizeof none.part];
    memcpy(part, (const void *)(uintptr_t)faults->part, sizeof part);
    if (strstr(path, part) == NULL) return 0;
    faults->fired++;
    errno = error;
    return 1;
}

static int hit(int fd, int32_t error)
{
    if (error == 0) return 0;
    char link[64];
    char path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return hit_path(path, error);
}

#define WRAP(name, error, result, parameters, arguments) \
    result name parameters \
    { \
        static result(*next) parameters; \
        if (next == NULL) next = (result(*) parameters)real(#name); \
        return hit(fd, faults->error) ? -1 : next arguments; \
    }

WRAP(fsync, sync_errno, int, (int fd), (fd))
WRAP(fdatasync, sync_errno, int, (int fd), (fd))
WRAP(pwrite, write_errno, ssize_t, (int fd, const void *data, size_t size, off_t at),
     (fd, data, size, at))
WRAP(pwrite64, write_errno, ssize_t, (int fd, const void *data, size_t size, off64_t at),
     (fd, data, size, at))
WRAP(pwritev, write_errno, ssize_t, (int fd, const struct iovec *parts, int count, off_t at),
     (fd, parts, count, at))
WRAP(pwritev64, write_errno, ssize_t, (int fd, const struct iovec *parts, int count, off64_t at),
     (fd, parts, count, at))
WRAP(pread, read_errno, ssize_t, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
WRAP(pread64, read_errno, ssize_t, (int fd, void *data, size_t size, off64_t at),
     (fd, data, size, at))
WRAP(preadv2, read_errno, ssize_t,
     (int fd, const struct iovec *parts, int count, off_t at, int flags),
     (fd, parts, count, at, flags))
WRAP(preadv64v2, read_errno, ssize_t,
     (int fd, const struct iovec *parts, int count, off64_t at, int flags),
     (fd, parts, count, at, flags))

static int open_at(const char *name, int folder, const char *path, int flags, mode_t mode)
{
    if (faults->open_errno != 0 && hit_path(path, faults->open_errno)) return -1;
    int (*next)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))real(name);
    return next(folder, path, flags, mode);
}

#define WRAP_OPEN(name) \
    int name(int folder, const char *path, int flags, ...) \
    { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & O_CREAT ? (mode_t)va_arg(rest, int) : 0; \
        va_end(rest); \
        return open_at(#name, folder, path, flags, mode); \
    }

WRAP_OPEN(openat)
WRAP_OPEN(openat64)

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL) next = (int (*)(clockid_t, struct timespec *))real("clock_gettime");
    int result = next(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        time->tv_sec += faults->wall_seconds;
    return result;
}
