/* partition/partition.c: see partition/partition.h. Checkpoints are in partition/checkpoint.c,
 * the bodies of operations in partition/body.c, trims and holds in partition/trim.c. */
#include "partition/partition.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"

size_t partition_pools_bytes(const struct partition_limits *limits)
{
    uint32_t chunks = (limits->segments_max + SEGMENT_CHUNK_COUNT - 1) / SEGMENT_CHUNK_COUNT;
    return producer_pool_bytes(limits->producers_max, limits->producers_reserve)
           + segment_pool_bytes(chunks) + offset_index_pool_bytes(limits->index_blocks_max);
}

enum status partition_pools_init(struct partition_pools *pools, struct arena *arena,
                                 const struct partition_limits *limits)
{
    uint32_t chunks = (limits->segments_max + SEGMENT_CHUNK_COUNT - 1) / SEGMENT_CHUNK_COUNT;
    enum status status = producer_pool_init(&pools->producers, arena, limits->producers_max,
                                            limits->producers_reserve);
    if (status == STATUS_OK) status = segment_pool_init(&pools->segments, arena, chunks);
    if (status == STATUS_OK)
        status = offset_index_pool_init(&pools->index, arena, limits->index_blocks_max);
    return status;
}

void partition_init(struct partition *partition, struct partition_pools *pools,
                    const struct partition_config *config)
{
    assert(config->limits.segment_bytes > 0);
    memset(partition, 0, sizeof *partition);
    partition->config = *config;
    producer_table_init(&partition->producers, &pools->producers);
    group_table_init(&partition->groups);
    meter_init(&partition->meter);
    retention_init(&partition->retention);
    segment_list_init(&partition->segments, &config->seeds, &pools->segments, &pools->index);
}

void partition_deinit(struct partition *partition)
{
    producer_table_deinit(&partition->producers);
    segment_list_deinit(&partition->segments);
}

/* ---- admission ---- */

static struct producer_batch partition_producer_batch(const struct batch_client *client)
{
    struct producer_batch batch = {
        .epoch = client->producer_epoch,
        .record_count = client->record_count,
        .base_sequence = client->base_sequence,
    };
    memcpy(batch.producer.bytes, client->producer_id, sizeof batch.producer.bytes);
    return batch;
}

static struct segment_limit partition_limit(const struct partition *partition)
{
    return (struct segment_limit){.bytes = partition->config.limits.segment_bytes,
                                  .time_us = partition->config.limits.segment_us};
}

/* A smaller one of the topic's row comes into the log with the next operation. */
static struct segment_limit partition_limit_least(const struct partition *partition)
{
    struct segment_limit least = partition_limit(partition);
    const struct segment_limit *next = &partition->segment_next;
    if (next->bytes == 0) return least;
    if (next->bytes < least.bytes) least.bytes = next->bytes;
    if (next->time_us > 0 && (least.time_us <= 0 || next->time_us < least.time_us))
        least.time_us = next->time_us;
    return least;
}

/* Stored before: answered so in every state of the partition (P3). */
static int partition_stored(const struct producer_decision *decision)
{
    return decision->status == STATUS_ALREADY_COMMITTED
           || (decision->status == STATUS_OK && decision->duplicate);
}

/* A batch that may be the repetition of one on its way is answered once that one is (P3). */
static enum status partition_closed(const struct partition *partition,
                                    const struct producer_batch *batch)
{
    int unknown = !partition_sealed(partition)
                  && producer_table_unresolved(&partition->producers, &batch->producer);
    return unknown ? STATUS_BUSY : STATUS_CLOSED;
}

struct partition_admission partition_admit_batch(struct partition *partition,
                                                 const struct batch_client *client,
                                                 uint32_t principal)
{
    struct partition_admission admission = {.status = STATUS_OK,
                                            .record_count = client->record_count};
    const struct segment_limit limit = partition_limit_least(partition);
    uint32_t size_bytes = BATCH_SERVER_HEADER_BYTES + client->size_bytes;
    enum status full = segment_admit(&partition->segments, &limit, size_bytes, partition->now_us);
    if (full == STATUS_OK && partition->config.limits.metered)
        full = meter_admit(&partition->meter, principal);
    struct producer_batch batch = partition_producer_batch(client);
    int closed = partition->closing || partition_sealed(partition);
    if (closed) full = partition_closed(partition, &batch);

    struct producer_decision decision = full == STATUS_OK
                                            ? producer_table_admit(&partition->producers, &batch)
                                            : producer_table_decide(&partition->producers, &batch);
    int fresh = decision.status == STATUS_OK && !decision.duplicate;
    if (fresh && full == STATUS_OK)
        segment_reserve(&partition->segments, &limit, size_bytes, partition->now_us);
    admission.status = fresh || (closed && !partition_stored(&decision)) ? full : decision.status;
    admission.duplicate = decision.duplicate;
    admission.base_offset = decision.base_offset;
    admission.expected = decision.expected;
    admission.append_time_us = decision.append_time_us;
    return admission;
}

