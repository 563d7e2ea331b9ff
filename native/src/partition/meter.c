/* partition/meter.c: see partition/meter.h. */
#include "partition/meter.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum { METER_FIXED_BYTES = 52, METER_CLOSE_BYTES = 44, METER_SUM_BYTES = 28 };

/* Regular windows divide a minute, so a second divides every window. */
static const int64_t METER_SECOND_US = 1000000;

void meter_init(struct meter *meter)
{
    memset(meter, 0, sizeof *meter);
    meter->from_op = 1;
}

static struct meter_sum *meter_open(const struct meter *meter)
{
    assert(meter->open_count <= meter->sums_count);
    return (struct meter_sum *)(uintptr_t)&meter->sums[meter->sums_count - meter->open_count];
}

static struct meter_sum *meter_find(const struct meter *meter, uint32_t principal)
{
    struct meter_sum *sums = meter_open(meter);
    for (uint32_t index = 0; index < meter->open_count; index++) {
        if (sums[index].principal == principal) return &sums[index];
    }
    return NULL;
}

enum status meter_admit(const struct meter *meter, uint32_t principal)
{
    assert(meter->sums_count <= METER_SUMS_MAX);
    if (meter->sums_count < METER_SUMS_MAX || meter_find(meter, principal)) return STATUS_OK;
    return STATUS_METER_FULL;
}

enum status meter_add(struct meter *meter, uint32_t principal, uint64_t bytes, uint64_t records,
                      int64_t append_time_us)
{
    assert(bytes > 0);
    assert(records > 0);
    struct meter_sum *sum = meter_find(meter, principal);
    if (!sum) {
        if (meter->sums_count == METER_SUMS_MAX) return STATUS_METER_FULL;
        /* By ascending principal: the order in which a close shows them. */
        struct meter_sum *sums = meter_open(meter);
        uint32_t position = meter->open_count;
        while (position > 0 && sums[position - 1].principal > principal) {
            sums[position] = sums[position - 1];
            position--;
        }
        sum = &sums[position];
        *sum = (struct meter_sum){.principal = principal};
        if (meter->open_count == 0) meter->first_us = append_time_us;
        meter->sums_count++;
        meter->open_count++;
    }
    sum->ingress_bytes += bytes;
    sum->records += records;
    sum->batches += 1;
    return STATUS_OK;
}

static uint64_t meter_acked(const struct meter *meter)
{
    return meter->acked_here > meter->acked ? meter->acked_here : meter->acked;
}

int meter_due(const struct meter *meter, int64_t now_us, int64_t window_us, int force,
              uint64_t *sequence, int64_t *window_end_us, uint64_t *acked)
{
    assert(window_us > 0 && 60 * METER_SECOND_US % window_us == 0);
    if (meter->open_count == 0) return 0;
    if (meter->sequence - meter_acked(meter) >= METER_CLOSES_MAX) return 0;

    /* The last boundary that has passed; a window that had to wait ends there too, as one longer
     * window. */
    int64_t boundary_us = now_us - now_us % window_us;
    int over = boundary_us > meter->first_us && boundary_us > meter->closed_until_us;
    if (!over && !force) return 0;
    int64_t end_us = over ? boundary_us : now_us;
    if (end_us <= meter->first_us) end_us = meter->first_us + 1;
    if (end_us <= meter->closed_until_us) end_us = meter->closed_until_us + 1;
    *sequence = meter->sequence + 1;
    *window_end_us = end_us;
    *acked = meter_acked(meter);
    return 1;
}

static void meter_drop_acked(struct meter *meter, uint64_t acked)
{
    if (acked > meter->sequence) acked = meter->sequence;
    uint32_t closes = 0;
    uint32_t sums = 0;
    while (closes < meter->closes_count && meter->closes[closes].sequence <= acked) {
        sums += meter->closes[closes].sums_count;
        closes++;
    }
    if (acked > meter->acked) meter->acked = acked;
    if (closes == 0) return;
    meter->closes_count -= closes;
    meter->sums_count -= sums;
    memmove(meter->closes, meter->closes + closes, meter->closes_count * sizeof meter->closes[0]);
    memmove(meter->sums, meter->sums + sums, meter->sums_count * sizeof meter->sums[0]);
}

enum status meter_close(struct meter *meter, uint64_t op, uint64_t sequence, int64_t window_end_us,
                        uint64_t acked)
{
    assert(op >= meter->from_op);
    meter_drop_acked(meter, acked);
    if (sequence != meter->sequence + 1) return STATUS_METER_SEQUENCE;
    if (meter->open_count == 0) return STATUS_METER_EMPTY;
    if (meter->closes_count == METER_CLOSES_MAX) return STATUS_METER_FULL;

    int64_t start_us = meter->first_us - meter->first_us % METER_SECOND_US;
    if (start_us < meter->closed_until_us) start_us = meter->closed_until_us;
    if (window_end_us <= start_us) return STATUS_METER_SEQUENCE;
    meter->closes[meter->closes_count++] = (struct meter_close){
        .sequence = sequence,
        .from_op = meter->from_op,
        .to_op = op,
        .window_start_us = start_us,
        .window_end_us = window_end_us,
        .sums_count = meter->open_count,
    };
    meter->sequence = sequence;
    meter->from_op = op + 1;
    meter->closed_until_us = window_end_us;
    meter->open_count = 0;
    meter->first_us = 0;
    return STATUS_OK;
}

void meter_ack(struct meter *meter, uint64_t sequence)
{
    if (sequence > meter->sequence) sequence = meter->sequence;
    if (sequence > meter->acked_here) meter->acked_here = sequence;
}

