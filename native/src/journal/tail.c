/* journal/tail.c: what lies behind the journal's last round: nothing, a write that never completed,
 * or something that must not be there.
 *
 * Owns the judgement of what no walk took as a round. Refuses what no write of ours can have left:
 * going on from it would give one answer at this start and another at the next. */
#include <string.h>

#include "foundation/bytes.h"
#include "journal/extents.h"

enum {
    /* Each start after a torn round skips one; the stamps' low halves bear no more. */
    WALK_LSN_SKIPPED_MAX = INT32_MAX,
};

/* Rounds that the extent's header disowns and no other extent claims. The write that would have
 * opened the extent may have been torn, its header lost: then nothing was durable behind the last
 * round. */
void journal_tail_orphans(struct journal_walk *walk, const uint8_t *buffer)
{
    struct journal *journal = walk->journal;
    if (!walk->report || walk->first_lsn == 0) return;
    for (uint32_t index = 1; index < journal->config.extent_blocks; index++) {
        const uint8_t *block = buffer + (uint64_t)index * JOURNAL_BLOCK_BYTES;
        struct journal_block fields;
        uint64_t place = journal_extent_offset(&journal->config, walk->extent)
                         + (uint64_t)index * JOURNAL_BLOCK_BYTES;
        if (!journal_block_get(block, journal->config.id, place, &fields)) continue;
        if (fields.kind != JOURNAL_BLOCK_ROUND || fields.extent_cycle < walk->extent_cycle)
            continue;
        if (fields.extent_cycle == walk->extent_cycle && fields.lsn >= walk->first_lsn) continue;
        if (fields.extent_cycle > walk->extent_cycle && journal_holds(journal, fields.extent_cycle))
            continue; /* it strayed here */
        if (fields.lsn > walk->report->lsn_seen) walk->report->lsn_seen = fields.lsn;
        if (fields.extent_cycle > walk->orphan_extent_cycle)
            walk->orphan_extent_cycle = fields.extent_cycle;
        uint64_t previous = fields.number == 0 ? journal_block_previous_lsn(block) : 0;
        if (previous > walk->orphan_previous) walk->orphan_previous = previous;
    }
}

/* Does the next round's first block hold anything but older bytes or zeros? */
static enum status check_end_block(struct journal_walk *walk, struct io *io, uint32_t file,
                                   uint8_t *buffer, uint32_t extent, uint32_t block, int *damaged)
{
    struct journal *journal = walk->journal;
    uint64_t offset =
        journal_extent_offset(&journal->config, extent) + (uint64_t)block * JOURNAL_BLOCK_BYTES;
    enum status status = journal_read(io, file, buffer, offset, JOURNAL_BLOCK_BYTES);
    if (status != STATUS_OK) return status;
    if (journal_block_is_older(buffer, journal->extent_cycles[extent], walk->last_lsn + 1))
        return STATUS_OK;
    /* It may stop everybody: a read that lied once must not. */
    uint8_t *again = buffer + JOURNAL_BLOCK_BYTES;
    status = journal_read(io, file, again, offset, JOURNAL_BLOCK_BYTES);
    if (status != STATUS_OK) return status;
    if (memcmp(buffer, again, JOURNAL_BLOCK_BYTES) != 0) return STATUS_JOURNAL_DAMAGED;
    walk->extent_cycle = journal->extent_cycles[extent];
    journal_damage_add(walk->report, JOURNAL_UNKNOWN, walk->extent_cycle, walk->last_lsn + 1,
                       walk->last_lsn + 1, NULL);
    journal->extent_cycle = walk->extent_cycle;
    journal->extent = extent;
    journal->block = journal->config.extent_blocks;
    *damaged = 1;
    return STATUS_OK;
}

/* Behind the last round lies what the next would have overwritten: in its extent, or in the one
 * that the next opened, whose header tells. If that is neither older bytes nor zeros, something was
 * there. */