void partition_admit_cancel(struct partition *partition, const struct batch_client *client)
{
    struct producer_batch batch = partition_producer_batch(client);
    producer_table_cancel(&partition->producers, &batch);
    segment_resolve(&partition->segments, BATCH_SERVER_HEADER_BYTES + client->size_bytes);
}

/* ---- apply ---- */

/* The batch is new and has room: give it its offset and its place. */
static void partition_append(struct partition *partition, const struct batch_server *server,
                             const struct batch_client *client, uint8_t *body,
                             struct partition_result *result)
{
    uint64_t cumulative_bytes = partition->cumulative_bytes + server->size_bytes;
    batch_assign(body, partition->config.seeds.batch, partition->next_offset, cumulative_bytes);
    struct segment_batch batch = {
        .bytes = body,
        .size_bytes = server->size_bytes,
        .record_count = client->record_count,
        .base_offset = partition->next_offset,
        .op = server->op,
        .append_time_us = server->append_time_us,
    };
    const struct segment_limit limit = partition_limit(partition);
    segment_append(&partition->segments, &batch, &limit, &result->place);
    if (partition->config.limits.metered) {
        enum status status = meter_add(&partition->meter, server->principal, server->size_bytes,
                                       client->record_count, server->append_time_us);
        assert(status == STATUS_OK);
    }
    result->append = 1;
    result->base_offset = partition->next_offset;
    result->append_time_us = server->append_time_us;
    partition->next_offset += client->record_count;
    partition->cumulative_bytes = cumulative_bytes;
    partition->append_time_us = server->append_time_us;
}

/* May a fresh batch be appended? From applied state alone, but NO_MEMORY: it was reserved. */
static enum status partition_room(const struct partition *partition,
                                  const struct batch_server *server)
{
    if (partition_sealed(partition)) return STATUS_CLOSED;
    const struct segment_limit limit = partition_limit(partition);
    enum status status = segment_room(&partition->segments, &limit, server->append_time_us);
    if (status == STATUS_OK && partition->config.limits.metered)
        status = meter_admit(&partition->meter, server->principal);
    return status;
}

static enum status partition_apply_batch(struct partition *partition, uint64_t op,
                                         int64_t append_time_us, uint8_t *body, size_t size,
                                         struct partition_result *result)
{
    struct batch_server server;
    struct batch_client client;
    if (batch_decode_server(body, size, partition->config.seeds.batch, &server) != STATUS_OK
        || server.size_bytes != size)
        return STATUS_OP_MALFORMED;
    if (batch_decode_client(body + BATCH_SERVER_HEADER_BYTES, size - BATCH_SERVER_HEADER_BYTES,
                            &client)
        != STATUS_OK) {
        return STATUS_OP_MALFORMED;
    }
    if (server.op != op || server.append_time_us != append_time_us) return STATUS_OP_MALFORMED;
    if (client.size_bytes != size - BATCH_SERVER_HEADER_BYTES) return STATUS_OP_MALFORMED;
    if (append_time_us <= partition->append_time_us) return STATUS_OP_MALFORMED;

    producer_table_expire(&partition->producers, append_time_us);
    result->record_count = client.record_count;
    struct producer_batch batch = partition_producer_batch(&client);
    /* A batch that finds no room is refused as if it had never come: its sequence stays free. */
    struct producer_decision decision = producer_table_decide(&partition->producers, &batch);
    int fresh = decision.status == STATUS_OK && !decision.duplicate;
    int judged = fresh || (partition_sealed(partition) && !partition_stored(&decision));
    enum status room = judged ? partition_room(partition, &server) : STATUS_OK;
    if (room == STATUS_NO_MEMORY) return room;
    if (room != STATUS_OK) {
        result->status = room;
        producer_table_refuse(&partition->producers, &batch);
        segment_resolve(&partition->segments, server.size_bytes);
        return STATUS_OK;
    }
    decision =
        producer_table_apply(&partition->producers, &batch, partition->next_offset, append_time_us);
    if (decision.status == STATUS_NO_MEMORY) return STATUS_NO_MEMORY;
    result->status = decision.status;
    result->duplicate = decision.duplicate;
    result->base_offset = decision.base_offset;
    result->expected = decision.expected;
    result->append_time_us = decision.append_time_us;
    if (decision.status == STATUS_OK && !decision.duplicate)
        partition_append(partition, &server, &client, body, result);
    segment_resolve(&partition->segments, server.size_bytes);
    return STATUS_OK;
}

