/* segment/segment.c: see segment/segment.h. */
#include "segment/segment.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "batch/batch.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"

enum {
    SEGMENT_FOOTER_MAGIC = 0x46535248, /* "HRSF" */
    SEGMENT_FOOTER_VERSION = 1,
    SEGMENT_ENCODED_BYTES = 65,
    SEGMENT_NAME_DIGITS = 20,
};

static_assert(sizeof(XXH3_state_t) + 64 <= SEGMENT_DIGEST_WORDS * 8,
              "the digest's state fits, aligned by hand");

static XXH3_state_t *segment_digest(struct segment_list *list)
{
    return (XXH3_state_t *)(void *)(uintptr_t)bytes_round_up((uintptr_t)list->digest_state, 64);
}

size_t segment_pool_bytes(uint32_t chunks_count)
{
    return arena_size((size_t)chunks_count * sizeof(struct segment_chunk));
}

enum status segment_pool_init(struct segment_pool *pool, struct arena *arena, uint32_t chunks_count)
{
    assert(chunks_count > 0);
    memset(pool, 0, sizeof *pool);
    struct segment_chunk *chunks = arena_take(arena, (size_t)chunks_count * sizeof *chunks);
    if (!chunks) return STATUS_NO_MEMORY;
    for (uint32_t index = chunks_count; index > 0; index--) {
        chunks[index - 1].next = pool->free;
        pool->free = &chunks[index - 1];
    }
    pool->free_count = chunks_count;
    pool->count = chunks_count;
    return STATUS_OK;
}

void segment_list_init(struct segment_list *list, const struct segment_seeds *seeds,
                       struct segment_pool *pool, struct offset_index_pool *index_pool)
{
    const struct segment_seeds kept = *seeds; /* which may be the list's own */
    memset(list, 0, sizeof *list);
    list->seeds = kept;
    list->pool = pool;
    list->index_pool = index_pool;
    list->digest_valid = 1;
}

void segment_list_deinit(struct segment_list *list)
{
    assert(list->pool->reserved >= list->chunks.reserved);
    list->pool->reserved -= list->chunks.reserved;
    while (list->first) {
        struct segment_chunk *chunk = list->first;
        list->first = chunk->next;
        for (uint32_t index = 0; index < chunk->count; index++) {
            offset_index_deinit(&chunk->segments[index].index, list->index_pool);
        }
        memset(chunk, 0, sizeof *chunk);
        chunk->next = list->pool->free;
        list->pool->free = chunk;
        list->pool->free_count++;
    }
    segment_list_init(list, &list->seeds, list->pool, list->index_pool);
}

struct segment *segment_active(struct segment_list *list)
{
    if (!list->last) return NULL;
    assert(list->last->count > 0);
    struct segment *segment = &list->last->segments[list->last->count - 1];
    return segment->sealed ? NULL : segment;
}

struct segment *segment_at(struct segment_list *list, uint32_t position)
{
    for (struct segment_chunk *chunk = list->first; chunk; chunk = chunk->next) {
        if (position < chunk->count) return &chunk->segments[position];
        position -= chunk->count;
    }
    return NULL;
}

struct segment *segment_find(struct segment_list *list, uint64_t offset)
{
    struct segment_chunk *found = NULL;
    for (struct segment_chunk *chunk = list->first; chunk; chunk = chunk->next) {
        if (chunk->segments[0].base_offset > offset) break;
        found = chunk;
    }
    if (!found) return NULL;
    uint32_t low = 0;
    uint32_t high = found->count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (found->segments[middle].base_offset <= offset)
            low = middle;
        else
            high = middle;
    }
    struct segment *segment = &found->segments[low];
    return offset < segment->end_offset ? segment : NULL;
}

int segment_rolls(const struct segment_list *list, const struct segment_limit *limit,
                  int64_t append_time_us)
{
    if (!list->last) return 1;
    const struct segment *segment = &list->last->segments[list->last->count - 1];
    if (segment->sealed || segment->data_bytes >= limit->bytes) return 1;
    if (limit->time_us <= 0 || list->count >= SEGMENT_AGED_COUNT_MAX) return 0;
    return append_time_us - segment->min_time_us >= limit->time_us;
}

