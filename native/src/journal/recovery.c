/* journal/recovery.c: what a crash left behind: absent, unknown or corrupt (J2), and where to go
 * on.
 *
 * A walk reads the live extents in order of cycle and in each the rounds block by block.
 * Blocks name their round, so a damaged round is stepped over and the ones behind it are found.
 * Then:
 *
 *     damaged, an intact round above it witnesses it        corrupt: it was durable, a directory
 *                                                           names its replicas
 *     damaged, the last one, every bad block holds an
 *         older sector (zeros, older cycle or lsn)          absent: its write never completed,
 *                                                           nothing was acknowledged
 *     damaged, the last one, otherwise                      unknown: looks the same as damage to a
 *                                                           durable round
 *
 * Refuses: to adopt anything. The caller rewrites the last round and ends with a witness round
 * before it answers (J3). */
#include "journal/extents.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "journal/entry_bodies.h"

static void walk_damage(struct journal_walk *walk, enum journal_damage_kind kind, uint64_t from,
                        uint64_t to)
{
    if (walk->report) {
        journal_damage_add(walk->report, kind, walk->extent_cycle, from, to, NULL);
    }
}

static void walk_damage_directory(struct journal_walk *walk, enum journal_damage_kind kind,
                                  uint64_t lsn, const uint8_t *items, uint32_t count)
{
    for (uint32_t index = 0; walk->report && index < count; index++) {
        struct journal_directory_item item;
        journal_directory_get(items + (uint64_t)index * JOURNAL_DIRECTORY_ITEM_BYTES, &item);
        journal_damage_add(walk->report, kind, walk->extent_cycle, lsn, lsn, &item);
    }
}

/* Move the payloads of `count` verified blocks together, to the start of the first block. */
static uint64_t walk_gather(uint8_t *blocks, uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t number = 0; number < count; number++) {
        uint8_t *block = blocks + (uint64_t)number * JOURNAL_BLOCK_BYTES;
        uint32_t size = journal_block_payload_bytes(block);
        journal_block_restore(block);
        memmove(blocks + total, block + JOURNAL_BLOCK_HEADER_BYTES, size);
        total += size;
    }
    return total;
}

/* Where a lost round lay, seen from an intact one above it: in its extent, in the one before, or
 * further back (0). Damage of dead extents is dropped later, so that the newest it can have been
 * counts. */
static uint64_t walk_extent_cycle_of(const struct journal_walk *walk, uint64_t lsn)
{
    if (walk->first_lsn != 0 && lsn >= walk->first_lsn) return walk->extent_cycle;
    return lsn > 0 && lsn >= walk->first_before ? walk->extent_cycle - 1 : 0;
}

/* An intact round follows: what of the damage before it counts, and whose it is. */
static void walk_link(struct journal_walk *walk, const struct journal_round *round,
                      const uint8_t *previous)
{
    struct journal_report *report = walk->report;
    if (!report) return;
    uint64_t extent_cycle = walk->extent_cycle;
    uint64_t lost = walk_extent_cycle_of(walk, round->previous_lsn);
    uint64_t further = walk->hole != 0 ? round->before_previous_lsn : round->previous_lsn;
    uint64_t lost_further = walk_extent_cycle_of(walk, further);
    if (walk->hole != 0)
        walk->extent_cycle = walk->hole;
    else if (walk->last_lsn != 0)
        walk->extent_cycle = walk->last_extent_cycle;
    if (walk->extent_cycle < lost) walk->extent_cycle = lost;
    if (walk->last_lsn == 0) {
        /* The first intact round of all: older ones may rightly be gone, unless blocks before it
         * are damaged, or their extent turns out to live. */
        journal_damage_drop_unnamed(report, walk->pending);
        if (walk->hole != 0) {
            walk_damage_directory(walk, JOURNAL_CORRUPT, round->previous_lsn, previous,
                                  round->previous_count);
            /* What lies before the extent is gone by right. */
            if (round->before_previous_lsn > 0 && round->before_previous_lsn >= walk->first_lsn) {
                walk_damage(walk, JOURNAL_CORRUPT, 1, round->before_previous_lsn);
            }
        }
        walk->extent_cycle = lost_further;
        if (lost_further > 0 && lost_further < extent_cycle) {
            walk_damage(walk, JOURNAL_CORRUPT, 1, further);
        }
    } else if (round->previous_lsn == walk->last_lsn) {
        /* An earlier recovery stood here and went on behind what it had cut or closed. */
        report->damages_count = walk->pending;
        if (round->previous_chain != walk->last_chain) walk->failed = 1;
    } else {
        journal_damage_drop_unnamed(report, walk->pending);
        if (round->previous_lsn > walk->accounted) {
            if (round->before_previous_lsn > walk->accounted) {
                walk_damage(walk, JOURNAL_CORRUPT, walk->accounted + 1, round->before_previous_lsn);
            }
            walk_damage_directory(walk, JOURNAL_CORRUPT, round->previous_lsn, previous,
                                  round->previous_count);
        }
    }
    walk->extent_cycle = extent_cycle;
    walk->hole = 0;
    walk->last_extent_cycle = extent_cycle;
    walk->pending = report->damages_count;
}

