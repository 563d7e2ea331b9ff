/* segment/offset_index.h: sparse (offset, append time) -> position entries of one segment. A
 * cache: rebuilt by walking headers, decides nothing. Offsets and append times both only grow,
 * so one list serves lookups by either.
 *
 * An entry is noted for the first batch that begins OFFSET_INDEX_STRIDE_BYTES or more after the
 * last noted one. The first entries stand in the index itself, the others in blocks from a pool of
 * the shard; when the pool is empty, the index thins itself out (every second entry goes, the
 * stride doubles) and goes on: lookups then walk further, and stay right. With its own entries
 * alone an index still finds any batch within a third of what it covers, or the stride. */
#ifndef SEGMENT_OFFSET_INDEX_H
#define SEGMENT_OFFSET_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"

struct arena;

enum { OFFSET_INDEX_BLOCK_ENTRIES = 42, OFFSET_INDEX_OWN_ENTRIES = 8 };

struct offset_index_entry {
    uint64_t offset;
    uint64_t position;
    int64_t time_us; /* append time */
};

struct offset_index_block { /* 1 KiB, rounded */
    struct offset_index_block *next;
    uint64_t count;
    struct offset_index_entry entries[OFFSET_INDEX_BLOCK_ENTRIES];
};

struct offset_index_pool {
    struct offset_index_block *free;
    uint32_t free_count;
    uint32_t count;
};

struct offset_index {
    struct offset_index_block *first;
    struct offset_index_block *last;
    uint64_t own_count;
    struct offset_index_entry own[OFFSET_INDEX_OWN_ENTRIES]; /* those before all blocks */
    uint64_t stride_bytes;
    uint64_t noted_position; /* of the last entry */
    uint64_t walked_bytes;   /* data bytes seen so far: all batches below it are covered */
};

size_t offset_index_pool_bytes(uint32_t blocks_count);
enum status offset_index_pool_init(struct offset_index_pool *pool, struct arena *arena,
                                   uint32_t blocks_count);

void offset_index_init(struct offset_index *index);
void offset_index_deinit(struct offset_index *index, struct offset_index_pool *pool);

/* The next batch of the segment, in order: where it begins, and how long it is. */
void offset_index_note(struct offset_index *index, struct offset_index_pool *pool,
                       const struct offset_index_entry *batch, uint64_t size);

/* The greatest noted (offset, position) with entry.offset <= offset; position 0 if there is none:
 * walk from there. */
struct offset_index_entry offset_index_find(const struct offset_index *index, uint64_t base_offset,
                                            uint64_t offset);

/* The last noted batch that was appended at or before the time; the segment's first one if there is
 * none. */
struct offset_index_entry offset_index_find_time(const struct offset_index *index,
                                                 uint64_t base_offset, int64_t time_us);

#endif
