/* segment/trim.c: segments leave the front of a list.
 *
 * The rest moves up, so that a list of n segments always takes the chunks that n segments take: a
 * replay, which comes to the same list by another way, never needs more. Files are the caller's. */
#include <string.h>

#include "foundation/assert.h"
#include "segment/segment.h"

static void segment_trim_note(const struct segment *segment, struct segment_trimmed *trimmed)
{
    if (trimmed->segments++ == 0) trimmed->min_time_us = segment->min_time_us;
    assert(segment->max_time_us >= trimmed->max_time_us);
    trimmed->max_time_us = segment->max_time_us;
    trimmed->bytes += segment->data_bytes;
    trimmed->records += segment->record_count;
}

/* All but the first `gone` segments, to the front. */
static void segment_trim_move(struct segment_list *list, uint32_t gone)
{
    struct segment_chunk *target = list->first;
    struct segment_chunk *source = list->first;
    uint32_t to = 0;
    uint32_t from = gone;
    for (uint32_t left = list->count - gone; left > 0; left--) {
        while (from >= SEGMENT_CHUNK_COUNT) {
            source = source->next;
            from -= SEGMENT_CHUNK_COUNT;
        }
        if (to == SEGMENT_CHUNK_COUNT) {
            target->count = SEGMENT_CHUNK_COUNT;
            target = target->next;
            to = 0;
        }
        target->segments[to++] = source->segments[from++];
    }
    struct segment_chunk *empty = target->next;
    target->count = to;
    target->next = NULL;
    list->last = target;
    if (to == 0) { /* nothing is left: the first chunk goes too */
        target->next = empty;
        empty = target;
        list->first = list->last = NULL;
    }
    while (empty) {
        struct segment_chunk *next = empty->next;
        memset(empty, 0, sizeof *empty);
        empty->next = list->pool->free;
        list->pool->free = empty;
        list->pool->free_count++;
        list->chunks.used--;
        empty = next;
    }
    list->count -= gone;
}

void segment_list_trim(struct segment_list *list, uint64_t log_start,
                       struct segment_trimmed *trimmed)
{
    memset(trimmed, 0, sizeof *trimmed);
    for (;;) {
        struct segment *segment = segment_at(list, trimmed->segments);
        if (!segment || segment->end_offset > log_start) break;
        if (!segment->sealed) list->digest_valid = 1; /* the next one begins anew */
        segment_trim_note(segment, trimmed);
        offset_index_deinit(&segment->index, list->index_pool);
    }
    if (trimmed->segments == 0) return;
    segment_trim_move(list, trimmed->segments);
    segment_reservation_renew(list);
}

void segment_checkpoint_begun(struct segment_list *list)
{
    list->chunks.peak_next = list->chunks.used;
}

void segment_checkpoint_done(struct segment_list *list)
{
    list->chunks.peak = list->chunks.peak_next;
    segment_reservation_renew(list);
}
