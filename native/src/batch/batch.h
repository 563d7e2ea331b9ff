/* batch/batch.h: the one layout of records, in a request, in the journal, in segments, in fetch
 * replies (docs/internals/log-format.md).
 *
 *     stored batch := server header (96) | client part
 *     client part  := client header (72) | records, as a whole compressed by the codec
 *
 * batch/batch.c owns the two headers, batch/batch_records.c what is inside. Neither trusts a
 * size: a header is decoded only after its CRC and every relation of its fields were checked,
 * records only within the bytes their header names. */
#ifndef BATCH_BATCH_H
#define BATCH_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/limits.h"
#include "foundation/status.h"

enum batch_codec {
    BATCH_CODEC_NONE = 0,
    BATCH_CODEC_LZ4 = 1,
    BATCH_CODEC_ZSTD = 2,
    BATCH_CODECS_COUNT = 3
};

struct batch_server {
    uint32_t size_bytes; /* of the stored batch: what is billed */
    uint32_t client_crc; /* of the client part that follows, as its header says */
    uint64_t base_offset;
    int64_t append_time_us;
    uint64_t op;
    uint64_t first_view;
    uint32_t principal;
    uint32_t key_id;
    uint64_t cumulative_bytes;
    uint8_t digest[16]; /* XXH3-128 of the client part: the one in the prepare's identity */
};

struct batch_client {
    uint32_t size_bytes; /* of the client part */
    uint32_t crc32c;
    uint32_t record_count;
    uint32_t producer_epoch;
    uint8_t producer_id[BATCH_PRODUCER_ID_BYTES];
    uint64_t base_sequence;
    int64_t base_timestamp_us;
    int64_t max_timestamp_us;
    uint32_t records_bytes;
    uint8_t codec;      /* enum batch_codec */
    uint8_t idempotent; /* 1 = producer_id is not all zero */
    uint16_t reserved;
};

/* Decode and check the header of a client part of exactly `size` bytes, with its CRC over all of
 * it. What a primary does with every request; `client_bytes_max` is the topic's limit. */
enum status batch_check_client(const uint8_t *bytes, size_t size, uint32_t client_bytes_max,
                               struct batch_client *client);

/* The header only: no CRC over the records. `size` may be more than the part. BATCH_SHORT: fewer
 * than 72 bytes. */
enum status batch_decode_client(const uint8_t *bytes, size_t size, struct batch_client *client);

/* What the CRC of every server header of one partition begins with (J10): a batch of another
 * partition, another incarnation of the topic or another cluster fails it, whole as it is. The
 * same on every replica. `cluster_id`: IDENTITY_CLUSTER_BYTES, zero-padded. */
uint32_t batch_seed(const char *cluster_id, uint64_t topic, uint64_t created_revision,
                    uint32_t partition);

/* Decode a server header, its CRC checked. BATCH_SHORT: fewer than 96 bytes. BATCH_CHECKSUM:
 * damaged, or of another partition. */
enum status batch_decode_server(const uint8_t *bytes, size_t size, uint32_t seed,
                                struct batch_server *server);

/* Of a header that was checked before, or was made here: no CRC. */
void batch_read_server(const uint8_t *bytes, struct batch_server *server);

/* 1 = no header of this stored batch says a version above ours; nothing else is looked at. */
int batch_versions_known(const uint8_t *bytes, size_t size);

/* Both headers, both CRCs and that they belong together, of the stored batch at the front of
 * `bytes`. BATCH_SHORT: it does not end within `size`. */
enum status batch_check_stored(const uint8_t *bytes, size_t size, uint32_t seed,
                               struct batch_server *server, struct batch_client *client);

/* Write the server header in front of a client part: for a prepare, with base_offset and
 * cumulative_bytes zero. */
void batch_encode_server(const struct batch_server *server, uint32_t seed,
                         uint8_t bytes[BATCH_SERVER_HEADER_BYTES]);

/* At apply: fill base offset and cumulative bytes and renew the header's CRC. */
void batch_assign(uint8_t *stored, uint32_t seed, uint64_t base_offset, uint64_t cumulative_bytes);

#endif
