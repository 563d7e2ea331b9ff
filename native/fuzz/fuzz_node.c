#include "fuzz_node.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/state.h"
#include "foundation/assert.h"
#include "io/io_socket.h"
#include "shard/shard.h"

/* The host's threads send little: what is echoed came out of one input. */
enum {
    SEND_BYTES = 1 << 17,
    RECEIVE_BYTES = ENGINE_FRAME_SIZE_MAX + (1 << 20),
    FURNISH_COOKIE = 1,
    TURNS_MAX = 20000
};

static const char token[] = FUZZ_TOKEN;

struct rows {
    struct engine_row_topic topic;
    struct engine_row_grant grant;
};

static struct rows rows_make(void)
{
    struct rows rows = {
        .topic = {.row = {.kind = ENGINE_ROW_TOPIC, .size = sizeof rows.topic},
                  .topic = FUZZ_TOPIC,
                  .created_revision = FUZZ_REVISION,
                  .organization = 1,
                  .project = 1,
                  .partitions_count = FUZZ_PARTITIONS,
                  .message_bytes_max = 1 << 20,
                  .segment_bytes = 1 << 20},
        .grant = {.row = {.kind = ENGINE_ROW_GRANT, .size = sizeof rows.grant},
                  .key_id = "editor0001",
                  .principal = 16,
                  .organization = 1,
                  .verbs = ENGINE_VERB_PRODUCE | ENGINE_VERB_CONSUME},
    };
    const char *secret = token + strlen("Bearer hr_user_editor0001_");
    (void)SHA256((const uint8_t *)secret, 43, rows.grant.sha256);
    return rows;
}

void fuzz_node_open(struct fuzz_node *node, const char *name, uint16_t shards_count, int keep)
{
    char path[128];
    char command[192];
    snprintf(path, sizeof path, "build/fuzz/node-%s", name);
    snprintf(command, sizeof command, "rm -rf %s", path);
    int failed = keep ? 0 : system(command);
    assert(failed == 0);
    struct engine_config config = {
        .data_path = path,
        .host = "127.0.0.1",
        .shards_count = shards_count,
        .cluster_id = "cl_fuzz",
        .node_id = "nd_fuzz",
        .admin_key_id = "adminadmin",
        .journal_bytes = 12 << 20,
        .extent_bytes = 1 << 20,
        .memory_bytes = 64 << 20,
        .metering_window_s = 1,
        .partitions_max = 16,
    };
    *node = (struct fuzz_node){.engine = NULL};
    char detail[256];
    int status = engine_open(&config, &node->engine, detail, sizeof detail);
    if (status != STATUS_OK) fprintf(stderr, "%s: %s\n", engine_status_name(status), detail);
    assert(status == STATUS_OK);
}

static void send_frame(struct fuzz_node *node, const struct engine_frame *header, const void *body,
                       size_t size)
{
    static _Thread_local uint8_t buffer[SEND_BYTES];
    struct engine_frame frame = *header;
    frame.size = (uint32_t)(sizeof frame + size);
    assert(size <= sizeof buffer - sizeof frame - 8);
    memset(buffer + (frame.size & ~7u), 0, 8);
    memcpy(buffer, &frame, sizeof frame);
    if (size > 0) memcpy(buffer + sizeof frame, body, size);
    size_t padded = (frame.size + 7u) & ~(size_t)7;
    long taken = engine_send(node->engine, buffer, padded);
    assert(taken >= 0);
    /* A full ring: lost here is a client's answer, never metadata: one op is out at once. */
    maybe(taken == (long)padded);
}

void fuzz_node_furnish(struct fuzz_node *node)
{
    struct rows rows = rows_make();
    struct engine_frame frame = {.kind = ENGINE_METADATA_SUBMIT, .arg0 = FURNISH_COOKIE};
    send_frame(node, &frame, &rows, sizeof rows);
}

static void serve_applied(struct fuzz_node *node, uint64_t op, const uint8_t *delta, size_t size)
{
    uint8_t body[8 + sizeof(struct rows)] = "applied";
    assert(size <= sizeof(struct rows));
    memcpy(body + 8, delta, size);
    struct engine_frame frame = {.kind = ENGINE_METADATA_APPLIED, .arg0 = op, .arg1 = 8};
    send_frame(node, &frame, body, 8 + size);
}

static void serve_meter(struct fuzz_node *node, const uint8_t *body)
{
    struct engine_meter_close close;
    memcpy(&close, body, sizeof close);
    struct engine_frame frame = {.kind = ENGINE_METER_ACK, .arg1 = close.sequence};
    send_frame(node, &frame, &close.id, sizeof close.id);
}

static void serve_trim(struct fuzz_node *node, const uint8_t *body)
{
    struct engine_trimmed trimmed;
    memcpy(&trimmed, body, sizeof trimmed);
    struct engine_frame frame = {.kind = ENGINE_TRIM_ACK, .arg1 = trimmed.sequence};
    send_frame(node, &frame, &trimmed.id, sizeof trimmed.id);
}

