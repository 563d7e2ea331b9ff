#include "store/admit.h"

#include "foundation/assert.h"
#include "store/accounting/producer_quota.h"
#include "store/accounting/retention.h"
#include "store/checkpoint/live_entries.h"
#include "store/clock.h"
#include "store/files/requests.h"
#include "store/outbox.h"
#include "store/propose.h"
#include "store/registry.h"
#include "store/state.h"

/* ---- room ---- */

static uint64_t gathered_in(const struct prepare_ring *ring)
{
    return ring->head - ring->durable;
}

/* Twice the bytes gathered: an entry that does not fit the rest of an extent leaves it unused. */
static int journal_has_room(const struct store *store, uint64_t entry_bytes)
{
    const struct journal *journal = &store->journal;
    uint32_t free = journal_extents_free(journal);
    uint64_t usable =
        free > JOURNAL_EXTENTS_RESERVED
            ? (free - JOURNAL_EXTENTS_RESERVED) * journal_extent_payload_bytes(&journal->config)
            : 0;
    uint64_t gathered =
        gathered_in(&store->data_ring) + gathered_in(&store->metadata_ring) + entry_bytes;
    uint64_t half = journal_file_bytes(&journal->config) / 2;
    return usable >= 2 * gathered && live_entries_bytes(store) + gathered <= half;
}

enum status admit_entry(struct store *store, struct prepare_ring *ring, uint64_t entry_bytes)
{
    if (store->failed != STATUS_OK) return STATUS_STOPPING;
    int room = prepare_ring_fits(ring, entry_bytes) && journal_has_room(store, entry_bytes)
               && outbox_fits(store->outbox);
    if (room) return STATUS_OK;
    store->statistics.refused_busy++;
    return STATUS_BUSY;
}

enum status admit_answer(struct store *store)
{
    if (outbox_fits(store->outbox)) return STATUS_OK;
    store->statistics.refused_busy++;
    return STATUS_BUSY;
}

enum status admit_op(struct store *store, uint64_t payload_bytes)
{
    uint64_t entry = JOURNAL_ENTRY_HEADER_BYTES + ENTRY_PREPARE_BYTES + payload_bytes;
    uint64_t founding = 2 * RING_SLOT_HEADER_BYTES + 2 * JOURNAL_ENTRY_HEADER_BYTES
                        + ENTRY_VIEW_STATE_BYTES + ENTRY_PREPARE_BYTES + PARTITION_CONFIGURE_BYTES
                        + 2 * RING_SLOT_ALIGNMENT;
    if (entry > journal_entry_bytes_max(&store->journal.config)) return STATUS_MESSAGE_TOO_LARGE;
    return admit_entry(store, &store->data_ring, entry + founding);
}

/* ---- records ---- */

struct verdict {
    const struct store_produce *request;
    enum status status;
    struct batch_client client;
    struct replica *replica;
    const struct store_topic *topic;
    struct partition_admission sequence; /* the last check's, with its data */
    uint8_t answered; /* a refusal that carries data, or a duplicate: an outcome at once */
};

static void check_batch(struct store *store, struct verdict *verdict)
{
    const struct store_produce *request = verdict->request;
    maybe(store->failed == STATUS_OK);
    verdict->status = batch_check_client(request->batch, request->batch_size,
                                         request->message_bytes_max, &verdict->client);
}

static void check_partition(struct store *store, struct verdict *verdict)
{
    verdict->status = registry_open(store, &verdict->request->id, &verdict->replica);
    if (verdict->status == STATUS_OK && verdict->replica->corrupt) verdict->status = STATUS_CORRUPT;
    verdict->topic = registry_topic(store, verdict->request->id.topic);
}

/* Commits, fences, seals, metadata and usage need no more room than the journal has already: they
 * go on, so that groups read and topics can be deleted. */
static void check_disk(struct store *store, struct verdict *verdict)
{
    if (!requests_disk_is_full(store) || (verdict->topic->flags & ENGINE_TOPIC_SYSTEM)) return;
    store->statistics.refused_full++;
    verdict->status = STATUS_STORAGE_FULL;
}

static void check_room(struct store *store, struct verdict *verdict)
{
    verdict->status = admit_op(store, BATCH_SERVER_HEADER_BYTES + verdict->request->batch_size);
}

static void check_quota(struct store *store, struct verdict *verdict)
{
    int closing = (verdict->topic->flags & ENGINE_TOPIC_CLOSING) != 0;
    if (!closing) verdict->status = producer_quota_check(store, verdict->replica, &verdict->client);
}

/* The last one: once it says OK the batch counts as unresolved. */
static void check_sequence(struct store *store, struct verdict *verdict)
{
    struct partition *partition = &verdict->replica->state;
    partition->segment_next = verdict->topic->segment_limit;
    partition->now_us = store_clock_us(store);
    partition->closing = (verdict->topic->flags & ENGINE_TOPIC_CLOSING) != 0;
    verdict->sequence =
        partition_admit_batch(partition, &verdict->client, verdict->request->principal);
    verdict->status = verdict->sequence.status;
    switch (verdict->status) {
    case STATUS_OK: verdict->answered = verdict->sequence.duplicate; break;
    case STATUS_ALREADY_COMMITTED:
    case STATUS_OUT_OF_SEQUENCE:
    case STATUS_SESSION_EXPIRED:
    case STATUS_PRODUCER_FENCED: verdict->answered = 1; break;
    case STATUS_SEGMENT_POOL_FULL: store_retention_relieve(store); break;
    default: break;
    }
}

static void verdict_answer(struct store *store, const struct verdict *verdict)
{
    const struct partition_admission *sequence = &verdict->sequence;
    struct store_outcome outcome = {
        .token = verdict->request->token,
        .status = sequence->status,
        .base_offset = sequence->base_offset,
        .expected = sequence->expected,
        .record_count = sequence->record_count,
        .duplicate = sequence->duplicate,
        .append_time_us = sequence->append_time_us,
    };
    if (sequence->status == STATUS_OUT_OF_SEQUENCE) store->statistics.out_of_sequence++;
    if (sequence->duplicate) store->statistics.duplicates++;
    outbox_answer_now(store->outbox, verdict->replica, &outcome);
}

enum status store_produce(struct store *store, const struct store_produce *request)
{
    static void (*const checks[])(struct store *, struct verdict *) = {
        check_batch, check_partition, check_disk, check_room, check_quota, check_sequence,
    };
    enum { CHECKS_COUNT = sizeof checks / sizeof *checks };
    struct verdict verdict = {.request = request};
    for (uint32_t check = 0; check < CHECKS_COUNT && verdict.status == STATUS_OK; check++)
        checks[check](store, &verdict);
    if (verdict.answered) {
        verdict_answer(store, &verdict);
        verdict.status = STATUS_OK;
    } else if (verdict.status == STATUS_OK) {
        propose_batch(store, verdict.replica, request, &verdict.client);
    }
    return verdict.status;
}
