/* segment/reservation.c: room for segments, promised to admitted batches (primary only).
 *
 * A batch is promised what it may need when it is applied, so that applying it never finds the
 * shard's chunks used up. What it begins is decided there: here is only the most that it can be. */
#include "foundation/assert.h"
#include "segment/segment.h"

/* The bytes that lie in the segment that the first promised batch finds; all of one if it begins
 * another. */
static uint64_t segment_promise_filled(const struct segment_list *list, uint64_t segment_bytes)
{
    if (!list->last) return segment_bytes;
    const struct segment *segment = &list->last->segments[list->last->count - 1];
    return segment->sealed || segment->data_bytes >= segment_bytes ? segment_bytes
                                                                   : segment->data_bytes;
}

/* Segments that end for their age: the one that is there, and one for each time that lies between
 * the promised batches. Not bounded by SEGMENT_AGED_COUNT_MAX: a trim may come before them. */
static uint64_t segment_promise_aged(const struct segment_list *list,
                                     const struct segment_promise *promise)
{
    if (promise->limit.time_us <= 0) return 0;
    int64_t first_us = promise->first_us;
    if (list->last) {
        const struct segment *segment = &list->last->segments[list->last->count - 1];
        if (segment->max_time_us > first_us) first_us = segment->max_time_us;
    }
    int64_t span_us = promise->last_us > first_us ? promise->last_us - first_us : 0;
    return 1 + ((uint64_t)span_us + promise->batches) / (uint64_t)promise->limit.time_us;
}

/* Chunks that the promised batches take at most. Each segment but the active one begins with less
 * than it will hold: to begin `n` segments for their size, n * segment_bytes must lie before the
 * last batch. One that ends for its age sooner only makes the next one shorter. */
static uint32_t segment_promise_chunks(const struct segment_list *list,
                                       const struct segment_promise *promise)
{
    if (promise->batches == 0) return 0;
    uint64_t filled = segment_promise_filled(list, promise->limit.bytes);
    uint64_t begun = (filled + promise->bytes - promise->last_bytes) / promise->limit.bytes;
    begun += segment_promise_aged(list, promise);
    if (begun > promise->batches) begun = promise->batches;
    if (begun > SEGMENTS_COUNT_MAX - list->count) begun = SEGMENTS_COUNT_MAX - list->count;
    uint32_t room = list->last ? SEGMENT_CHUNK_COUNT - list->last->count : 0;
    if (begun <= room) return 0;
    return (uint32_t)((begun - room + SEGMENT_CHUNK_COUNT - 1) / SEGMENT_CHUNK_COUNT);
}

static struct segment_promise segment_promise_more(const struct segment_list *list,
                                                   const struct segment_limit *limit,
                                                   uint32_t size_bytes, int64_t now_us)
{
    assert(limit->bytes > 0);
    struct segment_promise promise = list->promise;
    if (promise.batches == 0) {
        promise.limit = *limit;
        promise.first_us = promise.last_us = now_us;
    }
    if (limit->bytes < promise.limit.bytes) promise.limit.bytes = limit->bytes;
    if (limit->time_us > 0
        && (promise.limit.time_us <= 0 || limit->time_us < promise.limit.time_us))
        promise.limit.time_us = limit->time_us;
    if (now_us < promise.first_us) promise.first_us = now_us;
    if (now_us > promise.last_us) promise.last_us = now_us;
    promise.batches++;
    promise.bytes += size_bytes;
    promise.last_bytes = size_bytes;
    promise.chunks = segment_promise_chunks(list, &promise);
    return promise;
}

static uint32_t segment_reserved(const struct segment_list *list,
                                 const struct segment_promise *promise)
{
    const struct segment_chunks *chunks = &list->chunks;
    uint32_t replay = chunks->peak > chunks->used ? chunks->peak - chunks->used : 0;
    return promise->chunks > replay ? promise->chunks : replay;
}

enum status segment_admit(const struct segment_list *list, const struct segment_limit *limit,
                          uint32_t size_bytes, int64_t now_us)
{
    enum status status = segment_room(list, limit, now_us);
    if (status == STATUS_SEGMENTS_FULL) return status;
    struct segment_promise promise = segment_promise_more(list, limit, size_bytes, now_us);
    uint32_t others = list->pool->promised - list->chunks.reserved;
    uint32_t own = segment_reserved(list, &promise);
    return others + own <= list->pool->free_count ? STATUS_OK : STATUS_SEGMENT_POOL_FULL;
}

static void segment_promise_set(struct segment_list *list, const struct segment_promise *promise)
{
    uint32_t reserved = segment_reserved(list, promise);
    assert(list->pool->promised >= list->chunks.reserved);
    list->pool->promised += reserved - list->chunks.reserved;
    list->chunks.reserved = reserved;
    list->promise = *promise;
}

void segment_promise_renew(struct segment_list *list)
{
    struct segment_promise promise = list->promise;
    promise.chunks = segment_promise_chunks(list, &promise);
    segment_promise_set(list, &promise);
}

void segment_promise(struct segment_list *list, const struct segment_limit *limit,
                     uint32_t size_bytes, int64_t now_us)
{
    struct segment_promise promise = segment_promise_more(list, limit, size_bytes, now_us);
    segment_promise_set(list, &promise);
    assert(list->pool->promised <= list->pool->free_count);
}

void segment_resolve(struct segment_list *list, uint32_t size_bytes)
{
    struct segment_promise promise = list->promise;
    if (promise.batches == 0) {
        segment_promise_renew(list);
        return;
    }
    promise.batches--;
    promise.bytes -= size_bytes < promise.bytes ? size_bytes : promise.bytes;
    if (promise.last_bytes > promise.bytes) promise.last_bytes = promise.bytes;
    if (promise.batches == 0) promise = (struct segment_promise){0};
    promise.chunks = segment_promise_chunks(list, &promise);
    segment_promise_set(list, &promise);
}
