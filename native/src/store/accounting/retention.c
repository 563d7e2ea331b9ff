/* store/accounting/retention.c: what policies, purges and holds propose to a partition's log,
 * and the evidence that trims leave.
 *
 * Replicas with something that will expire lie in a heap by when: a tick looks at its head only. A
 * replica is looked at when a segment begins, when its policy, a hold or an acknowledgement changed
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

static struct replica *expiry_group(struct store *store, uint32_t at)
{
    assert(at >= 1 && at <= store->expiries_count);
    return &store->replicas[store->expiries[at - 1]];
}

static void expiry_place(struct store *store, uint32_t at, struct replica *replica)
{
    store->expiries[at - 1] = registry_index(store, replica);
    replica->expiry_at = at;
}

/* Up or down from where it is, until the order is right again. */
static void expiry_settle(struct store *store, struct replica *replica)
{
    uint32_t at = replica->expiry_at;
    while (at > 1 && expiry_group(store, at / 2)->expiry_us > replica->expiry_us) {
        expiry_place(store, at, expiry_group(store, at / 2));
        at /= 2;
    }
    for (uint32_t child = 2 * at; child <= store->expiries_count; child = 2 * at) {
        if (child < store->expiries_count
            && expiry_group(store, child + 1)->expiry_us < expiry_group(store, child)->expiry_us)
            child++;
        if (expiry_group(store, child)->expiry_us >= replica->expiry_us) break;
        expiry_place(store, at, expiry_group(store, child));
        at = child;
    }
    expiry_place(store, at, replica);
}

static void expiry_set(struct store *store, struct replica *replica, int64_t at_us)
{
    replica->expiry_us = at_us;
    if (replica->expiry_at == 0) {
        assert(store->expiries_count < store->replicas_max);
        replica->expiry_at = ++store->expiries_count;
    }
    expiry_settle(store, replica);
}

static void expiry_clear(struct store *store, struct replica *replica)
{
    uint32_t at = replica->expiry_at;
    if (at == 0) return;
    struct replica *last = expiry_group(store, store->expiries_count);
    store->expiries_count--;
    replica->expiry_at = 0;
    if (last == replica) return;
    expiry_place(store, at, last);
    expiry_settle(store, last);
}

/* ---- the policy ---- */

void store_retention_touch(struct store *store, struct replica *replica)
{
    if (replica == store->metadata_replica || replica->removal.phase != REMOVAL_NONE) return;
    expiry_set(store, replica, RETENTION_NOW);
}

void store_retention_policy(struct store *store, const struct store_topic *topic)
{
    for (uint32_t partition = 0; partition < topic->partitions_count; partition++) {
        struct replica *replica = registry_find(store, topic->topic, partition);
        if (replica) store_retention_touch(store, replica);
    }
}

static void retention_held(struct store *store, struct replica *replica, uint64_t bytes)
{
    assert(store->statistics.held_bytes >= replica->held_bytes);
    store->statistics.held_bytes += bytes - replica->held_bytes;
    replica->held_bytes = bytes;
}

void store_retention_forget(struct store *store, struct replica *replica)
{
    expiry_clear(store, replica);
    retention_held(store, replica, 0);
}

static enum status retention_propose(struct store *store, struct replica *replica,
                                     const struct partition_trim *trim, uint64_t token, int outcome)
{
    enum status status = store_admit_op(store, PARTITION_TRIM_BYTES);
    if (status != STATUS_OK) return status;
    uint8_t body[PARTITION_TRIM_BYTES];
    partition_encode_trim(trim, body);
    store_prepare_op(store, &store->data, replica, PARTITION_TRIM, body, sizeof body, token,
                     outcome);
    return STATUS_OK;
}

/* Unacknowledged events, once the acknowledgements heard here have ridden in the next trim. */
static int retention_full(const struct replica *replica)
{
    const struct retention *retention = &replica->state.retention;
    return retention->sequence - retention_acked(retention) >= RETENTION_EVENTS_MAX;
}

static void retention_look(struct store *store, struct replica *replica, int64_t now_us)
{
    expiry_clear(store, replica);
    const struct store_topic *topic = store_topic_find(store, replica->topic);
    int lives = replica->vsr.status == VSR_NORMAL && replica->removal.phase == REMOVAL_NONE
                && replica->unknown_op == 0 && !replica->corrupt;
    /* What is in the way now looks again when it ends. */
    if (!topic || !lives || replica->trim_busy || partition_sealed(&replica->state)) return;
    if (topic->flags & ENGINE_TOPIC_CLOSING) return;
    struct partition_due due = partition_retention_due(&replica->state, &topic->policy, now_us);
    retention_held(store, replica, due.held_bytes);
    if (due.due && retention_full(replica)) {
        store->statistics.trims_full++;
        return;
    }
    if (due.due) {
        replica->trim_busy = retention_propose(store, replica, &due.trim, 0, 0) == STATUS_OK;
        if (!replica->trim_busy) expiry_set(store, replica, now_us + RETENTION_RETRY_US);
    } else if (due.next_us != 0 && !due.held) {
        expiry_set(store, replica, due.next_us);
    }
}

