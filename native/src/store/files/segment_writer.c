#include "store/files/segment_writer.h"

#include <stdio.h>
#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/queue.h"
#include "store/files/open_files.h"
#include "store/files/paths.h"
#include "store/files/requests.h"
#include "store/registry.h"
#include "store/state.h"

struct segment_writer {
    struct queue waiting; /* replicas with batches, none of which is being written */
};

size_t segment_writer_memory_bytes(void)
{
    return arena_size(sizeof(struct segment_writer));
}

struct segment_writer *segment_writer_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct segment_writer));
}

uint64_t segment_writer_waiting(const struct segment_writer *writer)
{
    return writer->waiting.count;
}

void segment_writer_append(struct store *store, struct replica *replica, uint64_t position,
                           const struct partition_result *result)
{
    struct segment_writes *writes = &replica->writes;
    struct ring_slot *slot = prepare_ring_at(&store->data_ring, position);
    assert(result->append);
    slot->state = RING_SLOT_EXECUTED;
    slot->base_offset = result->base_offset;
    slot->record_count = result->record_count;
    slot->segment = result->place.base_offset;
    slot->position = result->place.position;
    slot->opened = result->place.opened;
    slot->sealed = result->place.sealed;
    slot->previous = writes->newest;
    writes->newest = position + 1;
    writes->batches_executed++;
    if (slot->sealed) {
        static_assert(SEGMENT_FOOTER_BYTES <= JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES,
                      "a footer fits there");
        slot->sealed_segment = result->place.sealed_base_offset;
        slot->sealed_bytes = result->place.sealed_data_bytes;
        memcpy(ring_slot_entry(slot), result->place.footer, SEGMENT_FOOTER_BYTES);
    }
    if (writes->first == 0)
        writes->first = position + 1;
    else
        prepare_ring_at(&store->data_ring, writes->last - 1)->next = position + 1;
    writes->last = position + 1;
    if (!writes->busy && writes->link.queue == NULL)
        queue_push(&store->segment_writer->waiting, &writes->link);
}

/* Footer and sync of the segment before this batch. */
static int writer_seal(struct store *store, struct replica *replica, struct ring_slot *slot)
{
    struct segment_writes *writes = &replica->writes;
    uint32_t file = open_files_open(store, replica, slot->sealed_segment, IO_CREATE);
    if (!file) return 0;
    struct file_request *footer = requests_take(store->requests, REQUEST_FOOTER, IO_WRITE);
    struct file_request *sync = requests_take(store->requests, REQUEST_SEAL_SYNC, IO_SYNC);
    if (!footer || !sync) {
        struct file_request *spare = footer ? footer : sync;
        if (spare) requests_return(store->requests, spare);
        return 0;
    }
    memcpy(footer->footer, ring_slot_entry(slot), SEGMENT_FOOTER_BYTES);
    footer->request.buffer = footer->footer;
    footer->request.size = SEGMENT_FOOTER_BYTES;
    footer->request.offset = slot->sealed_bytes;
    footer->request.file = sync->request.file = open_files_slot(file);
    footer->replica = sync->replica = registry_index(store, replica);
    footer->file = sync->file = file;
    open_files_use(store->files, file);
    open_files_use(store->files, file);
    writes->busy = 1;
    store->statistics.segments_sealed++;
    store->statistics.syncs++;
    requests_send(store, footer);
    requests_send(store, sync);
    return 1;
}

/* The folder and an empty file for a segment that begins here. Nothing is written to it before that
 * is done: on a full disk all of it is tried again. */
static int writer_begin(struct store *store, struct replica *replica, struct ring_slot *slot)
{
    struct segment_writes *writes = &replica->writes;
    if (!writes->folder_made) {
        struct file_request *make = requests_take(store->requests, REQUEST_CONTROL, IO_MKDIR);
        if (!make) return 0;
        make->replica = registry_index(store, replica);
        path_of_replica(replica, make->request.path);
        requests_send(store, make);
        writes->folder_made = 1;
    }
    uint32_t file = open_files_open(store, replica, slot->segment, IO_CREATE);
    if (!file) return 0;
    struct file_request *cut = requests_take(store->requests, REQUEST_BEGIN, IO_TRUNCATE);
    if (!cut) return 0;
    cut->replica = registry_index(store, replica);
    cut->file = file;
    cut->request.file = open_files_slot(file);
    cut->request.size = 0;
    open_files_use(store->files, file);
    writes->busy = 1;
    writes->folder_dirty = 1;
    requests_send(store, cut);
    return 1;
}

