/* segment/reservation.c: room for segments, reserved for admitted batches (primary only).
 *
 * A batch has room reserved for all that it may need when it is applied, so that applying it
 * never finds the shard's chunks used up. What it begins is decided there: here is only the most
 * that it can be. */
#include "foundation/assert.h"
#include "segment/segment.h"

/* The bytes that lie in the segment that the first admitted batch finds; all of one if it begins
 * another. */
static uint64_t segment_reservation_filled(const struct segment_list *list, uint64_t segment_bytes)
{
    if (!list->last) return segment_bytes;
    const struct segment *segment = &list->last->segments[list->last->count - 1];
    return segment->sealed || segment->data_bytes >= segment_bytes ? segment_bytes
                                                                   : segment->data_bytes;
}

/* Segments that end for their age: the one that is there, and one for each time that lies between
 * the admitted batches. Not bounded by SEGMENT_AGED_COUNT_MAX: a trim may come before them. */
static uint64_t segment_reservation_aged(const struct segment_list *list,
                                         const struct segment_reservation *reservation)
{
    if (reservation->limit.time_us <= 0) return 0;
    int64_t first_us = reservation->first_us;
    if (list->last) {
        const struct segment *segment = &list->last->segments[list->last->count - 1];
        if (segment->max_time_us > first_us) first_us = segment->max_time_us;
    }
    int64_t span_us = reservation->last_us > first_us ? reservation->last_us - first_us : 0;
    return 1 + ((uint64_t)span_us + reservation->batches) / (uint64_t)reservation->limit.time_us;
}

/* Chunks that the admitted batches take at most. Each segment but the active one begins with less
 * than it will hold: to begin `n` segments for their size, n * segment_bytes must lie before the
 * last batch. One that ends for its age sooner only makes the next one shorter. */
static uint32_t segment_reservation_chunks(const struct segment_list *list,
                                           const struct segment_reservation *reservation)
{
    if (reservation->batches == 0) return 0;
    uint64_t filled = segment_reservation_filled(list, reservation->limit.bytes);
    uint64_t begun =
        (filled + reservation->bytes - reservation->last_bytes) / reservation->limit.bytes;
    begun += segment_reservation_aged(list, reservation);
    if (begun > reservation->batches) begun = reservation->batches;
    if (begun > SEGMENTS_COUNT_MAX - list->count) begun = SEGMENTS_COUNT_MAX - list->count;
    uint32_t room = list->last ? SEGMENT_CHUNK_COUNT - list->last->count : 0;
    if (begun <= room) return 0;
    return (uint32_t)((begun - room + SEGMENT_CHUNK_COUNT - 1) / SEGMENT_CHUNK_COUNT);
}

static struct segment_reservation segment_reservation_more(const struct segment_list *list,
                                                           const struct segment_limit *limit,
                                                           uint32_t size_bytes, int64_t now_us)
{
    assert(limit->bytes > 0);
    struct segment_reservation reservation = list->reservation;
    if (reservation.batches == 0) {
        reservation.limit = *limit;
        reservation.first_us = reservation.last_us = now_us;
    }
    if (limit->bytes < reservation.limit.bytes) reservation.limit.bytes = limit->bytes;
    if (limit->time_us > 0
        && (reservation.limit.time_us <= 0 || limit->time_us < reservation.limit.time_us))
        reservation.limit.time_us = limit->time_us;
    if (now_us < reservation.first_us) reservation.first_us = now_us;
    if (now_us > reservation.last_us) reservation.last_us = now_us;
    reservation.batches++;
    reservation.bytes += size_bytes;
    reservation.last_bytes = size_bytes;
    reservation.chunks = segment_reservation_chunks(list, &reservation);
    return reservation;
}

static uint32_t segment_reserved(const struct segment_list *list,
                                 const struct segment_reservation *reservation)
{
    const struct segment_chunks *chunks = &list->chunks;
    uint32_t replay = chunks->peak > chunks->used ? chunks->peak - chunks->used : 0;
    return reservation->chunks > replay ? reservation->chunks : replay;
}

enum status segment_admit(const struct segment_list *list, const struct segment_limit *limit,
                          uint32_t size_bytes, int64_t now_us)
{
    enum status status = segment_room(list, limit, now_us);
    if (status == STATUS_SEGMENTS_FULL) return status;
    struct segment_reservation reservation =
        segment_reservation_more(list, limit, size_bytes, now_us);
    uint32_t others = list->pool->reserved - list->chunks.reserved;
    uint32_t own = segment_reserved(list, &reservation);
    return others + own <= list->pool->free_count ? STATUS_OK : STATUS_SEGMENT_POOL_FULL;
}

static void segment_reservation_set(struct segment_list *list,
                                    const struct segment_reservation *reservation)
{
    uint32_t reserved = segment_reserved(list, reservation);
    assert(list->pool->reserved >= list->chunks.reserved);
    list->pool->reserved += reserved - list->chunks.reserved;
    list->chunks.reserved = reserved;
    list->reservation = *reservation;
}

void segment_reservation_renew(struct segment_list *list)
{
    struct segment_reservation reservation = list->reservation;
    reservation.chunks = segment_reservation_chunks(list, &reservation);
    segment_reservation_set(list, &reservation);
}

void segment_reserve(struct segment_list *list, const struct segment_limit *limit,
                     uint32_t size_bytes, int64_t now_us)
{
    struct segment_reservation reservation =
        segment_reservation_more(list, limit, size_bytes, now_us);
    segment_reservation_set(list, &reservation);
    assert(list->pool->reserved <= list->pool->free_count);
}

void segment_resolve(struct segment_list *list, uint32_t size_bytes)
{
    struct segment_reservation reservation = list->reservation;
    if (reservation.batches == 0) {
        segment_reservation_renew(list);
        return;
    }
    reservation.batches--;
    reservation.bytes -= size_bytes < reservation.bytes ? size_bytes : reservation.bytes;
    if (reservation.last_bytes > reservation.bytes) reservation.last_bytes = reservation.bytes;
    if (reservation.batches == 0) reservation = (struct segment_reservation){0};
    reservation.chunks = segment_reservation_chunks(list, &reservation);
    segment_reservation_set(list, &reservation);
}