static enum status journal_check_end(struct journal_walk *walk, struct io *io, uint32_t file,
                                     uint8_t *buffer)
{
    struct journal *journal = walk->journal;
    int damaged = 0;
    if (walk->report->damages_count > walk->pending) return STATUS_OK;
    if (journal->extent_cycle != 0 && journal->block < journal->config.extent_blocks) {
        enum status status =
            check_end_block(walk, io, file, buffer, journal->extent, journal->block, &damaged);
        if (status != STATUS_OK || damaged) return status;
    }
    uint64_t next = journal->extent_cycle + 1;
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        if (journal->extent_cycles[extent] != next || !journal->headers_known[extent]) continue;
        return check_end_block(walk, io, file, buffer, extent, 1, &damaged);
    }
    return STATUS_OK;
}

/* The extent behind the last round: its first never completed. What tells of rounds behind that
 * was made wrong: they were durable, or never were. */
static enum status journal_close_unopened(struct journal_walk *walk)
{
    struct journal *journal = walk->journal;
    struct journal_report *report = walk->report;
    if (walk->orphan_previous > report->lsn_last) return STATUS_JOURNAL_DAMAGED;
    if (walk->orphan_extent_cycle > journal->extent_cycle + 1) return STATUS_JOURNAL_DAMAGED;
    if (report->lsn_seen > report->lsn_last + WALK_LSN_SKIPPED_MAX) return STATUS_JOURNAL_DAMAGED;
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        if (journal->extent_cycles[extent] <= journal->extent_cycle) continue;
        if (journal->extent_cycles[extent] > journal->extent_cycle + 1)
            return STATUS_JOURNAL_DAMAGED;
        journal->extent_cycles[extent] = 0;
        report->unopened = extent + 1;
    }
    return STATUS_OK;
}

/* Zeros over what writes of this cycle left from `block` on. */
static enum status clear_remains(const struct journal *journal, struct io *io, uint32_t file,
                                 uint8_t *buffer, uint32_t extent, uint32_t block,
                                 uint64_t extent_cycle)
{
    if (block >= journal->config.extent_blocks) return STATUS_OK;
    uint32_t blocks = journal->config.extent_blocks - block;
    uint64_t offset =
        journal_extent_offset(&journal->config, extent) + (uint64_t)block * JOURNAL_BLOCK_BYTES;
    enum status status =
        journal_read(io, file, buffer, offset, (uint64_t)blocks * JOURNAL_BLOCK_BYTES);
    if (status != STATUS_OK) return status;
    while (blocks > 0
           && !journal_block_is_newer(buffer + (uint64_t)(blocks - 1) * JOURNAL_BLOCK_BYTES,
                                      extent_cycle, journal->lsn_previous))
        blocks--;
    if (blocks == 0) return STATUS_OK;
    uint64_t size = (uint64_t)blocks * JOURNAL_BLOCK_BYTES;
    memset(buffer, 0, size);
    struct io_request request = {
        .operation = IO_WRITE_SYNC, .file = file, .offset = offset, .size = size, .buffer = buffer};
    return io->perform(io->context, &request);
}

enum status journal_clear_tail(const struct journal *journal, struct io *io, uint32_t file,
                               uint8_t *buffer, const struct journal_report *report)
{
    if (journal->extent_cycle != 0) {
        enum status status = clear_remains(journal, io, file, buffer, journal->extent,
                                           journal->block, journal->extent_cycle);
        if (status != STATUS_OK) return status;
    }
    if (report->unopened == 0) return STATUS_OK;
    return clear_remains(journal, io, file, buffer, report->unopened - 1, 1,
                         journal->extent_cycle + 1);
}

enum status journal_tail(struct journal_walk *walk, struct io *io, uint32_t file, uint8_t *buffer)
{
    enum status status = journal_check_end(walk, io, file, buffer);
    return status == STATUS_OK ? journal_close_unopened(walk) : status;
}
