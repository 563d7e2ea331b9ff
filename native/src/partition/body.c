/* partition/body.c: the bytes of a partition's operations but batches. Frozen:
 * docs/internals/groups.md.
 *
 *     u8 version = 1 | 7 zero | then u64s in the order of the struct */
#include "partition/partition.h"

#include "foundation/assert.h"
#include "foundation/bytes.h"

int partition_op_known(uint16_t operation, const uint8_t *body, size_t size)
{
    if (operation == 0 || operation > PARTITION_OP_LAST) return 0;
    if (operation == PARTITION_BATCH) return batch_versions_known(body, size);
    return size < 8 || body[0] <= PARTITION_BODY_VERSION;
}

static uint8_t *partition_body_begin(uint8_t *body)
{
    bytes_put_u64(body, PARTITION_BODY_VERSION);
    return body + 8;
}

/* The fields behind the version; NULL if this is no such body. */
static const uint8_t *partition_body_fields(const uint8_t *body, size_t size, size_t expected)
{
    if (size != expected || bytes_get_u64(body) != PARTITION_BODY_VERSION) return NULL;
    return body + 8;
}

void partition_encode_commit(const struct partition_commit *commit,
                             uint8_t body[PARTITION_COMMIT_BYTES])
{
    uint8_t *at = partition_body_begin(body);
    bytes_put_u64(at, commit->group);
    bytes_put_u64(at + 8, commit->generation);
    bytes_put_u64(at + 16, commit->offset);
}

void partition_encode_in_flight(const struct partition_in_flight *in_flight,
                                uint8_t body[PARTITION_IN_FLIGHT_BYTES])
{
    uint8_t *at = partition_body_begin(body);
    bytes_put_u64(at, in_flight->group);
    bytes_put_u64(at + 8, in_flight->generation);
}

void partition_encode_fence(const struct partition_fence *fence,
                            uint8_t body[PARTITION_FENCE_BYTES])
{
    uint8_t *at = partition_body_begin(body);
    bytes_put_u64(at, fence->group);
    bytes_put_u64(at + 8, fence->generation);
    bytes_put_u64(at + 16, fence->intent_op);
}

void partition_encode_meter_close(const struct partition_meter_close *close,
                                  uint8_t body[PARTITION_METER_CLOSE_BYTES])
{
    uint8_t *at = partition_body_begin(body);
    bytes_put_u64(at, close->sequence);
    bytes_put_i64(at + 8, close->window_end_us);
    bytes_put_u64(at + 16, close->acked);
}

void partition_encode_seal(const struct partition_seal *seal, uint8_t body[PARTITION_SEAL_BYTES])
{
    assert(seal->intent_op != 0);
    bytes_put_u64(partition_body_begin(body), seal->intent_op);
}

void partition_encode_expire(const struct partition_expire *expire,
                             uint8_t body[PARTITION_EXPIRE_BYTES])
{
    bytes_put_i64(partition_body_begin(body), expire->used_until_us);
}

void partition_encode_trim(const struct partition_trim *trim, uint8_t body[PARTITION_TRIM_BYTES])
{
    uint8_t *at = partition_body_begin(body);
    assert(trim->cause > 0 && trim->cause < RETENTION_CAUSES_COUNT);
    bytes_put_u64(at, trim->log_start);
    bytes_put_u64(at + 8, trim->cause);
    bytes_put_u64(at + 16, trim->policy_version);
    bytes_put_u64(at + 24, trim->acked);
}

void partition_encode_hold(const struct partition_hold *hold, uint8_t body[PARTITION_HOLD_BYTES])
{
    uint8_t *at = partition_body_begin(body);
    assert(hold->intent_op != 0);
    assert(hold->held == 1 || (hold->held == 0 && hold->from_offset == 0));
    bytes_put_u64(at, hold->intent_op);
    bytes_put_u64(at + 8, hold->held);
    bytes_put_u64(at + 16, hold->from_offset);
}

