/* store/accounting/retention.c: what policies, purges and holds propose to a partition's log,
 * and the evidence that trims leave.
 *
 * Groups with something that will expire lie in a heap by when: a tick looks at its head only. A
 * group is looked at when a segment begins, when its policy, a hold or an acknowledgement changed
 * something, and when the oldest of its segments comes of age: never because time passes. Nothing
 * is looked at while the clock is not believed (C1, C2).
 *
 * An event is handed out until it is acknowledged, again every five seconds, like a closed window:
 * an acknowledgement lost in a restart costs a repetition, never the evidence. Refuses to remove
 * files: store/files/trim.c does, after the log has decided. */
#include "store/state.h"

enum { RETENTION_LOOKS_PER_TICK = 16 };

#define RETENTION_AGAIN_NS UINT64_C(5000000000)
#define RETENTION_RETRY_US INT64_C(500000)
#define RETENTION_RELIEVE_NS UINT64_C(1000000000)
#define RETENTION_NOW INT64_MIN

/* ---- the heap ---- */

static struct store_group *expiry_group(struct store *store, uint32_t at)
{
    assert(at >= 1 && at <= store->expiries_count);
    return &store->groups[store->expiries[at - 1]];
}

static void expiry_place(struct store *store, uint32_t at, struct store_group *group)
{
    store->expiries[at - 1] = store_group_index(store, group);
    group->expiry_at = at;
}

/* Up or down from where it is, until the order is right again. */
static void expiry_settle(struct store *store, struct store_group *group)
{
    uint32_t at = group->expiry_at;
    while (at > 1 && expiry_group(store, at / 2)->expiry_us > group->expiry_us) {
        expiry_place(store, at, expiry_group(store, at / 2));
        at /= 2;
    }
    for (uint32_t child = 2 * at; child <= store->expiries_count; child = 2 * at) {
        if (child < store->expiries_count
            && expiry_group(store, child + 1)->expiry_us < expiry_group(store, child)->expiry_us)
            child++;
        if (expiry_group(store, child)->expiry_us >= group->expiry_us) break;
        expiry_place(store, at, expiry_group(store, child));
        at = child;
    }
    expiry_place(store, at, group);
}

static void expiry_set(struct store *store, struct store_group *group, int64_t at_us)
{
    group->expiry_us = at_us;
    if (group->expiry_at == 0) {
        assert(store->expiries_count < store->groups_max);
        group->expiry_at = ++store->expiries_count;
    }
    expiry_settle(store, group);
}

static void expiry_clear(struct store *store, struct store_group *group)
{
    uint32_t at = group->expiry_at;
    if (at == 0) return;
    struct store_group *last = expiry_group(store, store->expiries_count);
    store->expiries_count--;
    group->expiry_at = 0;
    if (last == group) return;
    expiry_place(store, at, last);
    expiry_settle(store, last);
}

/* ---- the policy ---- */

void store_retention_touch(struct store *store, struct store_group *group)
{
    if (group == store->metadata_group || group->removal.phase != RECONCILE_NONE) return;
    expiry_set(store, group, RETENTION_NOW);
}

void store_retention_policy(struct store *store, const struct store_topic *topic)
{
    for (uint32_t partition = 0; partition < topic->partitions_count; partition++) {
        struct store_group *group = store_group_find(store, topic->topic, partition);
        if (group) store_retention_touch(store, group);
    }
}

static void retention_held(struct store *store, struct store_group *group, uint64_t bytes)
{
    assert(store->statistics.held_bytes >= group->held_bytes);
    store->statistics.held_bytes += bytes - group->held_bytes;
    group->held_bytes = bytes;
}

void store_retention_forget(struct store *store, struct store_group *group)
{
    expiry_clear(store, group);
    retention_held(store, group, 0);
}

static enum status retention_propose(struct store *store, struct store_group *group,
                                     const struct partition_trim *trim, uint64_t token, int outcome)
{
    enum status status = store_admit_op(store, PARTITION_TRIM_BYTES);
    if (status != STATUS_OK) return status;
    uint8_t body[PARTITION_TRIM_BYTES];
    partition_encode_trim(trim, body);
    store_prepare_op(store, &store->data, group, PARTITION_TRIM, body, sizeof body, token, outcome);
    return STATUS_OK;
}

