/* io/io_socket.h: TCP sockets, never blocking. Owns no state: descriptors are the caller's. */
#ifndef IO_IO_SOCKET_H
#define IO_IO_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "foundation/status.h"

/* Listen on host:port (0 = any free port; *bound tells). STATUS_ADDRESS_IN_USE,
 * STATUS_CONFIG_INVALID: no such host. */
enum status socket_listen(const char *host, uint16_t port, int *fd, uint16_t *bound);
void socket_close(int fd);

enum socket_answer { SOCKET_OK = 0, SOCKET_WAIT = 1, SOCKET_GONE = 2 };

/* WAIT: none waits. GONE: the system has no descriptor or memory for it. */
enum socket_answer socket_accept(int listener, int *fd);
/* *count = bytes moved. GONE: the peer closed or reset. */
enum socket_answer socket_read(int fd, uint8_t *target, size_t size, size_t *count);
enum socket_answer socket_write(int fd, const struct iovec *vectors, int vectors_count,
                                size_t *count);

#endif