void partition_encode_configure(const struct partition_configure *configure,
                                uint8_t body[PARTITION_CONFIGURE_BYTES])
{
    uint8_t *at = partition_body_begin(body);
    bytes_put_u64(at, configure->segment_bytes);
    bytes_put_i64(at + 8, configure->segment_us);
    bytes_put_u64(at + 16, configure->producers_max);
    bytes_put_u64(at + 24, configure->groups_max);
    bytes_put_u64(at + 32, configure->metered);
}

enum status partition_decode_commit(const uint8_t *body, size_t size,
                                    struct partition_commit *commit)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_COMMIT_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    commit->group = bytes_get_u64(at);
    commit->generation = bytes_get_u64(at + 8);
    commit->offset = bytes_get_u64(at + 16);
    return STATUS_OK;
}

enum status partition_decode_in_flight(const uint8_t *body, size_t size,
                                       struct partition_in_flight *in_flight)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_IN_FLIGHT_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    in_flight->group = bytes_get_u64(at);
    in_flight->generation = bytes_get_u64(at + 8);
    return STATUS_OK;
}

enum status partition_decode_fence(const uint8_t *body, size_t size, struct partition_fence *fence)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_FENCE_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    fence->group = bytes_get_u64(at);
    fence->generation = bytes_get_u64(at + 8);
    fence->intent_op = bytes_get_u64(at + 16);
    return STATUS_OK;
}

enum status partition_decode_meter_close(const uint8_t *body, size_t size,
                                         struct partition_meter_close *close)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_METER_CLOSE_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    close->sequence = bytes_get_u64(at);
    close->window_end_us = bytes_get_i64(at + 8);
    close->acked = bytes_get_u64(at + 16);
    return STATUS_OK;
}

enum status partition_decode_seal(const uint8_t *body, size_t size, struct partition_seal *seal)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_SEAL_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    seal->intent_op = bytes_get_u64(at);
    return seal->intent_op != 0 ? STATUS_OK : STATUS_OP_MALFORMED;
}

enum status partition_decode_expire(const uint8_t *body, size_t size,
                                    struct partition_expire *expire)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_EXPIRE_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    expire->used_until_us = bytes_get_i64(at);
    return STATUS_OK;
}

enum status partition_decode_trim(const uint8_t *body, size_t size, struct partition_trim *trim)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_TRIM_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    trim->log_start = bytes_get_u64(at);
    trim->cause = bytes_get_u64(at + 8);
    trim->policy_version = bytes_get_u64(at + 16);
    trim->acked = bytes_get_u64(at + 24);
    int known = trim->cause > 0 && trim->cause < RETENTION_CAUSES_COUNT;
    return known ? STATUS_OK : STATUS_OP_MALFORMED;
}

enum status partition_decode_hold(const uint8_t *body, size_t size, struct partition_hold *hold)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_HOLD_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    hold->intent_op = bytes_get_u64(at);
    hold->held = bytes_get_u64(at + 8);
    hold->from_offset = bytes_get_u64(at + 16);
    int known = hold->held == 1 || (hold->held == 0 && hold->from_offset == 0);
    return known && hold->intent_op != 0 ? STATUS_OK : STATUS_OP_MALFORMED;
}

enum status partition_decode_configure(const uint8_t *body, size_t size,
                                       struct partition_configure *configure)
{
    const uint8_t *at = partition_body_fields(body, size, PARTITION_CONFIGURE_BYTES);
    if (!at) return STATUS_OP_MALFORMED;
    uint64_t producers_max = bytes_get_u64(at + 16);
    uint64_t groups_max = bytes_get_u64(at + 24);
    uint64_t metered = bytes_get_u64(at + 32);
    *configure = (struct partition_configure){
        .segment_bytes = bytes_get_u64(at),
        .segment_us = bytes_get_i64(at + 8),
        .producers_max = (uint32_t)producers_max,
        .groups_max = (uint32_t)groups_max,
        .metered = (uint8_t)metered,
    };
    int known = configure->segment_bytes > 0 && configure->segment_us >= 0 && producers_max > 0
                && producers_max <= PARTITION_PRODUCERS_MAX && groups_max > 0
                && groups_max <= PARTITION_GROUPS_MAX && metered <= 1;
    return known ? STATUS_OK : STATUS_OP_MALFORMED;
}
