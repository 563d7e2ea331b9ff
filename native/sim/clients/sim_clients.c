/* clients/sim_clients.c: callers: idempotent producers that retry what they do not know, plain
 * ones that do not, commits, fences, metadata commands. They note what was promised to them. */
#include "clients/sim_clients.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "batch/batch.h"
#include "cluster/sim_cluster.h"
#include "faults/sim_faults.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"

size_t sim_batch_encode(uint8_t *target, size_t room, uint32_t records, uint32_t value_size,
                        uint64_t mark, const uint8_t producer_id[16], uint32_t epoch,
                        uint64_t sequence)
{
    assert(records > 0 && value_size >= 8);
    assert(BATCH_CLIENT_HEADER_BYTES + (size_t)records * (value_size + 24) <= room);
    uint8_t *at = target + BATCH_CLIENT_HEADER_BYTES;
    for (uint32_t index = 0; index < records; index++) {
        size_t body =
            bytes_uvarint_size(index) + 2 + bytes_uvarint_size(value_size + 1) + value_size + 1;
        at = bytes_put_uvarint(at, body);
        at = bytes_put_uvarint(at, index);
        at = bytes_put_uvarint(at, 0);
        at = bytes_put_uvarint(at, 0);
        at = bytes_put_uvarint(at, value_size + 1);
        for (uint32_t byte = 0; byte < value_size; byte++)
            at[byte] = (uint8_t)(mark * 31 + index * 7 + byte);
        bytes_put_u64(at, mark);
        at += value_size;
        at = bytes_put_uvarint(at, 0);
    }
    size_t size = (size_t)(at - target);
    memset(target, 0, BATCH_CLIENT_HEADER_BYTES);
    bytes_put_u32(target, (uint32_t)size);
    target[8] = 1;
    bytes_put_u32(target + 12, records);
    if (producer_id) memcpy(target + 16, producer_id, 16);
    bytes_put_u64(target + 32, sequence);
    bytes_put_u32(target + 40, epoch);
    bytes_put_u32(target + 44, records - 1);
    bytes_put_i64(target + 48, (int64_t)mark);
    bytes_put_i64(target + 56, (int64_t)mark);
    bytes_put_u32(target + 64, (uint32_t)(size - BATCH_CLIENT_HEADER_BYTES));
    bytes_put_u32(target + 4, crc32c(target + 8, size - 8));
    return size;
}

size_t sim_clients_memory_bytes(void)
{
    return SIM_BATCHES_MAX * sizeof(struct sim_batch) + SIM_CLOSES_MAX * sizeof(struct sim_close)
           + SIM_WAITS_MAX * sizeof(struct sim_wait) + 2 * SIM_CLIENT_BYTES + 8192;
}

static void sim_clients_partitions(struct sim_clients *clients, struct random *random)
{
    clients->partitions_count = (uint32_t)random_between(random, 2, SIM_PARTITIONS_MAX);
    for (uint32_t index = 0; index < clients->partitions_count; index++) {
        struct sim_partition *partition = &clients->partitions[index];
        partition->id = (struct engine_partition_id){
            .topic = 16 + index / 2, .created_revision = 5, .partition = index % 2};
        partition->broad =
            index % 2 == 0 && index + 1 < clients->partitions_count && random_chance(random, 2, 3);
        partition->deleted = index % 2 == 1 && !clients->partitions[index - 1].broad;
        partition->segment_bytes = random_between(random, 8, 64) * 1024;
        if (index % 2) partition->segment_bytes = clients->partitions[index - 1].segment_bytes;
        for (uint32_t producer = 0; producer < SIM_PRODUCERS_MAX; producer++) {
            bytes_put_u64(partition->producers[producer].id, index * 16 + producer + 1);
        }
    }
}

void sim_clients_init(struct sim_clients *clients, struct arena *arena, struct random *random)
{
    *clients = (struct sim_clients){.op_now = 10, .topic_next = 32};
    clients->batches = arena_take(arena, SIM_BATCHES_MAX * sizeof *clients->batches);
    clients->closes = arena_take(arena, SIM_CLOSES_MAX * sizeof *clients->closes);
    clients->waits = arena_take(arena, SIM_WAITS_MAX * sizeof *clients->waits);
    clients->batch_bytes = arena_take(arena, SIM_CLIENT_BYTES);
    clients->read_bytes = arena_take(arena, SIM_CLIENT_BYTES);
    assert(clients->batches && clients->closes && clients->waits && clients->batch_bytes
           && clients->read_bytes);
    sim_clients_partitions(clients, random);
}

