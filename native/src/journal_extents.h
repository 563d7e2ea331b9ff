/* journal_extents.h: what recovery reads of the journal's file, shared by its two files alone. */
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

#endif