static enum status partition_apply_commit(struct partition *partition, const uint8_t *body,
                                          size_t size, struct partition_result *result)
{
    struct partition_commit commit;
    enum status status = partition_decode_commit(body, size, &commit);
    if (status != STATUS_OK) return status;
    result->status = STATUS_CLOSED;
    if (partition_sealed(partition)) return STATUS_OK;
    result->status = group_table_commit(&partition->groups, commit.group, commit.generation,
                                        commit.offset, partition->next_offset, &result->group);
    result->base_offset = commit.offset;
    if (result->status == STATUS_OFFSET_BEYOND_END) result->expected = partition->next_offset;
    return STATUS_OK;
}

static enum status partition_apply_in_flight(struct partition *partition, const uint8_t *body,
                                             size_t size, struct partition_result *result)
{
    struct partition_in_flight in_flight;
    enum status status = partition_decode_in_flight(body, size, &in_flight);
    if (status != STATUS_OK) return status;
    result->status = STATUS_CLOSED;
    if (partition_sealed(partition)) return STATUS_OK;
    result->status = group_table_in_flight(&partition->groups, in_flight.group,
                                           in_flight.generation, &result->group);
    return STATUS_OK;
}

static enum status partition_apply_fence(struct partition *partition, enum partition_op kind,
                                         const uint8_t *body, size_t size,
                                         struct partition_result *result)
{
    struct partition_fence fence;
    enum status status = partition_decode_fence(body, size, &fence);
    if (status != STATUS_OK) return status;
    result->status = STATUS_CLOSED;
    if (partition_sealed(partition)) return STATUS_OK;
    result->status = kind == PARTITION_FREEZE
                         ? group_table_freeze(&partition->groups, fence.group, fence.generation,
                                              fence.intent_op, &result->group)
                         : group_table_close(&partition->groups, fence.group, fence.generation,
                                             fence.intent_op, &result->group);
    return STATUS_OK;
}

static enum status partition_apply_meter_close(struct partition *partition, uint64_t op,
                                               const uint8_t *body, size_t size,
                                               struct partition_result *result)
{
    struct partition_meter_close close;
    enum status status = partition_decode_meter_close(body, size, &close);
    if (status != STATUS_OK) return status;
    result->status =
        meter_close(&partition->meter, op, close.sequence, close.window_end_us, close.acked);
    result->meter_closed = result->status == STATUS_OK;
    return STATUS_OK;
}

static enum status partition_apply_expire(struct partition *partition, int64_t append_time_us,
                                          const uint8_t *body, size_t size)
{
    struct partition_expire expire;
    enum status status = partition_decode_expire(body, size, &expire);
    if (status != STATUS_OK) return status;
    int64_t latest_us = append_time_us - (int64_t)PRODUCER_IDLE_MINUTES * 60000000;
    int64_t until_us = expire.used_until_us < latest_us ? expire.used_until_us : latest_us;
    producer_table_expire(&partition->producers, append_time_us);
    producer_table_forget_until(&partition->producers, until_us);
    return STATUS_OK;
}

/* T1, T3: an overtaken intent changes nothing; the same one again is the same. */
static enum status partition_apply_seal(struct partition *partition, const uint8_t *body,
                                        size_t size, struct partition_result *result)
{
    struct partition_seal seal;
    enum status status = partition_decode_seal(body, size, &seal);
    if (status != STATUS_OK) return status;
    if (seal.intent_op < partition->seal_intent_op)
        result->status = STATUS_STALE_INTENT;
    else
        partition->seal_intent_op = seal.intent_op;
    return STATUS_OK;
}

static enum status partition_apply_configure(struct partition *partition, const uint8_t *body,
                                             size_t size)
{
    struct partition_configure configure;
    enum status status = partition_decode_configure(body, size, &configure);
    if (status == STATUS_OK) partition->config.limits = configure;
    return status;
}

enum status partition_apply(struct partition *partition, uint64_t op, enum partition_op kind,
                            int64_t append_time_us, uint8_t *body, size_t size,
                            struct partition_result *result)
{
    assert(op > partition->applied_op);
    memset(result, 0, sizeof *result);
    enum status status = STATUS_OP_UNKNOWN;
    switch (kind) {
    case PARTITION_BATCH:
        status = partition_apply_batch(partition, op, append_time_us, body, size, result);
        break;
    case PARTITION_COMMIT_OFFSET:
        status = partition_apply_commit(partition, body, size, result);
        break;
    case PARTITION_IN_FLIGHT:
        status = partition_apply_in_flight(partition, body, size, result);
        break;
    case PARTITION_FREEZE:
    case PARTITION_CLOSE:
        status = partition_apply_fence(partition, kind, body, size, result);
        break;
    case PARTITION_METER_CLOSE:
        status = partition_apply_meter_close(partition, op, body, size, result);
        break;
    case PARTITION_EXPIRE_PRODUCERS:
        status = partition_apply_expire(partition, append_time_us, body, size);
        break;
    case PARTITION_SEAL: status = partition_apply_seal(partition, body, size, result); break;
    case PARTITION_TRIM:
        status = partition_apply_trim(partition, op, append_time_us, body, size, result);
        break;
    case PARTITION_SET_HOLD: status = partition_apply_hold(partition, body, size, result); break;
    case PARTITION_CONFIGURE: status = partition_apply_configure(partition, body, size); break;
    }
    if (status == STATUS_OK) partition->applied_op = op;
    return status;
}

