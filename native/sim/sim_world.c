/* sim_world.c: the loop of one seed: act, let I/O complete or not, crash, recover twice, check. */
#include "sim_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "assert.h"
#include "bytes.h"

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
    for (uint32_t count = 0; count < requests_max && !world->result->failed; count++) {
        struct io_request *request = sim_request(world);
        if (!request) break;
        store_complete(world->store, request);
        store_flush(world->store, world->now);
    }
    store_flush(world->store, world->now);
    enum status failed = store_failed(world->store);
    if (failed != STATUS_OK) sim_fail(world, "the store failed: %s", status_name(failed));
}

static void sim_pass(struct sim_world *world, uint64_t us)
{
    world->now.monotonic_ns += us * 1000;
    world->now.wall_us += (int64_t)us;
    store_tick(world->store, world->now);
}

void sim_settle(struct sim_world *world)
{
    for (uint32_t turn = 0; turn < 10000 && !world->result->failed; turn++) {
        sim_pass(world, 5000);
        sim_io(world, 64);
        sim_host_act(world, 64);
        sim_client_outcomes(world);
        if (store_idle(world->store) && world->storage.queue_head == NULL
            && !store_work(world->store))
            return;
    }
    sim_fail(world, "the store does not come to rest");
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
    if (status != STATUS_OK) {
        sim_fail(world, "%s: %s (%s)", what, status_name(status), detail);
    } else if (sim_storage_digest(&world->copy, 1) != sim_storage_digest(&world->storage, 1)) {
        sim_fail(world, "%s gives other bytes", what);
    }
    arena_close(&arena);
}

void sim_recover(struct sim_world *world)
{
    char detail[256];
    for (;;) {
        sim_storage_copy(&world->copy, &world->storage);
        if (random_chance(&world->random, 1, 4)) {
            world->storage.crash_at =
                world->storage.requests + random_below(&world->random, 60) + 1;
        }
        enum status status = sim_open_store(world, &world->storage, &world->store_arena,
                                            &world->store, detail, sizeof detail);
        if (status == STATUS_OK) break;
        if (!world->storage.dead) {
            sim_fail(world, "recovery: %s (%s)", status_name(status), detail);
            return;
        }
        sim_trace(world, "crash", "in the middle of recovery");
        arena_close(&world->store_arena);
        sim_storage_crash(&world->storage);
        world->storage.faults[SIM_RECOVERY_CRASH]++;
    }
    world->storage.crash_at = 0;
    world->result->recoveries++;
    sim_recover_again(world, "recovery of the same bytes");
    if (world->result->failed) return;
    sim_storage_copy(&world->copy, &world->storage);
    memset(world->copy.slots, 0, sizeof world->copy.slots);
    sim_recover_again(world, "a second recovery");
    if (world->result->failed) return;
    sim_host_restore(world);
    sim_topics_restored(world);
    sim_check_logs(world);
    sim_check_groups(world);
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
    sim_storage_crash(&world->storage);
    arena_close(&world->store_arena);
    sim_clients_crashed(world);
    sim_recover(world);
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
    else if (dice < 955) {
        struct sim_partition *partition =
            &world->partitions[random_below(&world->random, world->partitions_count)];
        if (!partition->deleted && partition->end_offset > 0) {
            sim_check_fetch(world, (uint32_t)(partition - world->partitions),
                            random_below(&world->random, partition->end_offset));
        }
    } else if (dice < 975)
        sim_topics_act(world);
    else if (dice < 980)
        store_checkpoint_all(world->store);
    else if (dice < 985)
        world->storage.disk_full = (uint8_t)random_below(&world->random, 2);
    else if (dice < 987)
        sim_pass(world, random_between(&world->random, 100000, 3000000));
    else if (dice < 992)
        sim_crash(world);
    store_flush(world->store, world->now);
    sim_client_outcomes(world);
    sim_host_meters(world);
}
