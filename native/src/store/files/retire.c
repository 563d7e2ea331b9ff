/* store/files/retire.c: partitions whose topic is gone leave the shard: the hands of
 * store/files/replica_removal.c.
 *
 *     store_topic_gone -> doomed replicas wait in `removals` -> every flush takes each as far as it
 *     goes
 *
 * The tombstone goes through the control ring, which has room when the data ring is full and the
 * disk too: deleting is how a full disk is helped. It is put only when nothing of the replica can
 * come behind it. It stays live, appended again like a stopped replica's entries, until no file is
 * left; a start that finds it goes on.
 *
 * One replica at a time lists and unlinks; one that fails gives the turn to the next. */
#include "store/state.h"

#include <stdio.h>

enum { REMOVE_UNLINKS_MAX = 64 };

/* ---- the turn ---- */

static int remove_files_open(const struct store *store, const struct replica *replica)
{
    uint32_t index = registry_index(store, replica);
    queue_each(&store->files_used, link)
    {
        if (queue_element(link, struct store_file, link)->replica == index) return 1;
    }
    return 0;
}

static struct replica_removal_seen remove_see(const struct store *store,
                                              const struct replica *replica)
{
    uint32_t self = registry_index(store, replica) + 1;
    int held = replica->in_release && store_release_holds(store);
    return (struct replica_removal_seen){
        .undurable =
            replica->vsr.status == VSR_NORMAL && replica->vsr.op != replica->vsr.commit_min,
        .held = held != 0,
        .leaving =
            (replica->in_release && !held) || replica->pin_link.queue == &store->release.reappend,
        .writing = replica->write_busy || replica->trim.flights > 0,
        .queued = replica->write_first != 0,
        .files = replica->removal.phase == REMOVAL_FORGOTTEN && remove_files_open(store, replica),
        .turn = store->removing_now == 0 || store->removing_now == self,
        .names = store->removal_at < store->removal_size,
    };
}

/* Floor, then tombstone. 0 = no room now. */
static int remove_forget(struct store *store, struct replica *replica)
{
    if (!prepare_ring_fits(&store->control, 1024)) return 0;
    if (store->floor_wanted > store->nobody.floor_op) store_floor_entry(store, store->floor_wanted);
    const struct journal_entry entry = {.size = JOURNAL_ENTRY_HEADER_BYTES,
                                        .kind = JOURNAL_FORGET,
                                        .topic = replica->topic,
                                        .partition = replica->partition,
                                        .created_revision = replica->created_revision,
                                        .op = replica->vsr.op};
    uint64_t position;
    struct ring_slot *slot = store_entry_begin(store, &store->control, &entry, &position);
    slot->replica = registry_index(store, replica);
    store_entry_ready(slot);
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
        snprintf(request->path, IO_PATH_SIZE, "topics");
    else
        replica_path(replica, request->path);
    if (action != REMOVAL_LIST) return;
    request->buffer = store->removal_names;
    request->size = STORE_REMOVAL_NAMES_BYTES;
    store->removal_at = store->removal_size = 0;
}

static int remove_issue(struct store *store, struct replica *replica,
                        enum replica_removal_action action)
{
    struct store_io *io = store_io_take(store, STORE_IO_REMOVE, remove_operations[action]);
    if (!io) return 0;
    remove_describe(store, replica, action, &io->request);
    io->replica = registry_index(store, replica);
    store->removing_now = io->replica + 1;
    replica_removal_move(&replica->removal, action, 1);
    store_io_send(store, io);
    return 1;
}

/* The path of the next name of the list. */
static void remove_next_path(struct store *store, const struct replica *replica,
                             char path[IO_PATH_SIZE])
{
    const char *name = (const char *)store->removal_names + store->removal_at;
    size_t length = strlen(name);
    assert(store->removal_at + length < store->removal_size);
    replica_path(replica, path);
    size_t at = strlen(path);
    /* A name that is cut is no name of ours: it is absent, and the folder cannot go. */
    int size = snprintf(path + at, IO_PATH_SIZE - at, "/%s", name);
    assert(size > 0);
    store->removal_at += length + 1;
}

