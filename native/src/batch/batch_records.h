/* batch/batch_records.h: the records inside a client part: made from arrays, taken apart into
 * arrays, one call a batch.
 *
 *     record := uvarint body_size | body
 *     body   := uvarint offset_delta | svarint timestamp - base
 *             | uvarint key_size + 1, key | uvarint value_size + 1, value
 *             | uvarint header_count, { uvarint name_size, name | uvarint value_size + 1, value }*
 *
 * Sizes of -1 mean null. Positions count from the first byte of the decompressed records. Headers
 * are checked here and decoded by the caller that needs them: most readers never do. */
#ifndef BATCH_BATCH_RECORDS_H
#define BATCH_BATCH_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "batch/batch.h"
#include "foundation/status.h"

/* Records to encode: each column's bytes end to end, in order. */
struct batch_source {
    uint32_t records_count;
    uint32_t reserved;
    const int64_t *timestamps_us;
    const uint8_t *keys;
    const int32_t *key_sizes; /* -1 = null */
    const uint8_t *values;
    const int32_t *value_sizes;    /* -1 = null */
    const uint8_t *headers;        /* name, value, name, value, .. */
    const int32_t *header_sizes;   /* name, value, ..; a value's -1 = null */
    const uint32_t *header_counts; /* per record; NULL = no record has headers */
};

/* Arrays of record_count entries each, to be filled. */
struct batch_columns {
    int64_t *timestamps_us;
    uint32_t *key_positions;
    int32_t *key_sizes;
    uint32_t *value_positions;
    int32_t *value_sizes;
    uint32_t *header_positions; /* of the first header, behind the count */
    uint32_t *header_counts;
};

/* A nullable field: size -1 = null. Bytes are borrowed. */
struct batch_field {
    const uint8_t *bytes;
    int32_t size;
    uint32_t reserved;
};

struct batch_header {
    struct batch_field name; /* UTF-8, never null */
    struct batch_field value;
};

/* One record, to write or as read. */
struct batch_record {
    int64_t timestamp_us;
    struct batch_field key;
    struct batch_field value;
    uint32_t headers_count;
    uint32_t headers_bytes; /* encoded, without the count */
    const uint8_t *headers; /* read only: the first, for batch_header_next */
};

/* Bytes that the records take before compression. BATCH_COUNT: none, or too many; BATCH_RECORD: too
 * many headers; MESSAGE_TOO_LARGE: beyond BATCH_RECORDS_BYTES_MAX. */
enum status batch_records_measure(const struct batch_source *source, uint32_t *records_bytes);

/* What a client part may take at most for so many bytes of records. */
size_t batch_records_bound(uint32_t records_bytes, uint8_t codec);

/* Write the records uncompressed: exactly records_bytes of them, as measured. */
void batch_records_write(const struct batch_source *source, uint8_t *target,
                         uint32_t records_bytes);

/* Compress `records` behind the header in `part`, then write the header with its CRC. `client`
 * gives codec, producer, counts, times; size_bytes and crc32c are filled. With codec none, records
 * may lie in place already. */
enum status batch_records_seal(struct batch_client *client, const uint8_t *records, uint8_t *part,
                               size_t part_size);

/* Decompress a checked client part's records into `target`, of exactly client->records_bytes. */
enum status batch_records_open(const uint8_t *part, const struct batch_client *client,
                               uint8_t *target);

/* The same in memory that batch_opener_make took once: allocates nothing. NULL = no memory. */
void *batch_opener_make(void);
void batch_opener_free(void *opener);
enum status batch_records_open_with(void *opener, const uint8_t *part,
                                    const struct batch_client *client, uint8_t *target);

/* Walk decompressed records, checking everything; fills the columns if there are any. Every count
 * that lies is a status: BATCH_RECORD, BATCH_COUNT, BATCH_TIMESTAMP. */
enum status batch_records_read(const uint8_t *records, const struct batch_client *client,
                               const struct batch_columns *columns);

/* Record by record, where no columns are wanted. `at` moves behind the record at `index`, which
 * must lie within the client's records (decompressed, at `records`). */
enum status batch_record_next(const uint8_t **at, const uint8_t *records,
                              const struct batch_client *client, uint32_t index,
                              struct batch_record *record);
/* The header at `at`, of a record that was read; `at` moves behind it. */
void batch_header_next(const uint8_t **at, struct batch_header *header);

/* Strict UTF-8: what a header's name must be. */
int batch_name_valid(const uint8_t *bytes, size_t size);
size_t batch_header_bytes(int32_t name_size, int32_t value_size);
/* Of the whole record, its size in front. `base_us` is the first record's time: STATUS_OK was found
 * for the difference. */
size_t batch_record_bytes(const struct batch_record *record, uint32_t index, int64_t base_us);
/* Everything but the headers, which batch_header_write adds directly behind. Each returns the byte
 * after. */
uint8_t *batch_record_write(const struct batch_record *record, uint32_t index, int64_t base_us,
                            uint8_t *at);
uint8_t *batch_header_write(const struct batch_header *header, uint8_t *at);

#endif
