#include "store/accounting/retention.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/queue.h"
#include "store/accounting/storage_meter.h"
#include "store/admit.h"
#include "store/clock.h"
#include "store/files/retire.h"
#include "store/files/trim.h"
#include "store/outbox.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/state.h"

enum { RETENTION_LOOKS_PER_TICK = 16 };

#define RETENTION_AGAIN_NS UINT64_C(5000000000)
#define RETENTION_RETRY_US INT64_C(500000)
#define RETENTION_RELIEVE_NS UINT64_C(1000000000)
#define RETENTION_NOW INT64_MIN

struct store_retention {
    uint32_t *heap; /* of replicas, by when their policies are looked at */
    uint32_t count;
    struct queue events_ready;
    struct queue events_waiting; /* handed out, not acknowledged */
    uint64_t relieved_ns;        /* when checkpoints were last asked for to free chunks */
};

size_t store_retention_memory_bytes(uint32_t replicas_max)
{
    return arena_size(sizeof(struct store_retention)) + arena_size(replicas_max * sizeof(uint32_t));
}

struct store_retention *store_retention_make(struct arena *arena, uint32_t replicas_max)
{
    struct store_retention *retention = arena_take(arena, sizeof *retention);
    if (!retention) return NULL;
    retention->heap = arena_take(arena, replicas_max * sizeof *retention->heap);
    return retention->heap ? retention : NULL;
}

/* ---- the heap ---- */

static struct replica *expiry_at(struct store *store, uint32_t at)
{
    struct store_retention *own = store->retention;
    assert(at >= 1 && at <= own->count);
    return registry_at(store, own->heap[at - 1]);
}

static void expiry_place(struct store *store, uint32_t at, struct replica *replica)
{
    store->retention->heap[at - 1] = registry_index(store, replica);
    replica->retention.heap_at = at;
}

/* Up or down from where it is, until the order is right again. */
static void expiry_settle(struct store *store, struct replica *replica)
{
    struct store_retention *own = store->retention;
    uint32_t at = replica->retention.heap_at;
    while (at > 1 && expiry_at(store, at / 2)->retention.expiry_us > replica->retention.expiry_us) {
        expiry_place(store, at, expiry_at(store, at / 2));
        at /= 2;
    }
    for (uint32_t child = 2 * at; child <= own->count; child = 2 * at) {
        if (child < own->count
            && expiry_at(store, child + 1)->retention.expiry_us
                   < expiry_at(store, child)->retention.expiry_us)
            child++;
        if (expiry_at(store, child)->retention.expiry_us >= replica->retention.expiry_us) break;
        expiry_place(store, at, expiry_at(store, child));
        at = child;
    }
    expiry_place(store, at, replica);
}

static void expiry_set(struct store *store, struct replica *replica, int64_t at_us)
{
    struct store_retention *own = store->retention;
    replica->retention.expiry_us = at_us;
    if (replica->retention.heap_at == 0) {
        assert(own->count < registry_replicas_max(store));
        replica->retention.heap_at = ++own->count;
    }
    expiry_settle(store, replica);
}

static void expiry_clear(struct store *store, struct replica *replica)
{
    struct store_retention *own = store->retention;
    uint32_t at = replica->retention.heap_at;
    if (at == 0) return;
    struct replica *last = expiry_at(store, own->count);
    own->count--;
    replica->retention.heap_at = 0;
    if (last == replica) return;
    expiry_place(store, at, last);
    expiry_settle(store, last);
}

/* ---- the policy ---- */

void store_retention_touch(struct store *store, struct replica *replica)
{
    if (replica->is_metadata || retire_leaves(replica)) return;
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
    assert(store->statistics.held_bytes >= replica->retention.held_bytes);
    store->statistics.held_bytes += bytes - replica->retention.held_bytes;
    replica->retention.held_bytes = bytes;
}

