#include "store/read/fetch.h"

#include <string.h>

#include "foundation/assert.h"
#include "store/admit.h"
#include "store/files/open_files.h"
#include "store/files/segment_writer.h"
#include "store/propose.h"
#include "store/read/read_cursor.h"
#include "store/registry.h"
#include "store/state.h"

enum { WALK_BYTES_MIN = 4096 };

/* G2: the first data of an assignment leaves after InFlight was applied. Proposed once, by the
 * first fetch. */
static enum status fetch_group(struct store *store, const struct engine_partition_id *id,
                               struct replica **replica, uint64_t number, uint64_t generation)
{
    enum status status = registry_open(store, id, replica);
    if (status != STATUS_OK) return status;
    status = partition_group_fetch(&(*replica)->state, number, generation);
    if (status != STATUS_GROUP_PENDING) return status;
    if (!partition_in_flight_due(&(*replica)->state, number, generation))
        return STATUS_GROUP_PENDING;
    if (group_table_proposed(&(*replica)->state.groups, number)) return STATUS_GROUP_PENDING;
    status = admit_op(store, PARTITION_IN_FLIGHT_BYTES);
    if (status != STATUS_OK) return status;
    const struct partition_in_flight in_flight = {.group = number, .generation = generation};
    uint8_t body[PARTITION_IN_FLIGHT_BYTES];
    partition_encode_in_flight(&in_flight, body);
    propose_op(store, *replica, PARTITION_IN_FLIGHT, body, sizeof body, 0, 0);
    group_table_propose(&(*replica)->state.groups, number);
    return STATUS_GROUP_PENDING;
}

/* The batches of `seen` from position `first` back to 0: the order of the log. At least one. */
static void fetch_gather(struct ring_slot *const seen[STORE_FETCH_BATCHES_MAX], uint32_t first,
                         uint32_t bytes_max, struct store_fetch *result)
{
    for (uint32_t left = STORE_FETCH_BATCHES_MAX; left > 0; left--, first--) {
        struct ring_slot *slot = seen[first % STORE_FETCH_BATCHES_MAX];
        if (result->size > 0 && result->size + slot->batch_bytes > bytes_max) return;
        result->batches[result->batches_count++] = (struct io_vector){
            .data = ring_slot_payload(slot),
            .size = slot->batch_bytes,
        };
        result->size += slot->batch_bytes;
        /* Older steps were overwritten by the first ones: nothing is known of those any more. */
        if (first == 0 || left == 1) return;
        assert(seen[(first - 1) % STORE_FETCH_BATCHES_MAX]->base_offset
               == slot->base_offset + slot->record_count);
    }
}

/* From the newest batch back. All batches that are not yet in files are here. */
static int fetch_memory(struct store *store, const struct replica *replica, uint64_t offset,
                        uint32_t bytes_max, struct store_fetch *result)
{
    const struct prepare_ring *ring = &store->data_ring;
    struct ring_slot *seen[STORE_FETCH_BATCHES_MAX];
    uint64_t position = segment_writer_newest(replica);
    for (uint32_t step = 0; position != 0 && position - 1 >= ring->tail; step++) {
        struct ring_slot *slot = prepare_ring_at(ring, position - 1);
        if (step >= STORE_FETCH_BATCHES_MAX && slot->state == RING_SLOT_DONE) return 0;
        seen[step % STORE_FETCH_BATCHES_MAX] = slot;
        if (slot->base_offset <= offset) {
            if (offset >= slot->base_offset + slot->record_count) return 0;
            result->place = STORE_FETCH_MEMORY;
            fetch_gather(seen, step, bytes_max, result);
            return 1;
        }
        position = slot->previous;
    }
    return 0;
}

static struct segment *segment_of(struct replica *replica, uint64_t base_offset)
{
    return segment_find(&replica->state.segments, base_offset);
}

static struct fetch_walk *walk_find(struct replica *replica, uint64_t segment)
{
    for (uint32_t index = 0; index < FETCH_WALKS_COUNT; index++) {
        struct fetch_walk *walk = &replica->reads.walks[index];
        if (walk->used && walk->segment == segment) return walk;
    }
    return NULL;
}

/* The walk of a segment, begun if it is not under way. */
static struct fetch_walk *walk_begin(struct replica *replica, struct segment *segment)
{
    struct fetch_walk *walk = walk_find(replica, segment->base_offset);
    if (walk) return walk;
    walk = &replica->reads.walks[replica->reads.next++ % FETCH_WALKS_COUNT];
    *walk = (struct fetch_walk){
        .segment = segment->base_offset, .offset = segment->base_offset, .used = 1};
    segment_walk_begin(&replica->state.segments, segment);
    return walk;
}

