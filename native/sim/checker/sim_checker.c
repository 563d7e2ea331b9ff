/* checker/sim_checker.c: what must hold, whatever happened: acknowledged records are there,
 * once, at their offsets, with their bytes; offsets have no holes; nothing comes from nowhere;
 * commits and owners do not go back; closes add up to the log. */
#include "checker/sim_checker.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "batch/batch.h"
#include "clients/sim_clients.h"
#include "cluster/sim_cluster.h"
#include "faults/sim_faults.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"

static uint32_t sim_seed(const struct sim_node *node, uint32_t partition)
{
    static const char cluster_id[ENGINE_ID_SIZE] = SIM_CLUSTER_ID;
    const struct engine_partition_id *id = &node->clients->partitions[partition].id;
    return batch_seed(cluster_id, id->topic, id->created_revision, id->partition);
}

struct sim_walk {
    uint64_t offset; /* expected next */
    uint64_t cumulative;
    uint64_t bytes;
    uint64_t records;
    uint64_t op;
    int64_t append_time_us;
    uint8_t cut; /* the log begins somewhere in the next batch */
};

/* Which batch of ours is this? */
static struct sim_batch *sim_match(struct sim_node *node, uint32_t partition, const uint8_t *client,
                                   uint32_t size)
{
    uint64_t mark = (uint64_t)bytes_get_i64(client + 48);
    if (mark == 0 || mark > node->clients->batches_count) return NULL;
    struct sim_batch *batch = &node->clients->batches[mark - 1];
    return batch->partition == partition && batch->hash == XXH3_64bits(client, size) ? batch : NULL;
}

static void sim_check_batch(struct sim_node *node, uint32_t partition, struct sim_walk *walk,
                            const struct batch_server *server, const uint8_t *client,
                            uint32_t client_size)
{
    struct sim_batch *batch = sim_match(node, partition, client, client_size);
    unsigned long long offset = server->base_offset;
    if (!batch) {
        sim_fail(node, "partition %u offset %llu: a batch from nowhere", partition, offset);
        return;
    }
    if (walk->cut && server->base_offset <= walk->offset) {
        walk->offset = server->base_offset;
        walk->cumulative = server->cumulative_bytes - server->size_bytes;
    }
    walk->cut = 0;
    if (server->base_offset != walk->offset)
        sim_fail(node, "partition %u: offset %llu follows %llu", partition, offset,
                 (unsigned long long)walk->offset);
    if (batch->seen)
        sim_fail(node, "partition %u offset %llu: a batch is stored twice", partition, offset);
    if (batch->state == SIM_BATCH_ACKED && batch->base_offset != server->base_offset) {
        sim_fail(node, "partition %u: acknowledged at %llu, stored at %llu", partition,
                 (unsigned long long)batch->base_offset, offset);
    }
    if (batch->state == SIM_BATCH_REFUSED)
        sim_fail(node, "partition %u offset %llu: a refused batch is stored", partition, offset);
    if (server->append_time_us <= walk->append_time_us)
        sim_fail(node, "partition %u offset %llu: time does not grow", partition, offset);
    if (server->op <= walk->op)
        sim_fail(node, "partition %u offset %llu: ops do not grow", partition, offset);
    if (server->append_time_us > node->cluster->clock.believed_us + 1000000)
        sim_fail(node, "partition %u offset %llu: stamped ahead of the believed clock", partition,
                 offset);
    walk->cumulative += server->size_bytes;
    if (server->cumulative_bytes != walk->cumulative)
        sim_fail(node, "partition %u offset %llu: cumulative bytes", partition, offset);
    batch->seen = 1;
    if (batch->state == SIM_BATCH_UNKNOWN) batch->base_offset = server->base_offset;
    walk->offset += batch->records;
    walk->bytes += server->size_bytes;
    walk->records += batch->records;
    walk->op = server->op;
    walk->append_time_us = server->append_time_us;
}

