#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#include "foundation/assert.h"
#include "grpc/server.h"
#include "host/host.h"
#include "host/node.h"
#include "io/io_clock.h"
#include "service/service.h"
#include "service/shard_queues.h"
#include "shard/open.h"
#include "shard/shard.h"

enum {
    MEMORY_DEFAULT = 256 * 1024 * 1024,
    POOL_UNIT = 16 * 1024 * 1024,
};

static void store_configure(const struct node *node, uint16_t index, struct store_config *store)
{
    const struct engine_config *config = &node->config;
    uint64_t memory = config->memory_bytes == 0 ? MEMORY_DEFAULT : config->memory_bytes;
    *store = (struct store_config){
        .shard = index,
        .shards_count = node->shards_count,
        .direct_io = config->direct_io,
        .journal_bytes = config->journal_bytes,
        .extent_bytes = config->extent_bytes,
        .prepares_bytes = memory / 4,
        .partitions_max = config->partitions_max,
        .files_max = node->descriptors.files_max,
        .metering_window_s = config->metering_window_s,
        .node_incarnation = node->node_incarnation,
        .formatted = node->formatted != 0,
    };
    memcpy(store->cluster_id, config->cluster_id, sizeof store->cluster_id);
    memcpy(store->node_id, config->node_id, sizeof store->node_id);
}

/* What the configuration leaves open. */
static void limits_settle(struct engine_limits *limits)
{
    static const struct engine_limits defaults = {
        .host_beat_ms = 5000,
        .silence_ms = 10000,
        .idle_ms = 15 * 60 * 1000,
        .age_ms = 12 * 60 * 60 * 1000,
        .age_grace_ms = 10 * 60 * 1000,
        .stall_ms = 60 * 1000,
        .message_ms = 30 * 1000,
        .snapshot_retry_ms = 1000,
        .call_ms = 60 * 1000,
    };
    uint32_t settled[sizeof defaults / sizeof(uint32_t)];
    uint32_t usual[sizeof defaults / sizeof(uint32_t)];
    memcpy(settled, limits, sizeof settled);
    memcpy(usual, &defaults, sizeof usual);
    for (size_t index = 0; index < sizeof settled / sizeof settled[0]; index++) {
        if (settled[index] == 0) settled[index] = usual[index];
    }
    memcpy(limits, settled, sizeof settled);
}

/* Often enough for the shortest of what it looks after. */
static uint32_t sweep_ms(const struct engine_limits *limits)
{
    const uint32_t watched[] = {limits->silence_ms,   limits->idle_ms,  limits->age_ms,
                                limits->age_grace_ms, limits->stall_ms, limits->message_ms};
    uint32_t shortest = 4 * SHARD_SWEEP_MS;
    for (size_t index = 0; index < sizeof watched / sizeof watched[0]; index++) {
        if (watched[index] < shortest) shortest = watched[index];
    }
    return shortest / 4;
}

static uint64_t pool_bytes(const struct node *node)
{
    uint64_t memory = node->config.memory_bytes == 0 ? MEMORY_DEFAULT : node->config.memory_bytes;
    uint64_t wanted = memory / 2 / POOL_UNIT * POOL_UNIT;
    return wanted < 4 * POOL_UNIT ? 4 * (uint64_t)POOL_UNIT : wanted;
}

static size_t memory_bytes(const struct node *node, const struct store_config *store)
{
    uint64_t pool = pool_bytes(node);
    size_t total = store_memory_bytes(store) + io_file_memory_bytes()
                   + service_memory_bytes(node->shards_count) + host_memory_bytes();
    total += arena_size((size_t)pool) + arena_size(buffer_pool_table_bytes(pool));
    total += arena_size(tables_topics_bytes()) + arena_size(grants_slots_bytes());
    total += arena_size(names_bytes(TABLES_TOPICS_COUNT_MAX, ENGINE_TOPIC_NAME_SIZE_MAX));
    total += arena_size(names_bytes(NAMES_PROJECTS_COUNT_MAX, ENGINE_PROJECT_NAME_SIZE_MAX));
    total += arena_size(tally_bytes()) + arena_size(timer_wheel_bytes());
    total += grpc_server_bytes();
    /* Alignment of page-aligned parts. */
    return total + 16 * (size_t)ARENA_PAGE_BYTES;
}

