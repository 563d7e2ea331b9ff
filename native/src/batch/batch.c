/* batch/batch.c: the two headers of a batch. See batch/batch.h and docs/internals/log-format.md
 * for the layout.
 *
 *     server header:  magic 4 | size 4 | crc 4 | version 2 | flags 2 | base_offset 8 |
 *                     append_time 8 | op 8 | first_view 8 |
 *                     principal 4 | key_id 4 | cumulative 8 | nonce 12 | digest 16 | client crc 4
 *     client header:  size 4 | crc 4 | version 1 | codec 1 | flags 2 | count 4 | producer 16 |
 *                     sequence 8 | epoch 4 | last_offset_delta 4 | base_timestamp 8 |
 *                     max_timestamp 8 | records_bytes 4 | zero 4
 *
 * Checks go from the outside in: sizes first, then the CRC, then meaning. So any flipped bit is
 * found before a field is believed, and a batch that was made wrong is distinguished from one that
 * was damaged on its way. */
#include "batch/batch.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"
#include "foundation/identity.h"

enum {
    BATCH_MAGIC = 0x31425248, /* "HRB1" */
    BATCH_VERSION = 1,
};

static enum status batch_check_client_sizes(const uint8_t *bytes, size_t size)
{
    if (size < BATCH_CLIENT_HEADER_BYTES) return STATUS_BATCH_SHORT;
    uint32_t size_bytes = bytes_get_u32(bytes);
    if (size_bytes < BATCH_CLIENT_HEADER_BYTES + 1 || size_bytes > BATCH_CLIENT_BYTES_MAX)
        return STATUS_BATCH_SIZE;
    return STATUS_OK;
}

static enum status batch_check_client_meaning(const uint8_t *bytes,
                                              const struct batch_client *client)
{
    if (bytes[8] != BATCH_VERSION) return STATUS_BATCH_VERSION;
    if (client->codec >= BATCH_CODECS_COUNT) return STATUS_BATCH_CODEC;
    if (bytes_get_u16(bytes + 10) != 0 || bytes_get_u32(bytes + 68) != 0)
        return STATUS_BATCH_RESERVED;

    uint32_t count = client->record_count;
    if (count == 0 || count > BATCH_RECORDS_COUNT_MAX) return STATUS_BATCH_COUNT;
    if (bytes_get_u32(bytes + 44) != count - 1) return STATUS_BATCH_COUNT;
    if (client->records_bytes > BATCH_RECORDS_BYTES_MAX) return STATUS_BATCH_SIZE;
    if (client->records_bytes < (uint64_t)count * BATCH_RECORD_BYTES_MIN) return STATUS_BATCH_COUNT;
    uint32_t stored = client->size_bytes - BATCH_CLIENT_HEADER_BYTES;
    if (client->codec == BATCH_CODEC_NONE && client->records_bytes != stored)
        return STATUS_BATCH_SIZE;

    if (!client->idempotent && (client->producer_epoch != 0 || client->base_sequence != 0))
        return STATUS_BATCH_PRODUCER;
    if (client->base_sequence > UINT64_MAX - count) return STATUS_BATCH_PRODUCER;
    if (client->max_timestamp_us < client->base_timestamp_us) return STATUS_BATCH_TIMESTAMP;
    return STATUS_OK;
}

enum status batch_decode_client(const uint8_t *bytes, size_t size, struct batch_client *client)
{
    memset(client, 0, sizeof *client);
    enum status status = batch_check_client_sizes(bytes, size);
    if (status != STATUS_OK) return status;
    client->size_bytes = bytes_get_u32(bytes);
    client->crc32c = bytes_get_u32(bytes + 4);
    client->codec = bytes[9];
    client->record_count = bytes_get_u32(bytes + 12);
    memcpy(client->producer_id, bytes + 16, BATCH_PRODUCER_ID_BYTES);
    client->base_sequence = bytes_get_u64(bytes + 32);
    client->producer_epoch = bytes_get_u32(bytes + 40);
    client->base_timestamp_us = bytes_get_i64(bytes + 48);
    client->max_timestamp_us = bytes_get_i64(bytes + 56);
    client->records_bytes = bytes_get_u32(bytes + 64);
    client->idempotent = !bytes_all_zero(client->producer_id, BATCH_PRODUCER_ID_BYTES);
    return batch_check_client_meaning(bytes, client);
}

/* The CRC of a whole client part. */
static enum status batch_check_client_crc(const uint8_t *bytes, uint32_t size_bytes)
{
    uint32_t crc = crc32c(bytes + 8, size_bytes - 8);
    return crc == bytes_get_u32(bytes + 4) ? STATUS_OK : STATUS_BATCH_CHECKSUM;
}

enum status batch_check_client(const uint8_t *bytes, size_t size, uint32_t client_bytes_max,
                               struct batch_client *client)
{
    memset(client, 0, sizeof *client);
    if (size > client_bytes_max || size > BATCH_CLIENT_BYTES_MAX) return STATUS_MESSAGE_TOO_LARGE;
    enum status status = batch_check_client_sizes(bytes, size);
    if (status != STATUS_OK) return status;
    if (bytes_get_u32(bytes) != size) return STATUS_BATCH_SIZE;
    status = batch_check_client_crc(bytes, (uint32_t)size);
    if (status != STATUS_OK) return status;
    return batch_decode_client(bytes, size, client);
}