static void walk_closed(struct journal_report *report, const struct entry_tail_closed *closed)
{
    if (report->closed_count == JOURNAL_CLOSED_MAX) return;
    report->closed_from[report->closed_count] = closed->lsn_from;
    report->closed_to[report->closed_count++] = closed->lsn_to;
}

/* Blocks verified one by one: the round is whole. */
static enum status walk_round(struct journal_walk *walk, uint32_t block,
                              const struct journal_block *first, uint8_t *blocks)
{
    uint32_t count = first->blocks_count;
    uint64_t chain = 0;
    for (uint32_t number = 0; number < count; number++) {
        chain = XXH3_64bits_withSeed(blocks + (uint64_t)number * JOURNAL_BLOCK_BYTES + 4, 4, chain);
    }
    uint64_t size = walk_gather(blocks, count);
    struct journal_round round;
    if (!journal_round_get(blocks, size, &round) || round.payload_bytes != size)
        return STATUS_JOURNAL_DAMAGED;
    if (round.lsn != first->lsn || round.extent_cycle_oldest > walk->extent_cycle
        || round.own_count > walk->journal->directory_max)
        return STATUS_JOURNAL_DAMAGED;
    uint64_t own_size = (uint64_t)round.own_count * JOURNAL_DIRECTORY_ITEM_BYTES;
    uint64_t at = JOURNAL_ROUND_HEADER_BYTES + own_size;
    walk_link(walk, &round, blocks + at);
    if (walk->failed) return STATUS_JOURNAL_DAMAGED;
    at += (uint64_t)round.previous_count * JOURNAL_DIRECTORY_ITEM_BYTES;

    struct journal_report *report = walk->report;
    for (uint32_t index = 0; index < round.entries_count; index++) {
        struct journal_entry entry;
        if (!journal_entry_get(blocks + at, size - at, &entry)) return STATUS_JOURNAL_DAMAGED;
        if (entry.kind == JOURNAL_TAIL_CLOSED) {
            struct entry_tail_closed closed;
            enum status whole =
                entry_tail_closed_get(blocks + at + JOURNAL_ENTRY_HEADER_BYTES,
                                      entry.size - JOURNAL_ENTRY_HEADER_BYTES, &closed);
            if (whole != STATUS_OK) return whole;
            if (report) walk_closed(report, &closed);
        }
        uint64_t next = at + bytes_round_up(entry.size, JOURNAL_ENTRY_ALIGNMENT);
        enum status status =
            walk->visitor(walk->context, blocks + at, &entry, walk->extent_cycle, round.lsn);
        if (status != STATUS_OK) return status;
        at = next;
    }
    if (at != size) return STATUS_JOURNAL_DAMAGED;

    walk->rounds++;
    walk->last_lsn = walk->accounted = round.lsn;
    walk->last_chain = chain;
    walk->good_end = block + count;
    walk->unknown_end = 0;
    if (report) {
        report->lsn_before_last = round.previous_lsn;
        report->lsn_last = round.lsn;
        report->witness = round.witness;
        report->extent_cycle_oldest = round.extent_cycle_oldest;
        report->last_offset = journal_extent_offset(&walk->journal->config, walk->extent)
                              + (uint64_t)block * JOURNAL_BLOCK_BYTES;
        report->last_blocks = count;
        report->last_entries = round.entries_count;
        report->rounds_count++;
        report->entries_count += round.entries_count;
        walk->journal->previous_count = round.own_count;
        for (uint32_t index = 0; index < round.own_count; index++) {
            journal_directory_get(blocks + JOURNAL_ROUND_HEADER_BYTES
                                      + (uint64_t)index * JOURNAL_DIRECTORY_ITEM_BYTES,
                                  &walk->journal->previous[index]);
        }
    }
    return STATUS_OK;
}

