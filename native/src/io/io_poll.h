/* io/io_poll.h: waiting for file descriptors, and waking a thread that waits.
 *
 * A wake is an eventfd with a flag: the producer of a ring raises the wake after each push;
 * the system is called only if the other side has said that it is about to sleep. The sleeper
 * announces, looks at its rings once more, then sleeps: with both sides fenced, one of them always
 * sees the other, so no wake is lost. */
#ifndef IO_IO_POLL_H
#define IO_IO_POLL_H

#include <stdint.h>

#include "foundation/status.h"

struct wake {
    int fd;
    uint32_t sleeping; /* atomic */
};

enum status wake_open(struct wake *wake);
void wake_close(struct wake *wake);
/* By any thread, after its ring was written. */
void wake_raise(struct wake *wake);
/* Raised whether somebody announced or not: for a reader that has its own loop (the host). */
void wake_raise_always(struct wake *wake);
/* By the sleeper: announce before the last look; wake_settle after waking or when there was
 * something. */
void wake_announce(struct wake *wake);
void wake_settle(struct wake *wake);
/* Block until raised. */
void wake_wait(struct wake *wake);
/* Empty the eventfd without blocking. */
void wake_drain(struct wake *wake);

enum { POLL_EVENTS_MAX = 256 };
enum poll_interest { POLL_READ = 1, POLL_WRITE = 2, POLL_GONE = 4 };

struct poll_event {
    uint64_t token;
    uint32_t interest; /* enum poll_interest */
    uint32_t reserved;
};

struct poll {
    int fd;
};

enum status poll_open(struct poll *poll);
void poll_close(struct poll *poll);
enum status poll_add(struct poll *poll, int fd, uint32_t interest, uint64_t token);
enum status poll_change(struct poll *poll, int fd, uint32_t interest, uint64_t token);
void poll_remove(struct poll *poll, int fd);
/* At most POLL_EVENTS_MAX events; timeout in ns, UINT64_MAX = none. Returns the count; a signal
 * counts as none. */
uint32_t poll_wait(struct poll *poll, struct poll_event *events, uint64_t timeout_ns);

#endif
