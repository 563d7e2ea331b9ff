/* partition/trim.c: where a log begins: TRIM, which moves it, SET_HOLD, which forbids that, and
 * what a policy would take now.
 *
 * Both are decided where they are applied (T2), from applied state only. A TRIM moves log_start up
 * and forgets the segments that end there; their files are the caller's, later, and may be removed
 * again and again. Bytes and times of the event are those of the segments that went: of one that
 * was cut nothing is known without reading it, and replicas must agree. */
#include "foundation/assert.h"
#include "partition/partition.h"

/* May the log begin there? From applied state alone. */
static enum status partition_trim_admit(const struct partition *partition,
                                        const struct partition_trim *trim,
                                        struct partition_result *result)
{
    if (partition_sealed(partition)) return STATUS_CLOSED;
    if (trim->log_start > partition->next_offset) {
        result->expected = partition->next_offset;
        return STATUS_OFFSET_BEYOND_END;
    }
    if (trim->log_start <= partition->log_start) return STATUS_TRIM_BELOW;
    enum status status = retention_admit(&partition->retention, trim->log_start);
    if (status == STATUS_HELD) result->expected = partition->retention.held_from_offset;
    return status;
}

enum status partition_apply_trim(struct partition *partition, uint64_t op, int64_t append_time_us,
                                 const uint8_t *body, size_t size, struct partition_result *result)
{
    struct partition_trim trim;
    enum status status = partition_decode_trim(body, size, &trim);
    if (status != STATUS_OK) return status;
    retention_drop_acked(&partition->retention, trim.acked);
    result->status = partition_trim_admit(partition, &trim, result);
    if (result->status == STATUS_OK) {
        struct segment_trimmed trimmed;
        segment_list_trim(&partition->segments, trim.log_start, &trimmed);
        const struct retention_event event = {
            .trim_op = op,
            .policy_version = trim.policy_version,
            .from_offset = partition->log_start,
            .to_offset = trim.log_start,
            .bytes = trimmed.bytes,
            .records = trimmed.records,
            .min_time_us = trimmed.min_time_us,
            .max_time_us = trimmed.max_time_us,
            .trimmed_at_us = append_time_us,
            .cause = (uint32_t)trim.cause,
            .segments = trimmed.segments,
        };
        retention_trimmed(&partition->retention, &event);
        partition->log_start = trim.log_start;
        result->trimmed = 1;
    }
    result->base_offset = partition->log_start;
    return STATUS_OK;
}

enum status partition_apply_hold(struct partition *partition, const uint8_t *body, size_t size,
                                 struct partition_result *result)
{
    struct partition_hold hold;
    enum status status = partition_decode_hold(body, size, &hold);
    if (status != STATUS_OK) return status;
    result->status =
        retention_hold(&partition->retention, hold.intent_op, hold.held, hold.from_offset);
    result->base_offset = partition->log_start;
    return STATUS_OK;
}

const struct retention_event *partition_trim_next(const struct partition *partition, uint64_t after)
{
    return retention_next(&partition->retention, after);
}

/* ---- what is due ---- */

/* Bytes that lie beyond what is kept. */
static uint64_t partition_excess(const struct partition *partition,
                                 const struct partition_policy *policy)
{
    if (policy->bytes <= 0) return 0;
    uint64_t bytes = partition_bytes(partition);
    return bytes > (uint64_t)policy->bytes ? bytes - (uint64_t)policy->bytes : 0;
}

/* Why this segment goes now; 0 = it stays, and `next_us` may be when it goes. */
static uint64_t partition_due_cause(const struct segment *segment,
                                    const struct partition_policy *policy, uint64_t excess,
                                    int64_t now_us, int64_t *next_us)
{
    /* Never a young one to make room: it is looked at again when it is no longer young. */
    int sized = segment->sealed && excess >= segment->data_bytes;
    int64_t young_us = policy->time_us_min > 0 ? policy->time_us_min : 0;
    *next_us = 0;
    if (policy->time_us > 0) {
        *next_us = segment->max_time_us + policy->time_us;
        if (*next_us <= now_us) return RETENTION_TIME;
    }
    if (!sized) return 0;
    int64_t from_us = segment->max_time_us + young_us;
    if (from_us <= now_us) return RETENTION_SIZE;
    if (*next_us == 0 || from_us < *next_us) *next_us = from_us;
    return 0;
}

struct partition_due partition_retention_due(struct partition *partition,
                                             const struct partition_policy *policy, int64_t now_us)
{
    const struct retention *retention = &partition->retention;
    struct partition_due due = {0};
    uint64_t excess = partition_excess(partition, policy);
    uint64_t log_start = partition->log_start;
    for (uint32_t position = 0;; position++) {
        const struct segment *segment = partition_segment(partition, position);
        if (!segment) break;
        uint64_t cause = partition_due_cause(segment, policy, excess, now_us, &due.next_us);
        if (cause == 0) break;
        if (retention->held && segment->end_offset > retention->held_from_offset) {
            due.held = 1;
            due.held_bytes += segment->data_bytes;
        } else {
            /* One trim has one cause: the rest goes with the next. */
            if (due.trim.cause != 0 && due.trim.cause != cause) {
                due.next_us = now_us;
                break;
            }
            due.trim.cause = cause;
            log_start = segment->end_offset;
        }
        excess -= excess < segment->data_bytes ? excess : segment->data_bytes;
    }
    due.due = log_start > partition->log_start;
    due.trim.log_start = log_start;
    due.trim.policy_version = policy->version;
    due.trim.acked = retention_acked(retention);
    return due;
}
