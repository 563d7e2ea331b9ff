/* store/state.c: a shard's state is measured and made, and looked at as a whole. */
#include "store/state.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "store/accounting/producer_quota.h"
#include "store/accounting/retention.h"
#include "store/accounting/shard_records.h"
#include "store/accounting/storage_meter.h"
#include "store/accounting/usage_windows.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_file.h"
#include "store/checkpoint/duplicate_entries.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/metadata.h"
#include "store/checkpoint/reappend.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/clock.h"
#include "store/execute.h"
#include "store/files/folder_list.h"
#include "store/files/open_files.h"
#include "store/files/requests.h"
#include "store/files/retire.h"
#include "store/files/segment_writer.h"
#include "store/files/trim.h"
#include "store/outbox.h"
#include "store/read/read_cursor.h"
#include "store/recovery/recovery.h"
#include "store/registry.h"
#include "store/round.h"
#include "store/state.h"

enum state_default {
    EXTENT_BYTES = 16777216,
    JOURNAL_BYTES = 201334784, /* 12 extents and the two header blocks */
    PREPARES_BYTES = 67108864,
    PARTITIONS_MAX = 1024,
    PRODUCERS_MAX = 16384,
    WINDOW_S = 60,
    FETCH_WAY_BYTES = 4194304,      /* then the read is resumed: it has to fit a buffer */
    ROUND_BLOCKS_MAX = 2560,        /* 10 MiB: the largest batch and two directories */
    METADATA_RING_BYTES = 33554432, /* four of the largest commands */
    SEGMENTS_SPARE = 64, /* chunks and index blocks per partition beyond the first, up to 4096 */
    SEGMENTS_SPARE_MAX = 4096,
    SNAPSHOT_OPS = 1024,
    CHECKPOINT_INLINE_MAX = 65536,                   /* J7 */
    RESULTS_BYTES = ENGINE_FRAME_SIZE_MAX + 1048576, /* of metadata's commands */
};

static_assert((uint64_t)ROUND_BLOCKS_MAX * JOURNAL_BLOCK_PAYLOAD_BYTES
                  > BATCH_STORED_BYTES_MAX + 4096
                        + 2 * (uint64_t)JOURNAL_DIRECTORY_MAX * JOURNAL_DIRECTORY_ITEM_BYTES,
              "the largest batch fits a round");

static uint32_t segments_spare(const struct store_config *config)
{
    uint32_t spare = config->partitions_max * SEGMENTS_SPARE;
    return spare < SEGMENTS_SPARE_MAX ? spare : SEGMENTS_SPARE_MAX;
}

static struct store_config config_full(const struct store_config *given)
{
    struct store_config config = *given;
    if (config.extent_bytes == 0) config.extent_bytes = EXTENT_BYTES;
    if (config.journal_bytes == 0) config.journal_bytes = JOURNAL_BYTES;
    if (config.prepares_bytes == 0) config.prepares_bytes = PREPARES_BYTES;
    if (config.partitions_max == 0) config.partitions_max = PARTITIONS_MAX;
    if (config.files_max == 0 || config.files_max > OPEN_FILES_MAX)
        config.files_max = OPEN_FILES_MAX;
    if (config.producers_max == 0) config.producers_max = PRODUCERS_MAX;
    if (config.metering_window_s == 0) config.metering_window_s = WINDOW_S;
    if (config.shards_count == 0) config.shards_count = 1;
    if (config.snapshot_ops == 0) config.snapshot_ops = SNAPSHOT_OPS;
    if (config.checkpoint_inline_bytes == 0) config.checkpoint_inline_bytes = CHECKPOINT_INLINE_MAX;
    if (config.segments_max == 0)
        config.segments_max = config.partitions_max * SEGMENT_CHUNK_COUNT + segments_spare(&config);
    if (config.index_blocks_max == 0)
        config.index_blocks_max = config.partitions_max * 2 + segments_spare(&config);
    if (config.fetch_way_bytes == 0) config.fetch_way_bytes = FETCH_WAY_BYTES;
    config.extent_bytes = config.extent_bytes / JOURNAL_BLOCK_BYTES * JOURNAL_BLOCK_BYTES;
    config.prepares_bytes = config.prepares_bytes / ARENA_PAGE_BYTES * ARENA_PAGE_BYTES;
    return config;
}

static struct journal_config journal_config_of(const struct store_config *config)
{
    struct journal_config journal = {.extent_blocks =
                                         (uint32_t)(config->extent_bytes / JOURNAL_BLOCK_BYTES)};
    uint64_t count = (config->journal_bytes - JOURNAL_FILE_HEADER_BYTES) / config->extent_bytes;
    if (count < JOURNAL_EXTENTS_MIN) count = JOURNAL_EXTENTS_MIN;
    if (count > JOURNAL_EXTENTS_MAX) count = JOURNAL_EXTENTS_MAX;
    journal.extents_count = (uint32_t)count;
    journal.round_blocks_max =
        journal.extent_blocks - 1 < ROUND_BLOCKS_MAX ? journal.extent_blocks - 1 : ROUND_BLOCKS_MAX;
    /* A journal belongs to one shard of one node in one incarnation: blocks of another are no
     * blocks. */
    uint8_t name[2 * ENGINE_ID_SIZE + 16];
    uint8_t digest[16];
    memcpy(name, config->cluster_id, ENGINE_ID_SIZE);
    memcpy(name + ENGINE_ID_SIZE, config->node_id, ENGINE_ID_SIZE);
    bytes_put_u64(name + 2 * ENGINE_ID_SIZE, config->node_incarnation);
    bytes_put_u64(name + 2 * ENGINE_ID_SIZE + 8, config->shard);
    vsr_digest(name, sizeof name, digest);
    journal.id = bytes_get_u64(digest);
    return journal;
}

