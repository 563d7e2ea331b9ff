#include "io/io_poll.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "foundation/assert.h"
#include "io/io_errno.h"

enum status wake_open(struct wake *wake)
{
    wake->sleeping = 0;
    wake->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return wake->fd < 0 ? status_of_errno(errno) : STATUS_OK;
}

void wake_close(struct wake *wake)
{
    if (wake->fd >= 0) close(wake->fd);
    wake->fd = -1;
}

void wake_raise_always(struct wake *wake)
{
    uint64_t one = 1;
    ssize_t written = write(wake->fd, &one, sizeof one);
    /* EAGAIN: the counter is full, so the sleeper is awake already. */
    assert(written == (ssize_t)sizeof one || errno == EAGAIN);
}

void wake_raise(struct wake *wake)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&wake->sleeping, __ATOMIC_RELAXED) == 0) return;
    if (__atomic_exchange_n(&wake->sleeping, 0, __ATOMIC_ACQ_REL) == 0) return;
    wake_raise_always(wake);
}

void wake_announce(struct wake *wake)
{
    __atomic_store_n(&wake->sleeping, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void wake_settle(struct wake *wake)
{
    __atomic_store_n(&wake->sleeping, 0, __ATOMIC_RELAXED);
}

void wake_drain(struct wake *wake)
{
    uint64_t count;
    ssize_t taken = read(wake->fd, &count, sizeof count);
    assert(taken == (ssize_t)sizeof count || errno == EAGAIN);
}

void wake_wait(struct wake *wake)
{
    struct pollfd waited = {.fd = wake->fd, .events = POLLIN};
    int found = poll(&waited, 1, -1);
    assert(found >= 0 || errno == EINTR);
    wake_drain(wake);
}

enum status poll_open(struct poll *poll)
{
    poll->fd = epoll_create1(EPOLL_CLOEXEC);
    return poll->fd < 0 ? status_of_errno(errno) : STATUS_OK;
}

void poll_close(struct poll *poll)
{
    if (poll->fd >= 0) close(poll->fd);
    poll->fd = -1;
}

static uint32_t epoll_of(uint32_t interest)
{
    uint32_t events = 0;
    if (interest & POLL_READ) events |= EPOLLIN;
    if (interest & POLL_WRITE) events |= EPOLLOUT;
    return events;
}

enum status poll_add(struct poll *poll, int fd, uint32_t interest, uint64_t token)
{
    struct epoll_event event = {.events = epoll_of(interest), .data.u64 = token};
    return epoll_ctl(poll->fd, EPOLL_CTL_ADD, fd, &event) == 0 ? STATUS_OK : STATUS_IO_FAILED;
}

enum status poll_change(struct poll *poll, int fd, uint32_t interest, uint64_t token)
{
    struct epoll_event event = {.events = epoll_of(interest), .data.u64 = token};
    return epoll_ctl(poll->fd, EPOLL_CTL_MOD, fd, &event) == 0 ? STATUS_OK : STATUS_IO_FAILED;
}

void poll_remove(struct poll *poll, int fd)
{
    (void)epoll_ctl(poll->fd, EPOLL_CTL_DEL, fd, NULL);
}

static int timeout_ms(uint64_t timeout_ns)
{
    if (timeout_ns == UINT64_MAX) return -1;
    uint64_t ms = (timeout_ns + 999999) / 1000000;
    return ms > 3600000 ? 3600000 : (int)ms;
}

uint32_t poll_wait(struct poll *poll, struct poll_event *events, uint64_t timeout_ns)
{
    struct epoll_event found[POLL_EVENTS_MAX];
    int count = epoll_wait(poll->fd, found, POLL_EVENTS_MAX, timeout_ms(timeout_ns));
    if (count < 0) {
        assert(errno == EINTR);
        return 0;
    }
    for (int index = 0; index < count; index++) {
        uint32_t interest = 0;
        if (found[index].events & EPOLLIN) interest |= POLL_READ;
        if (found[index].events & EPOLLOUT) interest |= POLL_WRITE;
        if (found[index].events & (EPOLLERR | EPOLLHUP)) interest |= POLL_GONE;
        events[index] = (struct poll_event){.token = found[index].data.u64, .interest = interest};
    }
    return (uint32_t)count;
}
