#include "store/accounting/usage_windows.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/queue.h"
#include "store/admit.h"
#include "store/files/retire.h"
#include "store/outbox.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/seal.h"
#include "store/state.h"

#define CLOSES_AGAIN_NS UINT64_C(5000000000)

struct usage_windows {
    struct queue open;
    struct queue closes_ready;
    struct queue closes_waiting; /* handed out, not acknowledged */
};

size_t usage_windows_memory_bytes(void)
{
    return arena_size(sizeof(struct usage_windows));
}

struct usage_windows *usage_windows_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct usage_windows));
}

enum status usage_windows_propose(struct store *store, struct replica *replica, int force,
                                  uint64_t token, int waits)
{
    struct partition_meter_close close;
    if (replica->vsr.status != VSR_NORMAL || retire_leaves(replica) || replica->unknown_op != 0)
        return STATUS_REBUILDING;
    if (!partition_meter_due(&replica->state, store_window_us(store),
                             store->config.metering_window_s, force, &close)) {
        return STATUS_NOT_FOUND;
    }
    enum status status = admit_op(store, PARTITION_METER_CLOSE_BYTES);
    if (status != STATUS_OK) return status;
    uint8_t body[PARTITION_METER_CLOSE_BYTES];
    partition_encode_meter_close(&close, body);
    propose_op(store, replica, PARTITION_METER_CLOSE, body, sizeof body, token, waits);
    replica->usage.busy = 1;
    return STATUS_OK;
}

void usage_windows_appended(struct store *store, struct replica *replica)
{
    if (!replica->state.config.limits.metered || replica->usage.window_link.queue != NULL) return;
    queue_push(&store->usage_windows->open, &replica->usage.window_link);
}

static void windows_watch(struct store *store, struct replica *replica)
{
    struct usage_windows *windows = store->usage_windows;
    const struct meter_sum *sums;
    if (!partition_meter_next(&replica->state, replica->state.meter.acked_here, &sums)) return;
    if (replica->usage.closes_link.queue == &windows->closes_waiting)
        queue_remove(&windows->closes_waiting, &replica->usage.closes_link);
    if (replica->usage.closes_link.queue == NULL)
        queue_push(&windows->closes_ready, &replica->usage.closes_link);
}

void usage_windows_closed(struct store *store, struct replica *replica)
{
    struct usage_windows *windows = store->usage_windows;
    replica->usage.busy = 0;
    if (replica->state.meter.open_count == 0) {
        if (replica->usage.window_link.queue)
            queue_remove(&windows->open, &replica->usage.window_link);
    } else if (replica->usage.window_link.queue) {
        /* Appended to while the close was on its way: a new window, which ends last. */
        queue_remove(&windows->open, &replica->usage.window_link);
        queue_push(&windows->open, &replica->usage.window_link);
    } else {
        queue_push(&windows->open, &replica->usage.window_link);
    }
    windows_watch(store, replica);
    seal_advance(store, replica);
}

void usage_windows_tick(struct store *store)
{
    struct usage_windows *windows = store->usage_windows;
    uint64_t count = windows->open.count;
    while (count-- > 0) {
        struct replica *replica =
            queue_element(windows->open.head, struct replica, usage.window_link);
        enum status status =
            replica->usage.busy ? STATUS_BUSY : usage_windows_propose(store, replica, 0, 0, 0);
        /* Not due: nor is anyone behind it. But with all closes unacknowledged it may wait while
         * others are due. */
        int full = replica->state.meter.closes_count == METER_CLOSES_MAX;
        if (status == STATUS_NOT_FOUND && !full) break;
        if (status != STATUS_OK && status != STATUS_NOT_FOUND && !replica->usage.busy) break;
        queue_remove(&windows->open, &replica->usage.window_link);
        queue_push(&windows->open, &replica->usage.window_link);
    }
    while (!queue_empty(&windows->closes_waiting)) {
        struct replica *replica =
            queue_element(windows->closes_waiting.head, struct replica, usage.closes_link);
        if (store->now.monotonic_ns - replica->usage.closes_at_ns < CLOSES_AGAIN_NS) break;
        replica->usage.closes_handed = replica->state.meter.acked_here;
        queue_remove(&windows->closes_waiting, &replica->usage.closes_link);
        queue_push(&windows->closes_ready, &replica->usage.closes_link);
    }
}

