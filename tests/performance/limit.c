/* limit.c: what this machine allows, measured beside every benchmark so that figures can be
 * compared.
 *
 * Usage: limit FOLDER SECONDS. Prints one JSON object:
 *
 *   direct_4k, direct_64k     durable writes a second: O_DIRECT + O_DSYNC over pre-zeroed bytes
 *   fdatasync_4k              appends of 4 KiB a second, each followed by fdatasync
 *   receive_write_mb          MB/s of recv over loopback, CRC32C, two pwrites: produce without a
 *                             server
 *   read_send_mb              MB/s of pread and send over loopback: fetch without a server
 *
 * It owns its files in FOLDER and removes them. It measures nothing of ours and links nothing of
 * ours. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES = 64 << 20, MESSAGE_BYTES = 64 << 10, DIRECT_ALIGNMENT = 4096 };

static void fail(const char *what)
{
    fprintf(stderr, "limit: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint8_t *aligned_buffer(size_t size)
{
    void *buffer = NULL;
    if (posix_memalign(&buffer, DIRECT_ALIGNMENT, size) != 0) fail("posix_memalign");
    memset(buffer, 'x', size);
    return buffer;
}

static int open_zeroed(const char *path, int flags)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0) fail(path);
    uint8_t *zeros = aligned_buffer(1 << 20);
    memset(zeros, 0, 1 << 20);
    for (off_t at = 0; at < FILE_BYTES; at += 1 << 20)
        if (pwrite(file, zeros, 1 << 20, at) != 1 << 20) fail("pwrite");
    if (fsync(file) != 0) fail("fsync");
    free(zeros);
    close(file);
    file = open(path, O_RDWR | flags);
    if (file < 0 && errno == EINVAL) file = open(path, O_RDWR | O_DSYNC); /* tmpfs */
    if (file < 0) fail(path);
    return file;
}

static double direct_writes(const char *path, size_t size, double seconds)
{
    int file = open_zeroed(path, O_DIRECT | O_DSYNC);
    uint8_t *buffer = aligned_buffer(size);
    double start = now_s(), end = start;
    uint64_t count = 0;
    for (off_t at = 0; end - start < seconds; count++, end = now_s()) {
        if (pwrite(file, buffer, size, at) != (ssize_t)size) fail("pwrite");
        at = (at + (off_t)size) % FILE_BYTES;
    }
    free(buffer);
    close(file);
    unlink(path);
    return (double)count / (end - start);
}

static double synced_appends(const char *path, double seconds)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (file < 0) fail(path);
    uint8_t *buffer = aligned_buffer(4096);
    double start = now_s(), end = start;
    uint64_t count = 0;
    for (; end - start < seconds; count++, end = now_s()) {
        if (write(file, buffer, 4096) != 4096) fail("write");
        if (fdatasync(file) != 0) fail("fdatasync");
    }
    free(buffer);
    close(file);
    unlink(path);
    return (double)count / (end - start);
}

/* One end of a loopback connection, driven by a thread until its peer closes. */
struct peer {
    pthread_t thread;
    int socket;
    int sends;
};

static void *peer_run(void *argument)
{
    struct peer *peer = argument;
    uint8_t *buffer = aligned_buffer(MESSAGE_BYTES);
    ssize_t moved = 1;
    while (moved > 0)
        moved = peer->sends ? send(peer->socket, buffer, MESSAGE_BYTES, MSG_NOSIGNAL)
                            : recv(peer->socket, buffer, MESSAGE_BYTES, 0);
    free(buffer);
    close(peer->socket);
    return NULL;
}

static int peer_start(struct peer *peer, int sends)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0) fail("bind");
    if (listen(listener, 1) != 0) fail("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &size) != 0) fail("getsockname");
    peer->sends = sends;
    peer->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(peer->socket, (struct sockaddr *)&address, size) != 0) fail("connect");
    int accepted = accept(listener, NULL, NULL);
    if (accepted < 0) fail("accept");
    close(listener);
    if (pthread_create(&peer->thread, NULL, peer_run, peer) != 0) fail("pthread_create");
    return accepted;
}

static void peer_stop(struct peer *peer, int accepted)
{
    shutdown(accepted, SHUT_RDWR);
    close(accepted);
    pthread_join(peer->thread, NULL);
}

static double receive_and_write(const char *path, double seconds)
{
    struct peer peer;
    int accepted = peer_start(&peer, 1);
    int file = open_zeroed(path, 0);
    uint8_t *buffer = aligned_buffer(MESSAGE_BYTES);
    uint64_t bytes = 0;
    volatile uint32_t crc = 0;
    double start = now_s(), end = start;
    for (off_t at = 0; end - start < seconds; end = now_s()) {
        ssize_t size = recv(accepted, buffer, MESSAGE_BYTES, MSG_WAITALL);
        if (size != MESSAGE_BYTES) fail("recv");
        crc = crc ^ crc32_iscsi(buffer, MESSAGE_BYTES, 0xffffffff);
        if (pwrite(file, buffer, MESSAGE_BYTES, at) != MESSAGE_BYTES) fail("pwrite");
        if (pwrite(file, buffer, MESSAGE_BYTES, FILE_BYTES / 2 + at) != MESSAGE_BYTES)
            fail("pwrite");
        at = (at + MESSAGE_BYTES) % (FILE_BYTES / 2);
        bytes += MESSAGE_BYTES;
    }
    free(buffer);
    peer_stop(&peer, accepted);
    close(file);
    unlink(path);
    return (double)bytes / (end - start) / 1e6;
}

static double read_and_send(const char *path, double seconds)
{
    struct peer peer;
    int accepted = peer_start(&peer, 0);
    int file = open_zeroed(path, 0);
    uint8_t *buffer = aligned_buffer(MESSAGE_BYTES);
    uint64_t bytes = 0;
    double start = now_s(), end = start;
    for (off_t at = 0; end - start < seconds; end = now_s()) {
        if (pread(file, buffer, MESSAGE_BYTES, at) != MESSAGE_BYTES) fail("pread");
        ssize_t size = send(accepted, buffer, MESSAGE_BYTES, MSG_NOSIGNAL);
        if (size <= 0) fail("send");
        at = (at + MESSAGE_BYTES) % FILE_BYTES;
        bytes += (uint64_t)size;
    }
    free(buffer);
    peer_stop(&peer, accepted);
    close(file);
    unlink(path);
    return (double)bytes / (end - start) / 1e6;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: limit FOLDER SECONDS\n");
        return 2;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/limit.bin", arguments[1]);
    double seconds = strtod(arguments[2], NULL);
    printf("{\"direct_4k\": %.0f, ", direct_writes(path, 4096, seconds));
    printf("\"direct_64k\": %.0f, ", direct_writes(path, 65536, seconds));
    printf("\"fdatasync_4k\": %.0f, ", synced_appends(path, seconds));
    printf("\"receive_write_mb\": %.0f, ", receive_and_write(path, seconds));
    printf("\"read_send_mb\": %.0f}\n", read_and_send(path, seconds));
    return 0;
}