const struct meter_close *meter_next(const struct meter *meter, uint64_t after,
                                     const struct meter_sum **sums)
{
    if (after < meter_acked(meter)) after = meter_acked(meter);
    uint32_t position = 0;
    for (uint32_t index = 0; index < meter->closes_count; index++) {
        const struct meter_close *close = &meter->closes[index];
        if (close->sequence > after) {
            *sums = &meter->sums[position];
            return close;
        }
        position += close->sums_count;
    }
    *sums = NULL;
    return NULL;
}

size_t meter_encoded_bytes(const struct meter *meter)
{
    return METER_FIXED_BYTES + (size_t)meter->closes_count * METER_CLOSE_BYTES
           + (size_t)meter->sums_count * METER_SUM_BYTES;
}

/* sequence | from_op | closed_until | first | acked, u64 each | closes u32 | sums u32 | open u32
 * per close: sequence | from_op | to_op | start | end, u64 each | sums u32
 * per sum: principal u32 | bytes | records | batches, u64 each */
void meter_encode(const struct meter *meter, struct bytes_writer *writer)
{
    bytes_write_u64(writer, meter->sequence);
    bytes_write_u64(writer, meter->from_op);
    bytes_write_u64(writer, (uint64_t)meter->closed_until_us);
    bytes_write_u64(writer, (uint64_t)meter->first_us);
    bytes_write_u64(writer, meter->acked);
    bytes_write_u32(writer, meter->closes_count);
    bytes_write_u32(writer, meter->sums_count);
    bytes_write_u32(writer, meter->open_count);
    for (uint32_t index = 0; index < meter->closes_count; index++) {
        const struct meter_close *close = &meter->closes[index];
        bytes_write_u64(writer, close->sequence);
        bytes_write_u64(writer, close->from_op);
        bytes_write_u64(writer, close->to_op);
        bytes_write_u64(writer, (uint64_t)close->window_start_us);
        bytes_write_u64(writer, (uint64_t)close->window_end_us);
        bytes_write_u32(writer, close->sums_count);
    }
    for (uint32_t index = 0; index < meter->sums_count; index++) {
        const struct meter_sum *sum = &meter->sums[index];
        bytes_write_u32(writer, sum->principal);
        bytes_write_u64(writer, sum->ingress_bytes);
        bytes_write_u64(writer, sum->records);
        bytes_write_u64(writer, sum->batches);
    }
}

static enum status meter_decode_closes(struct meter *meter, struct bytes_reader *reader)
{
    uint64_t sums_count = meter->open_count;
    for (uint32_t index = 0; index < meter->closes_count; index++) {
        struct meter_close *close = &meter->closes[index];
        close->sequence = bytes_read_u64(reader);
        close->from_op = bytes_read_u64(reader);
        close->to_op = bytes_read_u64(reader);
        close->window_start_us = (int64_t)bytes_read_u64(reader);
        close->window_end_us = (int64_t)bytes_read_u64(reader);
        close->sums_count = bytes_read_u32(reader);
        sums_count += close->sums_count;
        if (close->sequence != meter->sequence - meter->closes_count + 1 + index)
            return STATUS_CHECKPOINT_DAMAGED;
    }
    return sums_count == meter->sums_count ? STATUS_OK : STATUS_CHECKPOINT_DAMAGED;
}

enum status meter_decode(struct meter *meter, struct bytes_reader *reader)
{
    meter_init(meter);
    meter->sequence = bytes_read_u64(reader);
    meter->from_op = bytes_read_u64(reader);
    meter->closed_until_us = (int64_t)bytes_read_u64(reader);
    meter->first_us = (int64_t)bytes_read_u64(reader);
    meter->acked = bytes_read_u64(reader);
    meter->closes_count = bytes_read_u32(reader);
    meter->sums_count = bytes_read_u32(reader);
    meter->open_count = bytes_read_u32(reader);
    if (reader->failed || meter->closes_count > METER_CLOSES_MAX
        || meter->sums_count > METER_SUMS_MAX || meter->open_count > meter->sums_count
        || meter->acked > meter->sequence) {
        return STATUS_CHECKPOINT_DAMAGED;
    }
    enum status status = meter_decode_closes(meter, reader);
    if (status != STATUS_OK) return status;
    for (uint32_t index = 0; index < meter->sums_count; index++) {
        struct meter_sum *sum = &meter->sums[index];
        sum->principal = bytes_read_u32(reader);
        sum->ingress_bytes = bytes_read_u64(reader);
        sum->records = bytes_read_u64(reader);
        sum->batches = bytes_read_u64(reader);
    }
    return reader->failed ? STATUS_CHECKPOINT_DAMAGED : STATUS_OK;
}

int meter_invariants(const struct meter *meter)
{
    assert(meter->closes_count <= METER_CLOSES_MAX);
    assert(meter->sums_count <= METER_SUMS_MAX);
    assert(meter->acked <= meter->sequence);
    assert(meter->sequence - meter->acked == meter->closes_count);
    uint32_t sums = meter->open_count;
    for (uint32_t index = 0; index < meter->closes_count; index++) {
        const struct meter_close *close = &meter->closes[index];
        assert(close->sequence == meter->acked + 1 + index);
        assert(close->from_op <= close->to_op);
        assert(close->window_start_us <= close->window_end_us);
        uint64_t next =
            index + 1 < meter->closes_count ? meter->closes[index + 1].from_op : meter->from_op;
        assert(close->to_op + 1 == next);
        sums += close->sums_count;
    }
    assert(sums == meter->sums_count);
    return 1;
}
