#include "store/files/trim.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/machine.h"
#include "foundation/queue.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/files/folder_list.h"
#include "store/files/open_files.h"
#include "store/files/paths.h"
#include "store/files/requests.h"
#include "store/files/retire.h"
#include "store/files/segment_writer.h"
#include "store/registry.h"
#include "store/state.h"

enum { TRIM_UNLINKS_MAX = 64, TRIM_PAUSES_MAX = 5, TRIM_NAME_DIGITS = 20 };

#define TRIM_PAUSE_NS UINT64_C(1000000000)
#define TRIM_CHECKPOINT_AFTER_NS UINT64_C(60000000000)

static const struct machine_state trim_states[TRIM_PHASES_COUNT] = {
    [TRIM_NONE] = {"none", 1u << TRIM_WAITING},
    [TRIM_WAITING] = {"waiting", 1u << TRIM_LISTING | 1u << TRIM_NONE},
    [TRIM_LISTING] = {"listing", 1u << TRIM_UNLINKING | 1u << TRIM_SYNCING | 1u << TRIM_WAITING
                                     | 1u << TRIM_NONE},
    [TRIM_UNLINKING] = {"unlinking", 1u << TRIM_UNLINKING | 1u << TRIM_SYNCING | 1u << TRIM_WAITING
                                         | 1u << TRIM_NONE},
    [TRIM_SYNCING] = {"syncing", 1u << TRIM_WAITING | 1u << TRIM_NONE},
};

struct trims {
    struct queue queue; /* replicas with files to remove */
};

size_t trims_memory_bytes(void)
{
    return arena_size(sizeof(struct trims));
}

struct trims *trims_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct trims));
}

uint64_t trims_count(const struct trims *trims)
{
    return trims->queue.count;
}

static void trim_enter(struct replica *replica, enum trim_phase phase)
{
    struct machine machine;
    machine_init(&machine, trim_states, TRIM_PHASES_COUNT, replica->trim.phase);
    machine_move(&machine, (uint8_t)phase);
    replica->trim.phase = machine.current;
}

void trim_begin(struct store *store, struct replica *replica)
{
    replica->trim.again = 1;
    if (replica->trim.phase != TRIM_NONE || retire_leaves(replica)) return;
    replica->trim = (struct replica_trim){.again = 1, .asked_ns = store->now.monotonic_ns};
    trim_enter(replica, TRIM_WAITING);
    queue_push(&store->trims->queue, &replica->trim.link);
}

/* ---- which files ---- */

/* Files of segments below it are of no use. */
static uint64_t trim_first(struct replica *replica)
{
    const struct segment *first = partition_segment(&replica->state, 0);
    return first ? first->base_offset : replica->state.next_offset;
}

/* 1 = a file that the log does not name must stay for now. */
static int trim_blocked(struct store *store, struct replica *replica)
{
    uint64_t first = trim_first(replica);
    return replica_checkpoint_names_below(replica, first)
           || segment_writer_lowest(store, replica) < first;
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
    const char *name;
    while ((name = folder_list_next(store->folder_list)) != NULL) {
        uint64_t segment;
        if (!trim_parse(name, &segment) || segment >= trim_first(replica)) continue;
        if (segment >= segment_writer_lowest(store, replica)
            || replica_checkpoint_names(replica, segment)) {
            replica->trim.kept = 1;
            continue;
        }
        segment_writer_removed(replica, segment);
        path_of_segment(replica, segment, path);
        return 1;
    }
    return 0;
}

/* ---- steps ---- */

static int trim_issue(struct store *store, struct replica *replica, enum io_operation operation)
{
    struct file_request *io = requests_take(store->requests, REQUEST_TRIM, operation);
    if (!io) return 0;
    path_of_replica(replica, io->request.path);
    io->replica = registry_index(store, replica);
    folder_list_take(store->folder_list, io->replica);
    if (operation == IO_LIST) {
        folder_list_ask(store->folder_list, &io->request);
        replica->trim.again = replica->trim.kept = 0;
    }
    trim_enter(replica, operation == IO_LIST ? TRIM_LISTING : TRIM_SYNCING);
    replica->trim.flights = 1;
    requests_send(store, io);
    return 1;
}

/* Requests, as many as there are; -1 = none could be made now, 0 = nothing is left to do. */
static int trim_unlink(struct store *store, struct replica *replica)
{
    struct file_request *ios[TRIM_UNLINKS_MAX];
    int count = 0;
    while (count < TRIM_UNLINKS_MAX) {
        struct file_request *io = requests_take(store->requests, REQUEST_TRIM, IO_UNLINK);
        if (!io && count == 0) return -1;
        if (!io) break;
        if (!trim_next_path(store, replica, io->request.path)) {
            requests_return(store->requests, io);
            break;
        }
        io->replica = registry_index(store, replica);
        ios[count++] = io;
    }
    if (count == 0) return 0;
    trim_enter(replica, TRIM_UNLINKING);
    replica->trim.flights = (uint32_t)count;
    for (int index = 0; index < count; index++) requests_send(store, ios[index]);
    return count;
}

