/* batch/codec.c: codec.h in terms of batch/batch.c and batch/batch_records.c. Owns no rule of
 * the format itself. */
#include "codec.h"

#include <string.h>

#include "batch/batch.h"
#include "batch/batch_records.h"
#include "foundation/assert.h"
#include "foundation/crc32c.h"

static struct batch_source codec_batch_source(const struct codec_source *source)
{
    return (struct batch_source){
        .records_count = source->records_count,
        .timestamps_us = source->timestamps_us,
        .keys = source->keys,
        .key_sizes = source->key_sizes,
        .values = source->values,
        .value_sizes = source->value_sizes,
        .headers = source->headers,
        .header_sizes = source->header_sizes,
        .header_counts = source->header_counts,
    };
}

int64_t codec_measure(const struct codec_source *source)
{
    struct batch_source columns = codec_batch_source(source);
    uint32_t records_bytes;
    enum status status = batch_records_measure(&columns, &records_bytes);
    return status == STATUS_OK ? (int64_t)records_bytes : (int64_t)status;
}

size_t codec_bound(uint32_t records_bytes, uint32_t codec)
{
    return batch_records_bound(records_bytes, (uint8_t)codec);
}

int64_t codec_encode(const struct codec_source *source, uint32_t records_bytes, uint8_t *scratch,
                     uint8_t *target, size_t target_size)
{
    if (source->codec >= BATCH_CODECS_COUNT) return STATUS_BATCH_CODEC;
    if (target_size < batch_records_bound(records_bytes, (uint8_t)source->codec))
        return STATUS_BUFFER_SHORT;
    struct batch_source columns = codec_batch_source(source);
    struct batch_client client = {
        .record_count = source->records_count,
        .producer_epoch = source->producer_epoch,
        .base_sequence = source->base_sequence,
        .base_timestamp_us = source->timestamps_us[0],
        .max_timestamp_us = source->timestamps_us[0],
        .records_bytes = records_bytes,
        .codec = (uint8_t)source->codec,
    };
    memcpy(client.producer_id, source->producer_id, sizeof client.producer_id);
    for (uint32_t index = 1; index < source->records_count; index++) {
        int64_t timestamp_us = source->timestamps_us[index];
        if (timestamp_us > client.max_timestamp_us) client.max_timestamp_us = timestamp_us;
    }
    uint8_t *records =
        source->codec == BATCH_CODEC_NONE ? target + BATCH_CLIENT_HEADER_BYTES : scratch;
    batch_records_write(&columns, records, records_bytes);
    enum status status = batch_records_seal(&client, records, target, target_size);
    if (status != STATUS_OK) return status;
    /* Read it back as the node will: what we made must be what we accept. */
    status = batch_check_client(target, client.size_bytes, BATCH_CLIENT_BYTES_MAX, &client);
    return status == STATUS_OK ? (int64_t)client.size_bytes : (int64_t)status;
}

static void codec_batch_fill(struct codec_batch *batch, const struct batch_server *server,
                             const struct batch_client *client)
{
    *batch = (struct codec_batch){
        .size_bytes = server->size_bytes,
        .client_bytes = client->size_bytes,
        .base_offset = server->base_offset,
        .append_time_us = server->append_time_us,
        .op = server->op,
        .first_view = server->first_view,
        .principal = server->principal,
        .record_count = client->record_count,
        .cumulative_bytes = server->cumulative_bytes,
        .base_sequence = client->base_sequence,
        .base_timestamp_us = client->base_timestamp_us,
        .max_timestamp_us = client->max_timestamp_us,
        .producer_epoch = client->producer_epoch,
        .records_bytes = client->records_bytes,
        .codec = client->codec,
    };
    memcpy(batch->producer_id, client->producer_id, sizeof batch->producer_id);
}

int64_t codec_next(const uint8_t *bytes, size_t size, uint32_t seed, struct codec_batch *batch)
{
    struct batch_server server;
    struct batch_client client;
    enum status status = batch_check_stored(bytes, size, seed, &server, &client);
    if (status == STATUS_BATCH_SHORT) return 0;
    if (status != STATUS_OK) return status;
    codec_batch_fill(batch, &server, &client);
    return server.size_bytes;
}

int64_t codec_client(const uint8_t *bytes, size_t size, struct codec_batch *batch)
{
    struct batch_server server = {.size_bytes = (uint32_t)size};
    struct batch_client client;
    enum status status = batch_check_client(bytes, size, BATCH_CLIENT_BYTES_MAX, &client);
    if (status != STATUS_OK) return status;
    codec_batch_fill(batch, &server, &client);
    return client.size_bytes;
}

int codec_decode(const uint8_t *client_part, const struct codec_batch *batch, uint8_t *records,
                 const struct codec_columns *columns)
{
    struct batch_client client;
    enum status status = batch_decode_client(client_part, batch->client_bytes, &client);
    if (status != STATUS_OK) return status;
    if (client.size_bytes != batch->client_bytes || client.records_bytes != batch->records_bytes
        || client.record_count != batch->record_count) {
        return STATUS_BATCH_SIZE;
    }
    const uint8_t *opened = client_part + BATCH_CLIENT_HEADER_BYTES;
    if (records || client.codec != BATCH_CODEC_NONE) {
        if (!records) return STATUS_BUFFER_SHORT;
        status = batch_records_open(client_part, &client, records);
        if (status != STATUS_OK) return status;
        opened = records;
    }
    struct batch_columns filled = {
        .timestamps_us = columns->timestamps_us,
        .key_positions = columns->key_positions,
        .key_sizes = columns->key_sizes,
        .value_positions = columns->value_positions,
        .value_sizes = columns->value_sizes,
        .header_positions = columns->header_positions,
        .header_counts = columns->header_counts,
    };
    return batch_records_read(opened, &client, &filled);
}

uint32_t codec_crc32c(const uint8_t *bytes, size_t size)
{
    return crc32c(bytes, size);
}

const char *codec_status_name(int64_t status)
{
    return status_name((int)status);
}

const char *codec_status_text(int64_t status)
{
    return status_text((int)status);
}