/* The block `index` of the extent, whose bytes are in `buffer`. */
static int walk_block(const struct journal_walk *walk, const uint8_t *buffer, uint32_t index,
                      struct journal_block *fields)
{
    const struct journal_config *config = &walk->journal->config;
    const uint8_t *block = buffer + (uint64_t)index * JOURNAL_BLOCK_BYTES;
    uint64_t place =
        journal_extent_offset(config, walk->extent) + (uint64_t)index * JOURNAL_BLOCK_BYTES;
    if (!journal_block_get(block, config->id, place, fields)) return 0;
    if (fields->kind != JOURNAL_BLOCK_ROUND || fields->extent_cycle != walk->extent_cycle) return 0;
    if (fields->lsn < walk->first_lsn) return 0; /* of a write that another one came over */
    if (fields->blocks_count >= config->extent_blocks) return 0; /* no end of it */
    if (walk->report && fields->lsn > walk->report->lsn_seen) walk->report->lsn_seen = fields->lsn;
    return fields->lsn > walk->last_lsn;
}

/* A round of which at least one block is intact: `first` is where it begins, `known` an intact
 * block's fields. */
static uint32_t walk_damaged(struct journal_walk *walk, uint8_t *buffer, uint32_t first,
                             const struct journal_block *known)
{
    uint32_t end = first + known->blocks_count;
    if (end > walk->journal->config.extent_blocks) end = walk->journal->config.extent_blocks;
    int older = 1;
    uint32_t prefix = 0;
    for (uint32_t index = first; index < end; index++) {
        uint8_t *block = buffer + (uint64_t)index * JOURNAL_BLOCK_BYTES;
        struct journal_block fields;
        if (walk_block(walk, buffer, index, &fields) && fields.lsn == known->lsn
            && fields.number == index - first) {
            if (prefix == index - first) prefix++;
        } else if (!journal_block_is_older(block, walk->extent_cycle, known->lsn)) {
            older = 0;
        }
    }
    enum journal_damage_kind kind = older ? JOURNAL_ABSENT : JOURNAL_UNKNOWN;
    if (walk->hole == 0) walk->hole = walk->extent_cycle;
    if (!older) walk->unknown_end = end;
    uint8_t *blocks = buffer + (uint64_t)first * JOURNAL_BLOCK_BYTES;
    uint64_t size = walk_gather(blocks, prefix);
    struct journal_round round;
    if (walk->report && prefix > 0 && journal_round_get(blocks, size, &round)
        && round.previous_lsn == walk->accounted) {
        walk_damage_directory(walk, kind, known->lsn, blocks + JOURNAL_ROUND_HEADER_BYTES,
                              round.own_count);
        if (round.own_count == 0) walk_damage(walk, JOURNAL_ABSENT, known->lsn, known->lsn);
        walk->accounted = known->lsn;
    } else {
        walk_damage(walk, kind, walk->accounted + 1, known->lsn);
    }
    return end;
}

/* Nothing begins at `block`: find what lies behind. Returns where to go on; extent_blocks = nothing
 * more here. */
static uint32_t walk_ahead(struct journal_walk *walk, uint8_t *buffer, uint32_t block)
{
    uint32_t blocks_count = walk->journal->config.extent_blocks;
    for (uint32_t index = block; index < blocks_count; index++) {
        struct journal_block fields;
        if (!walk_block(walk, buffer, index, &fields)) continue;
        uint32_t first = index >= fields.number ? index - fields.number : 0;
        if (first <= block) return walk_damaged(walk, buffer, block, &fields);
        /* Whole rounds between are gone: the next one's directory says whose, if it is intact. If
         * it is torn, its write began all the same when they were durable. */
        if (walk->hole == 0) walk->hole = walk->extent_cycle;
        walk_damage(walk, JOURNAL_UNKNOWN, walk->accounted + 1, fields.lsn - 1);
        return first;
    }
    return blocks_count;
}

static enum status walk_extent(struct journal_walk *walk, uint8_t *buffer)
{
    uint32_t blocks_count = walk->journal->config.extent_blocks;
    uint32_t block = 1;
    walk->rounds = 0;
    walk->good_end = 0;
    walk->unknown_end = 0;
    struct journal_block header;
    int known = journal_extent_header(walk->journal, walk->extent, buffer, &header)
                && header.extent_cycle == walk->extent_cycle;
    if (!known && walk->journal->headers_known[walk->extent]) return STATUS_JOURNAL_DAMAGED;
    walk->first_before = walk->extent_cycle_before + 1 == walk->extent_cycle ? walk->first_lsn : 0;
    walk->extent_cycle_before = walk->extent_cycle;
    walk->first_lsn = known ? header.lsn : 0;
    journal_tail_orphans(walk, buffer);
    while (block < blocks_count) {
        uint8_t *blocks = buffer + (uint64_t)block * JOURNAL_BLOCK_BYTES;
        struct journal_block first;
        if (!walk_block(walk, buffer, block, &first) || first.number != 0
            || first.blocks_count > blocks_count - block) {
            block = walk_ahead(walk, buffer, block);
            continue;
        }
        uint32_t number = 1;
        for (; number < first.blocks_count; number++) {
            struct journal_block fields;
            if (!walk_block(walk, buffer, block + number, &fields)) break;
            if (fields.lsn != first.lsn || fields.number != number) break;
        }
        if (number < first.blocks_count) {
            block = walk_damaged(walk, buffer, block, &first);
            continue;
        }
        enum status status = walk_round(walk, block, &first, blocks);
        if (status != STATUS_OK) return status;
        block += first.blocks_count;
    }
    return STATUS_OK;
}