void store_retention_forget(struct store *store, struct replica *replica)
{
    struct queue_link *link = &replica->retention.events_link;
    if (link->queue) queue_remove((struct queue *)(uintptr_t)link->queue, link);
    expiry_clear(store, replica);
    retention_held(store, replica, 0);
}

static enum status retention_propose(struct store *store, struct replica *replica,
                                     const struct partition_trim *trim, uint64_t token, int waits)
{
    enum status status = admit_op(store, PARTITION_TRIM_BYTES);
    if (status != STATUS_OK) return status;
    uint8_t body[PARTITION_TRIM_BYTES];
    partition_encode_trim(trim, body);
    propose_op(store, replica, PARTITION_TRIM, body, sizeof body, token, waits);
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
    const struct store_topic *topic = registry_topic(store, replica->topic);
    int lives = replica->vsr.status == VSR_NORMAL && !retire_leaves(replica)
                && replica->unknown_op == 0 && !replica->corrupt;
    /* What is in the way now looks again when it ends. */
    if (!topic || !lives || replica->retention.trim_busy || partition_sealed(&replica->state))
        return;
    if (topic->flags & ENGINE_TOPIC_CLOSING) return;
    struct partition_due due = partition_retention_due(&replica->state, &topic->policy, now_us);
    retention_held(store, replica, due.held_bytes);
    if (due.due && retention_full(replica)) {
        store->statistics.trims_full++;
        return;
    }
    if (due.due) {
        replica->retention.trim_busy =
            retention_propose(store, replica, &due.trim, 0, 0) == STATUS_OK;
        if (!replica->retention.trim_busy) expiry_set(store, replica, now_us + RETENTION_RETRY_US);
    } else if (due.next_us != 0 && !due.held) {
        expiry_set(store, replica, due.next_us);
    }
}

void store_retention_tick(struct store *store)
{
    struct store_retention *own = store->retention;
    int64_t now_us = store_clock_us(store);
    for (uint32_t looks = 0; looks < RETENTION_LOOKS_PER_TICK && own->count > 0; looks++) {
        struct replica *replica = expiry_at(store, 1);
        if (store_clock_uncertain(store) || now_us == 0 || replica->retention.expiry_us > now_us)
            break;
        retention_look(store, replica, now_us);
    }
    while (!queue_empty(&own->events_waiting)) {
        struct replica *replica =
            queue_element(own->events_waiting.head, struct replica, retention.events_link);
        if (store->now.monotonic_ns - replica->retention.events_at_ns < RETENTION_AGAIN_NS) break;
        replica->retention.events_handed = retention_acked(&replica->state.retention);
        queue_remove(&own->events_waiting, &replica->retention.events_link);
        queue_push(&own->events_ready, &replica->retention.events_link);
    }
}

void store_retention_relieve(struct store *store)
{
    struct store_retention *own = store->retention;
    if (store->statistics.trims == 0) return;
    if (own->relieved_ns != 0 && store->now.monotonic_ns - own->relieved_ns < RETENTION_RELIEVE_NS)
        return;
    own->relieved_ns = store->now.monotonic_ns;
    store_checkpoint_all(store);
}

static void retention_watch(struct store *store, struct replica *replica)
{
    struct store_retention *own = store->retention;
    const struct retention *retention = &replica->state.retention;
    if (!retention_next(retention, retention_acked(retention))) return;
    if (replica->retention.events_link.queue == &own->events_waiting)
        queue_remove(&own->events_waiting, &replica->retention.events_link);
    if (replica->retention.events_link.queue == NULL)
        queue_push(&own->events_ready, &replica->retention.events_link);
}

/* ---- what was applied ---- */

