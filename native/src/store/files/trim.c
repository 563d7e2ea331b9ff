/* store/files/trim.c: segment files that their log no longer names leave the disk.
 *
 *     NONE -> WAITING -> LISTING -> UNLINKING -> SYNCING -> NONE
 *                ^ '---- a file had to stay, or something failed: later, again ----'
 *
 * A trim is decided in the log; here only follows what it means for files. What to remove is never
 * remembered: the folder is listed, and every segment below the log's first one goes. So it may be
 * done again at any time, and a start that finds a log trimmed ever does.
 *
 * A start begins at the last checkpoint. Sealed segments that this one names may be absent, since
 * the trim behind it tells why; the one that is active in it must be there: replayed batches are
 * appended to it. So that file, and one that batches still wait to be written to, stays until a
 * later checkpoint, which is asked for after a minute. While a checkpoint is being made nothing
 * is unlinked: nobody knows yet which of the two a start will find.
 *
 * One replica at a time, removals of store/files/retire.c included: they share the list of names. */
#include "foundation/machine.h"
#include "store/state.h"

#include <stdio.h>

enum { TRIM_UNLINKS_MAX = 64, TRIM_PAUSES_MAX = 5, TRIM_NAME_DIGITS = 20 };

#define TRIM_PAUSE_NS UINT64_C(1000000000)
#define TRIM_CHECKPOINT_AFTER_NS UINT64_C(60000000000)

static const struct machine_state trim_states[STORE_TRIM_PHASES_COUNT] = {
    [STORE_TRIM_NONE] = {"none", 1u << STORE_TRIM_WAITING},
    [STORE_TRIM_WAITING] = {"waiting", 1u << STORE_TRIM_LISTING | 1u << STORE_TRIM_NONE},
    [STORE_TRIM_LISTING] = {"listing", 1u << STORE_TRIM_UNLINKING | 1u << STORE_TRIM_SYNCING
                                           | 1u << STORE_TRIM_WAITING | 1u << STORE_TRIM_NONE},
    [STORE_TRIM_UNLINKING] = {"unlinking", 1u << STORE_TRIM_UNLINKING | 1u << STORE_TRIM_SYNCING
                                               | 1u << STORE_TRIM_WAITING | 1u << STORE_TRIM_NONE},
    [STORE_TRIM_SYNCING] = {"syncing", 1u << STORE_TRIM_WAITING | 1u << STORE_TRIM_NONE},
};

static void trim_enter(struct replica *replica, enum store_trim_phase phase)
{
    struct machine machine;
    machine_init(&machine, trim_states, STORE_TRIM_PHASES_COUNT, replica->trim.phase);
    machine_move(&machine, (uint8_t)phase);
    replica->trim.phase = machine.current;
}

void store_trim_begin(struct store *store, struct replica *replica)
{
    replica->trim.again = 1;
    if (replica->trim.phase != STORE_TRIM_NONE || replica->removal.phase != REMOVAL_NONE) return;
    replica->trim = (struct store_trim){.again = 1, .asked_ns = store->now.monotonic_ns};
    trim_enter(replica, STORE_TRIM_WAITING);
    queue_push(&store->trims, &replica->trim_link);
}

/* ---- which files ---- */

/* Files of segments below it are of no use. */
static uint64_t trim_first(struct replica *replica)
{
    const struct segment *first = partition_segment(&replica->state, 0);
    return first ? first->base_offset : replica->state.next_offset;
}

/* The lowest segment that something is still to be written to, or is being written. */
static uint64_t trim_pending(struct store *store, const struct replica *replica)
{
    if (replica->write_first == 0) return UINT64_MAX;
    const struct ring_slot *slot = prepare_ring_at(&store->data, replica->write_first - 1);
    return slot->sealed ? slot->sealed_segment : slot->segment;
}

/* 1 = a file that the log does not name must stay for now. */
static int trim_blocked(struct store *store, struct replica *replica)
{
    uint64_t first = trim_first(replica);
    int active = replica->checkpoint_active != 0 && replica->checkpoint_active - 1 < first;
    return active || trim_pending(store, replica) < first;
}