/* Of a replica that this node founds. */
static struct entry_member member_of(const struct store_config *config)
{
    uint8_t node[ENGINE_ID_SIZE];
    uint8_t digest[16];
    memcpy(node, config->node_id, sizeof node);
    vsr_digest(node, sizeof node, digest);
    return (struct entry_member){.node = bytes_get_u64(digest),
                                 .incarnation = config->node_incarnation,
                                 .tenure = VSR_EPOCH_FOUNDING};
}

static struct partition_limits partition_limits_of(const struct store_config *config)
{
    return (struct partition_limits){
        .producers_max = config->producers_max,
        .producers_reserve = config->producers_max / 8,
        .segments_max = config->segments_max,
        .index_blocks_max = config->index_blocks_max,
    };
}

static uint64_t control_ring_bytes(const struct store_config *config)
{
    return 2 * config->extent_bytes + 1048576;
}

struct state_sizes {
    struct store_config config;
    struct journal_config journal;
    struct partition_limits partitions;
    uint32_t replicas;
    int first; /* shard 0 has the metadata replica */
    size_t metadata_ring;
    size_t results;
};

static struct state_sizes state_measure(const struct store_config *given)
{
    struct state_sizes sizes = {.config = config_full(given)};
    sizes.journal = journal_config_of(&sizes.config);
    sizes.partitions = partition_limits_of(&sizes.config);
    int first = sizes.config.shard == 0;
    sizes.first = first;
    sizes.replicas = sizes.config.partitions_max + (first ? 1u : 0u);
    sizes.metadata_ring = first ? METADATA_RING_BYTES : ARENA_PAGE_BYTES;
    sizes.results = first ? RESULTS_BYTES : ARENA_PAGE_BYTES;
    return sizes;
}

static size_t parts_memory_bytes(const struct state_sizes *sizes)
{
    uint32_t extents = sizes->journal.extents_count;
    return outbox_memory_bytes(sizes->results) + store_clock_memory_bytes()
           + registry_memory_bytes(sizes->replicas) + rounds_memory_bytes()
           + committed_memory_bytes() + requests_memory_bytes() + open_files_memory_bytes()
           + segment_writer_memory_bytes() + folder_list_memory_bytes() + trims_memory_bytes()
           + retire_memory_bytes() + live_entries_memory_bytes(extents) + checkpoint_memory_bytes()
           + checkpoint_files_memory_bytes() + reappend_memory_bytes()
           + duplicate_entries_memory_bytes() + metadata_memory_bytes(sizes->first)
           + usage_windows_memory_bytes() + storage_meter_memory_bytes(sizes->replicas)
           + producer_quota_memory_bytes() + store_retention_memory_bytes(sizes->replicas)
           + shard_records_memory_bytes(extents) + read_cursors_memory_bytes()
           + recovery_memory_bytes();
}

size_t store_memory_bytes(const struct store_config *given)
{
    struct state_sizes sizes = state_measure(given);
    size_t total = arena_size(sizeof(struct store)) + parts_memory_bytes(&sizes);
    total += journal_memory_bytes(&sizes.journal) + partition_pools_bytes(&sizes.partitions);
    total += sizes.config.prepares_bytes + sizes.metadata_ring + control_ring_bytes(&sizes.config);
    total += sizes.config.extent_bytes + CHECKPOINT_BYTES_MAX;
    return total + 16 * ARENA_PAGE_BYTES;
}

static int make_memory(struct store *store, const struct state_sizes *sizes, struct arena *arena)
{
    uint64_t control_bytes = control_ring_bytes(&sizes->config);
    uint8_t *data = arena_take_aligned(arena, sizes->config.prepares_bytes, ARENA_PAGE_BYTES);
    uint8_t *metadata = arena_take_aligned(arena, sizes->metadata_ring, ARENA_PAGE_BYTES);
    uint8_t *control = arena_take_aligned(arena, control_bytes, ARENA_PAGE_BYTES);
    store->extent_buffer = arena_take_aligned(arena, sizes->config.extent_bytes, ARENA_PAGE_BYTES);
    store->checkpoint_buffer = arena_take_aligned(arena, CHECKPOINT_BYTES_MAX, ARENA_PAGE_BYTES);
    if (!data || !metadata || !control) return 0;
    prepare_ring_init(&store->data_ring, data, sizes->config.prepares_bytes);
    prepare_ring_init(&store->metadata_ring, metadata, sizes->metadata_ring);
    prepare_ring_init(&store->control_ring, control, control_bytes);
    return store->extent_buffer && store->checkpoint_buffer;
}

