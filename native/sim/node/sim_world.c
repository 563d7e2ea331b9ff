/* node/sim_world.c: the loop of one seed: act, let I/O complete or not, crash, recover twice,
 * check. */
#include "node/sim_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

void sim_fail(struct sim_world *world, const char *format, ...)
{
    if (world->result->failed) return;
    world->result->failed = 1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->result->message, SIM_MESSAGE_SIZE, format, arguments);
    va_end(arguments);
    sim_trace(world, "failure", "%s", world->result->message);
}

void sim_trace(struct sim_world *world, const char *lane, const char *format, ...)
{
    if (!world->trace) return;
    struct sim_result *result = world->result;
    char line[512];
    int at = snprintf(line, sizeof line, "%llu|%s|",
                      (unsigned long long)(world->now.monotonic_ns / 1000), lane);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + at, sizeof line - (size_t)at - 2, format, arguments);
    va_end(arguments);
    size_t size = strlen(line);
    assert(more >= 0);
    line[size++] = '\n';
    if (size > world->trace_room - result->trace_size) return;
    memcpy(world->trace + result->trace_size, line, size);
    result->trace_size += size;
}

/* The next that completes, or an unlink that fails; NULL = none waits. */
struct io_request *sim_request(struct sim_world *world)
{
    struct io_request *head = world->storage.queue_head;
    int fails = head && world->unlinks_fail && head->operation == IO_UNLINK
                && strncmp(head->path, "topics/", 7) == 0;
    if (!fails) return sim_storage_step(&world->storage);
    world->storage.queue_head = head->next;
    if (!head->next) world->storage.queue_tail = NULL;
    head->next = NULL;
    head->status = STATUS_IO_FAILED;
    world->result->unlinks_failed++;
    return head;
}

/* At most so many requests complete; each completion is followed by a turn. */
void sim_io(struct sim_world *world, uint32_t requests_max)
{
    if (world->slow > 0) requests_max = 0;
    for (uint32_t count = 0; count < requests_max && !world->result->failed; count++) {
        struct io_request *request = sim_request(world);
        if (!request) break;
        store_complete(world->store, request);
        store_flush(world->store, world->now);
    }
    store_flush(world->store, world->now);
    enum status failed = store_failed(world->store);
    if (failed == STATUS_OK) return;
    const struct sim_ambush *ambush = &world->storage.ambush;
    int fresh = ambush->fired && ambush->kind == SIM_MISDIRECTED_WRITE;
    int astray = failed == STATUS_JOURNAL_DAMAGED && (fresh || (world->damage.may_refuse & 2) != 0);
    if (astray || sim_ambush_explains(world, failed))
        world->broken = 1;
    else
        sim_fail(world, "the store failed: %s", status_name(failed));
}

static enum status sim_open_store(struct sim_world *world, struct sim_storage *storage,
                                  struct arena *arena, struct store **store, char *detail,
                                  size_t detail_size)
{
    detail[0] = 0;
    enum status status = arena_open(arena, store_memory_bytes(&world->config) + 4096);
    assert(status == STATUS_OK);
    *store = store_allocate(&world->config, arena);
    assert(*store != NULL);
    return store_open(*store, sim_storage_io(storage), world->now, detail, detail_size);
}

/* Open the copy too: recovery is a function of the bytes. Then open what recovery left: it changes
 * nothing more. */
static void sim_recover_again(struct sim_world *world, const char *what)
{
    struct arena arena;
    struct store *store;
    char detail[256];
    enum status status = sim_open_store(world, &world->copy, &arena, &store, detail, sizeof detail);
    if (status == STATUS_JOURNAL_DAMAGED && (world->damage.may_refuse & 2)) {
        world->over = 1;
        world->result->refused++;
    } else if (status != STATUS_OK) {
        sim_fail(world, "%s: %s (%s)", what, status_name(status), detail);
    } else if (sim_storage_digest(&world->copy, "") != sim_storage_digest(&world->storage, "")) {
        sim_fail(world, "%s gives other bytes", what);
    }
    arena_close(&arena);
}

