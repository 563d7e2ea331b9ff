/* store/accounting/usage_windows.c: metering windows are closed by ops of the partition's own
 * log (M1).
 *
 * Open windows wait in one list. All windows of a shard have the same length and stamps grow, so
 * the list is in the order of their ends and a tick looks at its head only. A closed window is
 * handed out until it is acknowledged, again every five seconds: an acknowledgement lost in a
 * restart costs a repetition, never a window. */
#include "store/state.h"

#define STORE_CLOSES_AGAIN_NS UINT64_C(5000000000)

/* At most one close is in flight per partition: the next is proposed when this one was applied. */
enum status store_meter_propose(struct store *store, struct replica *replica, int force,
                                uint64_t token, int outcome)
{
    struct partition_meter_close close;
    if (replica->vsr.status != VSR_NORMAL || replica->removal.phase != REMOVAL_NONE
        || replica->unknown_op != 0)
        return STATUS_REBUILDING;
    if (!partition_meter_due(&replica->state, store_window_us(store),
                             store->config.metering_window_s, force, &close)) {
        return STATUS_NOT_FOUND;
    }
    enum status status = store_admit_op(store, PARTITION_METER_CLOSE_BYTES);
    if (status != STATUS_OK) return status;
    uint8_t body[PARTITION_METER_CLOSE_BYTES];
    partition_encode_meter_close(&close, body);
    store_prepare_op(store, &store->data, replica, PARTITION_METER_CLOSE, body, sizeof body, token,
                     outcome);
    replica->meter_busy = 1;
    return STATUS_OK;
}

void store_meter_appended(struct store *store, struct replica *replica)
{
    if (!replica->metered || replica->window_link.queue != NULL) return;
    queue_push(&store->windows, &replica->window_link);
}

void store_meter_watch(struct store *store, struct replica *replica)
{
    const struct meter_sum *sums;
    if (!partition_meter_next(&replica->state, replica->state.meter.acked_here, &sums)) return;
    if (replica->closes_link.queue == &store->closes_waiting)
        queue_remove(&store->closes_waiting, &replica->closes_link);
    if (replica->closes_link.queue == NULL) queue_push(&store->closes_ready, &replica->closes_link);
}

void store_meter_closed(struct store *store, struct replica *replica, enum status status)
{
    replica->meter_busy = 0;
    maybe(status == STATUS_OK);
    if (replica->state.meter.open_count == 0) {
        if (replica->window_link.queue) queue_remove(&store->windows, &replica->window_link);
    } else if (replica->window_link.queue) {
        /* Appended to while the close was on its way: a new window, which ends last. */
        queue_remove(&store->windows, &replica->window_link);
        queue_push(&store->windows, &replica->window_link);
    } else {
        queue_push(&store->windows, &replica->window_link);
    }
    store_meter_watch(store, replica);
    if (replica->sealing) store_seal_advance(store, replica);
}

void store_meter_tick(struct store *store)
{
    uint64_t count = store->windows.count;
    while (count-- > 0) {
        struct replica *replica = queue_element(store->windows.head, struct replica, window_link);
        enum status status =
            replica->meter_busy ? STATUS_BUSY : store_meter_propose(store, replica, 0, 0, 0);
        /* Not due: nor is anyone behind it. But with all closes unacknowledged it may wait while
         * others are due. */
        int full = replica->state.meter.closes_count == METER_CLOSES_MAX;
        if (status == STATUS_NOT_FOUND && !full) break;
        if (status != STATUS_OK && status != STATUS_NOT_FOUND && !replica->meter_busy) break;
        queue_remove(&store->windows, &replica->window_link);
        queue_push(&store->windows, &replica->window_link);
    }
    while (!queue_empty(&store->closes_waiting)) {
        struct replica *replica =
            queue_element(store->closes_waiting.head, struct replica, closes_link);
        if (store->now.monotonic_ns - replica->closes_at_ns < STORE_CLOSES_AGAIN_NS) break;
        replica->closes_handed = replica->state.meter.acked_here;
        queue_remove(&store->closes_waiting, &replica->closes_link);
        queue_push(&store->closes_ready, &replica->closes_link);
    }
}

int store_meter_next(struct store *store, struct engine_meter_close *close,
                     struct engine_meter_sum *sums, uint32_t sums_max)
{
    while (!queue_empty(&store->closes_ready)) {
        struct replica *replica =
            queue_element(store->closes_ready.head, struct replica, closes_link);
        uint64_t after = replica->closes_handed;
        if (after < replica->state.meter.acked_here) after = replica->state.meter.acked_here;
        const struct meter_sum *own;
        const struct meter_close *next = partition_meter_next(&replica->state, after, &own);
        if (!next) {
            queue_remove(&store->closes_ready, &replica->closes_link);
            if (partition_meter_next(&replica->state, replica->state.meter.acked_here, &own)) {
                replica->closes_at_ns = store->now.monotonic_ns;
                queue_push(&store->closes_waiting, &replica->closes_link);
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
        replica->closes_handed = next->sequence;
        return 1;
    }
    return 0;
}

enum status store_meter_ack(struct store *store, const struct engine_partition_id *id,
                            uint64_t sequence)
{
    struct replica *replica;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (!replica) return STATUS_NOT_FOUND;
    partition_meter_ack(&replica->state, sequence);
    const struct meter_sum *own;
    if (replica->closes_link.queue == &store->closes_waiting
        && !partition_meter_next(&replica->state, replica->state.meter.acked_here, &own)) {
        queue_remove(&store->closes_waiting, &replica->closes_link);
    }
    return STATUS_OK;
}

enum status store_meter_flush(struct store *store, const struct engine_partition_id *id,
                              uint64_t token)
{
    struct replica *replica;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (replica && replica->meter_busy) return STATUS_BUSY;
    status = replica ? store_meter_propose(store, replica, 1, token, 1) : STATUS_NOT_FOUND;
    if (status != STATUS_NOT_FOUND) return status;
    struct store_outcome outcome = {.token = token, .status = STATUS_OK};
    if (replica) {
        outcome.base_offset = replica->state.meter.sequence;
        outcome.expected = replica->state.meter.acked_here;
    }
    outbox_answer_now(store->outbox, replica, &outcome);
    return STATUS_OK;
}
