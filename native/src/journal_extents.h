/* journal_extents.h: what recovery reads of the journal's file, shared by its files alone. */
#ifndef JOURNAL_EXTENTS_H
#define JOURNAL_EXTENTS_H

#include "journal.h"

/* All of [offset, offset + size) or JOURNAL_DAMAGED. */
enum status journal_read(struct io *io, uint32_t file, uint8_t *buffer, uint64_t offset,
                         uint64_t size);
enum status journal_read_extent(struct journal *journal, struct io *io, uint32_t file,
                                uint32_t extent, uint8_t *buffer);
/* 1 = the block is the header of this very extent. */
int journal_extent_header(const struct journal *journal, uint32_t extent, const uint8_t *block,
                          struct journal_block *fields);
/* Fills generations and headers_known. JOURNAL_DAMAGED: two extents claim the same generation. */
enum status journal_find_generations(struct journal *journal, struct io *io, uint32_t file,
                                     uint8_t *buffer);

/* `item` = NULL: nobody is named. */
void journal_damage_add(struct journal_report *report, enum journal_damage_kind kind,
                        uint64_t generation, uint64_t from, uint64_t to,
                        const struct journal_directory_item *item);
/* Damage that names nobody is kept only until a later round's directory says whose it was: of the
 * list from `from` on. */
void journal_damage_drop_unnamed(struct journal_report *report, uint32_t from);
/* Drops damage that does not matter: of dead extents, of rounds that never were, of ranges dealt
 * with before. */
void journal_damage_prune(struct journal_report *report);

#endif
