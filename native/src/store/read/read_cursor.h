/* store/read/read_cursor.h: how far reads for an offset have come.
 *
 * The index leads a read to a batch at or before its offset. When the way from there is longer than
 * one read, or the batch larger, the next attempt goes on where the last one ended, also if another
 * call makes it. Owns positions only, which never change once written: an entry that was given up,
 * or read by two at once, costs a repeated read and nothing else. */
#ifndef STORE_READ_READ_CURSOR_H
#define STORE_READ_READ_CURSOR_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct read_cursors;
struct replica;
struct store;

/* Where reads for an offset have come to that did not reach it yet: the next one goes on there. */
struct read_cursor {
    uint64_t topic;
    uint64_t created_revision;
    uint64_t offset;       /* looked for */
    uint64_t segment;      /* base offset */
    uint64_t position;     /* of a batch at or before it, in the segment's file */
    uint64_t batch_offset; /* of that batch */
    uint64_t bytes;        /* of that batch, if the last read was too short for it */
    uint32_t partition;
    uint32_t used;
};

size_t read_cursors_memory_bytes(void);
struct read_cursors *read_cursors_make(struct arena *arena);

/* NULL = begin again. */
const struct read_cursor *read_cursor_find(const struct store *store, const struct replica *replica,
                                           uint64_t offset);
void read_cursor_keep(struct store *store, const struct replica *replica,
                      const struct read_cursor *found);

void read_cursors_invariants(const struct read_cursors *cursors);

#endif
