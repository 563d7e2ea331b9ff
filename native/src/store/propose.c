/* store/propose.c: entries are made here, in memory, from where rounds, segments and fetches take
 * them.
 *
 * Admission (J6) is decided before anything is changed: the ring has room, the journal has extents
 * beyond the reserve for all that is gathered, live bytes stay within half of it. */
#include "store/state.h"

enum { ENTRY_HEADERS_BYTES = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES };

static uint64_t store_gathered(const struct prepare_ring *ring)
{
    return ring->head - ring->durable;
}

/* Twice the bytes gathered: an entry that does not fit the rest of an extent leaves it unused. */
static int store_journal_has(const struct store *store, uint64_t entry_size)
{
    const struct journal *journal = &store->journal;
    uint32_t free = journal_extents_free(journal);
    uint64_t usable =
        free > JOURNAL_EXTENTS_RESERVED
            ? (free - JOURNAL_EXTENTS_RESERVED) * journal_extent_payload_bytes(&journal->config)
            : 0;
    uint64_t gathered =
        store_gathered(&store->data) + store_gathered(&store->metadata) + entry_size;
    uint64_t half = journal_file_bytes(&journal->config) / 2;
    return usable >= 2 * gathered && store->live_bytes + gathered <= half;
}

enum status store_admit(struct store *store, struct prepare_ring *ring, uint64_t entry_size)
{
    if (store->failed != STATUS_OK) return STATUS_STOPPING;
    int room = prepare_ring_fits(ring, entry_size) && store_journal_has(store, entry_size)
               && outbox_fits(store->outbox);
    if (!room) {
        store->statistics.refused_busy++;
        return STATUS_BUSY;
    }
    return STATUS_OK;
}

/* An op with `payload_size` bytes of this replica, and the view state that may have to go before
 * it. */
enum status store_admit_op(struct store *store, uint64_t payload_size)
{
    uint64_t size = ENTRY_HEADERS_BYTES + payload_size;
    if (size > journal_entry_bytes_max(&store->journal.config)) return STATUS_MESSAGE_TOO_LARGE;
    uint64_t view_state =
        2 * (RING_SLOT_HEADER_BYTES + JOURNAL_ENTRY_HEADER_BYTES + ENTRY_VIEW_STATE_BYTES);
    return store_admit(store, &store->data, size + view_state);
}

struct ring_slot *store_entry_begin(struct store *store, struct prepare_ring *ring,
                                    const struct journal_entry *entry, uint64_t *position)
{
    struct ring_slot *slot = prepare_ring_reserve(ring, entry->kind, entry->size, position);
    uint8_t *bytes = ring_slot_entry(slot);
    memset(bytes, 0, JOURNAL_ENTRY_HEADER_BYTES);
    journal_entry_put(bytes, entry);
    slot->op = entry->op;
    slot->replica = UINT32_MAX;
    store->statistics.entries++;
    return slot;
}

void store_entry_ready(struct ring_slot *slot)
{
    assert(slot->state == RING_SLOT_HELD);
    journal_entry_seal(ring_slot_entry(slot));
    slot->state = RING_SLOT_READY;
}

struct entry_view_state store_view_state(const struct replica *replica,
                                         const struct segment_limit *limit)
{
    return (struct entry_view_state){
        .view = replica->vsr.view,
        .log_view = replica->vsr.log_view,
        .segment_bytes = limit->bytes,
        .segment_us = limit->time_us,
        .members_count = replica->vsr.members_count,
        .epoch = replica->vsr.epoch,
        .tenure = replica->vsr.tenure,
        .metered = replica->metered,
    };
}

static struct journal_entry replica_entry(const struct replica *replica, uint16_t kind,
                                          uint64_t body_size)
{
    return (struct journal_entry){
        .size = (uint32_t)(JOURNAL_ENTRY_HEADER_BYTES + body_size),
        .kind = kind,
        .topic = replica->topic,
        .partition = replica->partition,
        .created_revision = replica->created_revision,
        .op = replica->vsr.op,
        .log_view = replica->vsr.log_view,
        .tenure = replica->vsr.tenure,
        .epoch = replica->vsr.epoch,
    };
}

/* Durable before or with the first op that depends on it: it stands before that op in the same
 * ring. */