static enum status open_names(struct shard *shard)
{
    struct arena *arena = &shard->arena;
    size_t topics_bytes = names_bytes(TABLES_TOPICS_COUNT_MAX, ENGINE_TOPIC_NAME_SIZE_MAX);
    size_t projects_bytes = names_bytes(NAMES_PROJECTS_COUNT_MAX, ENGINE_PROJECT_NAME_SIZE_MAX);
    void *topics = arena_take(arena, topics_bytes);
    void *projects = arena_take(arena, projects_bytes);
    if (!topics || !projects) return STATUS_NO_MEMORY;
    uint8_t secret[NAMES_SECRET_SIZE];
    if (RAND_bytes(secret, sizeof secret) != 1) return STATUS_NO_MEMORY;
    names_init(&shard->tables.topic_names, topics, TABLES_TOPICS_COUNT_MAX,
               ENGINE_TOPIC_NAME_SIZE_MAX, secret);
    names_init(&shard->tables.projects, projects, NAMES_PROJECTS_COUNT_MAX,
               ENGINE_PROJECT_NAME_SIZE_MAX, secret);
    return STATUS_OK;
}

static enum status open_memory(struct shard *shard)
{
    struct arena *arena = &shard->arena;
    uint64_t pool = pool_bytes(shard->node);
    uint8_t *region = arena_take_aligned(arena, (size_t)pool, ARENA_PAGE_BYTES);
    uint8_t *table = arena_take(arena, buffer_pool_table_bytes(pool));
    struct table_topic *topics = arena_take(arena, tables_topics_bytes());
    struct grant *grants = arena_take(arena, grants_slots_bytes());
    void *wheel = arena_take(arena, timer_wheel_bytes());
    void *tally = arena_take(arena, tally_bytes());
    if (!region || !table || !topics || !grants || !wheel || !tally) return STATUS_NO_MEMORY;
    tally_init(&shard->tally, tally);
    buffer_pool_init(&shard->pool, region, pool, table);
    tables_init(&shard->tables, topics);
    timer_wheel_init(&shard->timers, wheel, clock_monotonic_ns());
    const struct engine_config *config = &shard->node->config;
    return grants_init(&shard->tables.grants, grants, config->admin_key_id, config->admin_sha256);
}

static void reply_give_back(void *context, struct reply *reply)
{
    struct shard *shard = context;
    struct shard_frame frame = {.kind = FRAME_RELEASE, .released = reply};
    shard_queues_post(shard->service, &frame, reply->owner, QUEUE_REPLY);
}

static void reply_pushable(void *context, struct http2_connection *connection)
{
    (void)context;
    service_pushable(connection);
}

static void reply_refunded(void *context, enum reply_kind kind)
{
    struct shard *shard = context;
    if (kind == REPLY_BATCHES) service_refunded(shard->service);
}