/* The start failed, as something that was done to it explains. 0 = nothing does. */
static int sim_start_failed(struct sim_world *world, enum status status)
{
    struct sim_storage *storage = &world->storage;
    if (storage->dead) {
        sim_trace(world, "crash", "in the middle of recovery");
        storage->faults[SIM_RECOVERY_CRASH]++;
    } else if (status == STATUS_STORAGE_FULL && storage->disk_full) {
        storage->faults[SIM_RECOVERY_FULL]++;
    } else if (!sim_ambush_explains(world, status)) {
        return sim_damage_undo(world, status);
    }
    sim_storage_crash(storage);
    return 1;
}

/* What may come between a start and its end, one thing at a time. */
static void sim_start_faults(struct sim_world *world)
{
    struct sim_storage *storage = &world->storage;
    storage->crash_at = 0;
    world->read_fault = 0;
    memset(&storage->ambush, 0, sizeof storage->ambush);
    if (random_chance(&world->random, 1, 4))
        storage->crash_at = storage->requests + random_below(&world->random, 60) + 1;
    else if ((world->swarm & SIM_SWARM_SPACE) && random_chance(&world->random, 1, 4))
        storage->disk_full = (uint8_t)random_between(&world->random, 1, 2);
    else if (!world->damage.done)
        sim_ambush_start(world);
}

/* A read that lied, and was believed: its group may have stopped by name; of the journal nothing
 * may come of it but a refusal. */
static void sim_start_judge(struct sim_world *world)
{
    const struct sim_ambush *ambush = &world->storage.ambush;
    if (!ambush->fired) return;
    sim_trace(world, "disk", "%s in recovery: %s", sim_fault_name(ambush->kind), ambush->path);
    if (!world->read_fault) return;
    if (strcmp(ambush->path, "journal") == 0) return;
    world->damage.stops_max = UINT32_MAX;
    sim_may_stop_path(world, ambush->path);
}

void sim_recover(struct sim_world *world)
{
    char detail[256];
    for (uint32_t tries = 0;; tries++) {
        sim_storage_copy(&world->copy, &world->storage);
        if (tries < 8) sim_start_faults(world);
        enum status status = sim_open_store(world, &world->storage, &world->store_arena,
                                            &world->store, detail, sizeof detail);
        /* A start that needs nothing more of its last request has still died with it. */
        if (status == STATUS_OK && !world->storage.dead) break;
        arena_close(&world->store_arena);
        /* A write that went astray contradicts the chain: an operator's case. The tombstone may be
         * what it took: then a partition that is gone wants the room of one that came after it. */
        int refused = status == STATUS_JOURNAL_DAMAGED || status == STATUS_CHECKPOINT_DAMAGED
                      || status == STATUS_NO_MEMORY;
        if ((world->damage.may_refuse & 2) && refused) {
            world->over = 1;
            return;
        }
        if (!sim_start_failed(world, status)) {
            sim_fail(world, "recovery: %s (%s)", status_name(status), detail);
            return;
        }
    }
    world->storage.crash_at = 0;
    world->storage.ambush.at = 0;
    world->storage.disk_full = 0;
    world->result->recoveries++;
    /* Without room segments are written later: bytes cannot be compared yet, what is read can. */
    struct store_statistics statistics;
    store_statistics(world->store, &statistics);
    int waits = statistics.storage_full != 0;
    world->storage.faults[SIM_RECOVERY_FULL] += (uint64_t)waits;
    if (!world->storage.ambush.fired && !waits)
        sim_recover_again(world, "recovery of the same bytes");
    sim_start_judge(world);
    int lied = world->storage.ambush.fired && world->read_fault;
    world->storage.ambush.fired = 0;
    if (world->result->failed) return;
    sim_storage_copy(&world->copy, &world->storage);
    memset(world->copy.slots, 0, sizeof world->copy.slots);
    world->config.formatted = 1;
    if (!lied && !waits) sim_recover_again(world, "a second recovery");
    if (sim_ended(world)) return;
    world->damage.may_refuse = 0;
    sim_pass(world, 0);
    sim_host_restore(world);
    sim_topics_restored(world);
    sim_damage_judge(world);
    sim_check_logs(world);
    sim_check_stored(world);
    sim_check_groups(world);
    world->hash = world->hash * 31 + sim_storage_digest(&world->storage, "");
    sim_trace(world, "recovery", "done, %llu requests so far",
              (unsigned long long)world->storage.requests);
}

