#include "store/propose.h"

#include <string.h>

#include "batch/batch.h"
#include "foundation/assert.h"
#include "store/clock.h"
#include "store/outbox.h"
#include "store/registry.h"
#include "store/state.h"

struct journal_entry propose_entry(const struct replica *replica, uint16_t kind, uint64_t op,
                                   uint64_t body_bytes)
{
    return (struct journal_entry){
        .size = (uint32_t)(JOURNAL_ENTRY_HEADER_BYTES + body_bytes),
        .kind = kind,
        .topic = replica->topic,
        .partition = replica->partition,
        .created_revision = replica->created_revision,
        .op = op,
        .log_view = replica->vsr.log_view,
        .tenure = vsr_tenure(&replica->vsr),
        .epoch = replica->vsr.epoch,
    };
}

struct ring_slot *propose_begin(struct store *store, struct prepare_ring *ring,
                                const struct replica *replica, const struct journal_entry *entry,
                                uint64_t *position)
{
    struct ring_slot *slot = prepare_ring_reserve(ring, entry->kind, entry->size, position);
    uint8_t *bytes = ring_slot_entry(slot);
    memset(bytes, 0, JOURNAL_ENTRY_HEADER_BYTES);
    journal_entry_put(bytes, entry);
    slot->op = entry->op;
    slot->replica = replica ? registry_index(store, replica) : UINT32_MAX;
    store->statistics.entries++;
    return slot;
}

void propose_ready(struct ring_slot *slot)
{
    assert(slot->state == RING_SLOT_RESERVED);
    journal_entry_seal(ring_slot_entry(slot));
    slot->state = RING_SLOT_READY;
}

void propose_abstention(struct store *store, const struct replica *replica)
{
    const struct journal_entry entry =
        propose_entry(replica, JOURNAL_ABSTAIN, replica->vsr.op, ENTRY_ABSTAIN_BYTES);
    const struct entry_abstain abstain = {.op_good = replica->vsr.op,
                                          .op_lost = replica->vsr.damaged_to};
    uint64_t position;
    struct ring_slot *slot = propose_begin(store, &store->control_ring, replica, &entry, &position);
    entry_abstain_put(ring_slot_body(slot), &abstain);
    propose_ready(slot);
}

/* Metadata's memory is its own (V9). */
static struct prepare_ring *propose_ring(struct store *store, const struct replica *replica)
{
    return replica->is_metadata ? &store->metadata_ring : &store->data_ring;
}

/* Before the first op: it must be durable before anything that depends on it, and stands before it
 * in the same ring. */
static void propose_founding(struct store *store, struct replica *replica)
{
    if (replica->founded) return;
    const struct journal_entry entry =
        propose_entry(replica, JOURNAL_VIEW_STATE, replica->vsr.op, ENTRY_VIEW_STATE_BYTES);
    const struct entry_view_state state = vsr_view_state(&replica->vsr);
    uint64_t position;
    struct ring_slot *slot =
        propose_begin(store, propose_ring(store, replica), replica, &entry, &position);
    entry_view_state_put(ring_slot_body(slot), &state);
    propose_ready(slot);
    replica->founded = 1;
}

/* The step, and the slot with all its headers; the caller puts the payload behind them. */
static struct ring_slot *propose_prepare(struct store *store, struct replica *replica,
                                         struct vsr_event *event)
{
    propose_founding(store, replica);
    event->kind = VSR_REQUEST;
    event->time_us = store_clock_us(store);
    struct vsr_update update;
    vsr_step(&replica->vsr, event, &update);
    assert(update.status == STATUS_OK);
    assert(update.journal);
    event->prepare = update.prepare;

    const struct journal_entry entry =
        propose_entry(replica, JOURNAL_PREPARE, update.prepare.op,
                      ENTRY_PREPARE_BYTES + (uint64_t)update.prepare.payload_bytes);
    uint64_t position;
    struct ring_slot *slot =
        propose_begin(store, propose_ring(store, replica), replica, &entry, &position);
    memcpy(ring_slot_body(slot), update.header, ENTRY_PREPARE_BYTES);
    slot->operation = event->prepare.operation;
    return slot;
}

static struct ring_slot *propose_body(struct store *store, struct replica *replica,
                                      uint16_t operation, const uint8_t *body, size_t size)
{
    struct vsr_event event = {.prepare = {.operation = operation, .payload_bytes = (uint32_t)size}};
    vsr_digest(body, size, event.prepare.digest);
    struct ring_slot *slot = propose_prepare(store, replica, &event);
    memcpy(ring_slot_payload(slot), body, size);
    return slot;
}

static int configuration_equal(const struct partition_configure *left,
                               const struct partition_configure *right)
{
    return left->segment_bytes == right->segment_bytes && left->segment_us == right->segment_us
           && left->producers_max == right->producers_max && left->groups_max == right->groups_max
           && left->metered == right->metered;
}

/* The topic's row may have changed since: the next op is the first under the new configuration
 * (V11). */
static void propose_configuration(struct store *store, struct replica *replica)
{
    const struct store_topic *topic = registry_topic(store, replica->topic);
    if (!topic || replica->is_metadata) return;
    const struct partition_configure wanted = registry_configuration(topic);
    if (configuration_equal(&wanted, &replica->configured)) return;
    uint8_t body[PARTITION_CONFIGURE_BYTES];
    partition_encode_configure(&wanted, body);
    propose_ready(propose_body(store, replica, PARTITION_CONFIGURE, body, sizeof body));
    replica->configured = wanted;
}

void propose_op(struct store *store, struct replica *replica, uint16_t operation,
                const uint8_t *body, size_t size, uint64_t token, int waits)
{
    propose_configuration(store, replica);
    struct ring_slot *slot = propose_body(store, replica, operation, body, size);
    slot->token = token;
    slot->outcome = waits != 0;
    if (waits) outbox_accept(store->outbox);
    propose_ready(slot);
}

void propose_batch(struct store *store, struct replica *replica,
                   const struct store_produce *request, const struct batch_client *client)
{
    propose_configuration(store, replica);
    uint32_t batch_bytes = (uint32_t)(BATCH_SERVER_HEADER_BYTES + request->batch_size);
    struct vsr_event event = {.prepare = {.operation = PARTITION_BATCH,
                                          .principal = request->principal,
                                          .payload_bytes = batch_bytes}};
    vsr_digest(request->batch, request->batch_size, event.prepare.digest);
    struct ring_slot *slot = propose_prepare(store, replica, &event);
    uint8_t *stored = ring_slot_payload(slot);
    struct batch_server server = {
        .size_bytes = batch_bytes,
        .append_time_us = event.prepare.append_time_us,
        .op = event.prepare.op,
        .first_view = event.prepare.first_view,
        .principal = request->principal,
        .client_crc = client->crc32c,
    };
    memcpy(server.digest, event.prepare.digest, sizeof server.digest);
    batch_encode_server(&server, replica->state.config.seeds.batch, stored);
    memcpy(stored + BATCH_SERVER_HEADER_BYTES, request->batch, request->batch_size);
    slot->batch_bytes = batch_bytes;
    slot->record_count = client->record_count;
    slot->token = request->token;
    slot->outcome = 1;
    outbox_accept(store->outbox);
    propose_ready(slot);
}
