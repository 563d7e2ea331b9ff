/* store/files/segment_writer.c: executed batches go to segment files, in order, from the ring
 * they lie in (J8).
 *
 * One write of a replica is in flight at a time; what is executed meanwhile is gathered into the
 * next. A batch stays pinned in the ring until its write completed. Sealing writes the footer
 * behind the data and syncs the file; the active segment is synced when a checkpoint needs it.
 * Order within a replica: data, footer of the old segment, its sync, data of the new one.
 *
 * Files are opened when needed and closed when others need their slot. */
#include "store/state.h"

#include <stdio.h>

void replica_path(const struct replica *replica, char path[IO_PATH_SIZE])
{
    int size =
        snprintf(path, IO_PATH_SIZE, "topics/%016llx-%llu-%u", (unsigned long long)replica->topic,
                 (unsigned long long)replica->created_revision, replica->partition);
    assert(size > 0 && size < IO_PATH_SIZE);
}

void store_segment_path(const struct replica *replica, uint64_t segment, char path[IO_PATH_SIZE])
{
    char name[SEGMENT_NAME_SIZE];
    replica_path(replica, path);
    segment_name(segment, name);
    size_t at = strlen(path);
    int size = snprintf(path + at, IO_PATH_SIZE - at, "/%s", name);
    assert(size > 0 && (size_t)size < IO_PATH_SIZE - at);
}

static uint32_t *store_file_bucket(struct store *store, uint32_t replica, uint64_t segment)
{
    uint64_t mixed = (segment * 31 + replica) * UINT64_C(0x9E3779B97F4A7C15);
    return &store->file_buckets[(mixed >> 32) & (STORE_FILES_MAX - 1)];
}

static struct store_file *store_file_find(struct store *store, uint32_t replica, uint64_t segment)
{
    uint32_t index = *store_file_bucket(store, replica, segment);
    while (index != 0) {
        struct store_file *file = &store->files[index - 1];
        if (file->replica == replica && file->segment == segment) return file;
        index = file->next;
    }
    return NULL;
}

uint32_t store_file_slot(const struct store *store, const struct store_file *file)
{
    return STORE_SLOT_FILES + (uint32_t)(file - store->files);
}

/* Out of its bucket and closed; its slot may be opened again at once, requests run in order. */
static int store_file_close(struct store *store, struct store_file *file)
{
    assert(file->open);
    assert(file->users == 0);
    struct store_io *io = store_io_take(store, STORE_IO_CONTROL, IO_CLOSE);
    if (!io) return 0;
    uint32_t *index = store_file_bucket(store, file->replica, file->segment);
    uint32_t self = (uint32_t)(file - store->files) + 1;
    while (*index != self) index = &store->files[*index - 1].next;
    *index = file->next;
    file->open = 0;
    queue_remove(&store->files_used, &file->link);
    io->request.file = store_file_slot(store, file);
    store_io_send(store, io);
    return 1;
}

/* Close what nothing is in flight for, of segments below `below`; the slots may be taken again. 1 =
 * none is left open. */
int store_files_forget(struct store *store, const struct replica *replica, uint64_t below)
{
    uint32_t index = registry_index(store, replica);
    int left = 0;
    struct queue_link *next = NULL;
    for (struct queue_link *link = store->files_used.head; link; link = next) {
        next = link->next;
        struct store_file *file = queue_element(link, struct store_file, link);
        if (file->replica != index || file->segment >= below) continue;
        if (file->users > 0 || !store_file_close(store, file)) {
            left = 1;
            continue;
        }
        file->next = store->files_free;
        store->files_free = (uint32_t)(file - store->files) + 1;
    }
    return !left;
}

static struct store_file *store_file_free(struct store *store)
{
    if (store->files_free != 0) {
        struct store_file *file = &store->files[store->files_free - 1];
        assert(!file->open);
        store->files_free = file->next;
        return file;
    }
    if (store->files_opened < store->config.files_max) return &store->files[store->files_opened++];
    queue_each(&store->files_used, link)
    {
        struct store_file *file = queue_element(link, struct store_file, link);
        if (file->users == 0) return store_file_close(store, file) ? file : NULL;
    }
    return NULL;
}

/* The file of a segment, opened if it is not. NULL = no slot or request is free: later. */
struct store_file *store_file_open(struct store *store, struct replica *replica, uint64_t segment,
                                   uint32_t flags)
{
    uint32_t index = registry_index(store, replica);
    struct store_file *file = store_file_find(store, index, segment);
    if (file && file->broken && file->users == 0) {
        if (!store_file_close(store, file)) return NULL;
        file->broken = 0;
    } else if (file) {
        queue_remove(&store->files_used, &file->link);
        queue_push(&store->files_used, &file->link);
        return file;
    } else {
        file = store_file_free(store);
        if (!file) return NULL;
    }
    struct store_io *io = store_io_take(store, STORE_IO_CONTROL, IO_OPEN);
    *file = (struct store_file){.replica = index, .segment = segment, .open = 1};
    uint32_t *bucket = store_file_bucket(store, index, segment);
    file->next = *bucket;
    *bucket = (uint32_t)(file - store->files) + 1;
    queue_push(&store->files_used, &file->link);
    if (!io) {
        /* Not sent: the entry is broken until a later call closes and opens it. */
        file->broken = 1;
        return NULL;
    }
    io->replica = index;
    io->file = (uint32_t)(file - store->files) + 1;
    io->request.file = store_file_slot(store, file);
    io->request.flags = flags;
    store_segment_path(replica, segment, io->request.path);
    store_io_send(store, io);
    return file;
}