static enum status open_server(struct shard *shard)
{
    const struct engine_limits *limits = &shard->limits;
    const struct grpc_config config = {
        .shard = shard->index,
        .message_ms = limits->message_ms,
        .stall_ms = limits->stall_ms,
        .connections = {.connections_count = shard->node->descriptors.connections_max,
                        .silence_ms = limits->silence_ms,
                        .idle_ms = limits->idle_ms,
                        .age_ms = limits->age_ms,
                        .age_grace_ms = limits->age_grace_ms,
                        .stall_ms = limits->stall_ms},
        .pool = &shard->pool,
        .poll = &shard->poll,
        .timers = &shard->timers,
        .tally = &shard->tally,
        .grants = &shard->tables.grants,
        .now = &shard->now,
        .hooks = {.context = shard,
                  .give_back = reply_give_back,
                  .pushable = reply_pushable,
                  .refunded = reply_refunded},
    };
    shard->grpc = grpc_server_open(&shard->arena, &config);
    return shard->grpc != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status open_service(struct shard *shard)
{
    const struct service_config config = {
        .shard = shard->index,
        .shards_count = shard->shards_count,
        .host_beat_ms = shard->limits.host_beat_ms,
        .shard_wakes = shard->node->shard_wakes,
        .now = &shard->now,
        .store = shard->store,
        .tables = &shard->tables,
        .tally = &shard->tally,
        .pool = &shard->pool,
        .timers = &shard->timers,
        .file = &shard->file,
        .grpc = shard->grpc,
    };
    shard->service = service_make(&shard->arena, &config);
    return shard->service != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status open_host(struct shard *shard)
{
    const struct host_config config = {
        .shard = shard->index,
        .call_ms = shard->limits.call_ms,
        .snapshot_retry_ms = shard->limits.snapshot_retry_ms,
        .node = shard->node,
        .now = &shard->now,
        .store = shard->store,
        .service = shard->service,
        .tables = &shard->tables,
        .tally = &shard->tally,
        .pool = &shard->pool,
        .grpc = shard->grpc,
    };
    shard->host = host_make(&shard->arena, &config);
    return shard->host != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status shard_open(struct shard *shard, struct node *node, uint16_t index, const char *folder,
                       char *detail, size_t detail_size)
{
    *shard = (struct shard){
        .node = node,
        .index = index,
        .shards_count = node->shards_count,
        .listener = -1,
        .wake.fd = -1,
        .poll.fd = -1,
        .file.root_fd = -1,
        .file.thread_wake.fd = -1,
        .limits = node->config.limits,
    };
    limits_settle(&shard->limits);
    shard->sweep_ms = sweep_ms(&shard->limits);
    struct store_config store;
    store_configure(node, index, &store);
    size_t bytes = memory_bytes(node, &store);
    snprintf(detail, detail_size, "shard %u: %zu MiB", (unsigned)index, bytes >> 20);
    enum status status = arena_open(&shard->arena, bytes);
    if (status == STATUS_OK) status = wake_open(&shard->wake);
    if (status == STATUS_OK) status = poll_open(&shard->poll);
    if (status == STATUS_OK) status = open_memory(shard);
    if (status == STATUS_OK) status = open_names(shard);
    if (status == STATUS_OK) status = open_server(shard);
    if (status != STATUS_OK) return status;
    snprintf(detail, detail_size, "%s", folder);
    status =
        io_file_open(&shard->file, &shard->arena, folder, node->config.direct_io, &shard->wake);
    if (status != STATUS_OK) return status;
    shard->store = store_allocate(&store, &shard->arena);
    if (shard->store == NULL) return STATUS_NO_MEMORY;
    status = open_service(shard);
    if (status == STATUS_OK) status = open_host(shard);
    if (status != STATUS_OK) return status;
    arena_seal(&shard->arena);
    shard->now =
        (struct store_now){.monotonic_ns = clock_monotonic_ns(), .wall_us = clock_wall_us()};
    return store_open(shard->store, &shard->file.io, shard->now, detail, detail_size);
}

void shard_close(struct shard *shard)
{
    assert(!shard->thread_started);
    io_file_stop(&shard->file);
    if (shard->file.slots != NULL) io_file_close(&shard->file);
    if (shard->grpc != NULL) grpc_server_close(shard->grpc);
    if (shard->tables.grants.digest_context != NULL) grants_deinit(&shard->tables.grants);
    service_close(shard->service);
    poll_close(&shard->poll);
    wake_close(&shard->wake);
    if (shard->arena.memory != NULL) arena_close(&shard->arena);
}