enum status segment_room(const struct segment_list *list, const struct segment_limit *limit,
                         int64_t append_time_us)
{
    if (!segment_rolls(list, limit, append_time_us)) return STATUS_OK;
    if (list->count >= SEGMENTS_COUNT_MAX) return STATUS_SEGMENTS_FULL;
    if (list->last && list->last->count < SEGMENT_CHUNK_COUNT) return STATUS_OK;
    return list->pool->free ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Room for one more segment at the end; NULL: none left. */
static struct segment *segment_open(struct segment_list *list, uint64_t base_offset)
{
    struct segment_chunk *chunk = list->last;
    if (!chunk || chunk->count == SEGMENT_CHUNK_COUNT) {
        chunk = list->pool->free;
        if (!chunk) return NULL;
        list->pool->free = chunk->next;
        list->pool->free_count--;
        memset(chunk, 0, sizeof *chunk);
        if (list->last)
            list->last->next = chunk;
        else
            list->first = chunk;
        list->last = chunk;
        list->chunks.used++;
        if (list->chunks.used > list->chunks.peak) list->chunks.peak = list->chunks.used;
        if (list->chunks.used > list->chunks.peak_next) list->chunks.peak_next = list->chunks.used;
    }
    struct segment *segment = &chunk->segments[chunk->count++];
    memset(segment, 0, sizeof *segment);
    offset_index_init(&segment->index);
    segment->base_offset = base_offset;
    segment->end_offset = base_offset;
    list->count++;
    return segment;
}

static void segment_seal(struct segment_list *list, struct segment *segment,
                         struct segment_place *place)
{
    assert(!segment->sealed);
    assert(segment->data_bytes > 0);
    assert(list->digest_valid);
    XXH128_hash_t digest = XXH3_128bits_digest(segment_digest(list));
    struct segment_footer footer = {
        .base_offset = segment->base_offset,
        .end_offset = segment->end_offset,
        .data_bytes = segment->data_bytes,
        .first_op = segment->first_op,
        .last_op = segment->last_op,
        .min_time_us = segment->min_time_us,
        .max_time_us = segment->max_time_us,
        .digest_low = digest.low64,
        .digest_high = digest.high64,
        .record_count = segment->record_count,
    };
    segment->sealed = 1;
    place->sealed = 1;
    place->sealed_base_offset = segment->base_offset;
    place->sealed_data_bytes = segment->data_bytes;
    segment_footer_encode(&footer, list->seeds.footer, place->footer);
}

static void segment_extend(struct segment_list *list, struct segment *segment,
                           const struct segment_batch *batch)
{
    if (segment->data_bytes == 0) {
        segment->first_op = batch->op;
        segment->min_time_us = batch->append_time_us;
    }
    const struct offset_index_entry begin = {.offset = batch->base_offset,
                                             .position = segment->data_bytes,
                                             .time_us = batch->append_time_us};
    offset_index_note(&segment->index, list->index_pool, &begin, batch->size_bytes);
    segment->data_bytes += batch->size_bytes;
    segment->end_offset = batch->base_offset + batch->record_count;
    segment->walked_offset = segment->end_offset;
    segment->last_op = batch->op;
    segment->max_time_us = batch->append_time_us;
    segment->record_count += batch->record_count;
    XXH3_128bits_update(segment_digest(list), batch->bytes, batch->size_bytes);
}

void segment_append(struct segment_list *list, const struct segment_batch *batch,
                    const struct segment_limit *limit, struct segment_place *place)
{
    assert(limit->bytes > 0);
    assert(batch->size_bytes > BATCH_HEADERS_BYTES);
    assert(list->digest_valid);
    memset(place, 0, sizeof *place);
    struct segment *segment = segment_active(list);
    if (segment) {
        assert(batch->base_offset == segment->end_offset);
        assert(batch->op > segment->last_op);
        assert(batch->append_time_us > segment->max_time_us);
        assert(segment->index.walked_bytes == segment->data_bytes);
    }
    if (segment_rolls(list, limit, batch->append_time_us)) {
        assert(segment_room(list, limit, batch->append_time_us) == STATUS_OK);
        if (segment) segment_seal(list, segment, place);
        segment = segment_open(list, batch->base_offset);
        assert(segment != NULL);
        XXH3_128bits_reset(segment_digest(list));
        place->opened = 1;
    }
    place->base_offset = segment->base_offset;
    place->position = segment->data_bytes;
    segment_extend(list, segment, batch);
}

void segment_walk_begin(struct segment_list *list, struct segment *segment)
{
    offset_index_deinit(&segment->index, list->index_pool);
    segment->walked_offset = segment->base_offset;
    if (segment == segment_active(list)) {
        XXH3_128bits_reset(segment_digest(list));
        list->digest_valid = segment->data_bytes == 0;
    }
}

/* What the header says of the client part, beyond its CRC. */
static int segment_digest_holds(const uint8_t *bytes, const struct batch_server *server)
{
    XXH128_hash_t digest = XXH3_128bits(bytes + BATCH_SERVER_HEADER_BYTES,
                                        server->size_bytes - BATCH_SERVER_HEADER_BYTES);
    return bytes_get_u64(server->digest) == digest.low64
           && bytes_get_u64(server->digest + 8) == digest.high64;
}

/* A batch read back: its own sums, then that it is where it should be. */
static enum status segment_walk_batch(const struct segment *segment, uint32_t seed,
                                      const uint8_t *bytes, size_t size,
                                      struct batch_server *server, struct batch_client *client)
{
    enum status status = batch_check_stored(bytes, size, seed, server, client);
    if (status != STATUS_OK) return status;
    if (!segment_digest_holds(bytes, server)) return STATUS_SEGMENT_DAMAGED;
    int first = segment->index.walked_bytes == 0;
    if (first && server->base_offset != segment->base_offset) return STATUS_SEGMENT_DAMAGED;
    if (server->base_offset < segment->walked_offset) return STATUS_SEGMENT_DAMAGED;
    if (server->base_offset + client->record_count > segment->end_offset)
        return STATUS_SEGMENT_DAMAGED;
    if (server->op < segment->first_op || server->op > segment->last_op)
        return STATUS_SEGMENT_DAMAGED;
    if (server->size_bytes > segment->data_bytes - segment->index.walked_bytes)
        return STATUS_SEGMENT_DAMAGED;
    return STATUS_OK;
}

enum status segment_walk(struct segment_list *list, struct segment *segment, const uint8_t *bytes,
                         size_t size, size_t *consumed)
{
    int active = segment == segment_active(list);
    *consumed = 0;
    assert(segment->index.walked_bytes <= segment->data_bytes);
    while (segment->index.walked_bytes < segment->data_bytes && *consumed < size) {
        struct batch_server server;
        struct batch_client client;
        const uint8_t *at = bytes + *consumed;
        enum status status =
            segment_walk_batch(segment, list->seeds.batch, at, size - *consumed, &server, &client);
        if (status == STATUS_BATCH_SHORT) break;
        if (status != STATUS_OK) return status;
        const struct offset_index_entry begin = {.offset = server.base_offset,
                                                 .position = segment->index.walked_bytes,
                                                 .time_us = server.append_time_us};
        offset_index_note(&segment->index, list->index_pool, &begin, server.size_bytes);
        if (active) XXH3_128bits_update(segment_digest(list), at, server.size_bytes);
        segment->walked_offset = server.base_offset + client.record_count;
        *consumed += server.size_bytes;
    }
    if (active && segment->index.walked_bytes == segment->data_bytes) list->digest_valid = 1;
    return STATUS_OK;
}

void segment_name(uint64_t base_offset, char name[SEGMENT_NAME_SIZE])
{
    memset(name, 0, SEGMENT_NAME_SIZE);
    int written = snprintf(name, SEGMENT_NAME_SIZE, "%0*llu.log", SEGMENT_NAME_DIGITS,
                           (unsigned long long)base_offset);
    assert(written == SEGMENT_NAME_DIGITS + 4);
}

void segment_footer_encode(const struct segment_footer *footer, uint32_t seed,
                           uint8_t bytes[SEGMENT_FOOTER_BYTES])
{
    memset(bytes, 0, SEGMENT_FOOTER_BYTES);
    bytes_put_u32(bytes, SEGMENT_FOOTER_MAGIC);
    bytes_put_u16(bytes + 8, SEGMENT_FOOTER_VERSION);
    bytes_put_u64(bytes + 16, footer->base_offset);
    bytes_put_u64(bytes + 24, footer->end_offset);
    bytes_put_u64(bytes + 32, footer->data_bytes);
    bytes_put_u64(bytes + 40, footer->first_op);
    bytes_put_u64(bytes + 48, footer->last_op);
    bytes_put_i64(bytes + 56, footer->min_time_us);
    bytes_put_i64(bytes + 64, footer->max_time_us);
    bytes_put_u64(bytes + 72, footer->digest_low);
    bytes_put_u64(bytes + 80, footer->digest_high);
    bytes_put_u64(bytes + 88, footer->record_count);
    bytes_put_u32(bytes + 4, crc32c_extend(seed, bytes + 8, SEGMENT_FOOTER_BYTES - 8));
}

enum status segment_footer_decode(const uint8_t *bytes, size_t size, uint32_t seed,
                                  struct segment_footer *footer)
{
    memset(footer, 0, sizeof *footer);
    if (size < SEGMENT_FOOTER_BYTES) return STATUS_FOOTER_DAMAGED;
    if (bytes_get_u32(bytes) != SEGMENT_FOOTER_MAGIC) return STATUS_FOOTER_DAMAGED;
    if (bytes_get_u32(bytes + 4) != crc32c_extend(seed, bytes + 8, SEGMENT_FOOTER_BYTES - 8))
        return STATUS_FOOTER_DAMAGED;
    if (bytes_get_u16(bytes + 8) != SEGMENT_FOOTER_VERSION) return STATUS_FOOTER_DAMAGED;
    if (!bytes_all_zero(bytes + 10, 6)) return STATUS_FOOTER_DAMAGED;
    *footer = (struct segment_footer){
        .base_offset = bytes_get_u64(bytes + 16),
        .end_offset = bytes_get_u64(bytes + 24),
        .data_bytes = bytes_get_u64(bytes + 32),
        .first_op = bytes_get_u64(bytes + 40),
        .last_op = bytes_get_u64(bytes + 48),
        .min_time_us = bytes_get_i64(bytes + 56),
        .max_time_us = bytes_get_i64(bytes + 64),
        .digest_low = bytes_get_u64(bytes + 72),
        .digest_high = bytes_get_u64(bytes + 80),
        .record_count = bytes_get_u64(bytes + 88),
    };
    int ordered = footer->base_offset < footer->end_offset && footer->first_op <= footer->last_op
                  && footer->min_time_us <= footer->max_time_us && footer->data_bytes > 0;
    return ordered ? STATUS_OK : STATUS_FOOTER_DAMAGED;
}

enum status segment_footer_check(const struct segment_footer *footer, const struct segment *segment)
{
    int same = footer->base_offset == segment->base_offset
               && footer->end_offset == segment->end_offset
               && footer->data_bytes == segment->data_bytes && footer->first_op == segment->first_op
               && footer->last_op == segment->last_op && footer->min_time_us == segment->min_time_us
               && footer->max_time_us == segment->max_time_us
               && footer->record_count == segment->record_count;
    return same ? STATUS_OK : STATUS_FOOTER_DAMAGED;
}

size_t segment_list_encoded_bytes(const struct segment_list *list)
{
    return 4 + (size_t)list->count * SEGMENT_ENCODED_BYTES;
}

/* u32 count, then per segment: base | end | data_bytes | first_op | last_op | min | max | records,
 * u64 each | sealed u8 */
void segment_list_encode(const struct segment_list *list, struct bytes_writer *writer)
{
    bytes_write_u32(writer, list->count);
    for (const struct segment_chunk *chunk = list->first; chunk; chunk = chunk->next) {
        for (uint32_t index = 0; index < chunk->count; index++) {
            const struct segment *segment = &chunk->segments[index];
            bytes_write_u64(writer, segment->base_offset);
            bytes_write_u64(writer, segment->end_offset);
            bytes_write_u64(writer, segment->data_bytes);
            bytes_write_u64(writer, segment->first_op);
            bytes_write_u64(writer, segment->last_op);
            bytes_write_u64(writer, (uint64_t)segment->min_time_us);
            bytes_write_u64(writer, (uint64_t)segment->max_time_us);
            bytes_write_u64(writer, segment->record_count);
            bytes_write_u8(writer, segment->sealed);
        }
    }
}

static enum status segment_list_decode_segment(struct segment_list *list,
                                               struct bytes_reader *reader, int last)
{
    uint64_t base_offset = bytes_read_u64(reader);
    uint64_t end_offset = bytes_read_u64(reader);
    const struct segment *before = list->last ? &list->last->segments[list->last->count - 1] : NULL;
    if (reader->failed || end_offset <= base_offset) return STATUS_CHECKPOINT_DAMAGED;
    if (before && before->end_offset > base_offset) return STATUS_CHECKPOINT_DAMAGED;
    struct segment *segment = segment_open(list, base_offset);
    if (!segment) return STATUS_NO_MEMORY;
    segment->end_offset = end_offset;
    segment->data_bytes = bytes_read_u64(reader);
    segment->first_op = bytes_read_u64(reader);
    segment->last_op = bytes_read_u64(reader);
    segment->min_time_us = (int64_t)bytes_read_u64(reader);
    segment->max_time_us = (int64_t)bytes_read_u64(reader);
    segment->record_count = bytes_read_u64(reader);
    segment->sealed = bytes_read_u8(reader);
    if (reader->failed || segment->sealed > 1 || segment->data_bytes == 0)
        return STATUS_CHECKPOINT_DAMAGED;
    return last || segment->sealed ? STATUS_OK : STATUS_CHECKPOINT_DAMAGED;
}

enum status segment_list_decode(struct segment_list *list, struct bytes_reader *reader)
{
    assert(list->count == 0);
    uint32_t count = bytes_read_u32(reader);
    if (reader->failed || count > SEGMENTS_COUNT_MAX) return STATUS_CHECKPOINT_DAMAGED;
    for (uint32_t index = 0; index < count; index++) {
        enum status status = segment_list_decode_segment(list, reader, index + 1 == count);
        if (status != STATUS_OK) return status;
    }
    list->digest_valid = segment_active(list) == NULL;
    return STATUS_OK;
}

int segment_list_invariants(const struct segment_list *list)
{
    uint32_t count = 0;
    uint32_t chunks = 0;
    const struct segment *previous = NULL;
    for (const struct segment_chunk *chunk = list->first; chunk; chunk = chunk->next) {
        assert(chunk->count > 0 && chunk->count <= SEGMENT_CHUNK_COUNT);
        ergo(chunk->next == NULL, chunk == list->last);
        for (uint32_t index = 0; index < chunk->count; index++) {
            const struct segment *segment = &chunk->segments[index];
            assert(segment->base_offset <= segment->end_offset);
            ergo(previous != NULL, previous->sealed);
            ergo(previous != NULL, previous->end_offset == segment->base_offset);
            ergo(previous != NULL, previous->last_op < segment->first_op);
            previous = segment;
        }
        count += chunk->count;
        chunks++;
    }
    assert(count == list->count);
    assert(count <= SEGMENTS_COUNT_MAX);
    assert(chunks == list->chunks.used);
    assert(chunks <= list->chunks.peak);
    assert(list->chunks.reserved <= list->pool->reserved);
    assert(list->pool->free_count <= list->pool->count);
    ergo(list->reservation.batches == 0, list->reservation.bytes == 0);
    return 1;
}
