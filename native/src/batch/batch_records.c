/* batch/batch_records.c: see batch/batch_records.h. The libraries of the codecs are spoken to
 * here and nowhere else.
 *
 * Decompression is bounded by records_bytes of a header that was checked: a frame that would give
 * more, or less, is refused, whatever it says about itself. */
#include "batch/batch_records.h"

#include <lz4.h>
#include <string.h>
#include <zstd.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"

enum {
    BATCH_VARINT_BYTES_MAX = 5,
    BATCH_TIMESTAMP_BYTES_MAX = 10,
    BATCH_ZSTD_LEVEL = 3,
};

/* Where the next record's bytes lie in each column. */
struct batch_cursor {
    const uint8_t *key;
    const uint8_t *value;
    const uint8_t *header;
    const int32_t *header_size;
};

static struct batch_cursor batch_cursor_begin(const struct batch_source *source)
{
    return (struct batch_cursor){
        .key = source->keys,
        .value = source->values,
        .header = source->headers,
        .header_size = source->header_sizes,
    };
}

static uint32_t batch_source_headers(const struct batch_source *source, uint32_t index)
{
    return source->header_counts ? source->header_counts[index] : 0;
}

static uint64_t batch_timestamp_delta(const struct batch_source *source, uint32_t index)
{
    return bytes_zigzag(
        (int64_t)((uint64_t)source->timestamps_us[index] - (uint64_t)source->timestamps_us[0]));
}

/* Bytes of a nullable field with its size in front. */
static uint64_t batch_field_bytes(int32_t size)
{
    return size < 0 ? 1 : bytes_uvarint_size((uint64_t)size + 1) + (uint64_t)size;
}

static uint64_t batch_body_bytes(const struct batch_source *source, uint32_t index,
                                 const int32_t *header_sizes)
{
    uint32_t headers = batch_source_headers(source, index);
    uint64_t size = bytes_uvarint_size(index)
                    + bytes_uvarint_size(batch_timestamp_delta(source, index))
                    + batch_field_bytes(source->key_sizes[index])
                    + batch_field_bytes(source->value_sizes[index]) + bytes_uvarint_size(headers);
    for (uint32_t header = 0; header < headers; header++) {
        uint64_t name = (uint64_t)header_sizes[2 * header];
        size += bytes_uvarint_size(name) + name + batch_field_bytes(header_sizes[2 * header + 1]);
    }
    return size;
}

enum status batch_records_measure(const struct batch_source *source, uint32_t *records_bytes)
{
    *records_bytes = 0;
    uint32_t count = source->records_count;
    if (count == 0 || count > BATCH_RECORDS_COUNT_MAX) return STATUS_BATCH_COUNT;
    const int32_t *header_sizes = source->header_sizes;
    uint64_t total = 0;
    for (uint32_t index = 0; index < count; index++) {
        /* The same subtraction must come back as an addition: refuse what would wrap. */
        int64_t delta;
        if (__builtin_sub_overflow(source->timestamps_us[index], source->timestamps_us[0],
                                   &delta)) {
            return STATUS_BATCH_TIMESTAMP;
        }
        uint32_t headers = batch_source_headers(source, index);
        if (headers > BATCH_RECORD_HEADERS_COUNT_MAX) return STATUS_BATCH_RECORD;
        for (uint32_t header = 0; header < headers; header++) {
            if (header_sizes[2 * header] < 0) return STATUS_BATCH_RECORD;
        }
        uint64_t body = batch_body_bytes(source, index, header_sizes);
        total += bytes_uvarint_size(body) + body;
        if (total > BATCH_RECORDS_BYTES_MAX) return STATUS_MESSAGE_TOO_LARGE;
        if (headers > 0) header_sizes += (size_t)2 * headers;
    }
    *records_bytes = (uint32_t)total;
    return STATUS_OK;
}

