/* store/store.c: memory, requests, answers, time. The parts are listed in store/state.h. */
#include "store/state.h"

enum store_default {
    STORE_EXTENT_BYTES = 16777216,
    STORE_JOURNAL_BYTES = 201334784, /* 12 extents and the two header blocks */
    STORE_PREPARES_BYTES = 67108864,
    STORE_PARTITIONS_MAX = 1024,
    STORE_PRODUCERS_MAX = 16384,
    STORE_WINDOW_S = 60,
    STORE_FETCH_WAY_BYTES = 4194304,      /* then the read is resumed: it has to fit a buffer */
    STORE_ROUND_BLOCKS_MAX = 2560,        /* 10 MiB: the largest batch and two directories */
    STORE_METADATA_RING_BYTES = 33554432, /* four of the largest commands */
    STORE_SEGMENTS_SPARE =
        64, /* chunks and index blocks per partition beyond the first, up to 4096 */
    STORE_SEGMENTS_SPARE_MAX = 4096,
};

static_assert((uint64_t)STORE_ROUND_BLOCKS_MAX * JOURNAL_BLOCK_PAYLOAD_BYTES
                  > BATCH_STORED_BYTES_MAX + 4096
                        + 2 * (uint64_t)JOURNAL_DIRECTORY_MAX * JOURNAL_DIRECTORY_ITEM_BYTES,
              "the largest batch fits a round");

static uint32_t store_segments_spare(const struct store_config *config)
{
    uint32_t spare = config->partitions_max * STORE_SEGMENTS_SPARE;
    return spare < STORE_SEGMENTS_SPARE_MAX ? spare : STORE_SEGMENTS_SPARE_MAX;
}

static struct store_config store_config_full(const struct store_config *given)
{
    struct store_config config = *given;
    if (config.extent_bytes == 0) config.extent_bytes = STORE_EXTENT_BYTES;
    if (config.journal_bytes == 0) config.journal_bytes = STORE_JOURNAL_BYTES;
    if (config.prepares_bytes == 0) config.prepares_bytes = STORE_PREPARES_BYTES;
    if (config.partitions_max == 0) config.partitions_max = STORE_PARTITIONS_MAX;
    if (config.files_max == 0 || config.files_max > STORE_FILES_MAX)
        config.files_max = STORE_FILES_MAX;
    if (config.producers_max == 0) config.producers_max = STORE_PRODUCERS_MAX;
    if (config.metering_window_s == 0) config.metering_window_s = STORE_WINDOW_S;
    if (config.shards_count == 0) config.shards_count = 1;
    if (config.snapshot_ops == 0) config.snapshot_ops = STORE_SNAPSHOT_OPS;
    if (config.checkpoint_inline_bytes == 0)
        config.checkpoint_inline_bytes = STORE_INLINE_CHECKPOINT_MAX;
    if (config.segments_max == 0)
        config.segments_max =
            config.partitions_max * SEGMENT_CHUNK_COUNT + store_segments_spare(&config);
    if (config.index_blocks_max == 0)
        config.index_blocks_max = config.partitions_max * 2 + store_segments_spare(&config);
    if (config.fetch_way_bytes == 0) config.fetch_way_bytes = STORE_FETCH_WAY_BYTES;
    config.extent_bytes = config.extent_bytes / JOURNAL_BLOCK_BYTES * JOURNAL_BLOCK_BYTES;
    config.prepares_bytes = config.prepares_bytes / ARENA_PAGE_BYTES * ARENA_PAGE_BYTES;
    return config;
}