/* ---- reading ---- */

struct partition_place partition_find(struct partition *partition, uint64_t offset)
{
    struct partition_place place = {.status = STATUS_OK};
    if (offset < partition->log_start)
        place.status = STATUS_TRUNCATED;
    else if (offset > partition->next_offset)
        place.status = STATUS_OFFSET_OUT_OF_RANGE;
    else if (offset == partition->next_offset)
        place.status = STATUS_NOT_FOUND;
    if (place.status != STATUS_OK) return place;

    const struct segment *segment = segment_find(&partition->segments, offset);
    assert(segment != NULL);
    struct offset_index_entry entry =
        offset_index_find(&segment->index, segment->base_offset, offset);
    place.segment_base_offset = segment->base_offset;
    place.segment_data_bytes = segment->data_bytes;
    place.position = entry.position;
    place.stride_bytes = segment->index.stride_bytes;
    place.sealed = segment->sealed;
    place.indexed = segment->index.walked_bytes == segment->data_bytes;
    return place;
}

int partition_sealed(const struct partition *partition)
{
    return partition->seal_intent_op != 0;
}

enum status partition_group_fetch(const struct partition *partition, uint64_t group,
                                  uint64_t generation)
{
    enum status status = group_table_fetch(&partition->groups, group, generation);
    /* What it waits for can no longer come. */
    return status == STATUS_GROUP_PENDING && partition_sealed(partition) ? STATUS_CLOSED : status;
}

int partition_in_flight_due(const struct partition *partition, uint64_t group, uint64_t generation)
{
    struct group_state state;
    if (group_table_state(&partition->groups, group, &state) != STATUS_OK) return 0;
    return state.generation == generation && state.closed
           && group_table_fetch(&partition->groups, group, generation) == STATUS_GROUP_PENDING;
}

enum status partition_group_state(const struct partition *partition, uint64_t group,
                                  struct group_state *state)
{
    return group_table_state(&partition->groups, group, state);
}

struct segment *partition_segment(struct partition *partition, uint32_t position)
{
    return segment_at(&partition->segments, position);
}

uint64_t partition_bytes(const struct partition *partition)
{
    uint64_t bytes = 0;
    for (const struct segment_chunk *chunk = partition->segments.first; chunk;
         chunk = chunk->next) {
        for (uint32_t index = 0; index < chunk->count; index++)
            bytes += chunk->segments[index].data_bytes;
    }
    return bytes;
}

/* ---- meters ---- */

int partition_meter_due(const struct partition *partition, int64_t now_us, uint32_t window_s,
                        int force, struct partition_meter_close *close)
{
    int64_t window_us = (int64_t)window_s * 1000000;
    memset(close, 0, sizeof *close);
    return meter_due(&partition->meter, now_us, window_us, force, &close->sequence,
                     &close->window_end_us, &close->acked);
}

uint64_t partition_meter_acked(const struct partition *partition)
{
    const struct meter *meter = &partition->meter;
    return meter->acked_here > meter->acked ? meter->acked_here : meter->acked;
}

void partition_meter_ack(struct partition *partition, uint64_t sequence)
{
    meter_ack(&partition->meter, sequence);
}

const struct meter_close *partition_meter_next(const struct partition *partition, uint64_t after,
                                               const struct meter_sum **sums)
{
    return meter_next(&partition->meter, after, sums);
}

int partition_invariants(const struct partition *partition)
{
    assert(partition->log_start <= partition->next_offset);
    ergo(partition->segments.count == 0, partition->log_start == partition->next_offset);
    const struct segment_chunk *first = partition->segments.first;
    ergo(first != NULL, first->segments[0].base_offset <= partition->log_start);
    const struct segment_chunk *last = partition->segments.last;
    ergo(last != NULL, last->segments[last->count - 1].end_offset == partition->next_offset);
    ergo(partition->retention.events_count > 0,
         partition->retention.events[partition->retention.events_count - 1].to_offset
             == partition->log_start);
    return segment_list_invariants(&partition->segments)
           && producer_table_invariants(&partition->producers)
           && group_table_invariants(&partition->groups) && meter_invariants(&partition->meter)
           && retention_invariants(&partition->retention);
}
