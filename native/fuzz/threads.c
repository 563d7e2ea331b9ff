/* threads.c: everything that threads share, under the thread sanitizer (deploy/tsan.sh).
 *
 * First the rings alone, at full speed from both ends. Then an engine of three shards, twice on one
 * directory: a thread that plays the host, threads that speak HTTP/2 and cancel what they began,
 * one that reads the metrics, and a stop in the middle of it. The sanitizer reports races; this
 * program asserts that nothing is lost, that calls are answered, and that the engine ends. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "foundation/assert.h"
#include "foundation/ring.h"
#include "fuzz_http2.h"
#include "fuzz_node.h"

enum {
    RING_ITEMS = 50000,
    RING_SLOTS = 64,
    FRAME_RING_BYTES = 8192,
    SHARDS = 3,
    CLIENTS = 3,
    ANSWERS_MIN = 2000,
    CALLS_AT_ONCE = 8,
    WAIT_MS = 20000,
};

/* ---- rings ---- */

static struct ring ring;
static uint8_t ring_memory[1 << 16] __attribute__((aligned(64)));
static struct frame_ring frames;
static uint8_t frames_memory[FRAME_RING_BYTES] __attribute__((aligned(64)));

static void *ring_fill(void *unused)
{
    for (uint64_t number = 1; number <= RING_ITEMS;) {
        if (ring_push(&ring, &number))
            number++;
        else
            sched_yield();
    }
    return unused;
}

static void *frames_fill(void *unused)
{
    uint8_t body[256];
    for (uint32_t number = 1; number <= RING_ITEMS;) {
        uint32_t size = number % sizeof body;
        struct engine_frame frame = {.size = (uint32_t)sizeof frame + size, .slot = number};
        memset(body, (int)(number & 0xff), size);
        if (frame_ring_push(&frames, &frame, body, size, NULL, 0))
            number++;
        else
            sched_yield();
    }
    return unused;
}

static void rings_try(void)
{
    pthread_t fillers[2];
    assert(ring_bytes(sizeof(uint64_t), RING_SLOTS) <= sizeof ring_memory);
    ring_init(&ring, ring_memory, sizeof(uint64_t), RING_SLOTS);
    frame_ring_init(&frames, frames_memory, FRAME_RING_BYTES);
    int failed = pthread_create(&fillers[0], NULL, ring_fill, NULL);
    assert(failed == 0);
    for (uint64_t wanted = 1; wanted <= RING_ITEMS;) {
        uint64_t number;
        if (!ring_pop(&ring, &number)) {
            sched_yield();
            continue;
        }
        assert(number == wanted++);
    }
    pthread_join(fillers[0], NULL);
    failed = pthread_create(&fillers[1], NULL, frames_fill, NULL);
    assert(failed == 0);
    static uint8_t taken[FRAME_RING_BYTES];
    for (uint32_t wanted = 1; wanted <= RING_ITEMS;) {
        size_t size = frame_ring_take(&frames, taken, sizeof taken);
        if (size == 0) sched_yield();
        for (size_t at = 0; at < size; wanted++) {
            struct engine_frame frame;
            memcpy(&frame, taken + at, sizeof frame);
            assert(frame.slot == wanted);
            assert(frame.size == sizeof frame || taken[at + sizeof frame] == (wanted & 0xff));
            at += (frame.size + 7u) & ~(size_t)7;
        }
    }
    pthread_join(fillers[1], NULL);
}

/* ---- an engine ---- */

static struct fuzz_node node;
static uint32_t ending;  /* atomic: the engine has stopped */
static uint32_t answers; /* atomic: streams that ended */
static uint32_t oks;     /* atomic: of them with grpc-status 0 */

static void *play_host(void *unused)
{
    struct engine_frame beat = {.size = sizeof beat, .kind = ENGINE_HOST_BEAT};
    int fd = engine_host_fd(node.engine);
    while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        int found = poll(&waited, 1, 10);
        assert(found >= 0 || errno == EINTR);
        fuzz_node_serve(&node);
        (void)engine_send(node.engine, (const uint8_t *)&beat, sizeof beat);
    }
    return unused;
}

static void *read_metrics(void *unused)
{
    static char text[1 << 17];
    while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
        size_t size = engine_metrics(node.engine, text, sizeof text);
        assert(size > 0 && size < sizeof text);
        (void)poll(NULL, 0, 20);
    }
    return unused;
}

static int client_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(engine_port(node.engine)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(fd >= 0);
    /* A connection that the stopping node still accepted gets no answer. */
    struct timeval patience = {.tv_sec = 2};
    int failed = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert(failed == 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
    close(fd);
    return -1;
}

static int client_send(int fd, struct fuzz_output *output)
{
    size_t at = 0;
    while (at < output->size) {
        ssize_t sent = send(fd, output->bytes + at, output->size - at, MSG_NOSIGNAL);
        if (sent <= 0) return 0;
        at += (size_t)sent;
    }
    output->size = 0;
    return 1;
}

static int client_read(int fd, uint8_t *target, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t taken = recv(fd, target + at, size - at, 0);
        if (taken <= 0) return 0;
        at += (size_t)taken;
    }
    return 1;
}