/* As many batches as lie end to end in one segment. */
static int writer_append(struct store *store, struct replica *replica)
{
    struct segment_writes *writes = &replica->writes;
    struct ring_slot *slot = prepare_ring_at(&store->data_ring, writes->first - 1);
    uint32_t file = open_files_open(store, replica, slot->segment, IO_CREATE);
    if (!file) return 0;
    struct file_request *write = requests_take(store->requests, REQUEST_BATCHES, IO_WRITE);
    if (!write) return 0;
    struct io_request *request = &write->request;
    request->file = open_files_slot(file);
    request->offset = slot->position;
    uint64_t end = slot->position;
    uint64_t position = writes->first;
    while (position != 0 && request->vectors_count < IO_VECTORS_MAX) {
        struct ring_slot *next = prepare_ring_at(&store->data_ring, position - 1);
        if (request->vectors_count > 0 && (next->sealed || next->opened || next->position != end))
            break;
        request->vectors[request->vectors_count++] =
            (struct io_vector){.data = ring_slot_payload(next), .size = next->batch_bytes};
        end += next->batch_bytes;
        position = next->next;
    }
    request->size = end - slot->position;
    write->batches = request->vectors_count;
    write->replica = registry_index(store, replica);
    write->file = file;
    open_files_use(store->files, file);
    writes->busy = 1;
    requests_send(store, write);
    return 1;
}

static int writer_step(struct store *store, struct replica *replica)
{
    struct segment_writes *writes = &replica->writes;
    assert(writes->first != 0);
    assert(!writes->busy);
    struct ring_slot *slot = prepare_ring_at(&store->data_ring, writes->first - 1);
    if (slot->sealed) return writer_seal(store, replica, slot);
    if (slot->opened) return writer_begin(store, replica, slot);
    return writer_append(store, replica);
}

int segment_writer_step_one(struct store *store)
{
    struct queue *waiting = &store->segment_writer->waiting;
    if (requests_disk_is_full(store) || store->failed != STATUS_OK || queue_empty(waiting))
        return 0;
    struct replica *replica = queue_element(queue_pop(waiting), struct replica, writes.link);
    if (writer_step(store, replica)) return 1;
    queue_push(waiting, &replica->writes.link);
    return 0;
}

void segment_writer_step(struct store *store)
{
    for (uint64_t count = store->segment_writer->waiting.count; count > 0; count--) {
        if (!segment_writer_step_one(store)) return;
    }
}

static void writer_written(struct store *store, struct replica *replica,
                           const struct file_request *done)
{
    struct segment_writes *writes = &replica->writes;
    for (uint32_t index = 0; index < done->batches; index++) {
        assert(writes->first != 0);
        struct ring_slot *slot = prepare_ring_at(&store->data_ring, writes->first - 1);
        assert(slot->state == RING_SLOT_EXECUTED);
        writes->segment = slot->segment;
        writes->position = slot->position + slot->batch_bytes;
        writes->first = slot->next;
        slot->state = RING_SLOT_DONE;
        writes->batches_written++;
    }
    if (writes->first == 0) writes->last = 0;
    writes->data_dirty = 1;
    prepare_ring_settle(&store->data_ring);
}

void segment_writer_discard(struct store *store, struct replica *replica)
{
    struct segment_writes *writes = &replica->writes;
    assert(!writes->busy);
    while (writes->first != 0) {
        struct ring_slot *slot = prepare_ring_at(&store->data_ring, writes->first - 1);
        assert(slot->state == RING_SLOT_EXECUTED);
        slot->state = RING_SLOT_DONE;
        writes->first = slot->next;
    }
    writes->last = 0;
    if (writes->link.queue) queue_remove(&store->segment_writer->waiting, &writes->link);
    prepare_ring_settle(&store->data_ring);
}

void segment_writer_done(struct store *store, struct file_request *done)
{
    struct replica *replica = registry_at(store, done->replica);
    struct segment_writes *writes = &replica->writes;
    enum status status = done->request.status;
    open_files_unuse(store->files, done->file);
    int follows = status == STATUS_FILE_NOT_FOUND && open_files_broken(store->files, done->file);
    if (status == STATUS_STORAGE_FULL || follows) {
        /* Nothing is lost: the batches stay in the ring and in the journal. Asked again later. */
        requests_disk_full(store);
        if (done->request.kind == REQUEST_SEAL_SYNC) store_fail(store, status);
    } else if (status != STATUS_OK) {
        store_fail(store, status);
    } else if (done->request.kind == REQUEST_BEGIN) {
        prepare_ring_at(&store->data_ring, writes->first - 1)->opened = 0;
        store->statistics.segments_opened++;
    } else if (done->request.kind == REQUEST_BATCHES) {
        writer_written(store, replica, done);
    } else if (done->request.kind == REQUEST_SEAL_SYNC && !writes->footer_failed) {
        prepare_ring_at(&store->data_ring, writes->first - 1)->sealed = 0;
    }
    if (done->request.kind == REQUEST_FOOTER) {
        writes->footer_failed = status != STATUS_OK;
        return; /* its sync follows */
    }
    writes->busy = 0;
    if (writes->first != 0 && writes->link.queue == NULL)
        queue_push(&store->segment_writer->waiting, &writes->link);
}

