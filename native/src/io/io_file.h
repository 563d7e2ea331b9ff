/* io/io_file.h: the thread backend of io/io.h: one I/O thread a shard, first in first out, plain
 * system calls.
 *
 * Owns the shard's file descriptors. It is the tested truth; other backends must behave like it.
 * Two modes:
 *   direct   IO_WRITE_SYNC uses a second descriptor, O_DIRECT | O_DSYNC, where open() accepts that
 *   plain    pwrite, then fdatasync
 * Reads, sizes and gathered writes always use the plain descriptor.
 *
 * Requests cross in a ring of pointers and come back in another; a full ring never blocks the pump,
 * the rest waits in order on the pump's side. `io_file_read_now` is the pump's own: it reads what
 * the page cache has and never waits. Slots are used again while requests wait: as long as an
 * open or a close of the slot is on its way its descriptor may still be another file's, so the
 * answer is BUSY, and an IO_READ comes behind what is on its way. */
#ifndef IO_IO_FILE_H
#define IO_IO_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/arena.h"
#include "foundation/ring.h"
#include "foundation/status.h"
#include "io/io.h"
#include "io/io_poll.h"

enum { IO_FILES_COUNT_MAX = 4096, IO_RING_COUNT = 1024, IO_ROOT_SIZE = 512 };

struct io_file_slot {
    int plain; /* 0 = closed: descriptor + 1, so that zeroed memory is closed */
    int direct;
    enum status poisoned; /* STATUS_OK = healthy */
    uint32_t moving;      /* the pump's: opens and closes submitted and not yet completed */
};

struct io_file {
    struct io io;
    char root[IO_ROOT_SIZE];
    int root_fd;
    uint8_t direct_io;
    uint8_t started;
    uint32_t stopping;               /* atomic */
    struct io_file_slot *slots;      /* IO_FILES_COUNT_MAX */
    uint8_t *zeros;                  /* for IO_ZERO */
    struct ring requests;            /* pump to thread */
    struct ring completions;         /* thread to pump */
    struct io_request *waiting_head; /* beyond the ring, in order */
    struct io_request *waiting_tail;
    uint64_t submitted_count;
    uint64_t completed_count;
    uint64_t direct_count; /* files opened with O_DIRECT */
    struct wake thread_wake;
    struct wake *pump_wake; /* the shard's */
    unsigned long thread;   /* pthread_t */
};

size_t io_file_memory_bytes(void);
/* `root` is created if absent. `pump_wake` is raised after completions. */
enum status io_file_open(struct io_file *file, struct arena *arena, const char *root,
                         uint8_t direct_io, struct wake *pump_wake);
enum status io_file_start(struct io_file *file);
/* Pump: the next finished request, or NULL. */
struct io_request *io_file_completed(struct io_file *file);
/* Pump: once a turn, hand what waited beyond the ring to the thread. */
void io_file_flush(struct io_file *file);
/* Pump: what the page cache has at once. STATUS_BUSY: it would wait, less than `size` is there, or
 * the slot is being opened or closed: submit an IO_READ. */
enum status io_file_read_now(struct io_file *file, uint32_t slot, uint64_t offset, uint8_t *target,
                             size_t size);
/* Everything submitted is carried out first. */
void io_file_stop(struct io_file *file);
void io_file_close(struct io_file *file);

#endif