size_t batch_records_bound(uint32_t records_bytes, uint8_t codec)
{
    size_t bound = records_bytes;
    if (codec == BATCH_CODEC_LZ4) bound = (size_t)LZ4_compressBound((int)records_bytes);
    if (codec == BATCH_CODEC_ZSTD) bound = ZSTD_compressBound(records_bytes);
    return BATCH_CLIENT_HEADER_BYTES + bound;
}

static uint8_t *batch_write_bytes(uint8_t *at, const uint8_t **source, int32_t size)
{
    if (size > 0) {
        memcpy(at, *source, (size_t)size);
        *source += size;
        at += size;
    }
    return at;
}

static uint8_t *batch_write_field(uint8_t *at, const uint8_t **source, int32_t size)
{
    at = bytes_put_uvarint(at, size < 0 ? 0 : (uint64_t)size + 1);
    return batch_write_bytes(at, source, size);
}

void batch_records_write(const struct batch_source *source, uint8_t *target, uint32_t records_bytes)
{
    struct batch_cursor cursor = batch_cursor_begin(source);
    uint8_t *at = target;
    for (uint32_t index = 0; index < source->records_count; index++) {
        uint32_t headers = batch_source_headers(source, index);
        at = bytes_put_uvarint(at, batch_body_bytes(source, index, cursor.header_size));
        at = bytes_put_uvarint(at, index);
        at = bytes_put_uvarint(at, batch_timestamp_delta(source, index));
        at = batch_write_field(at, &cursor.key, source->key_sizes[index]);
        at = batch_write_field(at, &cursor.value, source->value_sizes[index]);
        at = bytes_put_uvarint(at, headers);
        for (uint32_t header = 0; header < headers; header++) {
            at = bytes_put_uvarint(at, (uint64_t)cursor.header_size[0]);
            at = batch_write_bytes(at, &cursor.header, cursor.header_size[0]);
            at = batch_write_field(at, &cursor.header, cursor.header_size[1]);
            cursor.header_size += 2;
        }
    }
    assert(at == target + records_bytes);
}

static void batch_encode_client(const struct batch_client *client, uint8_t *part)
{
    memset(part, 0, BATCH_CLIENT_HEADER_BYTES);
    bytes_put_u32(part, client->size_bytes);
    part[8] = 1;
    part[9] = client->codec;
    bytes_put_u32(part + 12, client->record_count);
    memcpy(part + 16, client->producer_id, BATCH_PRODUCER_ID_BYTES);
    bytes_put_u64(part + 32, client->base_sequence);
    bytes_put_u32(part + 40, client->producer_epoch);
    bytes_put_u32(part + 44, client->record_count - 1);
    bytes_put_i64(part + 48, client->base_timestamp_us);
    bytes_put_i64(part + 56, client->max_timestamp_us);
    bytes_put_u32(part + 64, client->records_bytes);
    bytes_put_u32(part + 4, crc32c(part + 8, client->size_bytes - 8));
}

enum status batch_records_seal(struct batch_client *client, const uint8_t *records, uint8_t *part,
                               size_t part_size)
{
    assert(part_size >= batch_records_bound(client->records_bytes, client->codec));
    uint8_t *target = part + BATCH_CLIENT_HEADER_BYTES;
    size_t room = part_size - BATCH_CLIENT_HEADER_BYTES;
    size_t stored = client->records_bytes;
    if (client->codec == BATCH_CODEC_LZ4) {
        int size =
            LZ4_compress_default((const char *)records, (char *)target, (int)client->records_bytes,
                                 (int)(room < INT32_MAX ? room : INT32_MAX));
        if (size <= 0) return STATUS_BATCH_COMPRESSION;
        stored = (size_t)size;
    } else if (client->codec == BATCH_CODEC_ZSTD) {
        stored = ZSTD_compress(target, room, records, client->records_bytes, BATCH_ZSTD_LEVEL);
        if (ZSTD_isError(stored)) return STATUS_BATCH_COMPRESSION;
    } else {
        assert(client->codec == BATCH_CODEC_NONE);
        if (records != target) memcpy(target, records, stored);
    }
    if (stored > BATCH_CLIENT_BYTES_MAX - BATCH_CLIENT_HEADER_BYTES)
        return STATUS_MESSAGE_TOO_LARGE;
    client->size_bytes = (uint32_t)(BATCH_CLIENT_HEADER_BYTES + stored);
    batch_encode_client(client, part);
    client->crc32c = bytes_get_u32(part + 4);
    return STATUS_OK;
}

