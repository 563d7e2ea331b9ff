/* journal/extents.c: reading extents at a start: which cycle each holds, and the last round
 * written again (J3). Every read is checked against another one: a read that was wrong once
 * must be refused, never trusted. */
#include "journal/extents.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum status journal_read(struct io *io, uint32_t file, uint8_t *buffer, uint64_t offset,
                         uint64_t size)
{
    struct io_request request = {
        .operation = IO_READ, .file = file, .offset = offset, .size = size, .buffer = buffer};
    enum status status = io->perform(io->context, &request);
    if (status != STATUS_OK) return status;
    return request.result_bytes == size ? STATUS_OK : STATUS_JOURNAL_DAMAGED;
}

enum status journal_read_extent(struct journal *journal, struct io *io, uint32_t file,
                                uint32_t extent, uint8_t *buffer)
{
    uint64_t size = (uint64_t)journal->config.extent_blocks * JOURNAL_BLOCK_BYTES;
    return journal_read(io, file, buffer, journal_extent_offset(&journal->config, extent), size);
}

/* The header names its extent: another one's, read or written astray, is none. */
int journal_extent_header(const struct journal *journal, uint32_t extent, const uint8_t *block,
                          struct journal_block *fields)
{
    return journal_block_get(block, journal->config.id,
                             journal_extent_offset(&journal->config, extent), fields)
           && fields->kind == JOURNAL_BLOCK_EXTENT
           && bytes_get_u32(block + JOURNAL_BLOCK_HEADER_BYTES) == extent;
}

/* Two extents of one cycle: one of them is wrong, and it is unknown which. */
static int journal_extent_cycles_differ(const struct journal *journal)
{
    for (uint32_t extent = 1; extent < journal->config.extents_count; extent++) {
        if (journal->extent_cycles[extent] == 0) continue;
        for (uint32_t other = 0; other < extent; other++) {
            if (journal->extent_cycles[other] == journal->extent_cycles[extent]) return 0;
        }
    }
    return 1;
}

static int extent_claimed(const struct journal *journal, uint64_t extent_cycle)
{
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        if (journal->headers_known[extent] && journal->extent_cycles[extent] == extent_cycle)
            return 1;
    }
    return 0;
}

/* Which cycle an extent holds. Its header says so; if that is damaged, its blocks do. */
enum status journal_find_extent_cycles(struct journal *journal, struct io *io, uint32_t file,
                                       uint8_t *buffer)
{
    struct journal_block fields;
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        uint64_t offset = journal_extent_offset(&journal->config, extent);
        enum status status = journal_read(io, file, buffer, offset, JOURNAL_BLOCK_BYTES);
        if (status != STATUS_OK) return status;
        int known = journal_extent_header(journal, extent, buffer, &fields);
        journal->extent_cycles[extent] = known ? fields.extent_cycle : 0;
        journal->headers_known[extent] = known != 0;
    }
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        if (journal->headers_known[extent]) continue;
        enum status status = journal_read_extent(journal, io, file, extent, buffer);
        if (status != STATUS_OK) return status;
        uint64_t offset = journal_extent_offset(&journal->config, extent);
        uint64_t highest = 0;
        for (uint32_t block = 1; block < journal->config.extent_blocks; block++) {
            const uint8_t *at = buffer + (uint64_t)block * JOURNAL_BLOCK_BYTES;
            uint64_t place = offset + (uint64_t)block * JOURNAL_BLOCK_BYTES;
            if (!journal_block_get(at, journal->config.id, place, &fields)) continue;
            if (fields.kind != JOURNAL_BLOCK_ROUND) continue;
            /* A round of an extent whose header is whole strayed here. */
            if (extent_claimed(journal, fields.extent_cycle)) continue;
            if (fields.extent_cycle > highest) highest = fields.extent_cycle;
        }
        journal->extent_cycles[extent] = highest;
    }
    return journal_extent_cycles_differ(journal) ? STATUS_OK : STATUS_JOURNAL_DAMAGED;
}

/* What is about to be written over the last round is the last round. */
static int rewrite_checked(const struct journal *journal, const struct journal_report *report,
                           const uint8_t *blocks)
{
    for (uint32_t number = 0; number < report->last_blocks; number++) {
        struct journal_block fields;
        const uint8_t *block = blocks + (uint64_t)number * JOURNAL_BLOCK_BYTES;
        uint64_t place = report->last_offset + (uint64_t)number * JOURNAL_BLOCK_BYTES;
        if (!journal_block_get(block, journal->config.id, place, &fields)) return 0;
        if (fields.kind != JOURNAL_BLOCK_ROUND || fields.lsn != report->lsn_last) return 0;
        if (fields.number != number || fields.blocks_count != report->last_blocks) return 0;
    }
    return 1;
}

/* The next round goes behind damage in an extent that has no intact one: its header came with what
 * is damaged, and may be no more durable than that. */
static enum status rewrite_header(const struct journal *journal, struct io *io, uint32_t file,
                                  uint8_t *buffer)
{
    uint64_t offset = journal_extent_offset(&journal->config, journal->extent);
    enum status status = journal_read(io, file, buffer, offset, JOURNAL_BLOCK_BYTES);
    if (status != STATUS_OK) return status;
    struct journal_block fields;
    if (!journal_extent_header(journal, journal->extent, buffer, &fields)
        || fields.extent_cycle != journal->extent_cycle)
        return STATUS_JOURNAL_DAMAGED;
    struct io_request request = {.operation = IO_WRITE_SYNC,
                                 .file = file,
                                 .offset = offset,
                                 .size = JOURNAL_BLOCK_BYTES,
                                 .buffer = buffer};
    return io->perform(io->context, &request);
}

enum status journal_rewrite_last(struct journal *journal, struct io *io, uint32_t file,
                                 uint8_t *buffer, const struct journal_report *report)
{
    if (journal->extent_cycle != 0 && journal->headers_known[journal->extent]
        && journal->rounds_counts[journal->extent] == 0) {
        enum status header = rewrite_header(journal, io, file, buffer);
        if (header != STATUS_OK) return header;
    }
    if (report->lsn_last == 0) return STATUS_OK;
    uint64_t offset = report->last_offset;
    uint64_t size = (uint64_t)report->last_blocks * JOURNAL_BLOCK_BYTES;
    uint64_t within =
        (offset - JOURNAL_FILE_HEADER_BYTES) / JOURNAL_BLOCK_BYTES % journal->config.extent_blocks;
    uint64_t before = 0;
    if (within == 1) {
        before = JOURNAL_BLOCK_BYTES;
        /* It opened its extent: the header went with it. */
        offset -= JOURNAL_BLOCK_BYTES;
        size += JOURNAL_BLOCK_BYTES;
    }
    assert(size <= (uint64_t)journal->config.extent_blocks * JOURNAL_BLOCK_BYTES);
    enum status status = journal_read(io, file, buffer, offset, size);
    if (status != STATUS_OK) return status;
    if (!rewrite_checked(journal, report, buffer + before)) return STATUS_JOURNAL_DAMAGED;
    struct io_request request = {
        .operation = IO_WRITE_SYNC, .file = file, .offset = offset, .size = size, .buffer = buffer};
    return io->perform(io->context, &request);
}
