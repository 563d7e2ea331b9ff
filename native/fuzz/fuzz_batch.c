/* fuzz_batch.c: batches: a client part, stored batches end to end, records of every codec.
 *
 * The input is walked as stored batches and taken as one client part; then again as a copy whose
 * CRCs were made right, so that mutations reach what lies behind them. Asserts that a walk stays
 * inside and that records fill exactly what their header announced, however they are compressed. */
#include <string.h>

#include "batch/batch.h"
#include "batch/batch_records.h"
#include "codec.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"
#include "fuzz_input.h"

/* Larger announcements are checked as headers only: filling them would take all the time. */
enum { RECORDS_BYTES_MAX = FUZZ_COPY_SIZE_MAX, RECORDS_COUNT_MAX = 65536, RECORDS_ROOM = 1 };

static const uint32_t SEED = 0; /* any one is as good */

static void column_inside(uint32_t position, int32_t size, uint32_t records_bytes)
{
    assert(size >= -1);
    if (size == -1) return;
    assert(position <= records_bytes);
    assert((uint32_t)size <= records_bytes - position);
}

static void part_take_apart(const uint8_t *part, const struct batch_client *client)
{
    static int64_t timestamps_us[RECORDS_COUNT_MAX];
    static uint32_t positions[3][RECORDS_COUNT_MAX];
    static int32_t sizes[2][RECORDS_COUNT_MAX];
    static uint32_t header_counts[RECORDS_COUNT_MAX];
    if (client->records_bytes > RECORDS_BYTES_MAX) return;
    uint8_t *records = fuzz_room(RECORDS_ROOM, client->records_bytes);
    if (batch_records_open(part, client, records) != STATUS_OK) return;
    struct batch_columns columns = {
        .timestamps_us = timestamps_us,
        .key_positions = positions[0],
        .key_sizes = sizes[0],
        .value_positions = positions[1],
        .value_sizes = sizes[1],
        .header_positions = positions[2],
        .header_counts = header_counts,
    };
    int all = client->record_count <= RECORDS_COUNT_MAX;
    enum status status = batch_records_read(records, client, all ? &columns : NULL);
    if (status != STATUS_OK || !all) return;
    for (uint32_t index = 0; index < client->record_count; index++) {
        column_inside(positions[0][index], sizes[0][index], client->records_bytes);
        column_inside(positions[1][index], sizes[1][index], client->records_bytes);
        assert(timestamps_us[index] <= client->max_timestamp_us);
    }
}

static void part_check(const uint8_t *bytes, size_t size)
{
    struct batch_client client;
    if (batch_check_client(bytes, size, BATCH_CLIENT_BYTES_MAX, &client) != STATUS_OK) return;
    assert(client.size_bytes == size);
    part_take_apart(bytes, &client);
    struct codec_batch batch;
    assert(codec_client(bytes, size, &batch) == (int64_t)size);
    assert(batch.record_count == client.record_count);
}

static void stored_walk(const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        struct batch_server server;
        struct batch_client client;
        enum status status = batch_check_stored(bytes + at, size - at, SEED, &server, &client);
        struct codec_batch batch;
        int64_t next = codec_next(bytes + at, size - at, SEED, &batch);
        if (status != STATUS_OK) {
            assert(next <= 0);
            return;
        }
        assert(next == (int64_t)server.size_bytes);
        assert(server.size_bytes <= size - at);
        assert(server.size_bytes == client.size_bytes + BATCH_SERVER_HEADER_BYTES);
        part_take_apart(bytes + at + BATCH_SERVER_HEADER_BYTES, &client);
        at += server.size_bytes;
    }
}

/* The CRC of the client part that begins here, as far as its size says. */
static void part_reseal(uint8_t *part, size_t available)
{
    if (available < BATCH_CLIENT_HEADER_BYTES) return;
    uint32_t size = bytes_get_u32(part);
    if (size < BATCH_CLIENT_HEADER_BYTES || size > available) return;
    bytes_put_u32(part + 4, crc32c(part + 8, size - 8));
}

static void stored_reseal(uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (size - at > BATCH_HEADERS_BYTES) {
        uint8_t *stored = bytes + at;
        part_reseal(stored + BATCH_SERVER_HEADER_BYTES, size - at - BATCH_SERVER_HEADER_BYTES);
        memcpy(stored + 92, stored + BATCH_SERVER_HEADER_BYTES + 4, 4); /* the part's CRC */
        uint32_t crc = crc32c_extend(SEED, stored, 8);
        crc = crc32c_extend(crc, stored + 12, BATCH_SERVER_HEADER_BYTES - 12);
        bytes_put_u32(stored + 8, crc);
        uint32_t stored_bytes = bytes_get_u32(stored + 4);
        if (stored_bytes == 0 || stored_bytes > size - at) return;
        at += stored_bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > FUZZ_COPY_SIZE_MAX) return 0;
    part_check(bytes, size);
    stored_walk(bytes, size);
    uint8_t *copy = fuzz_copy(bytes, size);
    stored_reseal(copy, size);
    stored_walk(copy, size);
    if (size > BATCH_HEADERS_BYTES) {
        size_t part_size = size - BATCH_SERVER_HEADER_BYTES;
        part_check(copy + BATCH_SERVER_HEADER_BYTES, part_size);
    }
    memcpy(copy, bytes, size);
    part_reseal(copy, size);
    part_check(copy, size);
    return 0;
}
