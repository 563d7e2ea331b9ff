/* partition/checkpoint.c: a partition's replicated state as bytes, and back.
 *
 *     u32 magic "HRPC" | u32 crc32c over the rest | u32 version = 1 | u32 size of all
 *     u64 applied_op | next_offset | log_start | cumulative_bytes | append_time_us
 *     u64 seal_intent_op                       0 = not sealed
 *     configuration                            the body of the CONFIGURE that holds
 *     producers | groups | meter | retention | segments    as their modules write them
 *
 * Canonical: equal states give equal bytes, so comparing the bytes compares replicas. A checkpoint
 * is believed only after its CRC, which begins with the partition's identity (J10), and
 * still every count is bounded and every order checked. */
#include "partition/partition.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"

enum {
    PARTITION_CHECKPOINT_MAGIC = 0x43505248, /* "HRPC" */
    PARTITION_CHECKPOINT_HEADER_BYTES = 16,
    PARTITION_CHECKPOINT_FIXED_BYTES = 48 + PARTITION_CONFIGURE_BYTES,
};

/* Of the partition's place in the cluster, like its batches'. */
static uint32_t checkpoint_crc(const struct partition *partition, const uint8_t *bytes, size_t size)
{
    return crc32c_extend(partition->config.seeds.batch, bytes + 8, size - 8);
}

size_t partition_checkpoint_bytes(const struct partition *partition)
{
    return PARTITION_CHECKPOINT_HEADER_BYTES + PARTITION_CHECKPOINT_FIXED_BYTES
           + producer_table_encoded_bytes(&partition->producers)
           + group_table_encoded_bytes(&partition->groups) + meter_encoded_bytes(&partition->meter)
           + retention_encoded_bytes(&partition->retention)
           + segment_list_encoded_bytes(&partition->segments);
}

void partition_checkpoint_encode(const struct partition *partition, uint8_t *bytes, size_t size)
{
    assert(size == partition_checkpoint_bytes(partition));
    assert(size <= UINT32_MAX);
    struct bytes_writer writer = {.at = bytes, .end = bytes + size};
    bytes_write_u32(&writer, PARTITION_CHECKPOINT_MAGIC);
    bytes_write_u32(&writer, 0);
    bytes_write_u32(&writer, PARTITION_CHECKPOINT_VERSION);
    bytes_write_u32(&writer, (uint32_t)size);
    bytes_write_u64(&writer, partition->applied_op);
    bytes_write_u64(&writer, partition->next_offset);
    bytes_write_u64(&writer, partition->log_start);
    bytes_write_u64(&writer, partition->cumulative_bytes);
    bytes_write_u64(&writer, (uint64_t)partition->append_time_us);
    bytes_write_u64(&writer, partition->seal_intent_op);
    partition_encode_configure(&partition->config.limits,
                               bytes_write(&writer, PARTITION_CONFIGURE_BYTES));
    producer_table_encode(&partition->producers, &writer);
    group_table_encode(&partition->groups, &writer);
    meter_encode(&partition->meter, &writer);
    retention_encode(&partition->retention, &writer);
    segment_list_encode(&partition->segments, &writer);
    assert(writer.at == writer.end);
    bytes_put_u32(bytes + 4, checkpoint_crc(partition, bytes, size));
}

static enum status partition_checkpoint_decode_header(const struct partition *partition,
                                                      const uint8_t *bytes, size_t size)
{
    if (size < PARTITION_CHECKPOINT_HEADER_BYTES + PARTITION_CHECKPOINT_FIXED_BYTES)
        return STATUS_CHECKPOINT_DAMAGED;
    if (bytes_get_u32(bytes) != PARTITION_CHECKPOINT_MAGIC) return STATUS_CHECKPOINT_DAMAGED;
    if (bytes_get_u32(bytes + 12) != size) return STATUS_CHECKPOINT_DAMAGED;
    if (bytes_get_u32(bytes + 4) != checkpoint_crc(partition, bytes, size))
        return STATUS_CHECKPOINT_DAMAGED;
    return bytes_get_u32(bytes + 8) == PARTITION_CHECKPOINT_VERSION ? STATUS_OK
                                                                    : STATUS_CHECKPOINT_VERSION;
}

/* What the parts must agree on. */
static enum status partition_checkpoint_agree(struct partition *partition)
{
    const struct segment_chunk *last = partition->segments.last;
    uint64_t end_offset = last ? last->segments[last->count - 1].end_offset : partition->log_start;
    if (end_offset != partition->next_offset) return STATUS_CHECKPOINT_DAMAGED;
    if (partition->log_start > partition->next_offset) return STATUS_CHECKPOINT_DAMAGED;
    if (partition->meter.from_op > partition->applied_op + 1) return STATUS_CHECKPOINT_DAMAGED;
    return STATUS_OK;
}

static enum status partition_checkpoint_decode_parts(struct partition *partition,
                                                     struct bytes_reader *reader)
{
    partition->applied_op = bytes_read_u64(reader);
    partition->next_offset = bytes_read_u64(reader);
    partition->log_start = bytes_read_u64(reader);
    partition->cumulative_bytes = bytes_read_u64(reader);
    partition->append_time_us = (int64_t)bytes_read_u64(reader);
    partition->seal_intent_op = bytes_read_u64(reader);
    const uint8_t *configuration = bytes_read(reader, PARTITION_CONFIGURE_BYTES);
    if (!configuration) return STATUS_CHECKPOINT_DAMAGED;
    if (partition_decode_configure(configuration, PARTITION_CONFIGURE_BYTES,
                                   &partition->config.limits)
        != STATUS_OK)
        return STATUS_CHECKPOINT_DAMAGED;
    enum status status = producer_table_decode(&partition->producers, reader);
    if (status == STATUS_OK) status = group_table_decode(&partition->groups, reader);
    if (status == STATUS_OK) status = meter_decode(&partition->meter, reader);
    if (status == STATUS_OK) status = retention_decode(&partition->retention, reader);
    if (status == STATUS_OK) status = segment_list_decode(&partition->segments, reader);
    if (status == STATUS_OK && (reader->failed || reader->at != reader->end))
        status = STATUS_CHECKPOINT_DAMAGED;
    if (status == STATUS_OK) status = partition_checkpoint_agree(partition);
    return status;
}

enum status partition_checkpoint_decode(struct partition *partition, const uint8_t *bytes,
                                        size_t size)
{
    assert(partition->applied_op == 0);
    const struct partition_config config = partition->config;
    enum status status = partition_checkpoint_decode_header(partition, bytes, size);
    if (status != STATUS_OK) return status;
    struct bytes_reader reader = {.at = bytes + PARTITION_CHECKPOINT_HEADER_BYTES,
                                  .end = bytes + size};
    status = partition_checkpoint_decode_parts(partition, &reader);
    if (status == STATUS_OK) return STATUS_OK;

    partition->config = config;
    struct producer_pool *producers = partition->producers.pool;
    struct segment_pool *segments = partition->segments.pool;
    struct offset_index_pool *index = partition->segments.index_pool;
    partition_deinit(partition);
    memset(partition, 0, sizeof *partition);
    partition->config = config;
    producer_table_init(&partition->producers, producers);
    group_table_init(&partition->groups);
    meter_init(&partition->meter);
    retention_init(&partition->retention);
    segment_list_init(&partition->segments, &config.seeds, segments, index);
    return status;
}