uint64_t sim_wait(struct sim_node *node, uint8_t kind, uint32_t partition, uint32_t group,
                  uint64_t what)
{
    for (uint64_t tries = 0; tries < SIM_WAITS_MAX; tries++) {
        uint64_t index = node->clients->waits_free++ % SIM_WAITS_MAX;
        if (node->clients->waits[index].kind != 0) continue;
        node->clients->waits[index] =
            (struct sim_wait){.kind = kind, .partition = partition, .group = group, .what = what};
        return index + 1;
    }
    unreachable();
}

void sim_unwait(struct sim_node *node, uint64_t token)
{
    node->clients->waits[token - 1].kind = 0;
}

static size_t sim_batch_again(struct sim_node *node, uint32_t index)
{
    const struct sim_batch *batch = &node->clients->batches[index];
    const uint8_t *id = NULL;
    if (batch->producer < SIM_PRODUCERS_MAX)
        id = node->clients->partitions[batch->partition].producers[batch->producer].id;
    return sim_batch_encode(node->clients->batch_bytes, SIM_CLIENT_BYTES, batch->records,
                            batch->size, index + 1, id, 0, batch->sequence);
}

/* 1 = accepted. */
static int sim_send(struct sim_node *node, uint32_t index)
{
    struct sim_batch *batch = &node->clients->batches[index];
    size_t size = sim_batch_again(node, index);
    batch->hash = XXH3_64bits(node->clients->batch_bytes, size);
    uint64_t token = sim_wait(node, SIM_WAIT_PRODUCE, batch->partition, 0, index);
    const struct store_produce request = {
        .id = node->clients->partitions[batch->partition].id,
        .batch = node->clients->batch_bytes,
        .batch_size = size,
        .principal = 16 + batch->partition % 2,
        .message_bytes_max = 1048576,
        .token = token,
    };
    enum status status = store_produce(node->store, &request);
    if (status == STATUS_OK) return 1;
    sim_unwait(node, token);
    if (sim_stopped(node, batch->partition, status)) return 0;
    switch (status) {
    case STATUS_BUSY:
    case STATUS_NO_MEMORY:
    case STATUS_PARTITIONS_FULL:
    case STATUS_STORAGE_FULL:
    case STATUS_METER_FULL:
    case STATUS_SEGMENT_POOL_FULL:
    case STATUS_PRODUCERS_FULL:
    case STATUS_TOO_MANY_IN_FLIGHT:
    case STATUS_NOT_FOUND:
    case STATUS_TOPIC_NOT_FOUND:
    case STATUS_CLOSED:
    case STATUS_REBUILDING: break;
    default: sim_fail(node, "produce was refused: %s", status_name(status));
    }
    return 0;
}

static void sim_produce_idempotent(struct sim_node *node, uint32_t partition, uint32_t which)
{
    struct sim_producer *producer = &node->clients->partitions[partition].producers[which];
    if (producer->in_flight > 0 && producer->retry_batch != 0) return;
    if (producer->retry_batch != 0) {
        if (sim_send(node, (uint32_t)(producer->retry_batch - 1))) {
            producer->in_flight++;
            node->clients->batches[producer->retry_batch - 1].state = SIM_BATCH_SENT;
        }
        return;
    }
    if (producer->in_flight >= 4 || node->clients->batches_count == SIM_BATCHES_MAX) return;
    uint32_t index = node->clients->batches_count++;
    uint32_t records = (uint32_t)random_between(&node->cluster->random, 1, 4);
    node->clients->batches[index] =
        (struct sim_batch){.partition = partition,
                           .producer = which,
                           .sequence = producer->next_sequence,
                           .records = records,
                           .size = (uint32_t)random_between(&node->cluster->random, 8, 900),
                           .state = SIM_BATCH_SENT};
    if (sim_send(node, index)) {
        producer->next_sequence += records;
        producer->in_flight++;
    } else {
        node->clients->batches_count--;
    }
}