void *batch_opener_make(void)
{
    return ZSTD_createDCtx();
}

void batch_opener_free(void *opener)
{
    ZSTD_freeDCtx(opener);
}

enum status batch_records_open_with(void *opener, const uint8_t *part,
                                    const struct batch_client *client, uint8_t *target)
{
    const uint8_t *stored = part + BATCH_CLIENT_HEADER_BYTES;
    size_t stored_bytes = client->size_bytes - BATCH_CLIENT_HEADER_BYTES;
    size_t records_bytes = client->records_bytes;
    if (client->codec == BATCH_CODEC_NONE) {
        assert(stored_bytes == records_bytes);
        memcpy(target, stored, records_bytes);
        return STATUS_OK;
    }
    if (client->codec == BATCH_CODEC_LZ4) {
        int size = LZ4_decompress_safe((const char *)stored, (char *)target, (int)stored_bytes,
                                       (int)records_bytes);
        return size >= 0 && (size_t)size == records_bytes ? STATUS_OK : STATUS_BATCH_COMPRESSION;
    }
    assert(client->codec == BATCH_CODEC_ZSTD);
    /* One frame: a second one behind it would be bytes that no size accounts for. */
    size_t frame = ZSTD_findFrameCompressedSize(stored, stored_bytes);
    if (ZSTD_isError(frame) || frame != stored_bytes) return STATUS_BATCH_COMPRESSION;
    size_t size = opener != NULL
                      ? ZSTD_decompressDCtx(opener, target, records_bytes, stored, stored_bytes)
                      : ZSTD_decompress(target, records_bytes, stored, stored_bytes);
    return !ZSTD_isError(size) && size == records_bytes ? STATUS_OK : STATUS_BATCH_COMPRESSION;
}

enum status batch_records_open(const uint8_t *part, const struct batch_client *client,
                               uint8_t *target)
{
    return batch_records_open_with(NULL, part, client, target);
}

/* A nullable field: its position and size; NULL if it does not fit. */
static const uint8_t *batch_read_field(const uint8_t *at, const uint8_t *end,
                                       const uint8_t *records, uint32_t *position, int32_t *size)
{
    uint64_t sized;
    at = bytes_get_uvarint(at, end, BATCH_VARINT_BYTES_MAX, &sized);
    if (!at) return NULL;
    *position = (uint32_t)(at - records);
    if (sized == 0) {
        *size = -1;
        return at;
    }
    if (sized - 1 > (uint64_t)(end - at)) return NULL;
    *size = (int32_t)(sized - 1);
    return at + (sized - 1);
}

/* No overlong forms, no surrogates, nothing above U+10FFFF. */
int batch_name_valid(const uint8_t *bytes, size_t size)
{
    const uint8_t *at = bytes;
    const uint8_t *end = bytes + size;
    while (at < end) {
        uint8_t lead = *at++;
        if (lead < 0x80) continue;
        unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - at) < more) return 0;
        uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        if (*at < low || *at > high) return 0;
        for (unsigned index = 1; index < more; index++) {
            if ((at[index] & 0xc0) != 0x80) return 0;
        }
        at += more;
    }
    return 1;
}