/* The read that a fetch asks for, behind what is on its way. */
static void sim_fetch_read(struct sim_node *node, const struct store_fetch *fetch,
                           struct io_request *read)
{
    *read = (struct io_request){.operation = IO_READ,
                                .file = fetch->file,
                                .offset = fetch->file_offset,
                                .size = fetch->size,
                                .buffer = node->clients->read_bytes,
                                .kind = UINT32_MAX};
    assert(fetch->size <= 1048576);
    node->storage.io.submit(&node->storage, read);
    for (;;) {
        struct io_request *done = sim_request(node);
        assert(done != NULL);
        if (done == read) break;
        store_complete(node->store, done);
    }
}

/* Fetch once from `offset`: bytes of whole batches in read_bytes, their size, 0 = nothing more. */
static size_t sim_fetch(struct sim_node *node, uint32_t partition, uint64_t offset)
{
    const struct engine_partition_id *id = &node->clients->partitions[partition].id;
    for (uint32_t tries = 0; tries < 5000 && !node->cluster->result->failed; tries++) {
        if (node->broken) return 0;
        struct store_fetch fetch;
        uint32_t bytes_max = (uint32_t)random_between(&node->cluster->random, 100, 30000);
        store_fetch(node->store, id, offset, bytes_max, 0, 0, &fetch);
        if (fetch.status == STATUS_BUSY) {
            sim_io(node, 8);
            continue;
        }
        if (sim_stopped(node, partition, fetch.status)) return 0;
        node->truncated = fetch.status == STATUS_TRUNCATED && fetch.log_start > offset;
        if (node->truncated) return 0;
        if (fetch.status != STATUS_OK) {
            sim_fail(node, "partition %u offset %llu: fetch says %s", partition,
                     (unsigned long long)offset, status_name(fetch.status));
            return 0;
        }
        if (fetch.place == STORE_FETCH_NOTHING) {
            if (fetch.high_watermark != offset)
                sim_fail(node, "partition %u: nothing at %llu below the end", partition,
                         (unsigned long long)offset);
            return 0;
        }
        if (fetch.place == STORE_FETCH_MEMORY) {
            uint8_t *target = node->clients->read_bytes;
            for (uint32_t index = 0; index < fetch.batches_count; index++) {
                memcpy(target, fetch.batches[index].data, fetch.batches[index].size);
                target += fetch.batches[index].size;
            }
            return fetch.size;
        }
        struct io_request read;
        sim_fetch_read(node, &fetch, &read);
        if (node->storage.ambush.fired) return 0; /* this read it was, perhaps */
        if (read.result_bytes < fetch.size && node->clients->partitions[partition].may_stop)
            fetch.size = read.size = read.result_bytes; /* what is there tells what it is */
        if (read.status != STATUS_OK || read.result_bytes != read.size) {
            sim_fail(node, "partition %u offset %llu: a read of %llu bytes gave %llu (%s)",
                     partition, (unsigned long long)offset, (unsigned long long)read.size,
                     (unsigned long long)read.result_bytes, status_name(read.status));
            return 0;
        }
        size_t begin = 0;
        size_t end = 0;
        enum status status = store_fetch_trim(node->store, id, offset, bytes_max,
                                              node->clients->read_bytes, fetch.size, &begin, &end);
        if (sim_stopped(node, partition, status)) return 0;
        if (status != STATUS_OK) {
            sim_fail(node, "partition %u offset %llu: trim says %s", partition,
                     (unsigned long long)offset, status_name(status));
            return 0;
        }
        if (end > begin) {
            memmove(node->clients->read_bytes, node->clients->read_bytes + begin, end - begin);
            return end - begin;
        }
    }
    sim_fail(node, "partition %u offset %llu: fetch makes no progress", partition,
             (unsigned long long)offset);
    return 0;
}

