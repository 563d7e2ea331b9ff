/* partition/retention.c: see partition/retention.h. */
#include "partition/retention.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum { RETENTION_FIXED_BYTES = 44, RETENTION_EVENT_BYTES = 88 };

void retention_init(struct retention *retention)
{
    memset(retention, 0, sizeof *retention);
}

enum status retention_hold(struct retention *retention, uint64_t intent_op, uint64_t held,
                           uint64_t from_offset)
{
    assert(intent_op > 0);
    assert(held <= 1);
    assert(held || from_offset == 0);
    if (intent_op < retention->hold_intent_op) return STATUS_STALE_INTENT;
    retention->hold_intent_op = intent_op;
    retention->held = held;
    retention->held_from_offset = from_offset;
    return STATUS_OK;
}

enum status retention_admit(const struct retention *retention, uint64_t log_start)
{
    assert(retention->events_count <= RETENTION_EVENTS_MAX);
    if (retention->held && log_start > retention->held_from_offset) return STATUS_HELD;
    return retention->events_count < RETENTION_EVENTS_MAX ? STATUS_OK : STATUS_TRIMS_FULL;
}

void retention_trimmed(struct retention *retention, const struct retention_event *event)
{
    assert(retention_admit(retention, event->to_offset) == STATUS_OK);
    assert(event->from_offset < event->to_offset);
    struct retention_event *kept = &retention->events[retention->events_count++];
    *kept = *event;
    kept->sequence = ++retention->sequence;
}

uint64_t retention_acked(const struct retention *retention)
{
    return retention->acked_here > retention->acked ? retention->acked_here : retention->acked;
}

void retention_drop_acked(struct retention *retention, uint64_t acked)
{
    if (acked > retention->sequence) acked = retention->sequence;
    if (acked <= retention->acked) return;
    uint32_t count = 0;
    while (count < retention->events_count && retention->events[count].sequence <= acked) count++;
    retention->acked = acked;
    retention->events_count -= count;
    memmove(retention->events, retention->events + count,
            retention->events_count * sizeof retention->events[0]);
}

void retention_ack(struct retention *retention, uint64_t sequence)
{
    if (sequence > retention->sequence) sequence = retention->sequence;
    if (sequence > retention->acked_here) retention->acked_here = sequence;
}

const struct retention_event *retention_next(const struct retention *retention, uint64_t after)
{
    if (after < retention_acked(retention)) after = retention_acked(retention);
    for (uint32_t index = 0; index < retention->events_count; index++) {
        if (retention->events[index].sequence > after) return &retention->events[index];
    }
    return NULL;
}

size_t retention_encoded_bytes(const struct retention *retention)
{
    return RETENTION_FIXED_BYTES + (size_t)retention->events_count * RETENTION_EVENT_BYTES;
}

/* hold intent | held | held from | sequence | acked, u64 each | events u32
 * per event: sequence | op | policy | from | to | bytes | records | min | max | at, 8 bytes each |
 * cause u32 | segments u32 */
void retention_encode(const struct retention *retention, struct bytes_writer *writer)
{
    bytes_write_u64(writer, retention->hold_intent_op);
    bytes_write_u64(writer, retention->held);
    bytes_write_u64(writer, retention->held_from_offset);
    bytes_write_u64(writer, retention->sequence);
    bytes_write_u64(writer, retention->acked);
    bytes_write_u32(writer, retention->events_count);
    for (uint32_t index = 0; index < retention->events_count; index++) {
        const struct retention_event *event = &retention->events[index];
        bytes_write_u64(writer, event->sequence);
        bytes_write_u64(writer, event->trim_op);
        bytes_write_u64(writer, event->policy_version);
        bytes_write_u64(writer, event->from_offset);
        bytes_write_u64(writer, event->to_offset);
        bytes_write_u64(writer, event->bytes);
        bytes_write_u64(writer, event->records);
        bytes_write_u64(writer, (uint64_t)event->min_time_us);
        bytes_write_u64(writer, (uint64_t)event->max_time_us);
        bytes_write_u64(writer, (uint64_t)event->trimmed_at_us);
        bytes_write_u32(writer, event->cause);
        bytes_write_u32(writer, event->segments);
    }
}

static enum status retention_decode_event(struct retention *retention, uint32_t index,
                                          struct bytes_reader *reader)
{
    struct retention_event *event = &retention->events[index];
    event->sequence = bytes_read_u64(reader);
    event->trim_op = bytes_read_u64(reader);
    event->policy_version = bytes_read_u64(reader);
    event->from_offset = bytes_read_u64(reader);
    event->to_offset = bytes_read_u64(reader);
    event->bytes = bytes_read_u64(reader);
    event->records = bytes_read_u64(reader);
    event->min_time_us = (int64_t)bytes_read_u64(reader);
    event->max_time_us = (int64_t)bytes_read_u64(reader);
    event->trimmed_at_us = (int64_t)bytes_read_u64(reader);
    event->cause = bytes_read_u32(reader);
    event->segments = bytes_read_u32(reader);
    if (event->sequence != retention->sequence - retention->events_count + 1 + index)
        return STATUS_CHECKPOINT_DAMAGED;
    if (event->cause == 0 || event->cause >= RETENTION_CAUSES_COUNT)
        return STATUS_CHECKPOINT_DAMAGED;
    return event->from_offset < event->to_offset ? STATUS_OK : STATUS_CHECKPOINT_DAMAGED;
}

enum status retention_decode(struct retention *retention, struct bytes_reader *reader)
{
    retention_init(retention);
    retention->hold_intent_op = bytes_read_u64(reader);
    retention->held = bytes_read_u64(reader);
    retention->held_from_offset = bytes_read_u64(reader);
    retention->sequence = bytes_read_u64(reader);
    retention->acked = bytes_read_u64(reader);
    retention->events_count = bytes_read_u32(reader);
    if (reader->failed || retention->events_count > RETENTION_EVENTS_MAX || retention->held > 1
        || retention->acked > retention->sequence
        || retention->events_count != retention->sequence - retention->acked
        || (!retention->held && retention->held_from_offset != 0)
        || (retention->held && retention->hold_intent_op == 0)) {
        return STATUS_CHECKPOINT_DAMAGED;
    }
    for (uint32_t index = 0; index < retention->events_count; index++) {
        enum status status = retention_decode_event(retention, index, reader);
        if (status != STATUS_OK) return status;
    }
    return reader->failed ? STATUS_CHECKPOINT_DAMAGED : STATUS_OK;
}

int retention_invariants(const struct retention *retention)
{
    assert(retention->events_count <= RETENTION_EVENTS_MAX);
    assert(retention->acked <= retention->sequence);
    assert(retention->sequence - retention->acked == retention->events_count);
    ergo(retention->held, retention->hold_intent_op != 0);
    for (uint32_t index = 0; index < retention->events_count; index++) {
        const struct retention_event *event = &retention->events[index];
        assert(event->sequence == retention->acked + 1 + index);
        assert(event->from_offset < event->to_offset);
        ergo(index > 0, event[-(index > 0)].to_offset == event->from_offset);
        assert(event->min_time_us <= event->max_time_us);
    }
    return 1;
}