int store_meter_next(struct store *store, struct engine_meter_close *close,
                     struct engine_meter_sum *sums, uint32_t sums_max)
{
    struct usage_windows *windows = store->usage_windows;
    while (!queue_empty(&windows->closes_ready)) {
        struct replica *replica =
            queue_element(windows->closes_ready.head, struct replica, usage.closes_link);
        uint64_t after = replica->usage.closes_handed;
        if (after < replica->state.meter.acked_here) after = replica->state.meter.acked_here;
        const struct meter_sum *own;
        const struct meter_close *next = partition_meter_next(&replica->state, after, &own);
        if (!next) {
            queue_remove(&windows->closes_ready, &replica->usage.closes_link);
            if (partition_meter_next(&replica->state, replica->state.meter.acked_here, &own)) {
                replica->usage.closes_at_ns = store->now.monotonic_ns;
                queue_push(&windows->closes_waiting, &replica->usage.closes_link);
            }
            continue;
        }
        assert(next->sums_count <= sums_max);
        *close = (struct engine_meter_close){
            .id = {.topic = replica->topic,
                   .created_revision = replica->created_revision,
                   .partition = replica->partition},
            .sequence = next->sequence,
            .from_op = next->from_op,
            .to_op = next->to_op,
            .window_start_us = next->window_start_us,
            .window_end_us = next->window_end_us,
            .sums_count = next->sums_count,
        };
        for (uint32_t index = 0; index < next->sums_count; index++) {
            sums[index] = (struct engine_meter_sum){
                .principal = own[index].principal,
                .ingress_bytes = own[index].ingress_bytes,
                .records = own[index].records,
                .batches = own[index].batches,
            };
        }
        replica->usage.closes_handed = next->sequence;
        return 1;
    }
    return 0;
}

enum status store_meter_ack(struct store *store, const struct engine_partition_id *id,
                            uint64_t sequence)
{
    struct usage_windows *windows = store->usage_windows;
    struct replica *replica;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (!replica) return STATUS_NOT_FOUND;
    partition_meter_ack(&replica->state, sequence);
    const struct meter_sum *own;
    if (replica->usage.closes_link.queue == &windows->closes_waiting
        && !partition_meter_next(&replica->state, replica->state.meter.acked_here, &own)) {
        queue_remove(&windows->closes_waiting, &replica->usage.closes_link);
    }
    return STATUS_OK;
}

enum status store_meter_flush(struct store *store, const struct engine_partition_id *id,
                              uint64_t token)
{
    struct replica *replica;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (replica && replica->usage.busy) return STATUS_BUSY;
    status = replica ? usage_windows_propose(store, replica, 1, token, 1) : STATUS_NOT_FOUND;
    if (status != STATUS_NOT_FOUND) return status;
    status = admit_answer(store);
    if (status != STATUS_OK) return status;
    struct store_outcome outcome = {.token = token, .status = STATUS_OK};
    if (replica) {
        outcome.base_offset = replica->state.meter.sequence;
        outcome.expected = replica->state.meter.acked_here;
    }
    outbox_answer_now(store->outbox, replica, &outcome);
    return STATUS_OK;
}

void usage_windows_recovered(struct store *store, struct replica *replica)
{
    if (replica->state.meter.open_count > 0) usage_windows_appended(store, replica);
    windows_watch(store, replica);
}

int usage_windows_busy(const struct replica *replica)
{
    return replica->usage.busy;
}

static void windows_unlink(struct queue_link *link)
{
    if (link->queue) queue_remove((struct queue *)(uintptr_t)link->queue, link);
}

void usage_windows_forget(struct store *store, struct replica *replica)
{
    maybe(store->usage_windows->open.count == 0);
    windows_unlink(&replica->usage.window_link);
    windows_unlink(&replica->usage.closes_link);
}

void usage_windows_invariants(const struct store *store)
{
    const struct usage_windows *windows = store->usage_windows;
    assert(windows->closes_ready.count + windows->closes_waiting.count
           <= registry_replicas_count(store));
    queue_each(&windows->open, link)
    {
        const struct replica *replica = queue_element(link, struct replica, usage.window_link);
        assert(replica->used && replica->state.config.limits.metered);
        ergo(!replica->usage.busy, replica->state.meter.open_count > 0);
    }
}
