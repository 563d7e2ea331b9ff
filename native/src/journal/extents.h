/* journal/extents.h: what recovery reads of the journal's file, and what it knows while it walks;
 * shared by its files alone. */
#ifndef JOURNAL_EXTENTS_H
#define JOURNAL_EXTENTS_H

#include "journal/journal.h"

/* One walk over the extents (journal/recovery.c). */
struct journal_walk {
    struct journal *journal;
    struct journal_report *report; /* NULL on later walks */
    journal_visitor *visitor;
    void *context;
    uint64_t extent_cycle;
    uint32_t extent;
    uint64_t last_lsn;
    uint64_t last_chain;
    uint64_t accounted; /* rounds up to here are intact or named as damaged */
    uint32_t pending;   /* damages since the last intact round begin here */
    uint64_t hole;      /* cycle of the extent where damage since then began; 0 = none seen */
    uint64_t last_extent_cycle;
    uint64_t extent_cycle_before; /* of the extent walked before this one */
    uint64_t first_lsn;    /* of this extent, as its header says; 0 = its header is damaged */
    uint64_t first_before; /* of the cycle before it, likewise */
    uint64_t orphan_extent_cycle; /* highest of blocks that belong nowhere */
    uint64_t orphan_previous;     /* highest lsn that such rounds saw durable */
    uint32_t rounds;              /* intact ones in this extent */
    uint32_t good_end;            /* of the last intact round in this extent; 0 = none */
    uint32_t unknown_end;         /* of unknown damage behind it; 0 = none */
    int failed;                   /* the chain of rounds contradicts itself */
};

/* All of [offset, offset + size) or JOURNAL_DAMAGED. */
enum status journal_read(struct io *io, uint32_t file, uint8_t *buffer, uint64_t offset,
                         uint64_t size);
enum status journal_read_extent(struct journal *journal, struct io *io, uint32_t file,
                                uint32_t extent, uint8_t *buffer);
/* 1 = the block is the header of this very extent. */
int journal_extent_header(const struct journal *journal, uint32_t extent, const uint8_t *block,
                          struct journal_block *fields);
/* Fills cycles and headers_known. JOURNAL_DAMAGED: two extents claim the same cycle. */
enum status journal_find_extent_cycles(struct journal *journal, struct io *io, uint32_t file,
                                       uint8_t *buffer);

/* `item` = NULL: no replica is named. */
void journal_damage_add(struct journal_report *report, enum journal_damage_kind kind,
                        uint64_t extent_cycle, uint64_t from, uint64_t to,
                        const struct journal_directory_item *item);
/* Damage that names no replica is kept only until a later round's directory names it: of the
 * list from `from` on. */
void journal_damage_drop_unnamed(struct journal_report *report, uint32_t from);
/* Drops damage that does not matter: of dead extents, of rounds that never were, of ranges dealt
 * with before. */
void journal_damage_prune(struct journal_report *report);

/* Before an extent's rounds are walked: those in it that are none of its own. */
void journal_tail_orphans(struct journal_walk *walk, const uint8_t *buffer);
/* After the last extent: what lies behind the last round, and where the journal goes on.
 * JOURNAL_DAMAGED: something lies there that no write of ours left. */
enum status journal_tail(struct journal_walk *walk, struct io *io, uint32_t file, uint8_t *buffer);

#endif