static void fetch_file(struct store *store, struct replica *replica, uint64_t offset,
                       uint32_t bytes_max, struct store_fetch *result)
{
    struct partition_place place = partition_find(&replica->state, offset);
    assert(place.status == STATUS_OK);
    uint64_t end =
        segment_writer_readable(replica, place.segment_base_offset, place.segment_data_bytes);
    uint64_t way = place.stride_bytes;
    if (way > store->config.fetch_way_bytes) way = store->config.fetch_way_bytes;
    uint64_t size = (uint64_t)bytes_max + way;
    uint64_t position = place.position;
    struct segment *segment = segment_of(replica, place.segment_base_offset);
    assert(segment != NULL);
    int walking = !place.indexed && offset >= walk_begin(replica, segment)->offset;
    if (walking) {
        position = segment->index.walked_bytes;
        size = bytes_max > WALK_BYTES_MIN ? bytes_max : WALK_BYTES_MIN;
    }
    /* A walk takes every byte in its turn: a cursor beyond it waits. */
    const struct read_cursor *cursor = read_cursor_find(store, replica, offset);
    if (cursor && cursor->segment == place.segment_base_offset
        && (walking ? cursor->position == position : cursor->position >= position)) {
        position = cursor->position;
        if (size < cursor->bytes) size = cursor->bytes;
    }
    if (size > end - position) size = end - position;
    uint32_t file = open_files_open(store, replica, place.segment_base_offset, IO_CREATE);
    if (!file) {
        result->status = STATUS_BUSY;
        return;
    }
    result->place = STORE_FETCH_FILE;
    result->file = open_files_slot(file);
    result->file_offset = position;
    result->size = size;
}

void store_fetch(struct store *store, const struct engine_partition_id *id, uint64_t offset,
                 uint32_t bytes_max, uint64_t number, uint64_t generation,
                 struct store_fetch *result)
{
    memset(result, 0, sizeof *result);
    struct replica *replica;
    result->status = number != 0 ? fetch_group(store, id, &replica, number, generation)
                                 : registry_lookup(store, id, &replica);
    if (result->status == STATUS_OK || result->status == STATUS_GROUP_PENDING) {
        if (replica) {
            result->log_start = replica->state.log_start;
            result->high_watermark = result->log_end = replica->state.next_offset;
        }
    }
    if (result->status != STATUS_OK) return;
    if (!replica) {
        if (offset > 0) result->status = STATUS_OFFSET_OUT_OF_RANGE;
        return;
    }
    if (replica->vsr.status == VSR_DAMAGED)
        result->status = STATUS_DAMAGED;
    else if (replica->unknown_op != 0)
        result->status = STATUS_OP_UNKNOWN; /* it may have taken back what lies before it */
    else if (replica->corrupt)
        result->status = STATUS_CORRUPT;
    else if (offset < replica->state.log_start)
        result->status = STATUS_TRUNCATED;
    else if (offset > replica->state.next_offset)
        result->status = STATUS_OFFSET_OUT_OF_RANGE;
    if (result->status != STATUS_OK || offset == replica->state.next_offset) return;
    if (fetch_memory(store, replica, offset, bytes_max, result)) return;
    fetch_file(store, replica, offset, bytes_max, result);
}

/* Bytes that continue the walk of a sealed segment: verify them and note the index. */
static enum status walk_verify(struct replica *replica, uint64_t first_offset, const uint8_t *bytes,
                               size_t size)
{
    struct segment *segment = segment_of(replica, first_offset);
    struct fetch_walk *walk = segment ? walk_find(replica, segment->base_offset) : NULL;
    if (!walk || walk->offset != first_offset) return STATUS_OK;
    if (segment->index.walked_bytes >= segment->data_bytes) return STATUS_OK;
    size_t consumed = 0;
    enum status status = segment_walk(&replica->state.segments, segment, bytes, size, &consumed);
    if (status != STATUS_OK) return status;
    size_t at = 0;
    while (at < consumed) {
        struct batch_server server;
        struct batch_client client;
        batch_read_server(bytes + at, &server);
        (void)batch_decode_client(bytes + at + BATCH_SERVER_HEADER_BYTES, consumed - at, &client);
        walk->offset = server.base_offset + client.record_count;
        at += server.size_bytes;
    }
    return STATUS_OK;
}