void sim_check_log(struct sim_node *node, uint32_t partition)
{
    struct sim_walk walk = {.append_time_us = INT64_MIN};
    struct engine_partition_state state;
    for (;;) {
        size_t size = sim_fetch(node, partition, walk.offset);
        if (node->truncated && sim_trims_look(node, partition, &state)) {
            walk.offset = state.log_start;
            walk.cut = 1;
            continue;
        }
        if (size == 0 || node->cluster->result->failed) break;
        for (size_t at = 0; at < size && !node->cluster->result->failed;) {
            struct batch_server server;
            struct batch_client client;
            enum status status = batch_check_stored(node->clients->read_bytes + at, size - at,
                                                    sim_seed(node, partition), &server, &client);
            if (status != STATUS_OK) {
                sim_fail(node, "partition %u after %llu: %s", partition,
                         (unsigned long long)walk.offset, status_name(status));
                return;
            }
            sim_check_batch(node, partition, &walk, &server,
                            node->clients->read_bytes + at + BATCH_SERVER_HEADER_BYTES,
                            client.size_bytes);
            at += server.size_bytes;
        }
    }
    if (node->clients->partitions[partition].stopped || node->broken) return;
    if (node->storage.ambush.fired) return; /* the read that it hit may have been one of these */
    if (node->clients->partitions[partition].end_offset > walk.offset) {
        sim_fail(node, "partition %u ends at %llu, %llu was known", partition,
                 (unsigned long long)walk.offset,
                 (unsigned long long)node->clients->partitions[partition].end_offset);
    }
    node->clients->partitions[partition].end_offset = walk.offset;
    if (!sim_trims_look(node, partition, &state)) return;
    if (walk.op != 0 && walk.cumulative != state.cumulative_bytes)
        sim_fail(node, "partition %u: bytes since it began", partition);
    node->clients->partitions[partition].log_bytes = state.cumulative_bytes;
    node->clients->partitions[partition].log_records = walk.offset;
}

void sim_check_logs(struct sim_node *node)
{
    for (uint32_t index = 0; index < node->clients->batches_count; index++)
        node->clients->batches[index].seen = 0;
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        const struct sim_partition *partition = &node->clients->partitions[index];
        if (!partition->deleted && !partition->stopped) sim_check_log(node, index);
    }
    if (node->cluster->result->failed) return;
    for (uint32_t index = 0; index < node->clients->batches_count; index++) {
        struct sim_batch *batch = &node->clients->batches[index];
        if (batch->partition == SIM_PARTITIONS_MAX) continue;
        const struct sim_partition *partition = &node->clients->partitions[batch->partition];
        if (partition->deleted || partition->stopped) continue;
        int kept = batch->base_offset + batch->records > partition->log_start;
        if (batch->state == SIM_BATCH_ACKED && !batch->seen && kept) {
            sim_fail(node, "partition %u: batch %u was acknowledged at %llu and is lost",
                     batch->partition, index, (unsigned long long)batch->base_offset);
        }
        /* A crash decided the fate of plain batches whose answer was lost. */
        if (batch->state == SIM_BATCH_UNKNOWN) {
            batch->state = batch->seen ? SIM_BATCH_ACKED : SIM_BATCH_REFUSED;
        }
    }
}

static int sim_same_topic(const struct sim_partition *left, const struct sim_partition *right)
{
    return !right->deleted && left->id.topic == right->id.topic
           && left->id.created_revision == right->id.created_revision;
}

void sim_check_stored(struct sim_node *node)
{
    for (uint32_t index = 0;
         index < node->clients->partitions_count && !node->cluster->result->failed; index++) {
        const struct sim_partition *first = &node->clients->partitions[index];
        if (first->deleted) continue;
        uint64_t bytes = 0;
        int sure = 1;
        for (uint32_t each = 0; each < node->clients->partitions_count; each++) {
            const struct sim_partition *partition = &node->clients->partitions[each];
            if (!sim_same_topic(first, partition)) continue;
            struct engine_partition_state state;
            enum status status = store_describe(node->store, &partition->id, &state);
            /* One that a start found stopped is not billed; one that stops later is. */
            if (status != STATUS_OK || (state.state != 1 && state.state != 4)) sure = 0;
            bytes += state.bytes;
        }
        uint64_t paid =
            store_stored_bytes(node->store, first->id.topic, first->id.created_revision);
        if (sure ? paid != bytes : paid > bytes)
            sim_fail(node, "partition %u: its topic stores %llu bytes and pays for %llu", index,
                     (unsigned long long)bytes, (unsigned long long)paid);
    }
}

