#include "engine.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/state.h"
#include "foundation/assert.h"
#include "foundation/thread.h"
#include "host/ring.h"
#include "io/io_clock.h"
#include "io/io_socket.h"
#include "io/node_identity.h"
#include "shard/open.h"
#include "shard/shard.h"

enum { FOLDER_SIZE = 512, DETAIL_SIZE = 256, CHECKPOINT_MS = 5000 };

struct shard *engine_shard(const struct engine *engine, uint16_t index)
{
    assert(index < engine->shards_count);
    return &engine->shards[index];
}

void engine_raise_host(struct engine *engine)
{
    /* One write until the host has looked: it clears the flag before it reads the rings. */
    if (__atomic_exchange_n(&engine->host_raised, 1, __ATOMIC_ACQ_REL) == 0)
        wake_raise_always(&engine->host_wake);
}

void engine_fail(struct engine *engine, struct shard *shard, enum status status)
{
    assert(status != STATUS_OK);
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&engine->failed, &none, (uint32_t)-status, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    struct engine_frame frame = {.kind = ENGINE_STOPPED,
                                 .arg0 = (uint64_t)engine_result_of(status),
                                 .arg1 = (uint64_t)(uint32_t)-status};
    (void)host_post(shard, &frame, NULL);
    for (uint16_t index = 0; index < engine->shards_count; index++)
        wake_raise_always(&engine->shards[index].wake);
}

enum engine_result engine_result_of(enum status status)
{
    switch (status) {
    case STATUS_OK: return ENGINE_RESULT_OK;
    case STATUS_TOPIC_NOT_FOUND:
    case STATUS_NOT_FOUND: return ENGINE_RESULT_NOT_FOUND;
    case STATUS_RECREATED: return ENGINE_RESULT_RECREATED;
    case STATUS_FENCED:
    case STATUS_GROUP_CLOSED:
    case STATUS_STALE_INTENT: return ENGINE_RESULT_FENCED;
    case STATUS_DAMAGED:
    case STATUS_CORRUPT: return ENGINE_RESULT_DAMAGED;
    case STATUS_STOPPING: return ENGINE_RESULT_STOPPING;
    case STATUS_ALREADY_COMMITTED: return ENGINE_RESULT_DUPLICATE;
    case STATUS_CLOSED: return ENGINE_RESULT_CLOSED;
    case STATUS_HELD: return ENGINE_RESULT_HELD;
    case STATUS_STORAGE_FULL: return ENGINE_RESULT_STORAGE_FULL;
    case STATUS_IO_FAILED:
    case STATUS_STORAGE_READ_ONLY:
    case STATUS_ACCESS_REFUSED:
    case STATUS_DESCRIPTORS_USED_UP:
    case STATUS_IO_POISONED: return ENGINE_RESULT_STORAGE_FAILED;
    case STATUS_BUSY:
    case STATUS_NO_MEMORY:
    case STATUS_REBUILDING:
    case STATUS_GROUP_PENDING:
    case STATUS_TOO_MANY_IN_FLIGHT:
    case STATUS_SEGMENTS_FULL:
    case STATUS_SEGMENT_POOL_FULL:
    case STATUS_PRODUCERS_FULL:
    case STATUS_PARTITIONS_FULL:
    case STATUS_PRODUCERS_SHARE:
    case STATUS_TRIMS_FULL:
    case STATUS_JOURNAL_FULL: return ENGINE_RESULT_BUSY;
    default: return ENGINE_RESULT_INVALID;
    }
}

static enum status config_check(const struct engine_config *config, char *detail,
                                size_t detail_size)
{
    const char *wrong = NULL;
    if (config->data_path == NULL || config->data_path[0] == 0)
        wrong = "data_path is empty";
    else if (strlen(config->data_path) > FOLDER_SIZE - 64)
        wrong = "data_path is too long";
    else if (config->host == NULL || config->host[0] == 0)
        wrong = "host is empty";
    else if (config->shards_count == 0 || config->shards_count > ENGINE_SHARDS_MAX)
        wrong = "shards is not within 1..64";
    else if (config->cluster_id[0] == 0 || config->cluster_id[ENGINE_ID_SIZE - 1] != 0)
        wrong = "cluster_id";
    else if (config->node_id[0] == 0 || config->node_id[ENGINE_ID_SIZE - 1] != 0)
        wrong = "node_id";
    else if (config->metering_window_s != 0
             && (config->metering_window_s > 60 || 60 % config->metering_window_s != 0)) {
        wrong = "metering.window_seconds does not divide 60";
    } else if (config->shards_pinned
               && (long)config->shards_count > sysconf(_SC_NPROCESSORS_ONLN)) {
        wrong = "more pinned shards than CPUs";
    }
    if (wrong == NULL) return STATUS_OK;
    snprintf(detail, detail_size, "%s", wrong);
    return STATUS_CONFIG_INVALID;
}