/* A batch was executed: chain it for its write. The entry's headers are spent, a footer may lie
 * over them. */
void store_batch_queue(struct store *store, struct replica *replica, struct ring_slot *slot,
                       uint64_t position, const struct partition_result *result)
{
    assert(result->append);
    slot->state = RING_SLOT_EXECUTED;
    slot->base_offset = result->base_offset;
    slot->record_count = result->record_count;
    slot->segment = result->place.base_offset;
    slot->position = result->place.position;
    slot->opened = result->place.opened;
    slot->sealed = result->place.sealed;
    slot->previous = replica->hot_last;
    replica->hot_last = position + 1;
    replica->batches_executed++;
    if (slot->sealed) {
        static_assert(SEGMENT_FOOTER_BYTES <= JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES,
                      "a footer fits there");
        slot->sealed_segment = result->place.sealed_base_offset;
        slot->sealed_bytes = result->place.sealed_data_bytes;
        memcpy(ring_slot_entry(slot), result->place.footer, SEGMENT_FOOTER_BYTES);
    }
    if (replica->write_first == 0)
        replica->write_first = position + 1;
    else
        prepare_ring_at(&store->data, replica->write_last - 1)->next = position + 1;
    replica->write_last = position + 1;
    if (!replica->write_busy && replica->write_link.queue == NULL)
        queue_push(&store->writes, &replica->write_link);
}

/* Footer and sync of the segment before this batch. */
static int store_segment_seal(struct store *store, struct replica *replica, struct ring_slot *slot)
{
    struct store_file *file = store_file_open(store, replica, slot->sealed_segment, IO_CREATE);
    if (!file) return 0;
    struct store_io *footer = store_io_take(store, STORE_IO_FOOTER, IO_WRITE);
    struct store_io *sync = store_io_take(store, STORE_IO_SEAL_SYNC, IO_SYNC);
    if (!footer || !sync) {
        struct store_io *spare = footer ? footer : sync;
        if (spare) store_io_return(store, spare);
        return 0;
    }
    memcpy(footer->footer, ring_slot_entry(slot), SEGMENT_FOOTER_BYTES);
    footer->request.buffer = footer->footer;
    footer->request.size = SEGMENT_FOOTER_BYTES;
    footer->request.offset = slot->sealed_bytes;
    footer->request.file = sync->request.file = store_file_slot(store, file);
    footer->replica = sync->replica = registry_index(store, replica);
    footer->file = sync->file = (uint32_t)(file - store->files) + 1;
    file->users += 2;
    replica->write_busy = 1;
    store->statistics.segments_sealed++;
    store->statistics.syncs++;
    store_io_send(store, footer);
    store_io_send(store, sync);
    return 1;
}

/* The folder and an empty file for a segment that begins here. Nothing is written to it before that
 * is done: on a full disk all of it is tried again. */
static int store_segment_begin(struct store *store, struct replica *replica, struct ring_slot *slot)
{
    if (!replica->folder_made) {
        struct store_io *make = store_io_take(store, STORE_IO_CONTROL, IO_MKDIR);
        if (!make) return 0;
        make->replica = registry_index(store, replica);
        replica_path(replica, make->request.path);
        store_io_send(store, make);
        replica->folder_made = 1;
    }
    struct store_file *file = store_file_open(store, replica, slot->segment, IO_CREATE);
    if (!file) return 0;
    struct store_io *cut = store_io_take(store, STORE_IO_BEGIN, IO_TRUNCATE);
    if (!cut) return 0;
    cut->replica = registry_index(store, replica);
    cut->file = (uint32_t)(file - store->files) + 1;
    cut->request.file = store_file_slot(store, file);
    cut->request.size = 0;
    file->users++;
    replica->write_busy = 1;
    replica->folder_dirty = 1;
    store_io_send(store, cut);
    return 1;
}