/* The turn goes to another; `phase` is where this one goes on, or NONE. */
static void trim_leave(struct store *store, struct replica *replica, enum trim_phase phase)
{
    if (folder_list_is_of(store->folder_list, registry_index(store, replica)))
        folder_list_give(store->folder_list);
    if (phase != TRIM_NONE) {
        if (replica->trim.phase != TRIM_WAITING) trim_enter(replica, phase);
        return;
    }
    trim_enter(replica, TRIM_NONE);
    queue_remove(&store->trims->queue, &replica->trim.link);
}

static void trim_over(struct store *store, struct replica *replica)
{
    replica->trim.pauses = 0;
    int more = replica->trim.again || replica->trim.kept;
    trim_leave(store, replica, more ? TRIM_WAITING : TRIM_NONE);
}

static void trim_pause(struct store *store, struct replica *replica)
{
    struct replica_trim *trim = &replica->trim;
    trim->retry_ns = store->now.monotonic_ns + (TRIM_PAUSE_NS << trim->pauses);
    if (trim->pauses < TRIM_PAUSES_MAX) trim->pauses++;
    trim->failed = 0;
    trim->again = 1;
    trim_leave(store, replica, TRIM_WAITING);
}

static int trim_wait(struct store *store, struct replica *replica)
{
    struct replica_trim *trim = &replica->trim;
    uint64_t now_ns = store->now.monotonic_ns;
    if (checkpoint_is_under_way(replica) || now_ns < trim->retry_ns) return 0;
    int blocked = trim_blocked(store, replica);
    if (blocked && now_ns - trim->asked_ns >= TRIM_CHECKPOINT_AFTER_NS) {
        trim->asked_ns = now_ns;
        store_checkpoint_all(store);
        return 0;
    }
    if (!trim->again && blocked) return 0;
    if (!folder_list_is_free(store->folder_list)) return 0;
    (void)open_files_forget(store, replica,
                            trim_first(replica) < segment_writer_lowest(store, replica)
                                ? trim_first(replica)
                                : segment_writer_lowest(store, replica));
    return trim_issue(store, replica, IO_LIST);
}

/* 1 = moved, look again. */
static int trim_step(struct store *store, struct replica *replica)
{
    struct replica_trim *trim = &replica->trim;
    if (trim->flights > 0) return 0;
    if (retire_leaves(replica)) {
        /* All of its files go, another way, which waits for our requests. */
        assert(!retire_lists(replica));
        trim_leave(store, replica, TRIM_NONE);
        return 0;
    }
    if (trim->failed) {
        trim_pause(store, replica);
        return 0;
    }
    switch ((enum trim_phase)trim->phase) {
    case TRIM_WAITING: return trim_wait(store, replica);
    case TRIM_LISTING:
    case TRIM_UNLINKING: {
        if (checkpoint_is_under_way(replica)) return 0;
        int issued = trim_unlink(store, replica);
        if (issued != 0) return 0;
        if (trim->phase == TRIM_UNLINKING) return trim_issue(store, replica, IO_SYNC_DIR);
        trim_over(store, replica);
        return 0;
    }
    case TRIM_SYNCING: trim_over(store, replica); return 0;
    case TRIM_NONE:
    case TRIM_PHASES_COUNT: unreachable();
    }
    unreachable();
}

void trims_step(struct store *store)
{
    for (uint64_t count = store->trims->queue.count; count > 0; count--) {
        struct replica *replica =
            queue_element(queue_pop(&store->trims->queue), struct replica, trim.link);
        queue_push(&store->trims->queue, &replica->trim.link);
        while (store->failed == STATUS_OK && replica->trim.phase != TRIM_NONE
               && trim_step(store, replica)) {
        }
    }
}

void trim_done(struct store *store, const struct file_request *io)
{
    struct replica *replica = registry_at(store, io->replica);
    struct replica_trim *trim = &replica->trim;
    enum status status = io->request.status;
    assert(replica->used && trim->flights > 0);
    trim->flights--;
    if (io->request.operation == IO_LIST && status == STATUS_OK)
        folder_list_answer(store->folder_list, &io->request);
    /* A folder that was never made, or a file that went with an earlier attempt. */
    if (status == STATUS_OK || status == STATUS_FILE_NOT_FOUND) return;
    trim->failed = 1;
    store->statistics.trim_failures++;
}

int trims_rest(const struct store *store)
{
    queue_each(&store->trims->queue, link)
    {
        struct replica *replica = queue_element(link, struct replica, trim.link);
        const struct replica_trim *trim = &replica->trim;
        if (trim->phase != TRIM_WAITING) return 0;
        if (trim->again && store->now.monotonic_ns >= trim->retry_ns) return 0;
    }
    return 1;
}

int trim_in_flight(const struct replica *replica)
{
    return replica->trim.flights > 0;
}

int trim_kept(const struct replica *replica)
{
    return replica->trim.kept;
}

void trim_forget(struct store *store, struct replica *replica)
{
    if (replica->trim.link.queue) queue_remove(&store->trims->queue, &replica->trim.link);
}

void trims_invariants(const struct store *store)
{
    queue_each(&store->trims->queue, link)
    {
        const struct replica *replica = queue_element(link, struct replica, trim.link);
        const struct replica_trim *trim = &replica->trim;
        assert(replica->used);
        assert(trim->phase != TRIM_NONE);
        ergo(trim->phase == TRIM_WAITING, trim->flights == 0);
        int has_list = folder_list_is_of(store->folder_list, registry_index(store, replica));
        ergo(trim->phase > TRIM_WAITING, has_list);
    }
}