void sim_crash(struct sim_world *world)
{
    struct store_statistics statistics;
    store_statistics(world->store, &statistics);
    world->result->extents_released += statistics.extents_released;
    world->result->segments_sealed += statistics.segments_sealed;
    sim_trace(world, "crash", "%llu rounds, %llu checkpoints, %llu extents released",
              (unsigned long long)statistics.rounds, (unsigned long long)statistics.checkpoints,
              (unsigned long long)statistics.extents_released);
    if (world->checkpointing && !store_idle(world->store))
        world->storage.faults[SIM_CHECKPOINT_CRASH]++;
    world->checkpointing = world->broken = 0;
    world->slow = 0;
    if (world->clock.off_us > 0) {
        /* A start has nothing to tell a clock that is ahead by: somebody set it right. */
        world->now.wall_us -= world->clock.off_us;
        world->clock.off_us = 0;
    }
    sim_storage_crash(&world->storage);
    arena_close(&world->store_arena);
    sim_clients_crashed(world);
    sim_damage(world);
    sim_recover(world);
}

static void sim_step_fetch(struct sim_world *world)
{
    uint32_t index = (uint32_t)random_below(&world->random, world->partitions_count);
    const struct sim_partition *partition = &world->partitions[index];
    if (partition->deleted || partition->stopped || partition->end_offset == 0) return;
    struct engine_partition_state state;
    if (!sim_trims_look(world, index, &state) || state.log_start >= partition->end_offset) return;
    uint64_t span = partition->end_offset - state.log_start;
    sim_check_fetch(world, index, state.log_start + random_below(&world->random, span));
}

static void sim_count_down(uint32_t *steps)
{
    if (*steps > 0) (*steps)--;
}

/* The store has failed as it must: the process ends, and another starts. */
static void sim_broken(struct sim_world *world)
{
    const struct sim_ambush *ambush = &world->storage.ambush;
    if (ambush->fired && ambush->kind == SIM_MISDIRECTED_WRITE) {
        /* Found out at once; but no later round tells what went astray: an operator's case. */
        world->over = 1;
        world->result->refused++;
        return;
    }
    sim_trace(world, "disk", "a request for %s failed, the process ends", ambush->path);
    sim_crash(world);
}

void sim_settle(struct sim_world *world)
{
    for (uint32_t turn = 0; turn < 10000 && !world->result->failed; turn++) {
        sim_pass(world, 5000);
        sim_io(world, 64);
        if (world->broken) sim_broken(world);
        if (sim_ended(world)) return;
        sim_host_act(world, 64);
        sim_client_outcomes(world);
        if (store_idle(world->store) && world->storage.queue_head == NULL
            && !store_work(world->store))
            return;
    }
    sim_fail(world, "the store does not come to rest");
}

static void sim_step_end(struct sim_world *world)
{
    if (sim_ended(world)) return;
    sim_count_down(&world->slow);
    sim_count_down(&world->host.late);
    sim_count_down(&world->clock.stopped);
    sim_count_down(&world->clock.stalled);
    sim_io(world, 0);
    if (!world->broken) sim_ambush_aftermath(world);
    if (world->broken) sim_broken(world);
    if (sim_ended(world)) return;
    sim_client_outcomes(world);
    sim_host_meters(world);
    sim_host_counters(world);
    sim_host_trims(world);
}

void sim_step(struct sim_world *world)
{
    uint64_t dice = random_below(&world->random, 1000);
    if (dice < 450)
        sim_client_act(world);
    else if (dice < 700)
        sim_io(world, (uint32_t)random_between(&world->random, 1, 3));
    else if (dice < 760)
        sim_io(world, 64);
    else if (dice < 860)
        sim_host_act(world, (uint32_t)random_between(&world->random, 1, 4));
    else if (dice < 940)
        sim_pass(world, random_between(&world->random, 10, 40000));
    else if (dice < 962)
        sim_step_fetch(world);
    else if (dice < 972)
        sim_topics_act(world);
    else if (dice < 974)
        sim_trims_act(world);
    else if (dice < 977) {
        store_checkpoint_all(world->store);
        world->checkpointing = 1;
    } else if (dice < 986)
        sim_surroundings_act(world);
    else if (dice < 988)
        sim_pass(world, random_between(&world->random, 100000, 3000000));
    else if (dice < 993 || (world->checkpointing && random_chance(&world->random, 1, 2)))
        sim_crash(world);
    sim_step_end(world);
}