/* As many batches as lie end to end in one segment. */
static int store_segment_append(struct store *store, struct replica *replica)
{
    struct ring_slot *slot = prepare_ring_at(&store->data, replica->write_first - 1);
    struct store_file *file = store_file_open(store, replica, slot->segment, IO_CREATE);
    if (!file) return 0;
    struct store_io *io = store_io_take(store, STORE_IO_BATCHES, IO_WRITE);
    if (!io) return 0;
    struct io_request *request = &io->request;
    request->file = store_file_slot(store, file);
    request->offset = slot->position;
    uint64_t end = slot->position;
    uint64_t position = replica->write_first;
    while (position != 0 && request->vectors_count < IO_VECTORS_MAX) {
        struct ring_slot *next = prepare_ring_at(&store->data, position - 1);
        if (request->vectors_count > 0 && (next->sealed || next->opened || next->position != end))
            break;
        request->vectors[request->vectors_count++] =
            (struct io_vector){.data = ring_slot_payload(next), .size = next->batch_bytes};
        end += next->batch_bytes;
        position = next->next;
    }
    request->size = end - slot->position;
    io->batches = request->vectors_count;
    io->bytes = request->size;
    io->replica = registry_index(store, replica);
    io->file = (uint32_t)(file - store->files) + 1;
    file->users++;
    replica->write_busy = 1;
    store_io_send(store, io);
    return 1;
}

static int store_segment_step(struct store *store, struct replica *replica)
{
    assert(replica->write_first != 0);
    assert(!replica->write_busy);
    struct ring_slot *slot = prepare_ring_at(&store->data, replica->write_first - 1);
    if (slot->sealed) return store_segment_seal(store, replica, slot);
    if (slot->opened) return store_segment_begin(store, replica, slot);
    return store_segment_append(store, replica);
}

int store_segment_write(struct store *store)
{
    if (store->storage_full || store->failed != STATUS_OK || queue_empty(&store->writes)) return 0;
    struct replica *replica = queue_element(queue_pop(&store->writes), struct replica, write_link);
    if (store_segment_step(store, replica)) return 1;
    queue_push(&store->writes, &replica->write_link);
    return 0;
}

/* One step for each replica that has something to write; what finds no slot waits for the next
 * turn. */
void store_segments_write(struct store *store)
{
    for (uint64_t count = store->writes.count; count > 0; count--) {
        if (!store_segment_write(store)) return;
    }
}

static void store_batches_written(struct store *store, struct replica *replica,
                                  const struct store_io *io)
{
    for (uint32_t index = 0; index < io->batches; index++) {
        assert(replica->write_first != 0);
        struct ring_slot *slot = prepare_ring_at(&store->data, replica->write_first - 1);
        assert(slot->state == RING_SLOT_EXECUTED);
        replica->written_segment = slot->segment;
        replica->written_position = slot->position + slot->batch_bytes;
        replica->write_first = slot->next;
        slot->state = RING_SLOT_DONE;
        replica->batches_written++;
    }
    if (replica->write_first == 0) replica->write_last = 0;
    replica->data_dirty = 1;
    prepare_ring_settle(&store->data);
}

/* Nobody will read them: their replica is forgotten. The ring has their room back. */
void store_batches_discard(struct store *store, struct replica *replica)
{
    assert(!replica->write_busy);
    while (replica->write_first != 0) {
        struct ring_slot *slot = prepare_ring_at(&store->data, replica->write_first - 1);
        assert(slot->state == RING_SLOT_EXECUTED);
        slot->state = RING_SLOT_DONE;
        replica->write_first = slot->next;
    }
    replica->write_last = 0;
    if (replica->write_link.queue) queue_remove(&store->writes, &replica->write_link);
    prepare_ring_settle(&store->data);
}

void store_segment_done(struct store *store, struct store_io *io)
{
    struct replica *replica = &store->replicas[io->replica];
    struct store_file *file = &store->files[io->file - 1];
    enum status status = io->request.status;
    assert(file->users > 0);
    file->users--;
    if (status == STATUS_STORAGE_FULL || (file->broken && status == STATUS_FILE_NOT_FOUND)) {
        /* Nothing is lost: the batches stay in the ring and in the journal. Asked again later. */
        store->storage_full = 1;
        store->storage_retry_ns = store->now.monotonic_ns + STORE_RETRY_AFTER_NS;
        if (io->request.kind == STORE_IO_SEAL_SYNC) store_fail(store, status);
    } else if (status != STATUS_OK) {
        store_fail(store, status);
    } else if (io->request.kind == STORE_IO_BEGIN) {
        prepare_ring_at(&store->data, replica->write_first - 1)->opened = 0;
        store->statistics.segments_opened++;
    } else if (io->request.kind == STORE_IO_BATCHES) {
        store_batches_written(store, replica, io);
    } else if (io->request.kind == STORE_IO_SEAL_SYNC && !replica->footer_failed) {
        prepare_ring_at(&store->data, replica->write_first - 1)->sealed = 0;
    }
    if (io->request.kind == STORE_IO_FOOTER) {
        replica->footer_failed = status != STATUS_OK;
        return; /* its sync follows */
    }
    replica->write_busy = 0;
    if (replica->write_first != 0 && replica->write_link.queue == NULL)
        queue_push(&store->writes, &replica->write_link);
}