/* One fetch in the middle of everything: what comes back is what was stored. */
void sim_check_fetch(struct sim_node *node, uint32_t partition, uint64_t offset)
{
    size_t size = sim_fetch(node, partition, offset);
    if (node->cluster->result->failed || node->broken || node->storage.ambush.fired) return;
    if (node->clients->partitions[partition].stopped || node->truncated) return;
    if (size == 0) {
        sim_fail(node, "partition %u offset %llu: nothing below the end", partition,
                 (unsigned long long)offset);
        return;
    }
    for (size_t at = 0; at < size;) {
        struct batch_server server;
        struct batch_client client;
        enum status status = batch_check_stored(node->clients->read_bytes + at, size - at,
                                                sim_seed(node, partition), &server, &client);
        if (status != STATUS_OK
            || !sim_match(node, partition,
                          node->clients->read_bytes + at + BATCH_SERVER_HEADER_BYTES,
                          client.size_bytes)) {
            sim_fail(node, "partition %u offset %llu: other bytes", partition,
                     (unsigned long long)offset);
            return;
        }
        if (at == 0
            && (server.base_offset > offset
                || server.base_offset + client.record_count <= offset)) {
            sim_fail(node, "partition %u: asked for %llu, got %llu", partition,
                     (unsigned long long)offset, (unsigned long long)server.base_offset);
        }
        at += server.size_bytes;
    }
}

void sim_check_groups(struct sim_node *node)
{
    for (uint32_t index = 0;
         index < node->clients->partitions_count && !node->cluster->result->failed; index++) {
        struct sim_partition *partition = &node->clients->partitions[index];
        if (partition->deleted || partition->stopped) continue;
        for (uint32_t which = 0; which < SIM_GROUPS_MAX; which++) {
            struct sim_group *group = &partition->groups[which];
            struct engine_group_state state;
            enum status status = store_group_state(node->store, &partition->id, which + 1, &state);
            if (status != STATUS_OK) sim_fail(node, "group state: %s", status_name(status));
            int pending = group->commit_busy && state.has_committed
                          && state.committed == group->committed_pending;
            int known =
                state.has_committed == group->has_committed && state.committed == group->committed;
            if (!pending && !known) {
                sim_fail(node, "partition %u group %u: committed %llu, was %llu", index, which,
                         (unsigned long long)state.committed, (unsigned long long)group->committed);
            }
            int fenced = group->fence_busy && state.generation == group->generation_pending;
            if (state.generation != group->generation && !fenced) {
                sim_fail(node, "partition %u group %u: generation %llu, was %llu", index, which,
                         (unsigned long long)state.generation,
                         (unsigned long long)group->generation);
            }
            group->committed = state.committed;
            group->has_committed = state.has_committed;
            group->generation = state.generation;
            if (group->generation > group->frozen) group->frozen = group->generation;
            group->commit_busy = group->fence_busy = 0;
        }
    }
}

/* All windows closed: what was billed is what the log holds. */
void sim_check_meters(struct sim_node *node)
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        struct sim_partition *partition = &node->clients->partitions[index];
        if (partition->deleted || partition->stopped) continue;
        for (uint32_t turn = 0; turn < 8; turn++) {
            /* The eighth unacknowledged close holds the next one back: acknowledge, then flush
             * again. */
            (void)store_meter_flush(node->store, &partition->id, SIM_WAITS_MAX);
            node->clients->waits[SIM_WAITS_MAX - 1] =
                (struct sim_wait){.kind = SIM_WAIT_FLUSH, .partition = index};
            sim_settle(node);
            if (sim_ended(node)) return;
            sim_pass(node->cluster, 6000000);
            sim_host_meters(node);
        }
    }
    sim_check_logs(node);
    if (!node->cluster->result->failed) sim_check_stored(node);
    if (node->cluster->result->failed) return;
    for (uint32_t index = 0;
         index < node->clients->partitions_count && !node->cluster->result->failed; index++) {
        const struct sim_partition *partition = &node->clients->partitions[index];
        if (partition->deleted || partition->stopped) continue;
        uint64_t bytes = 0;
        uint64_t records = 0;
        for (uint32_t each = 0; each < node->clients->closes_count; each++) {
            if (node->clients->closes[each].partition != index) continue;
            bytes += node->clients->closes[each].bytes;
            records += node->clients->closes[each].records;
        }
        if (bytes != partition->log_bytes || records != partition->log_records) {
            sim_fail(node, "partition %u: %llu bytes billed, %llu in the log", index,
                     (unsigned long long)bytes, (unsigned long long)partition->log_bytes);
        }
    }
}
