#include "store/files/retire.h"

#include <stdio.h>
#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/queue.h"
#include "store/accounting/shard_records.h"
#include "store/accounting/storage_meter.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/files/folder_list.h"
#include "store/files/open_files.h"
#include "store/files/paths.h"
#include "store/files/replica_removal.h"
#include "store/files/requests.h"
#include "store/files/segment_writer.h"
#include "store/files/trim.h"
#include "store/outbox.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/state.h"

enum { REMOVE_UNLINKS_MAX = 64 };

struct retiring {
    struct queue queue; /* replicas whose topic is gone, until their files are */
    uint64_t floor_op;  /* of metadata, before the next tombstone (V8) */
};

size_t retire_memory_bytes(void)
{
    return arena_size(sizeof(struct retiring));
}

struct retiring *retire_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct retiring));
}

uint64_t retire_count(const struct retiring *retiring)
{
    return retiring->queue.count;
}

/* ---- the turn ---- */

static struct replica_removal_seen remove_see(const struct store *store,
                                              const struct replica *replica)
{
    const struct folder_list *list = store->folder_list;
    int withdrawable = checkpoint_can_withdraw(store, replica);
    return (struct replica_removal_seen){
        .undurable =
            replica->vsr.status == VSR_NORMAL && replica->vsr.op != replica->vsr.commit_min,
        .withdrawable = withdrawable != 0,
        .leaving = !withdrawable && checkpoint_appends(store, replica),
        .writing = segment_writer_busy(replica) || trim_in_flight(replica),
        .queued = segment_writer_has_batches(replica) != 0,
        .files =
            replica->retire.removal.phase == REMOVAL_FORGOTTEN && open_files_any(store, replica),
        .turn =
            folder_list_is_free(list) || folder_list_is_of(list, registry_index(store, replica)),
        .names = folder_list_has_more(list) != 0,
    };
}

/* Floor, then tombstone. 0 = no room now. */
static int remove_forget(struct store *store, struct replica *replica)
{
    if (!prepare_ring_fits(&store->control_ring, 1024)) return 0;
    shard_records_floor(store, store->retiring->floor_op);
    const struct journal_entry entry = propose_entry(replica, JOURNAL_FORGET, replica->vsr.op, 0);
    uint64_t position;
    propose_ready(propose_begin(store, &store->control_ring, replica, &entry, &position));
    return 1;
}

static const enum io_operation remove_operations[] = {
    [REMOVAL_LIST] = IO_LIST,
    [REMOVAL_SYNC_FOLDER] = IO_SYNC_DIR,
    [REMOVAL_PART] = IO_UNLINK,
    [REMOVAL_SYNC_PARENT] = IO_SYNC_DIR,
};

static void remove_describe(struct store *store, const struct replica *replica,
                            enum replica_removal_action action, struct io_request *request)
{
    if (action == REMOVAL_SYNC_PARENT)
        snprintf(request->path, IO_PATH_SIZE, PATHS_TOPICS);
    else
        path_of_replica(replica, request->path);
    if (action != REMOVAL_LIST) return;
    folder_list_ask(store->folder_list, request);
}

static int remove_issue(struct store *store, struct replica *replica,
                        enum replica_removal_action action)
{
    struct file_request *io =
        requests_take(store->requests, REQUEST_REMOVE, remove_operations[action]);
    if (!io) return 0;
    remove_describe(store, replica, action, &io->request);
    io->replica = registry_index(store, replica);
    folder_list_take(store->folder_list, io->replica);
    replica_removal_move(&replica->retire.removal, action, 1);
    requests_send(store, io);
    return 1;
}

/* The path of the next name of the list; 0 = it is at its end. */
static int remove_next_path(struct store *store, const struct replica *replica,
                            char path[IO_PATH_SIZE])
{
    const char *name = folder_list_next(store->folder_list);
    if (!name) return 0;
    path_of_replica(replica, path);
    size_t at = strlen(path);
    /* A name that is cut is no name of ours: it is absent, and the folder cannot go. */
    int size = snprintf(path + at, IO_PATH_SIZE - at, "/%s", name);
    assert(size > 0);
    return 1;
}