static const uint8_t *batch_read_headers(const uint8_t *at, const uint8_t *end,
                                         const uint8_t *records, uint32_t *position,
                                         uint32_t *count)
{
    uint64_t headers;
    at = bytes_get_uvarint(at, end, BATCH_VARINT_BYTES_MAX, &headers);
    if (!at || headers > BATCH_RECORD_HEADERS_COUNT_MAX) return NULL;
    *position = (uint32_t)(at - records);
    *count = (uint32_t)headers;
    for (uint64_t header = 0; header < headers; header++) {
        uint64_t name;
        uint32_t ignored_position;
        int32_t ignored_size;
        at = bytes_get_uvarint(at, end, BATCH_VARINT_BYTES_MAX, &name);
        if (!at || name > (uint64_t)(end - at)) return NULL;
        if (!batch_name_valid(at, (size_t)name)) return NULL;
        at = batch_read_field(at + name, end, records, &ignored_position, &ignored_size);
        if (!at) return NULL;
    }
    return at;
}

struct batch_row {
    int64_t timestamp_us;
    uint32_t key_position;
    int32_t key_size;
    uint32_t value_position;
    int32_t value_size;
    uint32_t header_position;
    uint32_t header_count;
};

/* One record; `at` moves behind it. */
static enum status batch_read_record(const uint8_t **at, const uint8_t *end, const uint8_t *records,
                                     const struct batch_client *client, uint32_t index,
                                     struct batch_row *row)
{
    uint64_t body_size;
    uint64_t offset_delta;
    uint64_t timestamp_delta;
    const uint8_t *body = bytes_get_uvarint(*at, end, BATCH_VARINT_BYTES_MAX, &body_size);
    if (!body || body_size > (uint64_t)(end - body)) return STATUS_BATCH_RECORD;
    const uint8_t *body_end = body + body_size;
    body = bytes_get_uvarint(body, body_end, BATCH_VARINT_BYTES_MAX, &offset_delta);
    if (!body || offset_delta != index) return STATUS_BATCH_RECORD;
    body = bytes_get_uvarint(body, body_end, BATCH_TIMESTAMP_BYTES_MAX, &timestamp_delta);
    if (!body) return STATUS_BATCH_RECORD;
    if (__builtin_add_overflow(client->base_timestamp_us, bytes_unzigzag(timestamp_delta),
                               &row->timestamp_us)) {
        return STATUS_BATCH_TIMESTAMP;
    }
    if (index == 0 && timestamp_delta != 0) return STATUS_BATCH_TIMESTAMP;
    body = batch_read_field(body, body_end, records, &row->key_position, &row->key_size);
    if (!body) return STATUS_BATCH_RECORD;
    body = batch_read_field(body, body_end, records, &row->value_position, &row->value_size);
    if (!body) return STATUS_BATCH_RECORD;
    body = batch_read_headers(body, body_end, records, &row->header_position, &row->header_count);
    if (body != body_end) return STATUS_BATCH_RECORD;
    *at = body_end;
    return STATUS_OK;
}

enum status batch_records_read(const uint8_t *records, const struct batch_client *client,
                               const struct batch_columns *columns)
{
    const uint8_t *at = records;
    const uint8_t *end = records + client->records_bytes;
    int64_t max_timestamp_us = INT64_MIN;
    for (uint32_t index = 0; index < client->record_count; index++) {
        struct batch_row row;
        if (at == end) return STATUS_BATCH_COUNT;
        enum status status = batch_read_record(&at, end, records, client, index, &row);
        if (status != STATUS_OK) return status;
        if (row.timestamp_us > max_timestamp_us) max_timestamp_us = row.timestamp_us;
        if (!columns) continue;
        columns->timestamps_us[index] = row.timestamp_us;
        columns->key_positions[index] = row.key_position;
        columns->key_sizes[index] = row.key_size;
        columns->value_positions[index] = row.value_position;
        columns->value_sizes[index] = row.value_size;
        columns->header_positions[index] = row.header_position;
        columns->header_counts[index] = row.header_count;
    }
    if (at != end) return STATUS_BATCH_COUNT;
    return max_timestamp_us == client->max_timestamp_us ? STATUS_OK : STATUS_BATCH_TIMESTAMP;
}