static void retention_trim_executed(struct store *store, struct replica *replica,
                                    const struct partition_result *result,
                                    struct store_outcome *outcome)
{
    replica->retention.trim_busy = 0;
    if (result->status == STATUS_HELD) store->statistics.trims_held++;
    if (result->status == STATUS_TRIMS_FULL) store->statistics.trims_full++;
    /* Asked again, or overtaken: the log begins there. */
    if (result->status == STATUS_TRIM_BELOW) outcome->status = STATUS_OK;
    retention_watch(store, replica);
    if (!result->trimmed) return;
    const struct retention *retention = &replica->state.retention;
    const struct retention_event *event = &retention->events[retention->events_count - 1];
    store->statistics.trims++;
    store->statistics.trimmed_bytes += event->bytes;
    store->statistics.trimmed_records += event->to_offset - event->from_offset;
    storage_meter_take(store, replica, event->bytes);
    outbox_advance(store->outbox, replica);
    if (event->segments > 0) trim_begin(store, replica);
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
        status = admit_answer(store);
        if (status != STATUS_OK) return status;
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
    status = admit_op(store, PARTITION_HOLD_BYTES);
    if (status != STATUS_OK) return status;
    const struct partition_hold hold = {
        .intent_op = wanted->intent_op, .held = wanted->held, .from_offset = wanted->from_offset};
    uint8_t body[PARTITION_HOLD_BYTES];
    partition_encode_hold(&hold, body);
    propose_op(store, replica, PARTITION_SET_HOLD, body, sizeof body, token, 1);
    return STATUS_OK;
}

/* ---- events ---- */

int store_trimmed_next(struct store *store, struct engine_trimmed *trimmed)
{
    struct store_retention *own = store->retention;
    while (!queue_empty(&own->events_ready)) {
        struct replica *replica =
            queue_element(own->events_ready.head, struct replica, retention.events_link);
        const struct retention_event *event =
            partition_trim_next(&replica->state, replica->retention.events_handed);
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
            replica->retention.events_handed = event->sequence;
            return 1;
        }
        queue_remove(&own->events_ready, &replica->retention.events_link);
        if (partition_trim_next(&replica->state, 0)) {
            replica->retention.events_at_ns = store->now.monotonic_ns;
            queue_push(&own->events_waiting, &replica->retention.events_link);
        }
    }
    return 0;
}

enum status store_trim_ack(struct store *store, const struct engine_partition_id *id,
                           uint64_t sequence)
{
    struct store_retention *own = store->retention;
    struct replica *replica;
    enum status status = registry_lookup(store, id, &replica);
    if (status != STATUS_OK) return status;
    if (!replica) return STATUS_NOT_FOUND;
    int full = retention_full(replica);
    retention_ack(&replica->state.retention, sequence);
    if (full && !retention_full(replica)) store_retention_touch(store, replica);
    if (replica->retention.events_link.queue == &own->events_waiting
        && !partition_trim_next(&replica->state, 0))
        queue_remove(&own->events_waiting, &replica->retention.events_link);
    return STATUS_OK;
}

static_assert(RETENTION_TIME == (int)ENGINE_TRIM_TIME && RETENTION_SIZE == (int)ENGINE_TRIM_SIZE
                  && RETENTION_PURGE == (int)ENGINE_TRIM_PURGE,
              "causes have one number");

/* ---- of one replica ---- */

void store_retention_recovered(struct store *store, struct replica *replica)
{
    retention_watch(store, replica);
}

uint64_t store_retention_held(const struct replica *replica)
{
    return replica->retention.held_bytes;
}

int64_t store_retention_expires_us(const struct replica *replica)
{
    const struct replica_retention *own = &replica->retention;
    return own->heap_at != 0 && own->expiry_us > 0 ? own->expiry_us : 0;
}

void store_retention_invariants(const struct store *store)
{
    const struct store_retention *retention = store->retention;
    assert(retention->count <= registry_replicas_max(store));
    for (uint32_t at = 1; at <= retention->count; at++) {
        const struct replica *replica = registry_at(store, retention->heap[at - 1]);
        assert(replica->used && replica->retention.heap_at == at);
        const struct replica *parent =
            registry_at(store, retention->heap[(at > 1 ? at / 2 : at) - 1]);
        assert(parent->retention.expiry_us <= replica->retention.expiry_us);
    }
}