static int remove_unlink(struct store *store, struct replica *replica)
{
    struct file_request *ios[REMOVE_UNLINKS_MAX];
    uint32_t count = 0;
    while (count < REMOVE_UNLINKS_MAX && folder_list_has_more(store->folder_list)) {
        struct file_request *io = requests_take(store->requests, REQUEST_REMOVE, IO_UNLINK);
        if (!io) break;
        (void)remove_next_path(store, replica, io->request.path);
        io->replica = registry_index(store, replica);
        ios[count++] = io;
    }
    if (count == 0) return 0;
    replica_removal_move(&replica->retire.removal, REMOVAL_UNLINK, count);
    for (uint32_t index = 0; index < count; index++) requests_send(store, ios[index]);
    return 1;
}

/* 1 = done, look again; 0 = nothing to do now. */
static int remove_act(struct store *store, struct replica *replica,
                      enum replica_removal_action action)
{
    switch (action) {
    case REMOVAL_WAIT: return 0;
    case REMOVAL_WITHDRAW: checkpoint_withdraw(store, replica); return 1;
    case REMOVAL_FORGET:
        if (!remove_forget(store, replica)) return 0;
        replica_removal_move(&replica->retire.removal, REMOVAL_FORGET, 0);
        return 0;
    case REMOVAL_DISCARD: segment_writer_discard(store, replica); return 1;
    case REMOVAL_CLOSE: return open_files_forget(store, replica, UINT64_MAX);
    case REMOVAL_UNLINK: return remove_unlink(store, replica);
    case REMOVAL_LIST:
    case REMOVAL_SYNC_FOLDER:
    case REMOVAL_PART:
    case REMOVAL_SYNC_PARENT: return remove_issue(store, replica, action);
    case REMOVAL_PAUSE: folder_list_give(store->folder_list); return 0;
    case REMOVAL_DROP:
        folder_list_give(store->folder_list);
        replica_checkpoint_gone(store, replica);
        registry_drop(store, replica);
        return 0;
    }
    unreachable();
}

/* 1 = the turn was given back: somebody looked at before may take it. */
static int remove_pass(struct store *store)
{
    int taken = !folder_list_is_free(store->folder_list);
    for (uint64_t count = store->retiring->queue.count; count > 0; count--) {
        struct replica *replica =
            queue_element(queue_pop(&store->retiring->queue), struct replica, retire.link);
        queue_push(&store->retiring->queue, &replica->retire.link);
        int moved = 1;
        while (moved && store->failed == STATUS_OK && replica->used) {
            struct replica_removal_seen seen = remove_see(store, replica);
            enum replica_removal_action action =
                replica_removal_step(&replica->retire.removal, &seen, store->now.monotonic_ns);
            moved = remove_act(store, replica, action);
        }
    }
    return taken && folder_list_is_free(store->folder_list);
}

void retire_step(struct store *store)
{
    while (!queue_empty(&store->retiring->queue) && remove_pass(store)) {
    }
}

void retire_done(struct store *store, const struct file_request *io)
{
    struct replica *replica = registry_at(store, io->replica);
    assert(replica->used && replica->retire.removal.phase >= REMOVAL_LISTING);
    if (io->request.operation == IO_LIST && io->request.status == STATUS_OK)
        folder_list_answer(store->folder_list, &io->request);
    if (replica_removal_done(&replica->retire.removal, io->request.status))
        store->statistics.removal_failures++;
}

int retire_rest(const struct store *store)
{
    queue_each(&store->retiring->queue, link)
    {
        const struct replica *replica = queue_element(link, struct replica, retire.link);
        const struct replica_removal *removal = &replica->retire.removal;
        int paused = removal->phase == REMOVAL_FORGOTTEN && !segment_writer_busy(replica)
                     && store->now.monotonic_ns < removal->retry_ns;
        if (!paused) return 0;
    }
    return 1;
}

/* ---- who goes ---- */

static void remove_doom(struct store *store, struct replica *replica, uint64_t op)
{
    if (replica->retire.removal.phase != REMOVAL_NONE) return;
    assert(!replica->is_metadata);
    if (op > store->retiring->floor_op) store->retiring->floor_op = op;
    replica_removal_doom(&replica->retire.removal);
    storage_meter_forget(store, replica);
    outbox_advance(store->outbox, replica); /* fetches that wait learn that nothing will come */
    queue_push(&store->retiring->queue, &replica->retire.link);
}