/* The segment whose file this is; 0 = none of ours. */
static int trim_parse(const char *name, uint64_t *segment)
{
    char again[SEGMENT_NAME_SIZE];
    *segment = 0;
    for (uint32_t index = 0; index < TRIM_NAME_DIGITS; index++) {
        if (name[index] < '0' || name[index] > '9') return 0;
        *segment = *segment * 10 + (uint64_t)(name[index] - '0');
    }
    segment_name(*segment, again);
    return strcmp(name, again) == 0;
}

/* The next file that goes; 0 = the list is at its end. */
static int trim_next_path(struct store *store, struct replica *replica, char path[IO_PATH_SIZE])
{
    while (store->removal_at < store->removal_size) {
        const char *name = (const char *)store->removal_names + store->removal_at;
        store->removal_at += strlen(name) + 1;
        uint64_t segment;
        if (!trim_parse(name, &segment) || segment >= trim_first(replica)) continue;
        if (segment >= trim_pending(store, replica) || segment + 1 == replica->checkpoint_active) {
            replica->trim.kept = 1;
            continue;
        }
        /* No checkpoint syncs it any more, which would make it again. */
        if (segment == replica->written_segment) replica->data_dirty = 0;
        store_segment_path(replica, segment, path);
        return 1;
    }
    return 0;
}

/* ---- steps ---- */

static int trim_issue(struct store *store, struct replica *replica, enum io_operation operation)
{
    struct store_io *io = store_io_take(store, STORE_IO_TRIM, operation);
    if (!io) return 0;
    replica_path(replica, io->request.path);
    io->replica = registry_index(store, replica);
    store->removing_now = io->replica + 1;
    if (operation == IO_LIST) {
        io->request.buffer = store->removal_names;
        io->request.size = STORE_REMOVAL_NAMES_BYTES;
        store->removal_at = store->removal_size = 0;
        replica->trim.again = replica->trim.kept = 0;
    }
    trim_enter(replica, operation == IO_LIST ? STORE_TRIM_LISTING : STORE_TRIM_SYNCING);
    replica->trim.flights = 1;
    store_io_send(store, io);
    return 1;
}

/* Requests, as many as there are; -1 = none could be made now, 0 = nothing is left to do. */
static int trim_unlink(struct store *store, struct replica *replica)
{
    struct store_io *ios[TRIM_UNLINKS_MAX];
    int count = 0;
    while (count < TRIM_UNLINKS_MAX) {
        struct store_io *io = store_io_take(store, STORE_IO_TRIM, IO_UNLINK);
        if (!io && count == 0) return -1;
        if (!io) break;
        if (!trim_next_path(store, replica, io->request.path)) {
            store_io_return(store, io);
            break;
        }
        io->replica = registry_index(store, replica);
        ios[count++] = io;
    }
    if (count == 0) return 0;
    trim_enter(replica, STORE_TRIM_UNLINKING);
    replica->trim.flights = (uint32_t)count;
    for (int index = 0; index < count; index++) store_io_send(store, ios[index]);
    return count;
}

/* The turn goes to another; `phase` is where this one goes on, or NONE. */
static void trim_leave(struct store *store, struct replica *replica, enum store_trim_phase phase)
{
    if (store->removing_now == registry_index(store, replica) + 1) store->removing_now = 0;
    if (phase != STORE_TRIM_NONE) {
        if (replica->trim.phase != STORE_TRIM_WAITING) trim_enter(replica, phase);
        return;
    }
    trim_enter(replica, STORE_TRIM_NONE);
    queue_remove(&store->trims, &replica->trim_link);
}

static void trim_over(struct store *store, struct replica *replica)
{
    replica->trim.pauses = 0;
    int more = replica->trim.again || replica->trim.kept;
    trim_leave(store, replica, more ? STORE_TRIM_WAITING : STORE_TRIM_NONE);
}