static int make_parts(struct store *store, const struct state_sizes *sizes, struct arena *arena)
{
    uint32_t extents = sizes->journal.extents_count;
    return (store->outbox = outbox_make(arena, sizes->results))
           && (store->clock = store_clock_make(arena, sizes->config.boot_uncertain))
           && (store->registry = registry_make(arena, sizes->replicas))
           && (store->rounds = rounds_make(arena)) && (store->committed = committed_make(arena))
           && (store->requests = requests_make(arena))
           && (store->files = open_files_make(arena, sizes->config.files_max))
           && (store->segment_writer = segment_writer_make(arena))
           && (store->folder_list = folder_list_make(arena)) && (store->trims = trims_make(arena))
           && (store->retiring = retire_make(arena))
           && (store->live_entries = live_entries_make(arena, extents))
           && (store->checkpoint = checkpoint_make(arena))
           && (store->checkpoint_files = checkpoint_files_make(arena))
           && (store->reappend = reappend_make(arena))
           && (store->duplicates = duplicate_entries_make(arena))
           && (store->metadata = metadata_make(arena, sizes->first))
           && (store->usage_windows = usage_windows_make(arena))
           && (store->storage_meter = storage_meter_make(arena, sizes->replicas))
           && (store->producer_quota = producer_quota_make(arena))
           && (store->retention = store_retention_make(arena, sizes->replicas))
           && (store->shard_records = shard_records_make(arena, extents))
           && (store->read_cursors = read_cursors_make(arena))
           && (store->report = recovery_make(arena));
}

struct store *store_allocate(const struct store_config *given, struct arena *arena)
{
    struct state_sizes sizes = state_measure(given);
    if (sizes.journal.extent_blocks < 8) return NULL;
    if (arena_left(arena) < store_memory_bytes(given)) return NULL;
    struct store *store = arena_take(arena, sizeof *store);
    if (!store || !make_parts(store, &sizes, arena)) return NULL;
    store->config = sizes.config;
    store->member = member_of(&sizes.config);
    journal_init(&store->journal, &sizes.journal, arena);
    if (partition_pools_init(&store->pools, arena, &sizes.partitions) != STATUS_OK) return NULL;
    return make_memory(store, &sizes, arena) ? store : NULL;
}

void store_fail(struct store *store, enum status status)
{
    assert(status != STATUS_OK);
    if (store->failed == STATUS_OK) store->failed = status;
}

enum status store_failed(const struct store *store)
{
    return store->failed;
}

void store_statistics(const struct store *store, struct store_statistics *statistics)
{
    const struct producer_pool *producers = &store->pools.producers;
    *statistics = store->statistics;
    statistics->replicas_live = registry_replicas_count(store);
    statistics->producers_used = producers->count - producers->free_count;
    statistics->replicas_removing = retire_count(store->retiring);
    statistics->partitions_trimming = trims_count(store->trims);
    statistics->clock_uncertain = (uint64_t)store_clock_uncertain(store);
    statistics->storage_full = (uint64_t)requests_disk_is_full(store);
    statistics->prepares_bytes_used = store->data_ring.head - store->data_ring.settled;
    statistics->journal_bytes_live = live_entries_bytes(store);
}

#ifdef ENGINE_CHECKED
enum { REPLICAS_WALKED_MAX = 64 /* a walk over more after every step would be too dear */ };

static void partitions_invariants(const struct store *store)
{
    uint32_t cursor = 0;
    const struct replica *replica;
    if (store->recovering) return;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        /* A log that stopped was left where damage or a newer release's op met it. */
        int serves =
            replica->vsr.status == VSR_NORMAL && !replica->corrupt && !replica->is_metadata;
        ergo(serves, partition_invariants(&replica->state));
    }
}

static void walked_invariants(const struct store *store)
{
    registry_invariants(store);
    live_entries_invariants(store);
    storage_meter_invariants(store);
    store_retention_invariants(store);
    segment_writer_invariants(store);
    replica_checkpoint_invariants(store);
    partitions_invariants(store);
    usage_windows_invariants(store);
    trims_invariants(store);
    retire_invariants(store);
}

void store_invariants(const struct store *store)
{
    if (store->failed != STATUS_OK) return; /* whatever was under way stays so */
    outbox_invariants(store->outbox);
    store_clock_invariants(store->clock);
    rounds_invariants(store);
    assert(journal_invariants(&store->journal));
    requests_invariants(store->requests);
    open_files_invariants(store->files);
    folder_list_invariants(store->folder_list);
    checkpoint_invariants(store);
    checkpoint_files_invariants(store->checkpoint_files);
    reappend_invariants(store);
    metadata_invariants(store);
    producer_quota_invariants(store);
    shard_records_invariants(store);
    read_cursors_invariants(store->read_cursors);
    if (registry_replicas_max(store) <= REPLICAS_WALKED_MAX) walked_invariants(store);
}
#else
void store_invariants(const struct store *store)
{
    maybe(store->failed == STATUS_OK);
}
#endif