/* Read until `wanted` streams ended. 0 = the node closed. */
static int client_await(int fd, int wanted)
{
    uint8_t body[1 << 17];
    while (wanted > 0) {
        uint8_t header[9];
        if (!client_read(fd, header, sizeof header)) return 0;
        size_t size = (size_t)header[0] << 16 | (size_t)header[1] << 8 | header[2];
        assert(size <= sizeof body);
        if (!client_read(fd, body, size)) return 0;
        if (header[3] == FUZZ_GOAWAY) return 0;
        if (header[3] == FUZZ_RESET || (header[3] <= FUZZ_HEADERS && header[4] & FUZZ_END_STREAM)) {
            wanted--;
            __atomic_fetch_add(&answers, 1, __ATOMIC_RELAXED);
            /* An error's trailers carry its details: they are long. */
            if (header[3] == FUZZ_HEADERS && size < 16)
                __atomic_fetch_add(&oks, 1, __ATOMIC_RELAXED);
        }
    }
    return 1;
}

static void put_call(struct fuzz_output *output, uint32_t stream, uint32_t number)
{
    static const char *const paths[] = {
        "/headrace.stream.v1.Stream/Produce",
        "/headrace.stream.v1.Stream/Fetch",
        "/headrace.test.Echo/Unary",
    };
    uint8_t block[512];
    uint8_t message[2048];
    uint32_t partition = number % FUZZ_PARTITIONS;
    size_t size;
    if (number % 3 == 0) {
        size = fuzz_produce_request(message, sizeof message, partition, number);
    } else {
        size = fuzz_fetch_request(message, sizeof message, partition, 0, 0);
    }
    size_t block_size = fuzz_header_block(block, sizeof block, paths[number % 3], FUZZ_TOKEN, NULL);
    fuzz_put_frame(output, FUZZ_HEADERS, FUZZ_END_HEADERS, stream, block, block_size);
    fuzz_put_message(output, stream, message, size, FUZZ_END_STREAM);
}

/* Calls in groups, on connections that round-robin puts on every shard. Every fourth group goes
 * away before its answers. */
static void *be_client(void *context)
{
    uint32_t number = *(const uint32_t *)context;
    struct fuzz_output output;
    while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
        int fd = client_connect();
        if (fd < 0) return context;
        output.size = 0;
        fuzz_put_preface(&output);
        for (uint32_t group = 0; group < 16; group++) {
            for (uint32_t call = 0; call < CALLS_AT_ONCE; call++)
                put_call(&output, (group * CALLS_AT_ONCE + call) * 2 + 1, number++);
            if (!client_send(fd, &output)) break;
            if (group % 4 == 3 && number % 2 == 0) break;
            if (!client_await(fd, CALLS_AT_ONCE)) break;
        }
        close(fd);
    }
    return context;
}

static void engine_try(int keep)
{
    fuzz_node_open(&node, "threads", SHARDS, keep);
    __atomic_store_n(&ending, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&answers, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&oks, 0, __ATOMIC_RELEASE);
    int status = engine_start(node.engine, NULL, 0);
    assert(status == 0);
    pthread_t threads[2 + CLIENTS];
    uint32_t numbers[CLIENTS];
    int failed = pthread_create(&threads[0], NULL, play_host, NULL);
    for (int turn = 0; turn < WAIT_MS && !__atomic_load_n(&node.ready, __ATOMIC_ACQUIRE); turn++)
        (void)poll(NULL, 0, 1);
    fuzz_node_furnish(&node);
    for (int turn = 0; turn < WAIT_MS && !__atomic_load_n(&node.furnished, __ATOMIC_ACQUIRE);
         turn++)
        (void)poll(NULL, 0, 1);
    failed |= pthread_create(&threads[1], NULL, read_metrics, NULL);
    for (uint32_t index = 0; index < CLIENTS; index++) {
        numbers[index] = index * 1000;
        failed |= pthread_create(&threads[2 + index], NULL, be_client, &numbers[index]);
    }
    assert(failed == 0);
    for (int turn = 0; turn < WAIT_MS && __atomic_load_n(&answers, __ATOMIC_ACQUIRE) < ANSWERS_MIN;
         turn++)
        (void)poll(NULL, 0, 1);
    status = engine_stop(node.engine, 5000);
    __atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
    for (uint32_t index = 0; index < 2 + CLIENTS; index++) pthread_join(threads[index], NULL);
    printf("%u answers, %u of them OK; stopped: %s\n", answers, oks, engine_status_name(status));
    assert(status == 0);
    assert(answers >= ANSWERS_MIN);
    assert(oks >= answers * 9 / 10);
    engine_close(node.engine);
}

int main(void)
{
    rings_try();
    engine_try(0);
    engine_try(1);
    return 0;
}