static int remove_unlink(struct store *store, struct replica *replica)
{
    struct store_io *ios[REMOVE_UNLINKS_MAX];
    uint32_t count = 0;
    while (count < REMOVE_UNLINKS_MAX && store->removal_at < store->removal_size) {
        struct store_io *io = store_io_take(store, STORE_IO_REMOVE, IO_UNLINK);
        if (!io) break;
        remove_next_path(store, replica, io->request.path);
        io->replica = registry_index(store, replica);
        ios[count++] = io;
    }
    if (count == 0) return 0;
    replica_removal_move(&replica->removal, REMOVAL_UNLINK, count);
    for (uint32_t index = 0; index < count; index++) store_io_send(store, ios[index]);
    return 1;
}

/* 1 = done, look again; 0 = nothing to do now. */
static int remove_act(struct store *store, struct replica *replica,
                      enum replica_removal_action action)
{
    switch (action) {
    case REMOVAL_WAIT: return 0;
    case REMOVAL_WITHDRAW: store_release_withdraw(store, replica); return 1;
    case REMOVAL_FORGET:
        if (!remove_forget(store, replica)) return 0;
        replica_removal_move(&replica->removal, REMOVAL_FORGET, 0);
        return 0;
    case REMOVAL_DISCARD: store_batches_discard(store, replica); return 1;
    case REMOVAL_CLOSE: return store_files_forget(store, replica, UINT64_MAX);
    case REMOVAL_UNLINK: return remove_unlink(store, replica);
    case REMOVAL_LIST:
    case REMOVAL_SYNC_FOLDER:
    case REMOVAL_PART:
    case REMOVAL_SYNC_PARENT: return remove_issue(store, replica, action);
    case REMOVAL_PAUSE: store->removing_now = 0; return 0;
    case REMOVAL_DROP:
        store->removing_now = 0;
        if (replica->checkpoint_is_file) store_garbage_add(store, replica->checkpoint_digest);
        registry_drop(store, replica);
        return 0;
    }
    unreachable();
}

/* 1 = the turn was given back: somebody looked at before may take it. */
static int remove_pass(struct store *store)
{
    uint32_t turn = store->removing_now;
    for (uint64_t count = store->removals.count; count > 0; count--) {
        struct replica *replica =
            queue_element(queue_pop(&store->removals), struct replica, removal_link);
        queue_push(&store->removals, &replica->removal_link);
        int moved = 1;
        while (moved && store->failed == STATUS_OK && replica->used) {
            struct replica_removal_seen seen = remove_see(store, replica);
            enum replica_removal_action action =
                replica_removal_step(&replica->removal, &seen, store->now.monotonic_ns);
            moved = remove_act(store, replica, action);
        }
    }
    return turn != 0 && store->removing_now == 0;
}

void store_removals_step(struct store *store)
{
    while (!queue_empty(&store->removals) && remove_pass(store)) maybe(store->removing_now == 0);
}

void store_removal_done(struct store *store, const struct store_io *io)
{
    struct replica *replica = &store->replicas[io->replica];
    assert(replica->used && replica->removal.phase >= REMOVAL_LISTING);
    if (io->request.operation == IO_LIST && io->request.status == STATUS_OK)
        store->removal_size = io->request.result_bytes;
    if (replica_removal_done(&replica->removal, io->request.status))
        store->statistics.removal_failures++;
}

/* All that could move has: what is left waits for its next attempt. */
int store_removals_rest(const struct store *store)
{
    queue_each(&store->removals, link)
    {
        const struct replica *replica = queue_element(link, struct replica, removal_link);
        const struct replica_removal *removal = &replica->removal;
        int paused = removal->phase == REMOVAL_FORGOTTEN && !replica->write_busy
                     && store->now.monotonic_ns < removal->retry_ns;
        if (!paused) return 0;
    }
    return 1;
}

