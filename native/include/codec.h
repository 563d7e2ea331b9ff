/* codec.h: the batch format for programs outside the node, read as it is by C and by cffi.
 *
 * What headrace/codec/native_codec.py calls: one crossing a batch, never one a record. Sizes of -1
 * mean null; numbers returned below zero are statuses (codec_status_name). Nothing here keeps a
 * pointer after it returned. */
#ifndef CODEC_H
#define CODEC_H

#include <stddef.h>
#include <stdint.h>

/* Both headers of a stored batch, checked with both CRCs. */
struct codec_batch {
    uint32_t size_bytes;   /* of the stored batch */
    uint32_t client_bytes; /* of its client part, at size_bytes - client_bytes */
    uint64_t base_offset;
    int64_t append_time_us;
    uint64_t op;
    uint64_t first_view;
    uint32_t principal;
    uint32_t record_count;
    uint64_t cumulative_bytes;
    uint8_t producer_id[16];
    uint64_t base_sequence;
    int64_t base_timestamp_us;
    int64_t max_timestamp_us;
    uint32_t producer_epoch;
    uint32_t records_bytes;
    uint32_t codec;
    uint32_t reserved;
};

/* Records to encode, each column's bytes end to end. */
struct codec_source {
    uint32_t records_count;
    uint32_t codec; /* 0 none, 1 lz4, 2 zstd */
    const int64_t *timestamps_us;
    const uint8_t *keys;
    const int32_t *key_sizes;
    const uint8_t *values;
    const int32_t *value_sizes;
    const uint8_t *headers; /* name, value, name, value, .. */
    const int32_t *header_sizes;
    const uint32_t *header_counts; /* per record; NULL = no headers at all */
    uint8_t producer_id[16];
    uint64_t base_sequence;
    uint32_t producer_epoch;
    uint32_t reserved;
};

/* Arrays of record_count entries to be filled; positions count from the first byte of the records.
 * */
struct codec_columns {
    int64_t *timestamps_us;
    uint32_t *key_positions;
    int32_t *key_sizes;
    uint32_t *value_positions;
    int32_t *value_sizes;
    uint32_t *header_positions;
    uint32_t *header_counts;
};

/* Bytes of the records before compression, or a status. */
int64_t codec_measure(const struct codec_source *source);

/* Bytes that the target of codec_encode must have, for so many bytes of records. */
size_t codec_bound(uint32_t records_bytes, uint32_t codec);

/* Make a client part. `scratch` has records_bytes; with codec 0 it is not used. Returns the part's
 * size, or a status. */
int64_t codec_encode(const struct codec_source *source, uint32_t records_bytes, uint8_t *scratch,
                     uint8_t *target, size_t target_size);

/* The stored batch at the front of `bytes`. `seed`: CRC32C of its partition's identity
 * (docs/internals/log-format.md); a batch of another partition is BATCH_CHECKSUM. Returns its size;
 * 0 = it does not end within `size`; or a status. */
int64_t codec_next(const uint8_t *bytes, size_t size, uint32_t seed, struct codec_batch *batch);

/* A bare client part of exactly `size` bytes; the server's fields are zero. Returns its size, or a
 * status. */
int64_t codec_client(const uint8_t *bytes, size_t size, struct codec_batch *batch);

/* Take a checked client part apart: its records, decompressed, to `records` (batch->records_bytes),
 * and the columns. Without compression `records` may be NULL: positions then count from the end of
 * the client header, in place. Returns 0 or a status. */
int codec_decode(const uint8_t *client_part, const struct codec_batch *batch, uint8_t *records,
                 const struct codec_columns *columns);

uint32_t codec_crc32c(const uint8_t *bytes, size_t size);
const char *codec_status_name(int64_t status);
const char *codec_status_text(int64_t status);

#endif