/* The extent with the lowest cycle above `above`. */
static int journal_extent_after(const struct journal *journal, uint64_t above, uint32_t *found)
{
    int any = 0;
    for (uint32_t extent = 0; extent < journal->config.extents_count; extent++) {
        uint64_t extent_cycle = journal->extent_cycles[extent];
        if (extent_cycle <= above) continue;
        if (!any || extent_cycle < journal->extent_cycles[*found]) *found = extent;
        any = 1;
    }
    return any;
}

/* An extent's walk is over: this is where the journal goes on, unless a later extent has a
 * round. */
static void journal_stand(struct journal_walk *walk)
{
    struct journal *journal = walk->journal;
    /* No round of it is left: it was never opened, or, if a later one was, it is a hole. */
    if (walk->good_end == 0 && walk->unknown_end == 0) return;
    journal->extent_cycle = walk->extent_cycle;
    journal->extent = walk->extent;
    journal->block = walk->good_end > walk->unknown_end ? walk->good_end : walk->unknown_end;
}

static void journal_resume(struct journal *journal, const struct journal_walk *walk)
{
    const struct journal_report *report = walk->report;
    /* A torn round used the lsn after the last one: skip it, so that its remains are older than
     * whatever comes. */
    uint64_t used =
        report->lsn_last + 1 > report->lsn_seen ? report->lsn_last + 1 : report->lsn_seen;
    journal->lsn_before_previous = report->lsn_before_last;
    journal->lsn_previous = report->lsn_last;
    journal->lsn_next = report->lsn_last == 0 && report->lsn_seen == 0 ? 1 : used + 1;
    journal->chain_previous = walk->last_chain;
    if (report->extent_cycle_oldest > 0) journal->extent_cycle_oldest = report->extent_cycle_oldest;
    journal->extent_cycle_kept = journal->extent_cycle_oldest;
    journal_extents_count(journal);
}

enum status journal_scan(struct journal *journal, struct io *io, uint32_t file, uint8_t *buffer,
                         struct journal_report *report, journal_visitor *visitor, void *context)
{
    struct journal_walk walk = {
        .journal = journal, .report = report, .visitor = visitor, .context = context};
    if (report) {
        memset(report, 0, sizeof *report);
        journal->extent_cycle = 0;
        enum status status = journal_find_extent_cycles(journal, io, file, buffer);
        if (status != STATUS_OK) return status;
    }
    uint64_t above = report ? 0 : journal->extent_cycle_oldest - 1;
    uint32_t extent = 0;
    while (journal_extent_after(journal, above, &extent)) {
        walk.extent = extent;
        walk.extent_cycle = above = journal->extent_cycles[extent];
        enum status status = journal_read_extent(journal, io, file, extent, buffer);
        if (status != STATUS_OK) return status;
        status = walk_extent(&walk, buffer);
        if (status != STATUS_OK) return status;
        if (report) {
            journal->rounds_counts[extent] = walk.rounds;
            journal_stand(&walk);
        } else if (walk.rounds != journal->rounds_counts[extent]) {
            return STATUS_JOURNAL_DAMAGED;
        }
    }
    if (!report) return STATUS_OK;
    enum status status = journal_tail(&walk, io, file, buffer);
    if (status != STATUS_OK) return status;
    journal_damage_prune(report);
    journal_resume(journal, &walk);
    return STATUS_OK;
}

enum status journal_scan_extent(struct journal *journal, uint64_t extent_cycle, uint8_t *buffer,
                                journal_visitor *visitor, void *context)
{
    struct journal_walk walk = {
        .journal = journal, .visitor = visitor, .context = context, .extent_cycle = extent_cycle};
    walk.extent = journal_extent_of(journal, extent_cycle);
    struct journal_block header;
    /* A round of before, that a write astray left here, is none of this extent's. */
    int known = journal_extent_header(journal, walk.extent, buffer, &header)
                && header.extent_cycle == extent_cycle;
    if (known && header.lsn > 0) walk.last_lsn = header.lsn - 1;
    enum status status = walk_extent(&walk, buffer);
    if (status != STATUS_OK) return status;
    return walk.rounds == journal->rounds_counts[walk.extent] ? STATUS_OK : STATUS_JOURNAL_DAMAGED;
}