/* Windows follow each other, lie within an hour, and say something. */
static void serve_counters(struct fuzz_node *node, const struct engine_frame *asked,
                           const uint8_t *body, size_t size)
{
    static int64_t end_us[ENGINE_SHARDS_MAX];
    struct engine_counters counters;
    assert(size >= sizeof counters);
    memcpy(&counters, body, sizeof counters);
    assert(size == sizeof counters + counters.rows_count * sizeof(struct engine_counter));
    assert(counters.rows_count > 0 || counters.final);
    assert(counters.window_end_us >= end_us[asked->shard]);
    end_us[asked->shard] = counters.window_end_us;
    for (uint32_t index = 0; index < counters.rows_count; index++) {
        struct engine_counter row;
        memcpy(&row, body + sizeof counters + index * sizeof row, sizeof row);
        assert(row.delta > 0 && row.delta <= row.cumulative);
        assert(row.window_start_us < counters.window_end_us);
        assert(row.topic == FUZZ_TOPIC);
    }
    node->counter_rows += counters.rows_count;
}

/* A host call: every message comes back, and its end with OK. */
static void serve_call(struct fuzz_node *node, const struct engine_frame *asked,
                       const uint8_t *body, size_t size)
{
    struct engine_frame frame = *asked;
    if (asked->kind == ENGINE_OPEN) node->opened = *asked;
    if (asked->kind == ENGINE_MESSAGE) {
        frame.kind = ENGINE_SEND_CREDIT;
        frame.arg0 = size;
        send_frame(node, &frame, NULL, 0);
        frame.kind = ENGINE_SEND_MESSAGE;
        send_frame(node, &frame, body, size);
    }
    if (asked->kind == ENGINE_HALF_CLOSE) {
        frame.kind = ENGINE_SEND_STATUS;
        frame.arg0 = 0;
        send_frame(node, &frame, NULL, 0);
    }
}

static void serve_frame(struct fuzz_node *node, const struct engine_frame *asked,
                        const uint8_t *body, size_t size)
{
    struct engine_frame frame = {.arg0 = asked->arg0};
    struct rows rows = rows_make();
    switch (asked->kind) {
    case ENGINE_METADATA_RESTORE:
        frame.kind = ENGINE_METADATA_RESTORED;
        send_frame(node, &frame, body, size);
        return;
    case ENGINE_METADATA_APPLY: serve_applied(node, asked->arg0, body, size); return;
    case ENGINE_METADATA_SNAPSHOT:
        frame.kind = ENGINE_METADATA_SNAPSHOT_IS;
        send_frame(node, &frame, &rows, sizeof rows);
        return;
    case ENGINE_METADATA_READY: __atomic_store_n(&node->ready, 1, __ATOMIC_RELEASE); return;
    case ENGINE_REPLY:
        if (asked->arg0 == FURNISH_COOKIE && size == 8)
            __atomic_store_n(&node->furnished, 1, __ATOMIC_RELEASE);
        return;
    case ENGINE_METER_CLOSE: serve_meter(node, body); return;
    case ENGINE_TRIMMED: serve_trim(node, body); return;
    case ENGINE_COUNTERS: serve_counters(node, asked, body, size); return;
    case ENGINE_STOPPED: node->stopped = 1; return;
    default: serve_call(node, asked, body, size); return;
    }
}

void fuzz_node_serve(struct fuzz_node *node)
{
    static uint8_t buffer[RECEIVE_BYTES];
    struct engine_frame calls[64];
    size_t taken = engine_receive(node->engine, buffer, sizeof buffer);
    for (size_t at = 0; at < taken;) {
        struct engine_frame frame;
        memcpy(&frame, buffer + at, sizeof frame);
        serve_frame(node, &frame, buffer + at + sizeof frame, frame.size - sizeof frame);
        at += (frame.size + 7u) & ~(size_t)7;
    }
    (void)engine_cancelled(node->engine, calls, 64);
}

void fuzz_node_turn(struct fuzz_node *node)
{
    fuzz_node_serve(node);
    for (uint16_t index = 0; index < node->engine->node.shards_count; index++) {
        /* Nothing waits here: an input that sleeps is an input lost. */
        wake_raise_always(&node->engine->shards[index].wake);
        shard_turn(&node->engine->shards[index]);
    }
    assert(!node->stopped);
}

void fuzz_node_attach(struct fuzz_node *node)
{
    struct engine *engine = node->engine;
    enum status status = socket_listen(engine->node.host, 0, &engine->node.listener, &engine->port);
    assert(status == STATUS_OK);
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
        status = shard_attach(&engine->shards[index]);
        assert(status == STATUS_OK);
        shard_begin(&engine->shards[index]);
    }
    for (int turn = 0; turn < TURNS_MAX && !node->ready; turn++) fuzz_node_turn(node);
    assert(node->ready);
    fuzz_node_furnish(node);
    while (!node->furnished) fuzz_node_turn(node);
}