static void sim_produce_plain(struct sim_node *node, uint32_t partition)
{
    if (node->clients->batches_count == SIM_BATCHES_MAX) return;
    uint32_t index = node->clients->batches_count++;
    uint32_t size = (uint32_t)random_between(&node->cluster->random, 8, 2000);
    if (random_chance(&node->cluster->random, 1, 12))
        size = (uint32_t)random_between(&node->cluster->random, 4000, 16000);
    node->clients->batches[index] = (struct sim_batch){.partition = partition,
                                                       .producer = SIM_PRODUCERS_MAX,
                                                       .records = 1,
                                                       .size = size,
                                                       .state = SIM_BATCH_SENT};
    if (!sim_send(node, index)) node->clients->batches_count--;
}

void sim_client_produce(struct sim_node *node, uint32_t partition)
{
    uint32_t which = (uint32_t)random_below(&node->cluster->random, SIM_PRODUCERS_MAX + 2);
    if (which < SIM_PRODUCERS_MAX)
        sim_produce_idempotent(node, partition, which);
    else
        sim_produce_plain(node, partition);
}

static void sim_command(struct sim_node *node)
{
    if (node->host.sent + 1 >= SIM_COMMANDS_MAX) return;
    uint8_t command[300];
    uint64_t size = random_between(&node->cluster->random, 8, sizeof command);
    memset(command, (int)(node->host.sent & 0xff), sizeof command);
    bytes_put_u64(command, node->host.sent + 1);
    uint64_t token = sim_wait(node, SIM_WAIT_COMMAND, 0, 0, node->host.sent + 1);
    if (store_metadata_submit(node->store, command, size, token) != STATUS_OK) {
        sim_unwait(node, token);
        return;
    }
    node->host.sent++;
}

void sim_client_act(struct sim_node *node)
{
    uint32_t partition =
        (uint32_t)random_below(&node->cluster->random, node->clients->partitions_count);
    uint64_t dice = random_below(&node->cluster->random, 100);
    if (dice >= 92) {
        sim_command(node);
    } else if (node->clients->partitions[partition].deleted) {
        return;
    } else if (dice < 76) {
        sim_client_produce(node, partition);
    } else if (dice < 90) {
        sim_group_act(node, partition);
    } else {
        uint64_t token = sim_wait(node, SIM_WAIT_FLUSH, partition, 0, 0);
        if (store_meter_flush(node->store, &node->clients->partitions[partition].id, token)
            != STATUS_OK)
            sim_unwait(node, token);
    }
}

/* An operation behind the seal. */
int sim_closed(const struct sim_partition *partition, enum status status)
{
    return status == STATUS_CLOSED && (partition->closing || partition->deleted);
}

static void sim_produced(struct sim_node *node, const struct sim_wait *wait,
                         const struct store_outcome *outcome)
{
    struct sim_batch *batch = &node->clients->batches[wait->what];
    struct sim_partition *partition = &node->clients->partitions[wait->partition];
    struct sim_producer *producer =
        batch->producer < SIM_PRODUCERS_MAX ? &partition->producers[batch->producer] : NULL;
    if (producer) producer->in_flight--;
    node->cluster->hash = node->cluster->hash * 31 + wait->what * 7 + outcome->base_offset;
    if (outcome->status == STATUS_OK) {
        batch->state = SIM_BATCH_ACKED;
        batch->base_offset = outcome->base_offset;
        node->cluster->result->batches_acked++;
        uint64_t end = outcome->base_offset + batch->records;
        if (end > partition->end_offset) partition->end_offset = end;
        if (outcome->record_count != batch->records)
            sim_fail(node, "an ack with another record count");
        if (producer && producer->retry_batch == wait->what + 1) {
            /* The next one that is not known to be stored. */
            producer->retry_batch = 0;
            for (uint64_t next = wait->what + 1; next < node->clients->batches_count; next++) {
                const struct sim_batch *other = &node->clients->batches[next];
                if (other->partition != wait->partition || other->producer != batch->producer)
                    continue;
                if (other->state == SIM_BATCH_ACKED) continue;
                producer->retry_batch = next + 1;
                break;
            }
        }
    } else if (outcome->status == STATUS_METER_FULL && !producer) {
        batch->state = SIM_BATCH_REFUSED;
    } else if (sim_closed(partition, outcome->status)) {
        batch->state = SIM_BATCH_REFUSED;
    } else {
        sim_fail(node, "batch %llu of producer %u: %s, expected %llu",
                 (unsigned long long)wait->what, batch->producer, status_name(outcome->status),
                 (unsigned long long)outcome->expected);
    }
}

