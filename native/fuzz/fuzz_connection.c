/* fuzz_connection.c: the bytes of a connection, through HTTP/2, gRPC and the store, to the host and
 * back.
 *
 * A first byte of 0 sends the rest as it is; 1 sends it behind a preface; anything else makes it a
 * list of steps, most of which are right, so that whole calls are reached. One shard, turn by turn,
 * on a socket pair. Asserts that whatever was sent, nothing of the connection is left once its
 * client is gone. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/state.h"
#include "foundation/assert.h"
#include "fuzz_http2.h"
#include "fuzz_input.h"
#include "fuzz_node.h"
#include "grpc/server.h"
#include "shard/shard.h"

enum { STEPS_MAX = 64, TURNS_MAX = 200, BLOCK_SIZE = 512, MESSAGE_SIZE = 4096 };

static const char *const paths[] = {
    "/headrace.stream.v1.Stream/Produce",       "/headrace.stream.v1.Stream/ProduceStream",
    "/headrace.stream.v1.Stream/Fetch",         "/headrace.stream.v1.Stream/CommitOffsets",
    "/headrace.stream.v1.Stream/FetchOffsets",  "/grpc.health.v1.Health/Check",
    "/headrace.stream.v1.Cluster/GetMetadata",  "/headrace.node.v1.Node/Describe",
    "/headrace.stream.v1.Stream/Consume",       "/headrace.stream.v1.Stream/Publish",
    "/headrace.stream.v1.Stream/FetchMessages", "/headrace.stream.v1.Stream/ListOffsets",
};
static const char *const timeouts[] = {"1n", "50m", "99999999H", "5", "", "1S"};

static struct fuzz_node node;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_node_open(&node, "connection", 1, 0);
    fuzz_node_attach(&node);
    return 0;
}

static void drain(int fd)
{
    uint8_t bytes[4096];
    while (read(fd, bytes, sizeof bytes) > 0) continue;
}

static void give(int fd, struct fuzz_output *output)
{
    size_t at = 0;
    for (int turn = 0; turn < TURNS_MAX && at < output->size; turn++) {
        ssize_t sent = send(fd, output->bytes + at, output->size - at, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) break;
        if (sent > 0) at += (size_t)sent;
        fuzz_node_turn(&node);
        drain(fd);
    }
    output->size = 0;
}

static void step_headers(struct fuzz_output *output, struct fuzz_input *input, uint32_t stream)
{
    uint8_t block[BLOCK_SIZE];
    uint8_t how = fuzz_byte(input);
    const char *path = paths[fuzz_byte(input) % (sizeof paths / sizeof paths[0])];
    const char *token = how & 1 ? NULL : FUZZ_TOKEN;
    const char *timeout =
        how & 2 ? timeouts[fuzz_byte(input) % (sizeof timeouts / sizeof timeouts[0])] : NULL;
    size_t size = fuzz_header_block(block, sizeof block, path, token, timeout);
    uint8_t end = how & 4 ? FUZZ_END_STREAM : 0;
    if (how & 8) {
        fuzz_put_frame(output, FUZZ_HEADERS, end, stream, block, size / 2);
        fuzz_put_frame(output, FUZZ_CONTINUATION, FUZZ_END_HEADERS, stream, block + size / 2,
                       size - size / 2);
    } else {
        fuzz_put_frame(output, FUZZ_HEADERS, end | FUZZ_END_HEADERS, stream, block, size);
    }
}

static void step_message(struct fuzz_output *output, struct fuzz_input *input, uint32_t stream)
{
    uint8_t message[MESSAGE_SIZE];
    uint8_t how = fuzz_byte(input);
    uint32_t partition = fuzz_byte(input) % (FUZZ_PARTITIONS + 1);
    size_t size;
    if (how & 2) {
        size = fuzz_produce_request(message, sizeof message, partition, fuzz_byte(input));
    } else {
        size = fuzz_fetch_request(message, sizeof message, partition, fuzz_byte(input),
                                  fuzz_byte(input));
    }
    if (how & 4) message[fuzz_u16(input) % size] = fuzz_byte(input);
    fuzz_put_message(output, stream, message, size, how & 1 ? FUZZ_END_STREAM : 0);
}

static void step_raw(struct fuzz_output *output, struct fuzz_input *input, uint32_t stream)
{
    size_t size;
    uint8_t type = fuzz_byte(input) % 12;
    uint8_t flags = fuzz_byte(input);
    const uint8_t *body = fuzz_bytes(input, fuzz_byte(input), &size);
    fuzz_put_frame(output, type, flags, stream, body, size);
}

static void step(struct fuzz_output *output, struct fuzz_input *input, int fd)
{
    size_t size;
    uint8_t kind = fuzz_byte(input) % 12;
    uint8_t number = fuzz_byte(input);
    uint32_t stream = number % 16 * 2u + 1;
    const uint8_t *body;
    switch (kind) {
    case 0:
    case 1: step_headers(output, input, stream); return;
    case 2:
    case 3: step_message(output, input, stream); return;
    case 4:
        body = fuzz_bytes(input, number, &size);
        fuzz_put_frame(output, FUZZ_DATA, number & FUZZ_END_STREAM, stream, body, size);
        return;
    case 5:
        body = fuzz_bytes(input, 4, &size);
        fuzz_put_frame(output, number & 32 ? FUZZ_RESET : FUZZ_WINDOW, 0, number & 64 ? 0 : stream,
                       body, size);
        return;
    case 6:
        body = fuzz_bytes(input, 6, &size);
        fuzz_put_frame(output, FUZZ_SETTINGS, 0, 0, body, size);
        return;
    case 7:
        fuzz_put_frame(output, FUZZ_PING, number & 1, 0, (const uint8_t *)"12345678", 8);
        return;
    case 8: fuzz_put_frame(output, FUZZ_DATA, FUZZ_END_STREAM, stream, NULL, 0); return;
    case 9:
    case 10: give(fd, output); return;
    default: step_raw(output, input, number & 64 ? 0 : stream); return;
    }
}

static void talk(int fd, struct fuzz_input *input)
{
    static struct fuzz_output output;
    output.size = 0;
    uint8_t mode = fuzz_byte(input);
    if (mode != 0) fuzz_put_preface(&output);
    if (mode > 1) {
        for (int left = STEPS_MAX; left > 0 && input->at < input->end; left--)
            step(&output, input, fd);
    } else {
        size_t size = (size_t)(input->end - input->at);
        if (size > FUZZ_OUTPUT_SIZE - output.size) size = FUZZ_OUTPUT_SIZE - output.size;
        if (size > 0) memcpy(output.bytes + output.size, input->at, size);
        output.size += size;
    }
    give(fd, &output);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct grpc_server *server = engine_shard(node.engine, 0)->grpc;
    struct http2 *http2 = grpc_server_transport(server);
    struct fuzz_input input = {.at = bytes, .end = bytes + size};
    int ends[2];
    int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
    assert(failed == 0);
    enum status status = http2_connection_open(http2, ends[1]);
    assert(status == STATUS_OK);
    talk(ends[0], &input);
    close(ends[0]);
    /* Its calls go with it; an operation that is in a round ends by itself. */
    for (int turn = 0; turn < TURNS_MAX && http2_connections_count(http2) > 0; turn++)
        fuzz_node_turn(&node);
    assert(http2_connections_count(http2) == 0);
    assert(grpc_server_idle(server));
    return 0;
}