/* Where in its segment the batch of this offset begins, if known. 0 = unknown. */
static int fetch_position(const struct store *store, struct replica *replica, uint64_t offset,
                          uint64_t first_offset, struct read_cursor *cursor)
{
    struct segment *segment = segment_of(replica, first_offset);
    if (!segment) return 0;
    *cursor = (struct read_cursor){
        .offset = offset, .segment = segment->base_offset, .batch_offset = first_offset};
    const struct read_cursor *known = read_cursor_find(store, replica, offset);
    struct fetch_walk *walk = walk_find(replica, segment->base_offset);
    struct offset_index_entry entry =
        offset_index_find(&segment->index, segment->base_offset, first_offset);
    if (entry.offset == first_offset)
        cursor->position = entry.position;
    else if (known && known->batch_offset == first_offset)
        cursor->position = known->position;
    else if (walk && walk->offset == first_offset)
        cursor->position = segment->index.walked_bytes;
    else
        return 0;
    return 1;
}

struct fetch_cut {
    size_t begin;
    size_t end;
    size_t at;             /* how far the walk came: a batch begins there */
    uint64_t batch_offset; /* that batch's */
    uint64_t bytes;        /* that batch's, if it is longer than the read */
};

static enum status cut_batches(const struct replica *replica, uint64_t offset, uint32_t bytes_max,
                               const uint8_t *bytes, size_t size, struct fetch_cut *cut)
{
    uint32_t seed = replica->state.config.seeds.batch;
    while (cut->at < size) {
        const uint8_t *at = bytes + cut->at;
        size_t left = size - cut->at;
        struct batch_server server;
        struct batch_client client;
        enum status status = batch_decode_server(at, left, seed, &server);
        if (status == STATUS_BATCH_SHORT) return STATUS_OK;
        if (status != STATUS_OK) return status;
        if (server.size_bytes > left) {
            cut->bytes = server.size_bytes;
            return STATUS_OK;
        }
        status = batch_decode_client(at + BATCH_SERVER_HEADER_BYTES,
                                     left - BATCH_SERVER_HEADER_BYTES, &client);
        if (status != STATUS_OK) return status;
        if (server.base_offset + client.record_count > offset) {
            int found = cut->end > cut->begin;
            /* Bytes from behind the offset: never hand on a gap. The caller asks again. */
            if (!found && server.base_offset > offset) return STATUS_OK;
            if (found && cut->at + server.size_bytes - cut->begin > bytes_max) return STATUS_OK;
            status = batch_check_stored(at, left, seed, &server, &client);
            if (status != STATUS_OK) return status;
            if (!found) cut->begin = cut->at;
            cut->end = cut->at + server.size_bytes;
        }
        cut->at += server.size_bytes;
        cut->batch_offset = server.base_offset + client.record_count;
    }
    return STATUS_OK;
}

enum status store_fetch_trim(struct store *store, const struct engine_partition_id *id,
                             uint64_t offset, uint32_t bytes_max, const uint8_t *bytes, size_t size,
                             size_t *begin, size_t *end)
{
    *begin = *end = 0;
    struct replica *replica;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (!replica) return STATUS_NOT_FOUND;
    struct batch_server first;
    struct read_cursor cursor;
    struct fetch_cut cut = {0};
    int known = 0;
    status = batch_decode_server(bytes, size, replica->state.config.seeds.batch, &first);
    if (status == STATUS_OK) {
        cut.batch_offset = first.base_offset;
        known = fetch_position(store, replica, offset, first.base_offset, &cursor);
        status = walk_verify(replica, first.base_offset, bytes, size);
    }
    if (status == STATUS_OK) status = cut_batches(replica, offset, bytes_max, bytes, size, &cut);
    if (status == STATUS_OK) {
        *begin = cut.begin;
        *end = cut.end;
        if (cut.begin == cut.end && known && cut.batch_offset <= offset) {
            cursor.position += cut.at;
            cursor.batch_offset = cut.batch_offset;
            cursor.bytes = cut.bytes;
            read_cursor_keep(store, replica, &cursor);
        }
        return STATUS_OK;
    }
    if (status == STATUS_NO_MEMORY) return STATUS_BUSY;
    if (!replica->corrupt) store->statistics.replicas_damaged++;
    replica->corrupt = 1;
    return STATUS_CORRUPT;
}

uint64_t store_fetch_next(const uint8_t *bytes, size_t size)
{
    uint64_t next = 0;
    assert(size > 0);
    for (size_t at = 0; at < size;) {
        struct batch_server server;
        struct batch_client client;
        assert(size - at >= BATCH_SERVER_HEADER_BYTES);
        batch_read_server(bytes + at, &server);
        assert(server.size_bytes <= size - at);
        enum status status = batch_decode_client(bytes + at + BATCH_SERVER_HEADER_BYTES,
                                                 size - at - BATCH_SERVER_HEADER_BYTES, &client);
        assert(status == STATUS_OK);
        next = server.base_offset + client.record_count;
        at += server.size_bytes;
    }
    return next;
}
