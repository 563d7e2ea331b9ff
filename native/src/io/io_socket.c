#include "io/io_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "foundation/assert.h"
#include "io/io_errno.h"

/* A peer that vanished without a word is found after two minutes. */
enum { BACKLOG = 1024, KEEPALIVE_IDLE_S = 60, KEEPALIVE_INTERVAL_S = 15, KEEPALIVE_COUNT = 4 };

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int failed = getsockname(fd, (struct sockaddr *)&address, &size);
    assert(failed == 0);
    if (address.ss_family == AF_INET6) {
        return ntohs(((const struct sockaddr_in6 *)(const void *)&address)->sin6_port);
    }
    return ntohs(((const struct sockaddr_in *)(const void *)&address)->sin_port);
}

static enum status socket_bind(const struct addrinfo *info, int *fd)
{
    *fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0) return status_of_errno(errno);
    int on = 1;
    (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(*fd, info->ai_addr, info->ai_addrlen) == 0 && listen(*fd, BACKLOG) == 0)
        return STATUS_OK;
    enum status status = status_of_errno(errno);
    close(*fd);
    *fd = -1;
    return status;
}

enum status socket_listen(const char *host, uint16_t port, int *fd, uint16_t *bound)
{
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *info = NULL;
    if (getaddrinfo(host, service, &hints, &info) != 0) return STATUS_ADDRESS_UNKNOWN;
    assert(info != NULL);
    enum status status = socket_bind(info, fd);
    freeaddrinfo(info);
    if (status == STATUS_OK) *bound = bound_port(*fd);
    return status;
}

enum socket_answer socket_accept(int listener, int *fd)
{
    *fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (*fd < 0) {
        int exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        return exhausted ? SOCKET_GONE : SOCKET_WAIT;
    }
    int on = 1;
    (void)setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int idle = KEEPALIVE_IDLE_S;
    int interval = KEEPALIVE_INTERVAL_S;
    int count = KEEPALIVE_COUNT;
    (void)setsockopt(*fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(*fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(*fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(*fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    return SOCKET_OK;
}

void socket_close(int fd)
{
    assert(fd >= 0);
    close(fd);
}

static enum socket_answer answer_of_error(void)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return SOCKET_WAIT;
    return SOCKET_GONE;
}

enum socket_answer socket_read(int fd, uint8_t *target, size_t size, size_t *count)
{
    ssize_t taken = read(fd, target, size);
    *count = taken > 0 ? (size_t)taken : 0;
    if (taken > 0) return SOCKET_OK;
    return taken == 0 ? SOCKET_GONE : answer_of_error();
}

enum socket_answer socket_write(int fd, const struct iovec *vectors, int vectors_count,
                                size_t *count)
{
    struct msghdr message = {
        .msg_iov = (struct iovec *)(uintptr_t)vectors,
        .msg_iovlen = (size_t)vectors_count,
    };
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    *count = sent > 0 ? (size_t)sent : 0;
    return sent >= 0 ? SOCKET_OK : answer_of_error();
}