/* Unacknowledged events, once the acknowledgements heard here have ridden in the next trim. */
static int retention_full(const struct store_group *group)
{
    const struct retention *retention = &group->state.retention;
    return retention->sequence - retention_acked(retention) >= RETENTION_EVENTS_MAX;
}

static void retention_look(struct store *store, struct store_group *group, int64_t now_us)
{
    expiry_clear(store, group);
    const struct store_topic *topic = store_topic_find(store, group->topic);
    int lives = group->vsr.status == VSR_NORMAL && group->removal.phase == RECONCILE_NONE
                && group->unknown_op == 0 && !group->corrupt;
    /* What is in the way now looks again when it ends. */
    if (!topic || !lives || group->trim_busy || partition_sealed(&group->state)) return;
    if (topic->flags & ENGINE_TOPIC_CLOSING) return;
    struct partition_due due = partition_retention_due(&group->state, &topic->policy, now_us);
    retention_held(store, group, due.held_bytes);
    if (due.due && retention_full(group)) {
        store->statistics.trims_full++;
        return;
    }
    if (due.due) {
        group->trim_busy = retention_propose(store, group, &due.trim, 0, 0) == STATUS_OK;
        if (!group->trim_busy) expiry_set(store, group, now_us + RETENTION_RETRY_US);
    } else if (due.next_us != 0 && !due.held) {
        expiry_set(store, group, due.next_us);
    }
}

void store_retention_tick(struct store *store)
{
    int64_t now_us = store_time_us(store);
    for (uint32_t looks = 0; looks < RETENTION_LOOKS_PER_TICK && store->expiries_count > 0;
         looks++) {
        struct store_group *group = expiry_group(store, 1);
        if (store->clock_uncertain || now_us == 0 || group->expiry_us > now_us) break;
        retention_look(store, group, now_us);
    }
    while (!queue_empty(&store->events_waiting)) {
        struct store_group *group =
            queue_element(store->events_waiting.head, struct store_group, events_link);
        if (store->now.monotonic_ns - group->events_at_ns < RETENTION_AGAIN_NS) break;
        group->events_handed = retention_acked(&group->state.retention);
        queue_remove(&store->events_waiting, &group->events_link);
        queue_push(&store->events_ready, &group->events_link);
    }
}

/* No chunk of segments is free: what trims gave back is, once checkpoints have them. */
void store_retention_relieve(struct store *store)
{
    if (store->statistics.trims == 0) return;
    if (store->relieved_ns != 0
        && store->now.monotonic_ns - store->relieved_ns < RETENTION_RELIEVE_NS)
        return;
    store->relieved_ns = store->now.monotonic_ns;
    store_checkpoint_all(store);
}

/* ---- what was applied ---- */

static void retention_trim_executed(struct store *store, struct store_group *group,
                                    const struct partition_result *result,
                                    struct store_outcome *outcome)
{
    group->trim_busy = 0;
    if (result->status == STATUS_HELD) store->statistics.trims_held++;
    if (result->status == STATUS_TRIMS_FULL) store->statistics.trims_full++;
    /* Asked again, or overtaken: the log begins there. */
    if (result->status == STATUS_TRIM_BELOW) outcome->status = STATUS_OK;
    store_retention_watch(store, group);
    if (!result->trimmed) return;
    const struct retention *retention = &group->state.retention;
    const struct retention_event *event = &retention->events[retention->events_count - 1];
    store->statistics.trims++;
    store->statistics.trimmed_bytes += event->bytes;
    store->statistics.trimmed_records += event->to_offset - event->from_offset;
    store_stored_take(store, group, event->bytes);
    store_advance_push(store, group);
    if (event->segments > 0) store_trim_begin(store, group);
}

void store_retention_executed(struct store *store, struct store_group *group,
                              const struct partition_result *result, enum partition_op operation,
                              struct store_outcome *outcome)
{
    if (operation == PARTITION_TRIM)
        retention_trim_executed(store, group, result, outcome);
    else
        assert(operation == PARTITION_SET_HOLD);
    store_retention_touch(store, group);
    const struct partition *state = &group->state;
    outcome->retained = (struct engine_retained){
        .log_start = state->log_start,
        .log_end = state->next_offset,
        .hold_intent_op = state->retention.hold_intent_op,
        .held_from = state->retention.held_from_offset,
        .held = state->retention.held != 0,
    };
}

/* ---- calls ---- */