static void trim_pause(struct store *store, struct replica *replica)
{
    struct store_trim *trim = &replica->trim;
    trim->retry_ns = store->now.monotonic_ns + (TRIM_PAUSE_NS << trim->pauses);
    if (trim->pauses < TRIM_PAUSES_MAX) trim->pauses++;
    trim->failed = 0;
    trim->again = 1;
    trim_leave(store, replica, STORE_TRIM_WAITING);
}

static int trim_wait(struct store *store, struct replica *replica)
{
    struct store_trim *trim = &replica->trim;
    uint64_t now_ns = store->now.monotonic_ns;
    if (replica->in_release || now_ns < trim->retry_ns) return 0;
    int blocked = trim_blocked(store, replica);
    if (blocked && now_ns - trim->asked_ns >= TRIM_CHECKPOINT_AFTER_NS) {
        trim->asked_ns = now_ns;
        store_checkpoint_all(store);
        return 0;
    }
    if (!trim->again && blocked) return 0;
    if (store->removing_now != 0) return 0;
    (void)store_files_forget(store, replica,
                             trim_first(replica) < trim_pending(store, replica)
                                 ? trim_first(replica)
                                 : trim_pending(store, replica));
    return trim_issue(store, replica, IO_LIST);
}

/* 1 = moved, look again. */
static int trim_step(struct store *store, struct replica *replica)
{
    struct store_trim *trim = &replica->trim;
    if (trim->flights > 0) return 0;
    if (replica->removal.phase != REMOVAL_NONE) {
        /* All of its files go, another way, which waits for our requests. */
        assert(replica->removal.phase < REMOVAL_LISTING);
        trim_leave(store, replica, STORE_TRIM_NONE);
        return 0;
    }
    if (trim->failed) {
        trim_pause(store, replica);
        return 0;
    }
    switch ((enum store_trim_phase)trim->phase) {
    case STORE_TRIM_WAITING: return trim_wait(store, replica);
    case STORE_TRIM_LISTING:
    case STORE_TRIM_UNLINKING: {
        if (replica->in_release) return 0;
        int issued = trim_unlink(store, replica);
        if (issued != 0) return 0;
        if (trim->phase == STORE_TRIM_UNLINKING) return trim_issue(store, replica, IO_SYNC_DIR);
        trim_over(store, replica);
        return 0;
    }
    case STORE_TRIM_SYNCING: trim_over(store, replica); return 0;
    case STORE_TRIM_NONE:
    case STORE_TRIM_PHASES_COUNT: unreachable();
    }
    unreachable();
}

void store_trims_step(struct store *store)
{
    for (uint64_t count = store->trims.count; count > 0; count--) {
        struct replica *replica =
            queue_element(queue_pop(&store->trims), struct replica, trim_link);
        queue_push(&store->trims, &replica->trim_link);
        while (store->failed == STATUS_OK && replica->trim.phase != STORE_TRIM_NONE
               && trim_step(store, replica)) {
        }
    }
}

void store_trim_done(struct store *store, const struct store_io *io)
{
    struct replica *replica = &store->replicas[io->replica];
    struct store_trim *trim = &replica->trim;
    enum status status = io->request.status;
    assert(replica->used && trim->flights > 0);
    trim->flights--;
    if (io->request.operation == IO_LIST && status == STATUS_OK)
        store->removal_size = io->request.result_bytes;
    /* A folder that was never made, or a file that went with an earlier attempt. */
    if (status == STATUS_OK || status == STATUS_FILE_NOT_FOUND) return;
    trim->failed = 1;
    store->statistics.trim_failures++;
}

/* All that could go has: what is left waits for a checkpoint or its next attempt. */
int store_trims_rest(const struct store *store)
{
    queue_each(&store->trims, link)
    {
        struct replica *replica = queue_element(link, struct replica, trim_link);
        const struct store_trim *trim = &replica->trim;
        if (trim->phase != STORE_TRIM_WAITING) return 0;
        if (trim->again && store->now.monotonic_ns >= trim->retry_ns) return 0;
    }
    return 1;
}