void store_retention_tick(struct store *store)
{
    int64_t now_us = store_clock_us(store);
    for (uint32_t looks = 0; looks < RETENTION_LOOKS_PER_TICK && store->expiries_count > 0;
         looks++) {
        struct replica *replica = expiry_group(store, 1);
        if (store_clock_uncertain(store) || now_us == 0 || replica->expiry_us > now_us) break;
        retention_look(store, replica, now_us);
    }
    while (!queue_empty(&store->events_waiting)) {
        struct replica *replica =
            queue_element(store->events_waiting.head, struct replica, events_link);
        if (store->now.monotonic_ns - replica->events_at_ns < RETENTION_AGAIN_NS) break;
        replica->events_handed = retention_acked(&replica->state.retention);
        queue_remove(&store->events_waiting, &replica->events_link);
        queue_push(&store->events_ready, &replica->events_link);
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

static void retention_trim_executed(struct store *store, struct replica *replica,
                                    const struct partition_result *result,
                                    struct store_outcome *outcome)
{
    replica->trim_busy = 0;
    if (result->status == STATUS_HELD) store->statistics.trims_held++;
    if (result->status == STATUS_TRIMS_FULL) store->statistics.trims_full++;
    /* Asked again, or overtaken: the log begins there. */
    if (result->status == STATUS_TRIM_BELOW) outcome->status = STATUS_OK;
    store_retention_watch(store, replica);
    if (!result->trimmed) return;
    const struct retention *retention = &replica->state.retention;
    const struct retention_event *event = &retention->events[retention->events_count - 1];
    store->statistics.trims++;
    store->statistics.trimmed_bytes += event->bytes;
    store->statistics.trimmed_records += event->to_offset - event->from_offset;
    store_stored_take(store, replica, event->bytes);
    outbox_advance(store->outbox, replica);
    if (event->segments > 0) store_trim_begin(store, replica);
}

void store_retention_executed(struct store *store, struct replica *replica,
                              const struct partition_result *result, enum partition_op operation,
                              struct store_outcome *outcome)
{
    if (operation == PARTITION_TRIM)
        retention_trim_executed(store, replica, result, outcome);
    else
        assert(operation == PARTITION_SET_HOLD);
    store_retention_touch(store, replica);
    const struct partition *state = &replica->state;
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
    struct replica *replica;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (!replica) {
        if (purge->log_start != ENGINE_PURGE_ALL) return STATUS_OFFSET_BEYOND_END;
        struct store_outcome outcome = {.token = token, .status = STATUS_OK};
        outbox_answer_now(store->outbox, NULL, &outcome);
        return STATUS_OK;
    }
    status = registry_open(store, id, &replica);
    if (status != STATUS_OK) return status;
    struct partition_trim trim = {.log_start = purge->log_start,
                                  .cause = RETENTION_PURGE,
                                  .policy_version = purge->version,
                                  .acked = retention_acked(&replica->state.retention)};
    if (purge->log_start == ENGINE_PURGE_ALL) trim.log_start = replica->state.next_offset;
    return retention_propose(store, replica, &trim, token, 1);
}

enum status store_hold(struct store *store, const struct engine_partition_id *id,
                       const struct engine_hold *wanted, uint64_t token)
{
    struct replica *replica;
    if (wanted->intent_op == 0 || wanted->held > 1) return STATUS_INVALID;
    if (!wanted->held && wanted->from_offset != 0) return STATUS_INVALID;
    enum status status = registry_open(store, id, &replica);
    if (status != STATUS_OK) return status;
    status = store_admit_op(store, PARTITION_HOLD_BYTES);
    if (status != STATUS_OK) return status;
    const struct partition_hold hold = {
        .intent_op = wanted->intent_op, .held = wanted->held, .from_offset = wanted->from_offset};
    uint8_t body[PARTITION_HOLD_BYTES];
    partition_encode_hold(&hold, body);
    store_prepare_op(store, &store->data, replica, PARTITION_SET_HOLD, body, sizeof body, token, 1);
    return STATUS_OK;
}

/* ---- events ---- */

void store_retention_watch(struct store *store, struct replica *replica)
{
    const struct retention *retention = &replica->state.retention;
    if (!retention_next(retention, retention_acked(retention))) return;
    if (replica->events_link.queue == &store->events_waiting)
        queue_remove(&store->events_waiting, &replica->events_link);
    if (replica->events_link.queue == NULL) queue_push(&store->events_ready, &replica->events_link);
}

int store_trimmed_next(struct store *store, struct engine_trimmed *trimmed)
{
    while (!queue_empty(&store->events_ready)) {
        struct replica *replica =
            queue_element(store->events_ready.head, struct replica, events_link);
        const struct retention_event *event =
            partition_trim_next(&replica->state, replica->events_handed);
        if (event) {
            *trimmed = (struct engine_trimmed){
                .id = {.topic = replica->topic,
                       .created_revision = replica->created_revision,
                       .partition = replica->partition},
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
            replica->events_handed = event->sequence;
            return 1;
        }
        queue_remove(&store->events_ready, &replica->events_link);
        if (partition_trim_next(&replica->state, 0)) {
            replica->events_at_ns = store->now.monotonic_ns;
            queue_push(&store->events_waiting, &replica->events_link);
        }
    }
    return 0;
}

enum status store_trim_ack(struct store *store, const struct engine_partition_id *id,
                           uint64_t sequence)
{
    struct replica *replica;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (!replica) return STATUS_NOT_FOUND;
    int full = retention_full(replica);
    retention_ack(&replica->state.retention, sequence);
    if (full && !retention_full(replica)) store_retention_touch(store, replica);
    if (replica->events_link.queue == &store->events_waiting
        && !partition_trim_next(&replica->state, 0))
        queue_remove(&store->events_waiting, &replica->events_link);
    return STATUS_OK;
}

static_assert(RETENTION_TIME == (int)ENGINE_TRIM_TIME && RETENTION_SIZE == (int)ENGINE_TRIM_SIZE
                  && RETENTION_PURGE == (int)ENGINE_TRIM_PURGE,
              "causes have one number");