/* ---- who goes ---- */

static void remove_doom(struct store *store, struct replica *replica, uint64_t op)
{
    if (replica->removal.phase != REMOVAL_NONE) return;
    assert(replica != store->metadata_replica);
    if (op > store->floor_wanted) store->floor_wanted = op;
    replica_removal_doom(&replica->removal);
    store_stored_forget(store, replica);
    outbox_advance(store->outbox, replica); /* fetches that wait learn that nothing will come */
    queue_push(&store->removals, &replica->removal_link);
}

void store_topic_doom(struct store *store, uint64_t number, uint64_t op)
{
    for (uint32_t index = 0; index < store->replicas_max; index++) {
        struct replica *replica = &store->replicas[index];
        if (replica->used && replica->topic == number) remove_doom(store, replica, op);
    }
}

/* Numbers come from a counter and are never used again (A4): one below a number that the tables
 * know and absent from them was deleted, and the crash came before its tombstone. One above all of
 * them proves nothing, and neither does a table that had no room for every row. */
void store_tables_complete(struct store *store, uint64_t op)
{
    if (store->topics_refused > 0) return;
    for (uint32_t index = 0; index < store->replicas_max; index++) {
        struct replica *replica = &store->replicas[index];
        if (!replica->used || replica == store->metadata_replica) continue;
        if (replica->topic >= store->topic_highest || store_topic_find(store, replica->topic))
            continue;
        remove_doom(store, replica, op);
    }
}

/* ---- a start ---- */

static enum status remove_perform(struct store *store, enum io_operation operation,
                                  const char *path)
{
    struct io_request request = {.operation = operation};
    snprintf(request.path, sizeof request.path, "%s", path);
    return store_perform(store, &request);
}

/* All of it, now. Anything but OK: something is left. */
static enum status remove_now(struct store *store, const struct replica *name)
{
    struct io_request list = {
        .operation = IO_LIST, .buffer = store->removal_names, .size = STORE_REMOVAL_NAMES_BYTES};
    replica_path(name, list.path);
    enum status status = store_perform(store, &list);
    store->removal_at = 0;
    store->removal_size = list.result_bytes;
    while (status == STATUS_OK && store->removal_at < store->removal_size) {
        char path[IO_PATH_SIZE];
        remove_next_path(store, name, path);
        status = remove_perform(store, IO_UNLINK, path);
    }
    store->removal_at = store->removal_size = 0;
    if (status == STATUS_OK) status = remove_perform(store, IO_SYNC_DIR, list.path);
    if (status == STATUS_FILE_NOT_FOUND) status = STATUS_OK;
    if (status == STATUS_OK) status = remove_perform(store, IO_UNLINK, list.path);
    if (status == STATUS_OK) status = remove_perform(store, IO_SYNC_DIR, "topics");
    return status;
}

/* A tombstone in the journal: its files may still be there. */
enum status store_removal_found(struct store *store, const struct journal_entry *entry,
                                uint64_t generation)
{
    struct replica *replica = registry_find(store, entry->topic, entry->partition);
    if (replica && replica->created_revision == entry->created_revision)
        registry_drop(store, replica);
    const struct replica name = {.topic = entry->topic,
                                 .created_revision = entry->created_revision,
                                 .partition = entry->partition};
    if (remove_now(store, &name) == STATUS_OK) return STATUS_OK;
    store->statistics.removal_failures++;
    replica = registry_make(store, entry->topic, entry->created_revision, entry->partition,
                            &store_limit_unknown, 0);
    if (!replica) return STATUS_NO_MEMORY;
    replica->pin = generation;
    replica_removal_found(&replica->removal, store->now.monotonic_ns);
    queue_push(&store->removals, &replica->removal_link);
    return STATUS_OK;
}