/* The engine itself is mapped, like every arena: nothing here comes from malloc. */
static struct engine *engine_map(uint16_t shards_count)
{
    size_t size = sizeof(struct engine) + sizeof(struct shard) * shards_count;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    struct engine *engine = memory;
    engine->shards = (struct shard *)(void *)(engine + 1);
    engine->shards_count = shards_count;
    engine->lock_fd = -1;
    engine->listener = -1;
    engine->host_wake.fd = -1;
    engine->stop_wake.fd = -1;
    return engine;
}

/* Use what the system allows us. Returns the limit from then on. */
static uint64_t descriptors_raise(void)
{
    struct rlimit limit;
    int failed = getrlimit(RLIMIT_NOFILE, &limit);
    assert(failed == 0);
    rlim_t soft = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : soft;
}

static void queues_connect(struct engine *engine)
{
    for (uint16_t source = 0; source < engine->shards_count; source++) {
        for (uint16_t target = 0; target < engine->shards_count; target++) {
            for (int queue = 0; queue < QUEUES_COUNT; queue++) {
                struct ring *ring = engine->shards[target].queues.in[source][queue];
                engine->shards[source].queues.out[target][queue].ring = ring;
            }
        }
    }
}

static enum status engine_open_all(struct engine *engine, char *detail, size_t detail_size)
{
    enum status status = descriptors_share(descriptors_raise(), engine->shards_count,
                                           &engine->descriptors, detail, detail_size);
    if (status == STATUS_OK) status = wake_open(&engine->host_wake);
    if (status == STATUS_OK) status = wake_open(&engine->stop_wake);
    if (status != STATUS_OK) return status;
    struct node_identity identity;
    status = node_identity_open(&engine->config, (uint64_t)clock_wall_us(), &identity,
                                &engine->lock_fd, detail, detail_size);
    if (status != STATUS_OK) return status;
    engine->node_incarnation = identity.node_incarnation;
    engine->formatted = identity.formatted;
    for (uint16_t index = 0; index < engine->shards_count; index++) {
        char folder[FOLDER_SIZE];
        snprintf(folder, sizeof folder, "%s/layout-%llu/shard-%u", engine->config.data_path,
                 (unsigned long long)identity.layout, (unsigned)index);
        engine->shards_opened = (uint16_t)(index + 1);
        status = shard_open(&engine->shards[index], engine, index, folder, detail, detail_size);
        if (status != STATUS_OK) return status;
    }
    queues_connect(engine);
    return identity.formatted ? STATUS_OK : node_identity_formatted(&engine->config, &identity);
}

int engine_open(const struct engine_config *config, struct engine **engine, char *detail,
                size_t detail_size)
{
    char unread[DETAIL_SIZE];
    if (detail == NULL || detail_size == 0) {
        detail = unread;
        detail_size = sizeof unread;
    }
    detail[0] = 0;
    *engine = NULL;
    enum status status = config_check(config, detail, detail_size);
    if (status != STATUS_OK) return status;
    struct engine *opened = engine_map(config->shards_count);
    if (opened == NULL) return STATUS_MEMORY_REFUSED;
    opened->config = *config;
    opened->phase = ENGINE_PHASE_OPENED;
    pthread_mutex_init(&opened->send_mutex, NULL);
    snprintf(opened->data_path, sizeof opened->data_path, "%s", config->data_path);
    snprintf(opened->host, sizeof opened->host, "%s", config->host);
    opened->config.data_path = opened->data_path;
    opened->config.host = opened->host;
    status = engine_open_all(opened, detail, detail_size);
    if (status != STATUS_OK) {
        engine_close(opened);
        return status;
    }
    *engine = opened;
    return STATUS_OK;
}