void store_view_state_entry(struct store *store, struct replica *replica)
{
    struct prepare_ring *ring =
        replica == store->metadata_replica ? &store->metadata : &store->data;
    const struct journal_entry entry =
        replica_entry(replica, JOURNAL_VIEW_STATE, ENTRY_VIEW_STATE_BYTES);
    uint64_t position;
    struct ring_slot *slot = store_entry_begin(store, ring, &entry, &position);
    slot->replica = registry_index(store, replica);
    const struct entry_view_state state = store_view_state(replica, &replica->segment_limit);
    entry_view_state_put(ring_slot_body(slot), &state);
    store_entry_ready(slot);
    replica->configured = 1;
}

void store_abstain_entry(struct store *store, struct replica *replica)
{
    struct journal_entry entry = replica_entry(replica, JOURNAL_ABSTAIN, ENTRY_ABSTAIN_BYTES);
    entry.op = replica->vsr.op;
    uint64_t position;
    struct ring_slot *slot = store_entry_begin(store, &store->control, &entry, &position);
    slot->replica = registry_index(store, replica);
    const struct entry_abstain abstain = {.op_good = replica->vsr.op,
                                          .op_lost = replica->vsr.damaged_to};
    entry_abstain_put(ring_slot_body(slot), &abstain);
    store_entry_ready(slot);
}

/* The topic's row may have changed since: the next op is the first under the new configuration. */
static void propose_configuration(struct store *store, struct replica *replica)
{
    const struct store_topic *topic = store_topic_find(store, replica->topic);
    const struct segment_limit *limit = topic ? &topic->segment_limit : &replica->segment_limit;
    if (limit->bytes != replica->segment_limit.bytes
        || limit->time_us != replica->segment_limit.time_us) {
        replica->segment_limit = *limit;
        replica->configured = 0;
    }
    if (!replica->configured) store_view_state_entry(store, replica);
}

/* The step, and the slot with all its headers; the caller puts the payload behind them. */
static struct ring_slot *store_prepare_begin(struct store *store, struct prepare_ring *ring,
                                             struct replica *replica, struct vsr_event *event,
                                             uint64_t *position)
{
    propose_configuration(store, replica);
    event->kind = VSR_REQUEST;
    event->time_us = store_clock_us(store);
    struct vsr_update update;
    vsr_step(&replica->vsr, event, &update);
    assert(update.status == STATUS_OK);
    assert(update.journal);
    event->prepare = update.prepare;

    struct journal_entry entry = replica_entry(
        replica, JOURNAL_PREPARE, ENTRY_PREPARE_BYTES + (uint64_t)update.prepare.payload_bytes);
    entry.op = update.prepare.op;
    struct ring_slot *slot = store_entry_begin(store, ring, &entry, position);
    memcpy(ring_slot_body(slot), update.header, ENTRY_PREPARE_BYTES);
    slot->replica = registry_index(store, replica);
    slot->operation = event->prepare.operation;
    return slot;
}

void store_prepare_op(struct store *store, struct prepare_ring *ring, struct replica *replica,
                      uint16_t operation, const uint8_t *body, size_t size, uint64_t token,
                      int outcome)
{
    struct vsr_event event = {.prepare = {.operation = operation, .payload_bytes = (uint32_t)size}};
    vsr_digest(body, size, event.prepare.digest);
    uint64_t position;
    struct ring_slot *slot = store_prepare_begin(store, ring, replica, &event, &position);
    memcpy(ring_slot_payload(slot), body, size);
    slot->token = token;
    slot->outcome = outcome != 0;
    if (outcome) outbox_accept(store->outbox);
    store_entry_ready(slot);
}

void store_prepare_batch(struct store *store, struct replica *replica,
                         const struct store_produce *request, const struct batch_client *client)
{
    uint32_t batch_bytes = (uint32_t)(BATCH_SERVER_HEADER_BYTES + request->batch_size);
    struct vsr_event event = {.prepare = {.operation = PARTITION_BATCH,
                                          .principal = request->principal,
                                          .payload_bytes = batch_bytes}};
    vsr_digest(request->batch, request->batch_size, event.prepare.digest);
    uint64_t position;
    struct ring_slot *slot = store_prepare_begin(store, &store->data, replica, &event, &position);
    uint8_t *stored = ring_slot_payload(slot);
    const struct batch_server server = {
        .size_bytes = batch_bytes,
        .append_time_us = event.prepare.append_time_us,
        .op = event.prepare.op,
        .first_view = event.prepare.first_view,
        .principal = request->principal,
    };
    batch_encode_server(&server, stored);
    memcpy(stored + BATCH_SERVER_HEADER_BYTES, request->batch, request->batch_size);
    slot->batch_bytes = batch_bytes;
    slot->record_count = client->record_count;
    slot->token = request->token;
    slot->outcome = 1;
    outbox_accept(store->outbox);
    store_entry_ready(slot);
}