/* ---- for a checkpoint ---- */

static int writer_sync_folder(struct store *store, struct replica *replica, uint32_t *syncs)
{
    for (uint32_t level = 0; level < 2; level++) {
        struct file_request *sync =
            requests_take(store->requests, REQUEST_CHECKPOINT_SYNC, IO_SYNC_DIR);
        if (!sync) return 0;
        if (level == 0)
            path_of_replica(replica, sync->request.path);
        else
            snprintf(sync->request.path, IO_PATH_SIZE, PATHS_TOPICS);
        (*syncs)++;
        requests_send(store, sync);
    }
    replica->writes.folder_dirty = 0;
    return 1;
}

static int writer_sync_data(struct store *store, struct replica *replica, uint32_t *syncs)
{
    uint32_t file = open_files_open(store, replica, replica->writes.segment, IO_CREATE);
    if (!file) return 0;
    struct file_request *sync = requests_take(store->requests, REQUEST_CHECKPOINT_SYNC, IO_SYNC);
    if (!sync) return 0;
    sync->request.file = open_files_slot(file);
    sync->file = file;
    open_files_use(store->files, file);
    replica->writes.data_dirty = 0;
    (*syncs)++;
    store->statistics.syncs++;
    requests_send(store, sync);
    return 1;
}

int segment_writer_sync(struct store *store, struct replica *replica, uint32_t *syncs)
{
    const struct segment_writes *writes = &replica->writes;
    if (writes->folder_dirty && !writer_sync_folder(store, replica, syncs)) return 0;
    return !writes->data_dirty || writer_sync_data(store, replica, syncs);
}

/* ---- of one replica ---- */

int segment_writer_busy(const struct replica *replica)
{
    return replica->writes.busy;
}

int segment_writer_has_batches(const struct replica *replica)
{
    return replica->writes.first != 0;
}

uint64_t segment_writer_executed(const struct replica *replica)
{
    return replica->writes.batches_executed;
}

int segment_writer_has_written(const struct replica *replica, uint64_t batches)
{
    return replica->writes.batches_written >= batches;
}

uint64_t segment_writer_newest(const struct replica *replica)
{
    return replica->writes.newest;
}

uint64_t segment_writer_readable(const struct replica *replica, uint64_t segment, uint64_t end)
{
    const struct segment_writes *writes = &replica->writes;
    return segment == writes->segment && writes->position < end ? writes->position : end;
}

uint64_t segment_writer_lowest(const struct store *store, const struct replica *replica)
{
    if (replica->writes.first == 0) return UINT64_MAX;
    const struct ring_slot *slot = prepare_ring_at(&store->data_ring, replica->writes.first - 1);
    return slot->sealed ? slot->sealed_segment : slot->segment;
}

void segment_writer_removed(struct replica *replica, uint64_t segment)
{
    if (segment == replica->writes.segment) replica->writes.data_dirty = 0;
}

int segment_writer_has_folder(const struct replica *replica)
{
    return replica->writes.folder_made;
}

void segment_writer_lost_folder(struct replica *replica)
{
    replica->writes.folder_made = 0;
}

void segment_writer_found_folder(struct replica *replica)
{
    replica->writes.folder_made = 1;
}

void segment_writer_found(struct replica *replica, uint64_t segment, uint64_t bytes)
{
    replica->writes.segment = segment;
    replica->writes.position = bytes;
}

void segment_writer_forget(struct store *store, struct replica *replica)
{
    assert(!replica->writes.busy);
    if (replica->writes.link.queue)
        queue_remove(&store->segment_writer->waiting, &replica->writes.link);
}

void segment_writer_invariants(const struct store *store)
{
    queue_each(&store->segment_writer->waiting, link)
    {
        const struct replica *replica = queue_element(link, struct replica, writes.link);
        const struct segment_writes *writes = &replica->writes;
        assert(replica->used);
        assert(writes->first != 0 && writes->last >= writes->first);
        assert(!writes->busy);
        assert(writes->batches_written < writes->batches_executed);
    }
}