void sim_client_seal(struct sim_node *node, uint32_t index)
{
    struct sim_partition *partition = &node->clients->partitions[index];
    if (partition->seal_busy) return;
    uint64_t token = sim_wait(node, SIM_WAIT_SEAL, index, 0, 0);
    enum status status = store_seal(node->store, &partition->id, partition->seal_intent, token);
    partition->seal_busy = status == STATUS_OK;
    if (status == STATUS_OK) return;
    sim_unwait(node, token);
    if (sim_stopped(node, index, status)) return;
    if (status != STATUS_BUSY && status != STATUS_STORAGE_FULL && status != STATUS_NO_MEMORY)
        sim_fail(node, "a seal was refused: %s", status_name(status));
}

static void sim_sealed(struct sim_node *node, const struct sim_wait *wait,
                       const struct store_outcome *outcome)
{
    struct sim_partition *partition = &node->clients->partitions[wait->partition];
    partition->seal_busy = 0;
    if (outcome->status == STATUS_BUSY || outcome->status == STATUS_STORAGE_FULL) return;
    if (partition->deleted) return;
    if (sim_stopped(node, wait->partition, outcome->status)) return;
    if (outcome->status != STATUS_OK) {
        sim_fail(node, "a seal ended with %s", status_name(outcome->status));
        return;
    }
    const struct engine_sealed *sealed = &outcome->sealed;
    if (sealed->log_end < partition->end_offset)
        sim_fail(node, "partition %u was sealed at %llu, %llu was known", wait->partition,
                 (unsigned long long)sealed->log_end, (unsigned long long)partition->end_offset);
    partition->end_offset = sealed->log_end;
    partition->sealed = sealed->meter_sequence == sealed->meter_acked;
}

void sim_client_outcomes(struct sim_node *node)
{
    struct store_outcome outcome;
    while (store_outcome_next(node->store, &outcome)) {
        assert(outcome.token >= 1 && outcome.token <= SIM_WAITS_MAX);
        struct sim_wait wait = node->clients->waits[outcome.token - 1];
        sim_unwait(node, outcome.token);
        switch ((enum sim_wait_kind)wait.kind) {
        case SIM_WAIT_PRODUCE: sim_produced(node, &wait, &outcome); break;
        case SIM_WAIT_COMMIT:
        case SIM_WAIT_STALE:
        case SIM_WAIT_FREEZE:
        case SIM_WAIT_FENCE: sim_group_outcome(node, &wait, &outcome); break;
        case SIM_WAIT_COMMAND:
            if (outcome.body_size != 8 || bytes_get_u64(outcome.body) != wait.what)
                sim_fail(node, "a command's result is another's");
            if (wait.what > node->host.acked_last) node->host.acked_last = wait.what;
            break;
        case SIM_WAIT_FLUSH:
        case SIM_WAIT_BURIED: break;
        case SIM_WAIT_SEAL: sim_sealed(node, &wait, &outcome); break;
        case SIM_WAIT_PURGE:
        case SIM_WAIT_HOLD: sim_trims_outcome(node, &wait, &outcome); break;
        default: sim_fail(node, "an outcome that no client waits for");
        }
    }
    struct engine_partition_id id;
    while (store_advance_next(node->store, &id)) {
    }
}

/* What was in flight is unknown now. Idempotent producers will send it again, in order. */
void sim_clients_crashed(struct sim_node *node)
{
    memset(node->clients->waits, 0, SIM_WAITS_MAX * sizeof *node->clients->waits);
    sim_groups_crashed(node);
    sim_trims_crashed(node);
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        struct sim_partition *partition = &node->clients->partitions[index];
        partition->seal_busy = 0;
        for (uint32_t which = 0; which < SIM_PRODUCERS_MAX; which++) {
            partition->producers[which].in_flight = 0;
            partition->producers[which].retry_batch = 0;
        }
    }
    for (uint32_t index = node->clients->batches_count; index-- > 0;) {
        struct sim_batch *batch = &node->clients->batches[index];
        if (batch->state != SIM_BATCH_SENT || batch->partition == SIM_PARTITIONS_MAX) continue;
        if (batch->producer == SIM_PRODUCERS_MAX)
            batch->state = SIM_BATCH_UNKNOWN;
        else
            node->clients->partitions[batch->partition].producers[batch->producer].retry_batch =
                index + 1;
    }
}
