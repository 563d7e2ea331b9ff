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
enum status store_meter_propose(struct store *store, struct store_group *group, int force,
                                uint64_t token, int outcome)
{
    struct partition_meter_close close;
    if (group->vsr.status != VSR_NORMAL || group->removal.phase != RECONCILE_NONE
        || group->unknown_op != 0)
        return STATUS_REBUILDING;
    if (!partition_meter_due(&group->state, store->metering_us, store->config.metering_window_s,
                             force, &close)) {
        return STATUS_NOT_FOUND;
    }
    enum status status = store_admit_op(store, PARTITION_METER_CLOSE_BYTES);
    if (status != STATUS_OK) return status;
    uint8_t body[PARTITION_METER_CLOSE_BYTES];
    partition_encode_meter_close(&close, body);
    store_prepare_op(store, &store->data, group, PARTITION_METER_CLOSE, body, sizeof body, token,
                     outcome);
    group->meter_busy = 1;
    return STATUS_OK;
}

void store_meter_appended(struct store *store, struct store_group *group)
{
    if (!group->metered || group->window_link.queue != NULL) return;
    queue_push(&store->windows, &group->window_link);
}

void store_meter_watch(struct store *store, struct store_group *group)
{
    const struct meter_sum *sums;
    if (!partition_meter_next(&group->state, group->state.meter.acked_here, &sums)) return;
    if (group->closes_link.queue == &store->closes_waiting)
        queue_remove(&store->closes_waiting, &group->closes_link);
    if (group->closes_link.queue == NULL) queue_push(&store->closes_ready, &group->closes_link);
}

void store_meter_closed(struct store *store, struct store_group *group, enum status status)
{
    group->meter_busy = 0;
    maybe(status == STATUS_OK);
    if (group->state.meter.open_count == 0) {
        if (group->window_link.queue) queue_remove(&store->windows, &group->window_link);
    } else if (group->window_link.queue) {
        /* Appended to while the close was on its way: a new window, which ends last. */
        queue_remove(&store->windows, &group->window_link);
        queue_push(&store->windows, &group->window_link);
    } else {
        queue_push(&store->windows, &group->window_link);
    }
    store_meter_watch(store, group);
    if (group->sealing) store_seal_advance(store, group);
}

void store_meter_tick(struct store *store)
{
    uint64_t count = store->windows.count;
    while (count-- > 0) {
        struct store_group *group =
            queue_element(store->windows.head, struct store_group, window_link);
        enum status status =
            group->meter_busy ? STATUS_BUSY : store_meter_propose(store, group, 0, 0, 0);
        /* Not due: nor is anyone behind it. But with all closes unacknowledged it may wait while
         * others are due. */
        int full = group->state.meter.closes_count == METER_CLOSES_MAX;
        if (status == STATUS_NOT_FOUND && !full) break;
        if (status != STATUS_OK && status != STATUS_NOT_FOUND && !group->meter_busy) break;
        queue_remove(&store->windows, &group->window_link);
        queue_push(&store->windows, &group->window_link);
    }
    while (!queue_empty(&store->closes_waiting)) {
        struct store_group *group =
            queue_element(store->closes_waiting.head, struct store_group, closes_link);
        if (store->now.monotonic_ns - group->closes_at_ns < STORE_CLOSES_AGAIN_NS) break;
        group->closes_handed = group->state.meter.acked_here;
        queue_remove(&store->closes_waiting, &group->closes_link);
        queue_push(&store->closes_ready, &group->closes_link);
    }
}

int store_meter_next(struct store *store, struct engine_meter_close *close,
                     struct engine_meter_sum *sums, uint32_t sums_max)
{
    while (!queue_empty(&store->closes_ready)) {
        struct store_group *group =
            queue_element(store->closes_ready.head, struct store_group, closes_link);
        uint64_t after = group->closes_handed;
        if (after < group->state.meter.acked_here) after = group->state.meter.acked_here;
        const struct meter_sum *own;
        const struct meter_close *next = partition_meter_next(&group->state, after, &own);
        if (!next) {
            queue_remove(&store->closes_ready, &group->closes_link);
            if (partition_meter_next(&group->state, group->state.meter.acked_here, &own)) {
                group->closes_at_ns = store->now.monotonic_ns;
                queue_push(&store->closes_waiting, &group->closes_link);
            }
            continue;
        }
        assert(next->sums_count <= sums_max);
        *close = (struct engine_meter_close){
            .id = {.topic = group->topic,
                   .created_revision = group->created_revision,
                   .partition = group->partition},
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
        group->closes_handed = next->sequence;
        return 1;
    }
    return 0;
}

enum status store_meter_ack(struct store *store, const struct engine_partition_id *id,
                            uint64_t sequence)
{
    struct store_group *group;
    enum status status = store_group_lookup(store, id, &group);
    if (status != STATUS_OK) return status;
    if (!group) return STATUS_NOT_FOUND;
    partition_meter_ack(&group->state, sequence);
    const struct meter_sum *own;
    if (group->closes_link.queue == &store->closes_waiting
        && !partition_meter_next(&group->state, group->state.meter.acked_here, &own)) {
        queue_remove(&store->closes_waiting, &group->closes_link);
    }
    return STATUS_OK;
}

enum status store_meter_flush(struct store *store, const struct engine_partition_id *id,
                              uint64_t token)
{
    struct store_group *group;
    enum status status = store_group_lookup(store, id, &group);
    if (status != STATUS_OK) return status;
    if (group && group->meter_busy) return STATUS_BUSY;
    status = group ? store_meter_propose(store, group, 1, token, 1) : STATUS_NOT_FOUND;
    if (status != STATUS_NOT_FOUND) return status;
    struct store_outcome outcome = {
        .token = token, .status = STATUS_OK, .persisted = 1, .replicas = 1};
    if (group) {
        outcome.base_offset = group->state.meter.sequence;
        outcome.expected = group->state.meter.acked_here;
    }
    store_outcome_push(store, &outcome);
    return STATUS_OK;
}
