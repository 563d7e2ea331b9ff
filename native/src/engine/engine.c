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
#include "io/io_clock.h"
#include "io/io_socket.h"
#include "io/node_identity.h"
#include "service/shard_queues.h"
#include "shard/open.h"
#include "shard/shard.h"

enum { FOLDER_SIZE = 512, DETAIL_SIZE = 256, CHECKPOINT_MS = 5000 };

struct shard *engine_shard(const struct engine *engine, uint16_t index)
{
    assert(index < engine->node.shards_count);
    return &engine->shards[index];
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
    engine->node.shards_count = shards_count;
    engine->lock_fd = -1;
    engine->node.listener = -1;
    engine->node.host_wake.fd = -1;
    engine->node.stop_wake.fd = -1;
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
    for (uint16_t source = 0; source < engine->node.shards_count; source++)
        for (uint16_t target = 0; target < engine->node.shards_count; target++)
            shard_queues_connect(engine->shards[source].service, engine->shards[target].service);
}

static enum status engine_open_all(struct engine *engine, char *detail, size_t detail_size)
{
    enum status status = descriptors_share(descriptors_raise(), engine->node.shards_count,
                                           &engine->node.descriptors, detail, detail_size);
    if (status == STATUS_OK) status = wake_open(&engine->node.host_wake);
    if (status == STATUS_OK) status = wake_open(&engine->node.stop_wake);
    if (status != STATUS_OK) return status;
    struct node_identity identity;
    status = node_identity_open(&engine->node.config, (uint64_t)clock_wall_us(), &identity,
                                &engine->lock_fd, detail, detail_size);
    if (status != STATUS_OK) return status;
    engine->node.node_incarnation = identity.node_incarnation;
    engine->node.formatted = identity.formatted;
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
        char folder[FOLDER_SIZE];
        snprintf(folder, sizeof folder, "%s/layout-%llu/shard-%u", engine->node.config.data_path,
                 (unsigned long long)identity.layout, (unsigned)index);
        engine->shards_opened = (uint16_t)(index + 1);
        status =
            shard_open(&engine->shards[index], &engine->node, index, folder, detail, detail_size);
        if (status != STATUS_OK) return status;
        engine->node.shard_wakes[index] = &engine->shards[index].wake;
    }
    queues_connect(engine);
    return identity.formatted ? STATUS_OK
                              : node_identity_formatted(&engine->node.config, &identity);
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
    opened->node.config = *config;
    opened->phase = ENGINE_PHASE_OPENED;
    pthread_mutex_init(&opened->send_mutex, NULL);
    snprintf(opened->node.data_path, sizeof opened->node.data_path, "%s", config->data_path);
    snprintf(opened->node.host, sizeof opened->node.host, "%s", config->host);
    opened->node.config.data_path = opened->node.data_path;
    opened->node.config.host = opened->node.host;
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
        snprintf(detail, detail_size, "%s:%u", engine->node.host,
                 (unsigned)engine->node.config.port);
    enum status status = socket_listen(engine->node.host, engine->node.config.port,
                                       &engine->node.listener, &engine->port);
    if (status != STATUS_OK) return status;
    engine->phase = ENGINE_PHASE_STARTED;
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
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
    return engine->node.host_wake.fd;
}

static uint32_t threads_started(const struct engine *engine)
{
    uint32_t count = 0;
    for (uint16_t index = 0; index < engine->node.shards_count; index++)
        count += engine->shards[index].thread_started;
    return count;
}

/* Wait until every started thread is done. 1 = so it is. */
static int threads_wait(struct engine *engine, uint32_t started, uint64_t deadline_ns)
{
    while (__atomic_load_n(&engine->node.done_count, __ATOMIC_ACQUIRE) < started) {
        uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= deadline_ns) return 0;
        uint64_t left_ms = (deadline_ns - now_ns) / 1000000 + 1;
        struct pollfd waited = {.fd = engine->node.stop_wake.fd, .events = POLLIN};
        int found = poll(&waited, 1, left_ms > 1000 ? 1000 : (int)left_ms);
        assert(found >= 0 || errno == EINTR);
        if (found > 0) wake_drain(&engine->node.stop_wake);
    }
    return 1;
}

int engine_stop(struct engine *engine, uint32_t timeout_ms)
{
    if (engine->phase != ENGINE_PHASE_STARTED) return STATUS_OK;
    uint32_t started = threads_started(engine);
    int incomplete = started < engine->node.shards_count;
    __atomic_store_n(&engine->node.stopping, 1, __ATOMIC_RELEASE);
    /* Shards that never started cannot be waited for by the others. */
    if (incomplete)
        __atomic_store_n(&engine->node.failed, (uint32_t)-STATUS_THREAD_FAILED, __ATOMIC_RELEASE);
    node_raise_shards(&engine->node);
    uint64_t now_ns = clock_monotonic_ns();
    int clean = threads_wait(engine, started, now_ns + timeout_ms * UINT64_C(1000000));
    uint64_t patience_ns = CHECKPOINT_MS * UINT64_C(1000000);
    for (uint32_t step = 1;
         step <= 2 && __atomic_load_n(&engine->node.done_count, __ATOMIC_ACQUIRE) < started;
         step++) {
        __atomic_store_n(&engine->node.abandoning, step, __ATOMIC_RELEASE);
        node_raise_shards(&engine->node);
        (void)threads_wait(engine, started, clock_monotonic_ns() + patience_ns);
    }
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
        struct shard *shard = &engine->shards[index];
        if (shard->thread_started) thread_join(shard->thread);
        shard->thread_started = 0;
        io_file_stop(&shard->file);
    }
    engine->phase = ENGINE_PHASE_STOPPED;
    uint32_t failed = __atomic_load_n(&engine->node.failed, __ATOMIC_ACQUIRE);
    if (failed != 0) return -(int)failed;
    return clean ? STATUS_OK : STATUS_TIMEOUT;
}

void engine_close(struct engine *engine)
{
    if (engine == NULL) return;
    if (engine->phase == ENGINE_PHASE_STARTED) (void)engine_stop(engine, 0);
    for (uint16_t index = 0; index < engine->shards_opened; index++)
        shard_close(&engine->shards[index]);
    if (engine->node.listener >= 0) socket_close(engine->node.listener);
    wake_close(&engine->node.host_wake);
    wake_close(&engine->node.stop_wake);
    if (engine->lock_fd >= 0) close(engine->lock_fd);
    pthread_mutex_destroy(&engine->send_mutex);
    munmap(engine, sizeof(struct engine) + sizeof(struct shard) * engine->node.shards_count);
}

const char *engine_status_text(int status)
{
    return status_text(status);
}

const char *engine_status_name(int status)
{
    return status_name(status);
}