enum status store_purge(struct store *store, const struct engine_partition_id *id,
                        const struct engine_purge *purge, uint64_t token)
{
    struct store_group *group;
    enum status status = store_group_lookup(store, id, &group);
    if (status != STATUS_OK) return status;
    if (!group) {
        if (purge->log_start != ENGINE_PURGE_ALL) return STATUS_OFFSET_BEYOND_END;
        const struct store_outcome outcome = {
            .token = token, .status = STATUS_OK, .persisted = 1, .replicas = 1};
        store_outcome_push(store, &outcome);
        return STATUS_OK;
    }
    status = store_group_open(store, id, &group);
    if (status != STATUS_OK) return status;
    struct partition_trim trim = {.log_start = purge->log_start,
                                  .cause = RETENTION_PURGE,
                                  .policy_version = purge->version,
                                  .acked = retention_acked(&group->state.retention)};
    if (purge->log_start == ENGINE_PURGE_ALL) trim.log_start = group->state.next_offset;
    return retention_propose(store, group, &trim, token, 1);
}

enum status store_hold(struct store *store, const struct engine_partition_id *id,
                       const struct engine_hold *wanted, uint64_t token)
{
    struct store_group *group;
    if (wanted->intent_op == 0 || wanted->held > 1) return STATUS_INVALID;
    if (!wanted->held && wanted->from_offset != 0) return STATUS_INVALID;
    enum status status = store_group_open(store, id, &group);
    if (status != STATUS_OK) return status;
    status = store_admit_op(store, PARTITION_HOLD_BYTES);
    if (status != STATUS_OK) return status;
    const struct partition_hold hold = {
        .intent_op = wanted->intent_op, .held = wanted->held, .from_offset = wanted->from_offset};
    uint8_t body[PARTITION_HOLD_BYTES];
    partition_encode_hold(&hold, body);
    store_prepare_op(store, &store->data, group, PARTITION_SET_HOLD, body, sizeof body, token, 1);
    return STATUS_OK;
}

/* ---- events ---- */

void store_retention_watch(struct store *store, struct store_group *group)
{
    const struct retention *retention = &group->state.retention;
    if (!retention_next(retention, retention_acked(retention))) return;
    if (group->events_link.queue == &store->events_waiting)
        queue_remove(&store->events_waiting, &group->events_link);
    if (group->events_link.queue == NULL) queue_push(&store->events_ready, &group->events_link);
}

int store_trimmed_next(struct store *store, struct engine_trimmed *trimmed)
{
    while (!queue_empty(&store->events_ready)) {
        struct store_group *group =
            queue_element(store->events_ready.head, struct store_group, events_link);
        const struct retention_event *event =
            partition_trim_next(&group->state, group->events_handed);
        if (event) {
            *trimmed = (struct engine_trimmed){
                .id = {.topic = group->topic,
                       .created_revision = group->created_revision,
                       .partition = group->partition},
                .sequence = event->sequence,
                .trim_op = event->trim_op,
                .policy_version = event->policy_version,
                .from_offset = event->from_offset,
                .to_offset = event->to_offset,
                .bytes = event->bytes,
                .records = event->records,
                .min_time_us = event->min_time_us,
                .max_time_us = event->max_time_us,
                .trimmed_at_us = event->trimmed_at_us,
                .cause = event->cause,
                .segments = event->segments,
            };
            group->events_handed = event->sequence;
            return 1;
        }
        queue_remove(&store->events_ready, &group->events_link);
        if (partition_trim_next(&group->state, 0)) {
            group->events_at_ns = store->now.monotonic_ns;
            queue_push(&store->events_waiting, &group->events_link);
        }
    }
    return 0;
}

enum status store_trim_ack(struct store *store, const struct engine_partition_id *id,
                           uint64_t sequence)
{
    struct store_group *group;
    enum status status = store_group_lookup(store, id, &group);
    if (status != STATUS_OK) return status;
    if (!group) return STATUS_NOT_FOUND;
    int full = retention_full(group);
    retention_ack(&group->state.retention, sequence);
    if (full && !retention_full(group)) store_retention_touch(store, group);
    if (group->events_link.queue == &store->events_waiting
        && !partition_trim_next(&group->state, 0))
        queue_remove(&store->events_waiting, &group->events_link);
    return STATUS_OK;
}

static_assert(RETENTION_TIME == (int)ENGINE_TRIM_TIME && RETENTION_SIZE == (int)ENGINE_TRIM_SIZE
                  && RETENTION_PURGE == (int)ENGINE_TRIM_PURGE,
              "causes have one number");
