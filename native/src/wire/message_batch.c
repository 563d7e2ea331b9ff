#include "wire/message_batch.h"

#include <string.h>

#include "batch/partitioner.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"

static int64_t time_of(const struct proto_message *message, int64_t now_us)
{
    return message->timestamp_us != 0 ? message->timestamp_us : now_us;
}

/* The three fields of exactly-once go together, and a producer of zeros would be none. */
static enum status measure_producer(const struct proto_publish_request *request)
{
    const struct proto_bytes *id = &request->producer_id;
    if (id->size != 0 && id->size != BATCH_PRODUCER_ID_BYTES) return STATUS_MESSAGE_PRODUCER;
    if (id->size != 0 && bytes_all_zero(id->data, id->size)) return STATUS_MESSAGE_PRODUCER;
    if (id->size == 0 && (request->producer_epoch != 0 || request->base_sequence != 0))
        return STATUS_MESSAGE_PRODUCER;
    if (request->base_sequence > UINT64_MAX - request->messages_count)
        return STATUS_MESSAGE_PRODUCER;
    return STATUS_OK;
}

/* Bytes of its headers in a batch. */
static enum status measure_headers(const struct proto_message *message, uint32_t *headers_bytes)
{
    *headers_bytes = 0;
    if (message->headers_count == 0) return STATUS_OK;
    if (message->headers_count > BATCH_RECORD_HEADERS_COUNT_MAX) return STATUS_MESSAGE_HEADERS;
    struct proto_bytes left = message->all;
    struct batch_header header;
    size_t total = 0;
    int found;
    while ((found = proto_header_next(&left, &header)) == 1) {
        if (!batch_name_valid(header.name.bytes, (size_t)header.name.size))
            return STATUS_MESSAGE_HEADER_NAME;
        total += batch_header_bytes(header.name.size, header.value.size);
    }
    *headers_bytes = (uint32_t)total;
    return found == 0 ? STATUS_OK : STATUS_INVALID;
}

static enum status measure_key(const struct proto_message *message, uint32_t partitions_count,
                               struct message_batch *batch)
{
    if (message->key.size < 0) return STATUS_OK;
    uint32_t partition =
        partitioner_of(message->key.bytes, (size_t)message->key.size, partitions_count);
    if (batch->has_key && partition != batch->partition) return STATUS_MESSAGES_SPAN_PARTITIONS;
    batch->has_key = 1;
    batch->partition = partition;
    return STATUS_OK;
}

static struct batch_record record_of(const struct proto_message *message, int64_t now_us,
                                     uint32_t headers_bytes)
{
    return (struct batch_record){
        .timestamp_us = time_of(message, now_us),
        .key = message->key,
        .value = message->value,
        .headers_count = message->headers_count,
        .headers_bytes = headers_bytes,
    };
}

/* A record's bytes, its time taken into account. */
static enum status measure_record(const struct batch_record *record, uint32_t index,
                                  struct message_batch *batch, size_t *record_bytes)
{
    if (index == 0) {
        batch->base_timestamp_us = record->timestamp_us;
        batch->max_timestamp_us = record->timestamp_us;
    }
    int64_t delta;
    if (__builtin_sub_overflow(record->timestamp_us, batch->base_timestamp_us, &delta))
        return STATUS_BATCH_TIMESTAMP;
    if (record->timestamp_us > batch->max_timestamp_us)
        batch->max_timestamp_us = record->timestamp_us;
    *record_bytes = batch_record_bytes(record, index, batch->base_timestamp_us);
    return STATUS_OK;
}

enum status message_batch_measure(const struct proto_publish_request *request, int64_t now_us,
                                  uint32_t partitions_count, uint32_t part_bytes_max,
                                  struct message_batch *batch)
{
    *batch = (struct message_batch){.records_count = request->messages_count, .now_us = now_us};
    if (request->messages_count == 0 || request->messages_count > BATCH_RECORDS_COUNT_MAX)
        return STATUS_MESSAGES_COUNT;
    enum status status = measure_producer(request);
    if (status != STATUS_OK) return status;
    uint32_t records_bytes_max =
        part_bytes_max > BATCH_CLIENT_HEADER_BYTES ? part_bytes_max - BATCH_CLIENT_HEADER_BYTES : 0;
    struct proto_bytes left = request->all;
    size_t total = 0;
    for (uint32_t index = 0; index < request->messages_count; index++) {
        struct proto_message message;
        if (proto_message_next(&left, &message) != 1) return STATUS_INVALID;
        uint32_t headers_bytes = 0;
        size_t record_bytes = 0;
        status = measure_headers(&message, &headers_bytes);
        if (status == STATUS_OK && !request->has_partition)
            status = measure_key(&message, partitions_count, batch);
        struct batch_record record = record_of(&message, now_us, headers_bytes);
        if (status == STATUS_OK) status = measure_record(&record, index, batch, &record_bytes);
        if (status != STATUS_OK) return status;
        total += record_bytes;
        if (total > records_bytes_max) return STATUS_MESSAGE_TOO_LARGE;
    }
    batch->records_bytes = (uint32_t)total;
    return STATUS_OK;
}

size_t message_batch_bytes(const struct message_batch *batch)
{
    return batch_records_bound(batch->records_bytes, BATCH_CODEC_NONE);
}

static uint8_t *write_headers(const struct proto_message *message, uint8_t *at)
{
    struct proto_bytes left = message->all;
    struct batch_header header;
    for (uint32_t index = 0; index < message->headers_count; index++) {
        int found = proto_header_next(&left, &header);
        assert(found == 1);
        at = batch_header_write(&header, at);
    }
    return at;
}

void message_batch_write(const struct proto_publish_request *request,
                         const struct message_batch *batch, uint8_t *part)
{
    uint8_t *records = part + BATCH_CLIENT_HEADER_BYTES;
    uint8_t *at = records;
    struct proto_bytes left = request->all;
    for (uint32_t index = 0; index < batch->records_count; index++) {
        struct proto_message message;
        int found = proto_message_next(&left, &message);
        assert(found == 1);
        uint32_t headers_bytes = 0;
        enum status status = measure_headers(&message, &headers_bytes);
        assert(status == STATUS_OK);
        struct batch_record record = record_of(&message, batch->now_us, headers_bytes);
        at = batch_record_write(&record, index, batch->base_timestamp_us, at);
        at = write_headers(&message, at);
    }
    assert(at == records + batch->records_bytes);
    struct batch_client client = {
        .record_count = batch->records_count,
        .producer_epoch = request->producer_epoch,
        .base_sequence = request->base_sequence,
        .base_timestamp_us = batch->base_timestamp_us,
        .max_timestamp_us = batch->max_timestamp_us,
        .records_bytes = batch->records_bytes,
        .codec = BATCH_CODEC_NONE,
    };
    if (request->producer_id.size != 0)
        memcpy(client.producer_id, request->producer_id.data, sizeof client.producer_id);
    enum status status = batch_records_seal(&client, records, part, message_batch_bytes(batch));
    assert(status == STATUS_OK);
}
