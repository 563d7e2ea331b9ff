/* store/read/time_search.c: from a time to an offset.
 *
 * Append times strictly increase within a partition (C1), so the question has one exact answer, and
 * all that is needed is there already: a segment knows its first and last time (in the checkpoint
 * and in its footer), its index knows the time of every noted batch, every header tells its own. A
 * lookup takes the first segment that ends late enough, the stride that the index names, and is
 * then settled by reading headers: by the caller, since reading may have to wait for the disk. */
#include "foundation/assert.h"
#include "store/registry.h"
#include "store/state.h"

/* The first segment that holds something kept and as late as `time_us`. NULL = none. */
static struct segment *time_segment(struct replica *replica, int64_t time_us)
{
    struct segment_list *list = &replica->state.segments;
    for (struct segment_chunk *chunk = list->first; chunk; chunk = chunk->next) {
        if (chunk->count == 0 || chunk->segments[chunk->count - 1].max_time_us < time_us) continue;
        for (uint32_t index = 0; index < chunk->count; index++) {
            struct segment *segment = &chunk->segments[index];
            if (segment->end_offset <= replica->state.log_start) continue;
            if (segment->max_time_us >= time_us) return segment;
        }
    }
    return NULL;
}

static void time_in(const struct segment *segment, int64_t time_us, struct store_time *found)
{
    if (segment->min_time_us >= time_us && segment->base_offset >= found->log_start) {
        found->answer = STORE_TIME_FOUND;
        found->offset = segment->base_offset;
        found->append_time_us = segment->min_time_us;
        return;
    }
    found->answer = STORE_TIME_WALK;
    found->offset = offset_index_find_time(&segment->index, segment->base_offset, time_us).offset;
    if (found->offset < found->log_start) found->offset = found->log_start;
}

void store_time_find(struct store *store, const struct engine_partition_id *id, int64_t time_us,
                     struct store_time *found)
{
    *found = (struct store_time){0};
    struct replica *replica;
    found->status = registry_lookup(store, id, &replica);
    if (found->status != STATUS_OK || !replica) return;
    found->log_start = replica->state.log_start;
    found->high_watermark = found->offset = replica->state.next_offset;
    if (replica->vsr.status == VSR_DAMAGED)
        found->status = STATUS_DAMAGED;
    else if (replica->corrupt)
        found->status = STATUS_CORRUPT;
    if (found->status != STATUS_OK) return;
    const struct segment *segment = time_segment(replica, time_us);
    if (segment) time_in(segment, time_us, found);
}

int store_time_scan(const uint8_t *bytes, size_t size, int64_t time_us, struct store_time *found)
{
    for (size_t at = 0; at < size;) {
        struct batch_server server;
        assert(size - at >= BATCH_SERVER_HEADER_BYTES);
        batch_read_server(bytes + at, &server);
        assert(server.size_bytes <= size - at);
        if (server.append_time_us >= time_us) {
            found->answer = STORE_TIME_FOUND;
            /* Retention may have cut into the batch that was read for its end. */
            found->offset =
                server.base_offset > found->log_start ? server.base_offset : found->log_start;
            found->append_time_us = server.append_time_us;
            return 1;
        }
        at += server.size_bytes;
    }
    return 0;
}
