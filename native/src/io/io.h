/* io/io.h: how the core asks for I/O, and the one interface behind which its backends stand.
 *
 * The core never calls the system: it fills a request and submits it; the answer comes back as the
 * same request, completed. Backends: threads with plain system calls (io/io_file.c) and the
 * simulator (native/sim/). A backend carries out the requests of one shard strictly in order of
 * submission, so an open may be followed at once by a write to the same slot.
 *
 * `perform` does the same and returns when done: only recovery, before the shard's pump runs, may
 * use it.
 *
 * Files are slots: small numbers that the core hands out, bound to a path by IO_OPEN. Paths are
 * relative to the shard's folder. Any failed IO_SYNC or IO_WRITE_SYNC poisons its slot: every later
 * write or sync of it fails with the same status (a later clean sync would lie about pages the
 * kernel dropped). */
#ifndef IO_IO_H
#define IO_IO_H

#include <stdint.h>

#include "foundation/status.h"

enum io_operation {
    IO_OPEN = 1, /* path; flags */
    IO_CLOSE,
    IO_READ,       /* result_bytes may be short only at the end of the file */
    IO_WRITE,      /* not durable until a sync; segments_count > 1 = gathered */
    IO_WRITE_SYNC, /* durable when complete; buffer, size and offset are multiples of 4096 */
    IO_SYNC,       /* data and size */
    IO_TRUNCATE,   /* to `size` */
    IO_ZERO,       /* write zeros over [offset, offset + size), extending the file, and sync */
    IO_SIZE,       /* result_bytes = size of the file */
    IO_RENAME,     /* path -> path_to, replacing */
    IO_UNLINK,     /* a file, or an empty folder; absent is success */
    IO_MKDIR,      /* with parents; present is success */
    IO_SYNC_DIR,   /* path */
    IO_LIST, /* names in a folder, '\0' separated, sorted, into buffer; absent folder = no names */
};

enum io_flag { IO_CREATE = 1, IO_EXCLUSIVE = 2, IO_DIRECT = 4 };

enum { IO_PATH_SIZE = 128, IO_VECTORS_MAX = 16 };

struct io_vector {
    const uint8_t *data;
    uint64_t size;
};

struct io_request {
    enum io_operation operation;
    uint32_t file; /* slot */
    uint32_t flags;
    uint32_t vectors_count; /* IO_WRITE: > 0 = gathered from vectors instead of buffer */
    uint64_t offset;
    uint64_t size;
    uint8_t *buffer; /* stays untouched by the core until completion */
    struct io_vector vectors[IO_VECTORS_MAX];
    char path[IO_PATH_SIZE];
    char path_to[IO_PATH_SIZE];
    /* the answer */
    enum status status;
    uint64_t result_bytes;
    /* the core's own */
    uint32_t kind; /* what the core was doing */
    uint32_t reserved;
    uint64_t token;
    struct io_request *next; /* the backend's queue */
};

struct io {
    void *context;
    enum status (*perform)(void *context, struct io_request *request);
    void (*submit)(void *context, struct io_request *request);
};

#endif