void retire_topic(struct store *store, uint64_t topic, uint64_t op)
{
    uint32_t cursor = 0;
    struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        if (replica->topic == topic) remove_doom(store, replica, op);
    }
}

/* Numbers come from a counter and are never used again (A4): one below a number that the tables
 * know and absent from them was deleted, and the crash came before its tombstone. One above all of
 * them proves nothing, and neither does a table that had no room for every row. */
void store_tables_complete(struct store *store, uint64_t op)
{
    uint32_t cursor = 0;
    struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        if (!replica->is_metadata && registry_proves_gone(store, replica->topic))
            remove_doom(store, replica, op);
    }
}

/* ---- a start ---- */

static enum status remove_perform(struct store *store, enum io_operation operation,
                                  const char *path)
{
    struct io_request request = {.operation = operation};
    snprintf(request.path, sizeof request.path, "%s", path);
    return requests_perform(store, &request);
}

/* All of it, now. Anything but OK: something is left. */
static enum status remove_now(struct store *store, const struct replica *name)
{
    struct io_request list = {.operation = IO_LIST};
    folder_list_ask(store->folder_list, &list);
    path_of_replica(name, list.path);
    enum status status = requests_perform(store, &list);
    folder_list_answer(store->folder_list, &list);
    char path[IO_PATH_SIZE];
    while (status == STATUS_OK && remove_next_path(store, name, path))
        status = remove_perform(store, IO_UNLINK, path);
    folder_list_clear(store->folder_list);
    if (status == STATUS_OK) status = remove_perform(store, IO_SYNC_DIR, list.path);
    if (status == STATUS_FILE_NOT_FOUND) status = STATUS_OK;
    if (status == STATUS_OK) status = remove_perform(store, IO_UNLINK, list.path);
    if (status == STATUS_OK) status = remove_perform(store, IO_SYNC_DIR, PATHS_TOPICS);
    return status;
}

enum status retire_found(struct store *store, const struct journal_entry *entry,
                         uint64_t extent_cycle)
{
    struct replica *replica = registry_find(store, entry->topic, entry->partition);
    if (replica && replica->created_revision == entry->created_revision)
        registry_drop(store, replica);
    const struct replica name = {
        .topic = entry->topic,
        .created_revision = entry->created_revision,
        .partition = entry->partition,
        .vsr = {.members_count = 1, .members = {{.tenure = entry->tenure}}}};
    if (remove_now(store, &name) == STATUS_OK) return STATUS_OK;
    store->statistics.removal_failures++;
    replica = registry_make_replica(store, entry->topic, entry->created_revision, entry->partition,
                                    &registry_configuration_unknown);
    if (!replica) return STATUS_NO_MEMORY;
    live_entries_found(replica, extent_cycle);
    replica_removal_found(&replica->retire.removal, store->now.monotonic_ns);
    queue_push(&store->retiring->queue, &replica->retire.link);
    return STATUS_OK;
}

void retire_tombstone_durable(struct replica *replica)
{
    replica_removal_forgotten(&replica->retire.removal);
}

/* ---- of one replica ---- */

int retire_leaves(const struct replica *replica)
{
    return replica->retire.removal.phase != REMOVAL_NONE;
}

int retire_waits_for_tombstone(const struct replica *replica)
{
    enum replica_removal_phase phase = replica->retire.removal.phase;
    return phase == REMOVAL_DOOMED || phase == REMOVAL_FORGETTING;
}

int retire_has_tombstone(const struct replica *replica)
{
    return replica->retire.removal.phase >= REMOVAL_FORGOTTEN;
}

int retire_lists(const struct replica *replica)
{
    return replica->retire.removal.phase >= REMOVAL_LISTING;
}

void retire_forget(struct store *store, struct replica *replica)
{
    if (replica->retire.link.queue) queue_remove(&store->retiring->queue, &replica->retire.link);
}

void retire_invariants(const struct store *store)
{
    queue_each(&store->retiring->queue, link)
    {
        const struct replica *replica = queue_element(link, struct replica, retire.link);
        assert(replica->used && !replica->is_metadata);
        assert(retire_leaves(replica));
        int has_list = folder_list_is_of(store->folder_list, registry_index(store, replica));
        ergo(replica->retire.removal.flights > 0, has_list);
    }
}