static struct batch_field batch_field_at(const uint8_t *records, uint32_t position, int32_t size)
{
    return (struct batch_field){.bytes = records + position, .size = size};
}

enum status batch_record_next(const uint8_t **at, const uint8_t *records,
                              const struct batch_client *client, uint32_t index,
                              struct batch_record *record)
{
    assert(index < client->record_count);
    const uint8_t *end = records + client->records_bytes;
    assert(*at >= records);
    assert(*at <= end);
    struct batch_row row;
    if (*at == end) return STATUS_BATCH_COUNT;
    enum status status = batch_read_record(at, end, records, client, index, &row);
    if (status != STATUS_OK) return status;
    *record = (struct batch_record){
        .timestamp_us = row.timestamp_us,
        .key = batch_field_at(records, row.key_position, row.key_size),
        .value = batch_field_at(records, row.value_position, row.value_size),
        .headers_count = row.header_count,
        .headers_bytes = (uint32_t)(*at - records) - row.header_position,
        .headers = records + row.header_position,
    };
    return STATUS_OK;
}

static struct batch_field batch_header_field(const uint8_t **at, int nullable)
{
    uint64_t size = 0;
    const uint8_t *bytes =
        bytes_get_uvarint(*at, *at + BATCH_VARINT_BYTES_MAX, BATCH_VARINT_BYTES_MAX, &size);
    assert(bytes != NULL);
    int is_null = nullable && size == 0;
    if (nullable && !is_null) size--;
    *at = bytes + size;
    return (struct batch_field){.bytes = bytes, .size = is_null ? -1 : (int32_t)size};
}

void batch_header_next(const uint8_t **at, struct batch_header *header)
{
    header->name = batch_header_field(at, 0);
    header->value = batch_header_field(at, 1);
}

size_t batch_header_bytes(int32_t name_size, int32_t value_size)
{
    assert(name_size >= 0);
    return bytes_uvarint_size((uint64_t)name_size) + (size_t)name_size
           + (size_t)batch_field_bytes(value_size);
}

static uint64_t batch_record_delta(const struct batch_record *record, int64_t base_us)
{
    return bytes_zigzag((int64_t)((uint64_t)record->timestamp_us - (uint64_t)base_us));
}

static uint64_t batch_record_body(const struct batch_record *record, uint32_t index,
                                  int64_t base_us)
{
    return bytes_uvarint_size(index) + bytes_uvarint_size(batch_record_delta(record, base_us))
           + batch_field_bytes(record->key.size) + batch_field_bytes(record->value.size)
           + bytes_uvarint_size(record->headers_count) + record->headers_bytes;
}

size_t batch_record_bytes(const struct batch_record *record, uint32_t index, int64_t base_us)
{
    uint64_t body = batch_record_body(record, index, base_us);
    return bytes_uvarint_size(body) + (size_t)body;
}

static uint8_t *batch_put_field(uint8_t *at, const struct batch_field *field)
{
    const uint8_t *source = field->bytes;
    return batch_write_field(at, &source, field->size);
}

uint8_t *batch_record_write(const struct batch_record *record, uint32_t index, int64_t base_us,
                            uint8_t *at)
{
    at = bytes_put_uvarint(at, batch_record_body(record, index, base_us));
    at = bytes_put_uvarint(at, index);
    at = bytes_put_uvarint(at, batch_record_delta(record, base_us));
    at = batch_put_field(at, &record->key);
    at = batch_put_field(at, &record->value);
    return bytes_put_uvarint(at, record->headers_count);
}

uint8_t *batch_header_write(const struct batch_header *header, uint8_t *at)
{
    assert(header->name.size >= 0);
    const uint8_t *name = header->name.bytes;
    at = bytes_put_uvarint(at, (uint64_t)header->name.size);
    at = batch_write_bytes(at, &name, header->name.size);
    return batch_put_field(at, &header->value);
}