uint32_t batch_seed(const char *cluster_id, uint64_t topic, uint64_t created_revision,
                    uint32_t partition)
{
    uint8_t identity[IDENTITY_BYTES];
    identity_put(identity, cluster_id, topic, created_revision, partition);
    return crc32c(identity, sizeof identity);
}

static uint32_t batch_server_crc(const uint8_t *bytes, uint32_t seed)
{
    return crc32c_extend(crc32c_extend(seed, bytes, 8), bytes + 12, BATCH_SERVER_HEADER_BYTES - 12);
}

void batch_read_server(const uint8_t *bytes, struct batch_server *server)
{
    assert(bytes_get_u32(bytes) == BATCH_MAGIC);
    *server = (struct batch_server){
        .size_bytes = bytes_get_u32(bytes + 4),
        .client_crc = bytes_get_u32(bytes + 92),
        .base_offset = bytes_get_u64(bytes + 16),
        .append_time_us = bytes_get_i64(bytes + 24),
        .op = bytes_get_u64(bytes + 32),
        .first_view = bytes_get_u64(bytes + 40),
        .principal = bytes_get_u32(bytes + 48),
        .key_id = bytes_get_u32(bytes + 52),
        .cumulative_bytes = bytes_get_u64(bytes + 56),
    };
    memcpy(server->digest, bytes + 76, sizeof server->digest);
}

enum status batch_decode_server(const uint8_t *bytes, size_t size, uint32_t seed,
                                struct batch_server *server)
{
    memset(server, 0, sizeof *server);
    if (size < BATCH_SERVER_HEADER_BYTES) return STATUS_BATCH_SHORT;
    if (bytes_get_u32(bytes) != BATCH_MAGIC) return STATUS_BATCH_MAGIC;
    if (bytes_get_u32(bytes + 8) != batch_server_crc(bytes, seed)) return STATUS_BATCH_CHECKSUM;
    if (bytes_get_u16(bytes + 12) != BATCH_VERSION) return STATUS_BATCH_VERSION;
    /* Flags, encryption and the rest are not known to this version: believing them zero would
     * misread the batch. */
    if (bytes_get_u16(bytes + 14) != 0 || bytes_get_u32(bytes + 52) != 0)
        return STATUS_BATCH_RESERVED;
    if (!bytes_all_zero(bytes + 64, 12)) return STATUS_BATCH_RESERVED;
    batch_read_server(bytes, server);
    if (server->size_bytes <= BATCH_HEADERS_BYTES || server->size_bytes > BATCH_STORED_BYTES_MAX)
        return STATUS_BATCH_SIZE;
    return STATUS_OK;
}

int batch_versions_known(const uint8_t *bytes, size_t size)
{
    if (size < BATCH_HEADERS_BYTES) return 1;
    return bytes_get_u16(bytes + 12) <= BATCH_VERSION
           && bytes[BATCH_SERVER_HEADER_BYTES + 8] <= BATCH_VERSION;
}

enum status batch_check_stored(const uint8_t *bytes, size_t size, uint32_t seed,
                               struct batch_server *server, struct batch_client *client)
{
    memset(client, 0, sizeof *client);
    enum status status = batch_decode_server(bytes, size, seed, server);
    if (status != STATUS_OK) return status;
    if (server->size_bytes > size) return STATUS_BATCH_SHORT;
    uint32_t client_bytes = server->size_bytes - BATCH_SERVER_HEADER_BYTES;
    status = batch_check_client(bytes + BATCH_SERVER_HEADER_BYTES, client_bytes,
                                BATCH_CLIENT_BYTES_MAX, client);
    if (status != STATUS_OK) return status;
    return client->crc32c == server->client_crc ? STATUS_OK : STATUS_BATCH_CHECKSUM;
}

void batch_encode_server(const struct batch_server *server, uint32_t seed,
                         uint8_t bytes[BATCH_SERVER_HEADER_BYTES])
{
    assert(server->size_bytes > BATCH_HEADERS_BYTES);
    assert(server->size_bytes <= BATCH_STORED_BYTES_MAX);
    assert(server->key_id == 0);
    memset(bytes, 0, BATCH_SERVER_HEADER_BYTES);
    bytes_put_u32(bytes, BATCH_MAGIC);
    bytes_put_u32(bytes + 4, server->size_bytes);
    bytes_put_u16(bytes + 12, BATCH_VERSION);
    bytes_put_u64(bytes + 16, server->base_offset);
    bytes_put_i64(bytes + 24, server->append_time_us);
    bytes_put_u64(bytes + 32, server->op);
    bytes_put_u64(bytes + 40, server->first_view);
    bytes_put_u32(bytes + 48, server->principal);
    bytes_put_u64(bytes + 56, server->cumulative_bytes);
    memcpy(bytes + 76, server->digest, sizeof server->digest);
    bytes_put_u32(bytes + 92, server->client_crc);
    bytes_put_u32(bytes + 8, batch_server_crc(bytes, seed));
}

void batch_assign(uint8_t *stored, uint32_t seed, uint64_t base_offset, uint64_t cumulative_bytes)
{
    assert(bytes_get_u32(stored) == BATCH_MAGIC);
    bytes_put_u64(stored + 16, base_offset);
    bytes_put_u64(stored + 56, cumulative_bytes);
    bytes_put_u32(stored + 8, batch_server_crc(stored, seed));
}
