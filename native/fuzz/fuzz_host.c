/* fuzz_host.c: what the Python host may hand over: frames of every kind but those that speak for
 * the metadata machine, whose contradictions end the node on purpose.
 *
 * Two shards, turn by turn. The input is a list of frames; sizes lie now and then. Asserts that
 * engine_send takes a frame or refuses it as malformed, and that the node goes on: every operation
 * that was accepted is answered. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/state.h"
#include "foundation/assert.h"
#include "fuzz_http2.h"
#include "fuzz_input.h"
#include "fuzz_node.h"
#include "grpc/server.h"
#include "service/pendings.h"
#include "shard/shard.h"

enum { FRAMES_MAX = 32, BODY_SIZE = 2048, TURNS_MAX = 100000 };

static const uint16_t kinds[] = {
    ENGINE_SEND_MESSAGE, ENGINE_SEND_CREDIT, ENGINE_SEND_STATUS,    ENGINE_PUBLISH,
    ENGINE_GROUP_FENCE,  ENGINE_METER_ACK,   ENGINE_METER_FLUSH,    ENGINE_DESCRIBE,
    ENGINE_HOST_BEAT,    ENGINE_OPEN,        ENGINE_CLOCK_CONFIRM,  ENGINE_PUBLISH,
    ENGINE_PURGE,        ENGINE_HOLD,        ENGINE_COUNTERS_FLUSH, ENGINE_TRIM_ACK,
};

static struct fuzz_node node;
static int client;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_node_open(&node, "host", 2, 0);
    fuzz_node_attach(&node);
    return 0;
}

/* A call that the host was notified of, on its own connection. */
static void call_open(void)
{
    int ends[2];
    int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
    assert(failed == 0);
    struct http2 *http2 = grpc_server_transport(engine_shard(node.engine, 0)->grpc);
    enum status status = http2_connection_open(http2, ends[1]);
    assert(status == STATUS_OK);
    client = ends[0];
    static struct fuzz_output output;
    uint8_t block[512];
    output.size = 0;
    fuzz_put_preface(&output);
    size_t size =
        fuzz_header_block(block, sizeof block, "/headrace.stream.v1.Groups/Join", FUZZ_TOKEN, NULL);
    fuzz_put_frame(&output, FUZZ_HEADERS, FUZZ_END_HEADERS, 1, block, size);
    ssize_t sent = send(client, output.bytes, output.size, MSG_NOSIGNAL);
    assert(sent == (ssize_t)output.size);
    node.opened.kind = 0;
    for (int turn = 0; turn < 10 && node.opened.kind == 0; turn++) fuzz_node_turn(&node);
    assert(node.opened.kind == ENGINE_OPEN);
}

static size_t body_partition(uint8_t *body, struct fuzz_input *input, uint16_t kind)
{
    uint8_t how = fuzz_byte(input);
    struct engine_partition_id id = {
        .topic = how & 1 ? FUZZ_TOPIC : fuzz_byte(input),
        .created_revision = how & 2 ? FUZZ_REVISION : fuzz_byte(input),
        .partition = how >> 4,
    };
    memcpy(body, &id, sizeof id);
    if (kind != ENGINE_PUBLISH || how & 8) return sizeof id;
    /* The batch of a whole request, behind its other fields: its last bytes. */
    uint8_t request[BODY_SIZE / 2];
    size_t size = fuzz_produce_request(request, sizeof request, 0, fuzz_byte(input) % 50);
    const uint8_t *part = memchr(request, 0x22, 16);
    assert(part != NULL);
    part += part[1] & 0x80 ? 3 : 2;
    size_t part_size = (size_t)(request + size - part);
    memcpy(body + sizeof id, part, part_size);
    return sizeof id + part_size;
}

/* What a PURGE or a HOLD says. Intents are small: a high one overtakes all that come after. */
static size_t body_retention(uint8_t *target, struct fuzz_input *input, uint16_t kind)
{
    uint8_t how = fuzz_byte(input);
    struct engine_purge purge = {.log_start = how & 1 ? fuzz_u64(input) : fuzz_byte(input),
                                 .version = fuzz_byte(input)};
    struct engine_hold hold = {.intent_op = fuzz_byte(input),
                               .from_offset = how & 2 ? fuzz_u64(input) : fuzz_byte(input),
                               .held = how & 4 ? fuzz_byte(input) : how >> 7};
    size_t size = kind == ENGINE_PURGE ? sizeof purge : sizeof hold;
    memcpy(target, kind == ENGINE_PURGE ? (const void *)&purge : (const void *)&hold, size);
    return size;
}

static size_t frame_make(uint8_t *target, struct fuzz_input *input)
{
    uint8_t body[BODY_SIZE];
    size_t size = 0;
    struct engine_frame frame = {.kind =
                                     kinds[fuzz_byte(input) % (sizeof kinds / sizeof kinds[0])]};
    uint8_t how = fuzz_byte(input);
    frame.arg0 = how & 1 ? fuzz_u64(input) : fuzz_byte(input);
    frame.arg1 = how & 2 ? fuzz_u64(input) : fuzz_byte(input);
    if (frame.kind < ENGINE_METADATA_SUBMIT) {
        frame.shard = how & 4 ? fuzz_u16(input) : node.opened.shard;
        frame.slot = how & 8 ? fuzz_u32(input) : node.opened.slot;
        frame.slot_tag = how & 16 ? fuzz_u32(input) : node.opened.slot_tag;
    } else if (frame.kind < ENGINE_HOST_BEAT) {
        size = body_partition(body, input, frame.kind);
        if (frame.kind == ENGINE_PURGE || frame.kind == ENGINE_HOLD)
            size += body_retention(body + size, input, frame.kind);
        if (frame.kind == ENGINE_COUNTERS_FLUSH && how & 4) frame.shard = fuzz_u16(input);
    }
    size_t more;
    const uint8_t *rest = fuzz_bytes(input, fuzz_byte(input), &more);
    if (more > sizeof body - size) more = sizeof body - size;
    memcpy(body + size, rest, more);
    size += more;
    frame.size = (uint32_t)(sizeof frame + size);
    if (how & 32) frame.size = fuzz_u32(input);
    memcpy(target, &frame, sizeof frame);
    memcpy(target + sizeof frame, body, size);
    return (sizeof frame + size + 7) & ~(size_t)7;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.at = bytes, .end = bytes + size};
    struct shard *shard = engine_shard(node.engine, 0);
    call_open();
    for (int left = FRAMES_MAX; left > 0 && input.at < input.end; left--) {
        uint8_t frame[sizeof(struct engine_frame) + BODY_SIZE + 8] = {0};
        size_t frame_size = frame_make(frame, &input);
        long taken = engine_send(node.engine, fuzz_copy(frame, frame_size), frame_size);
        assert(taken == STATUS_INVALID || taken == (long)frame_size || taken == 0);
        if (fuzz_byte(&input) & 1) fuzz_node_turn(&node);
    }
    close(client);
    int turns = 0;
    while (http2_connections_count(grpc_server_transport(shard->grpc)) > 0
           || pendings_count(shard->service) > 0
           || pendings_count(engine_shard(node.engine, 1)->service) > 0) {
        fuzz_node_turn(&node);
        assert(turns++ < TURNS_MAX);
    }
    return 0;
}
