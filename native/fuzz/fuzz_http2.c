#include "fuzz_http2.h"

#include <string.h>

#include "batch/batch.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"
#include "fuzz_node.h"

enum { FRAME_HEADER_SIZE = 9, RECORD_SIZE = 6, PART_SIZE_MAX = 2048 };

/* Field numbers of stream.proto. */
enum { PRODUCE_BATCH = 4, FETCH_OFFSET = 4, FETCH_WAIT_MS = 6 };

static void put(struct fuzz_output *output, const void *bytes, size_t size)
{
    if (size > FUZZ_OUTPUT_SIZE - output->size) return;
    if (size > 0) memcpy(output->bytes + output->size, bytes, size);
    output->size += size;
}

void fuzz_put_preface(struct fuzz_output *output)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    put(output, preface, sizeof preface - 1);
    fuzz_put_frame(output, FUZZ_SETTINGS, 0, 0, NULL, 0);
}

void fuzz_put_frame(struct fuzz_output *output, uint8_t type, uint8_t flags, uint32_t stream,
                    const uint8_t *body, size_t size)
{
    const uint8_t header[FRAME_HEADER_SIZE] = {
        (uint8_t)(size >> 16),
        (uint8_t)(size >> 8),
        (uint8_t)size,
        type,
        flags,
        (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16),
        (uint8_t)(stream >> 8),
        (uint8_t)stream,
    };
    if (size + sizeof header > FUZZ_OUTPUT_SIZE - output->size) return;
    put(output, header, sizeof header);
    put(output, body, size);
}

/* A literal without indexing; both parts are shorter than 127 bytes. */
static size_t put_field(uint8_t *block, size_t at, size_t room, const char *name, const char *value)
{
    size_t name_size = strlen(name);
    size_t value_size = strlen(value);
    assert(name_size < 127 && value_size < 127);
    assert(at + name_size + value_size + 3 <= room);
    block[at++] = 0;
    block[at++] = (uint8_t)name_size;
    memcpy(block + at, name, name_size);
    at += name_size;
    block[at++] = (uint8_t)value_size;
    memcpy(block + at, value, value_size);
    return at + value_size;
}

size_t fuzz_header_block(uint8_t *block, size_t room, const char *path, const char *token,
                         const char *timeout)
{
    size_t at = put_field(block, 0, room, ":method", "POST");
    at = put_field(block, at, room, ":scheme", "http");
    at = put_field(block, at, room, ":path", path);
    at = put_field(block, at, room, ":authority", "node");
    at = put_field(block, at, room, "content-type", "application/grpc");
    at = put_field(block, at, room, "te", "trailers");
    if (token != NULL) at = put_field(block, at, room, "authorization", token);
    if (timeout != NULL) at = put_field(block, at, room, "grpc-timeout", timeout);
    return at;
}

void fuzz_put_message(struct fuzz_output *output, uint32_t stream, const uint8_t *message,
                      size_t size, uint8_t flags)
{
    uint8_t body[5 + PART_SIZE_MAX + 64] = {0};
    assert(size <= sizeof body - 5);
    body[3] = (uint8_t)(size >> 8);
    body[4] = (uint8_t)size;
    memcpy(body + 5, message, size);
    fuzz_put_frame(output, FUZZ_DATA, flags, stream, body, size + 5);
}

/* A client part without compression; every record is empty. */
static size_t part_make(uint8_t *part, uint32_t records)
{
    size_t size = BATCH_CLIENT_HEADER_BYTES + (size_t)records * RECORD_SIZE;
    assert(size <= PART_SIZE_MAX);
    memset(part, 0, size);
    bytes_put_u32(part, (uint32_t)size);
    part[8] = 1;
    bytes_put_u32(part + 12, records);
    bytes_put_u32(part + 44, records - 1);
    bytes_put_u32(part + 64, records * RECORD_SIZE);
    for (uint32_t index = 0; index < records; index++) {
        uint8_t *record = part + BATCH_CLIENT_HEADER_BYTES + (size_t)index * RECORD_SIZE;
        record[0] = RECORD_SIZE - 1;
        record[1] = (uint8_t)index;
    }
    bytes_put_u32(part + 4, crc32c(part + 8, size - 8));
    return size;
}

static uint8_t *put_number(uint8_t *at, uint32_t field, uint64_t value)
{
    at = bytes_put_uvarint(at, field << 3);
    return bytes_put_uvarint(at, value);
}

size_t fuzz_produce_request(uint8_t *target, size_t room, uint32_t partition, uint32_t records)
{
    uint8_t part[PART_SIZE_MAX];
    records = records % 100 + 1;
    size_t size = part_make(part, records);
    assert(size + 32 <= room);
    uint8_t *at = put_number(target, 1, FUZZ_TOPIC);
    at = put_number(at, 2, FUZZ_REVISION);
    at = put_number(at, 3, partition);
    at = bytes_put_uvarint(at, PRODUCE_BATCH << 3 | 2);
    at = bytes_put_uvarint(at, size);
    memcpy(at, part, size);
    return (size_t)(at - target) + size;
}

size_t fuzz_fetch_request(uint8_t *target, size_t room, uint32_t partition, uint64_t offset,
                          uint32_t wait_ms)
{
    assert(room >= 64);
    uint8_t *at = put_number(target, 1, FUZZ_TOPIC);
    at = put_number(at, 2, FUZZ_REVISION);
    at = put_number(at, 3, partition);
    at = put_number(at, FETCH_OFFSET, offset);
    at = put_number(at, FETCH_WAIT_MS, wait_ms);
    return (size_t)(at - target);
}