static struct journal_config store_journal_config(const struct store_config *config)
{
    struct journal_config journal = {.extent_blocks =
                                         (uint32_t)(config->extent_bytes / JOURNAL_BLOCK_BYTES)};
    uint64_t count = (config->journal_bytes - JOURNAL_FILE_HEADER_BYTES) / config->extent_bytes;
    if (count < JOURNAL_EXTENTS_MIN) count = JOURNAL_EXTENTS_MIN;
    if (count > JOURNAL_EXTENTS_MAX) count = JOURNAL_EXTENTS_MAX;
    journal.extents_count = (uint32_t)count;
    journal.round_blocks_max = journal.extent_blocks - 1 < STORE_ROUND_BLOCKS_MAX
                                   ? journal.extent_blocks - 1
                                   : STORE_ROUND_BLOCKS_MAX;
    /* A journal belongs to one shard of one node in one life: blocks of another are no blocks. */
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

static struct partition_limits store_partition_limits(const struct store_config *config)
{
    return (struct partition_limits){
        .producers_max = config->producers_max,
        .producers_reserve = config->producers_max / 8,
        .segments_max = config->segments_max,
        .index_blocks_max = config->index_blocks_max,
    };
}

static uint32_t store_buckets(uint32_t count)
{
    uint32_t buckets = 16;
    while (buckets < 2 * count) buckets *= 2;
    return buckets;
}

static uint64_t store_control_bytes(const struct store_config *config)
{
    return 2 * config->extent_bytes + 1048576;
}

struct store_sizes {
    struct store_config config;
    struct journal_config journal;
    struct partition_limits partitions;
    uint32_t replicas;
    size_t metadata_ring;
    size_t snapshot;
    size_t results;
};

static struct store_sizes store_measure(const struct store_config *given)
{
    struct store_sizes sizes = {.config = store_config_full(given)};
    sizes.journal = store_journal_config(&sizes.config);
    sizes.partitions = store_partition_limits(&sizes.config);
    int first = sizes.config.shard == 0;
    sizes.replicas = sizes.config.partitions_max + (first ? 1u : 0u);
    sizes.metadata_ring = first ? STORE_METADATA_RING_BYTES : ARENA_PAGE_BYTES;
    sizes.snapshot = first ? STORE_SNAPSHOT_MAX : ARENA_PAGE_BYTES;
    sizes.results = first ? STORE_RESULTS_BYTES : ARENA_PAGE_BYTES;
    return sizes;
}

size_t store_memory_bytes(const struct store_config *given)
{
    struct store_sizes sizes = store_measure(given);
    size_t total = arena_size(sizeof(struct store)) + arena_size(sizeof(struct journal_report));
    total += journal_memory_bytes(&sizes.journal) + partition_pools_bytes(&sizes.partitions);
    total += arena_size(sizes.replicas * sizeof(struct replica))
             + arena_size(STORE_TOPICS_MAX * sizeof(struct store_topic));
    total += 2 * arena_size(store_buckets(sizes.replicas) * sizeof(uint32_t));
    total += arena_size(store_accounts_max(sizes.replicas) * sizeof(struct store_account));
    total += arena_size(sizes.replicas * sizeof(uint32_t));
    total += arena_size(store_buckets(STORE_TOPICS_MAX) * sizeof(uint32_t))
             + arena_size(STORE_FILES_MAX * sizeof(uint32_t));
    total += outbox_memory_bytes(sizes.results) + store_clock_memory_bytes();
    total += arena_size(sizes.journal.extents_count * sizeof(struct queue));
    total += arena_size(STORE_IOS_MAX * sizeof(struct store_io))
             + arena_size(STORE_FILES_MAX * sizeof(struct store_file));
    total += sizes.config.prepares_bytes + sizes.metadata_ring + store_control_bytes(&sizes.config);
    total += STORE_REMOVAL_NAMES_BYTES;
    total += sizes.config.extent_bytes + STORE_BLOB_MAX + arena_size(sizes.snapshot);
    return total + 16 * ARENA_PAGE_BYTES;
}

static void store_free_lists(struct store *store)
{
    for (uint32_t index = 0; index < store->replicas_max; index++) {
        store->replicas[index].next = index + 1 < store->replicas_max ? index + 2 : 0;
    }
    store->replicas_free = 1;
    for (uint32_t index = 0; index < STORE_TOPICS_MAX; index++) {
        store->topics[index].next = index + 1 < STORE_TOPICS_MAX ? index + 2 : 0;
    }
    store->topics_free = 1;
    store_stored_init(store);
    for (uint32_t index = 0; index < STORE_IOS_MAX; index++) {
        store->ios[index].next = store->ios_free;
        store->ios_free = &store->ios[index];
    }
}

static int store_take_rings(struct store *store, const struct store_sizes *sizes,
                            struct arena *arena)
{
    uint8_t *data = arena_take_aligned(arena, sizes->config.prepares_bytes, ARENA_PAGE_BYTES);
    uint8_t *metadata = arena_take_aligned(arena, sizes->metadata_ring, ARENA_PAGE_BYTES);
    uint8_t *control =
        arena_take_aligned(arena, store_control_bytes(&sizes->config), ARENA_PAGE_BYTES);
    store->removal_names = arena_take_aligned(arena, STORE_REMOVAL_NAMES_BYTES, ARENA_PAGE_BYTES);
    store->extent_buffer = arena_take_aligned(arena, sizes->config.extent_bytes, ARENA_PAGE_BYTES);
    store->blob = arena_take_aligned(arena, STORE_BLOB_MAX, ARENA_PAGE_BYTES);
    store->snapshot.buffer = arena_take(arena, sizes->snapshot);
    if (!data || !metadata || !control || !store->extent_buffer || !store->blob) return 0;
    if (!store->clock || !store->snapshot.buffer || !store->outbox || !store->removal_names) return 0;
    prepare_ring_init(&store->data, data, sizes->config.prepares_bytes);
    prepare_ring_init(&store->metadata, metadata, sizes->metadata_ring);
    prepare_ring_init(&store->control, control, store_control_bytes(&sizes->config));
    return 1;
}

struct store *store_allocate(const struct store_config *given, struct arena *arena)
{
    struct store_sizes sizes = store_measure(given);
    if (sizes.journal.extent_blocks < 8) return NULL;
    if (arena_left(arena) < store_memory_bytes(given)) return NULL;
    struct store *store = arena_take(arena, sizeof *store);
    if (!store) return NULL;
    store->config = sizes.config;
    store->replicas_max = sizes.replicas;
    store->replica_buckets_count = store_buckets(sizes.replicas);
    store->topic_buckets_count = store_buckets(STORE_TOPICS_MAX);
    store->report = arena_take(arena, sizeof *store->report);
    store->replicas = arena_take(arena, sizes.replicas * sizeof *store->replicas);
    store->topics = arena_take(arena, STORE_TOPICS_MAX * sizeof *store->topics);
    store->replica_buckets = arena_take(arena, store->replica_buckets_count * sizeof(uint32_t));
    store->account_buckets = arena_take(arena, store->replica_buckets_count * sizeof(uint32_t));
    store->accounts =
        arena_take(arena, store_accounts_max(sizes.replicas) * sizeof *store->accounts);
    store->expiries = arena_take(arena, sizes.replicas * sizeof *store->expiries);
    store->topic_buckets = arena_take(arena, store->topic_buckets_count * sizeof(uint32_t));
    store->file_buckets = arena_take(arena, STORE_FILES_MAX * sizeof(uint32_t));
    store->outbox = outbox_make(arena, sizes.results);
    store->clock = store_clock_make(arena, sizes.config.boot_uncertain);
    store->pins = arena_take(arena, sizes.journal.extents_count * sizeof *store->pins);
    store->ios = arena_take(arena, STORE_IOS_MAX * sizeof *store->ios);
    store->files = arena_take(arena, STORE_FILES_MAX * sizeof *store->files);
    journal_init(&store->journal, &sizes.journal, arena);
    store_nobody_make(store, arena);
    if (partition_pools_init(&store->pools, arena, &sizes.partitions) != STATUS_OK) return NULL;
    if (!store_take_rings(store, &sizes, arena)) return NULL;
    store_free_lists(store);
    return store;
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

struct store_io *store_io_take(struct store *store, enum store_io_kind kind,
                               enum io_operation operation)
{
    struct store_io *io = store->ios_free;
    if (!io) return NULL;
    store->ios_free = io->next;
    store->ios_in_flight++;
    memset(&io->request, 0, sizeof io->request);
    io->request.operation = operation;
    io->request.kind = kind;
    io->request.token = (uint64_t)(io - store->ios);
    io->file = 0;
    io->replica = 0;
    io->batches = 0;
    return io;
}

void store_io_return(struct store *store, struct store_io *io)
{
    assert(store->ios_in_flight > 0);
    io->next = store->ios_free;
    store->ios_free = io;
    store->ios_in_flight--;
}

void store_io_send(struct store *store, struct store_io *io)
{
    if (!store->recovering) {
        store->io->submit(store->io->context, &io->request);
        return;
    }
    io->request.status = store->io->perform(store->io->context, &io->request);
    io->next = NULL;
    if (store->finished_tail)
        store->finished_tail->next = io;
    else
        store->finished_head = io;
    store->finished_tail = io;
}

enum status store_perform(struct store *store, struct io_request *request)
{
    assert(store->recovering);
    return store->io->perform(store->io->context, request);
}

void store_statistics(const struct store *store, struct store_statistics *statistics)
{
    *statistics = store->statistics;
    statistics->replicas_live = store->replicas_count;
    statistics->producers_used = store->pools.producers.count - store->pools.producers.free_count;
    statistics->replicas_removing = store->removals.count;
    statistics->partitions_trimming = store->trims.count;
    statistics->clock_uncertain = (uint64_t)store_clock_uncertain(store);
    statistics->storage_full = store->storage_full;
    statistics->prepares_bytes_used = store->data.head - store->data.settled;
    statistics->journal_bytes_live = store->live_bytes;
}