int engine_start(struct engine *engine, char *detail, size_t detail_size)
{
    assert(engine->phase == ENGINE_PHASE_OPENED);
    if (detail != NULL)
        snprintf(detail, detail_size, "%s:%u", engine->host, (unsigned)engine->config.port);
    enum status status =
        socket_listen(engine->host, engine->config.port, &engine->listener, &engine->port);
    if (status != STATUS_OK) return status;
    engine->phase = ENGINE_PHASE_STARTED;
    for (uint16_t index = 0; index < engine->shards_count; index++) {
        status = shard_run_start(&engine->shards[index]);
        if (status == STATUS_OK) continue;
        if (detail != NULL) snprintf(detail, detail_size, "shard %u", (unsigned)index);
        (void)engine_stop(engine, 0);
        return status;
    }
    return STATUS_OK;
}

uint16_t engine_port(const struct engine *engine)
{
    return engine->port;
}

int engine_host_fd(const struct engine *engine)
{
    return engine->host_wake.fd;
}

static uint32_t threads_started(const struct engine *engine)
{
    uint32_t count = 0;
    for (uint16_t index = 0; index < engine->shards_count; index++)
        count += engine->shards[index].thread_started;
    return count;
}

/* Wait until every started thread is done. 1 = so it is. */
static int threads_wait(struct engine *engine, uint32_t started, uint64_t deadline_ns)
{
    while (__atomic_load_n(&engine->done_count, __ATOMIC_ACQUIRE) < started) {
        uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= deadline_ns) return 0;
        uint64_t left_ms = (deadline_ns - now_ns) / 1000000 + 1;
        struct pollfd waited = {.fd = engine->stop_wake.fd, .events = POLLIN};
        int found = poll(&waited, 1, left_ms > 1000 ? 1000 : (int)left_ms);
        assert(found >= 0 || errno == EINTR);
        if (found > 0) wake_drain(&engine->stop_wake);
    }
    return 1;
}

static void shards_wake(struct engine *engine)
{
    for (uint16_t index = 0; index < engine->shards_count; index++)
        wake_raise_always(&engine->shards[index].wake);
}

int engine_stop(struct engine *engine, uint32_t timeout_ms)
{
    if (engine->phase != ENGINE_PHASE_STARTED) return STATUS_OK;
    uint32_t started = threads_started(engine);
    int incomplete = started < engine->shards_count;
    __atomic_store_n(&engine->stopping, 1, __ATOMIC_RELEASE);
    /* Shards that never started cannot be waited for by the others. */
    if (incomplete)
        __atomic_store_n(&engine->failed, (uint32_t)-STATUS_THREAD_FAILED, __ATOMIC_RELEASE);
    shards_wake(engine);
    uint64_t now_ns = clock_monotonic_ns();
    int clean = threads_wait(engine, started, now_ns + timeout_ms * UINT64_C(1000000));
    uint64_t patience_ns = CHECKPOINT_MS * UINT64_C(1000000);
    for (uint32_t step = 1;
         step <= 2 && __atomic_load_n(&engine->done_count, __ATOMIC_ACQUIRE) < started; step++) {
        __atomic_store_n(&engine->abandoning, step, __ATOMIC_RELEASE);
        shards_wake(engine);
        (void)threads_wait(engine, started, clock_monotonic_ns() + patience_ns);
    }
    for (uint16_t index = 0; index < engine->shards_count; index++) {
        struct shard *shard = &engine->shards[index];
        if (shard->thread_started) thread_join(shard->thread);
        shard->thread_started = 0;
        io_file_stop(&shard->file);
    }
    engine->phase = ENGINE_PHASE_STOPPED;
    uint32_t failed = __atomic_load_n(&engine->failed, __ATOMIC_ACQUIRE);
    if (failed != 0) return -(int)failed;
    return clean ? STATUS_OK : STATUS_TIMEOUT;
}

void engine_close(struct engine *engine)
{
    if (engine == NULL) return;
    if (engine->phase == ENGINE_PHASE_STARTED) (void)engine_stop(engine, 0);
    for (uint16_t index = 0; index < engine->shards_opened; index++)
        shard_close(&engine->shards[index]);
    if (engine->listener >= 0) socket_close(engine->listener);
    wake_close(&engine->host_wake);
    wake_close(&engine->stop_wake);
    if (engine->lock_fd >= 0) close(engine->lock_fd);
    pthread_mutex_destroy(&engine->send_mutex);
    munmap(engine, sizeof(struct engine) + sizeof(struct shard) * engine->shards_count);
}

const char *engine_status_text(int status)
{
    return status_text(status);
}

const char *engine_status_name(int status)
{
    return status_name(status);
}
