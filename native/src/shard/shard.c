#include "shard/shard.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "foundation/assert.h"
#include "foundation/ring.h"
#include "foundation/thread.h"
#include "grpc/server.h"
#include "host/counters.h"
#include "host/host.h"
#include "host/metadata.h"
#include "host/node.h"
#include "host/partitions.h"
#include "host/ring.h"
#include "io/io_clock.h"
#include "io/io_socket.h"
#include "service/pendings.h"
#include "service/service.h"
#include "service/shard_queues.h"
#include "shard/receive.h"
#include "shard/sweep.h"

enum { TOKEN_WAKE = 1 << 24, TOKEN_LISTENER = 1 << 25, ACCEPTS_PER_TURN = 64 };
enum { RETRY_NS = 1000000, ACCEPT_PAUSE_NS = 100000000, TURNS_PER_WALK = 1024 };

static int is_connection(uint64_t token)
{
    return token < HTTP2_CONNECTIONS_COUNT_MAX;
}

static int rings_have(const struct shard *shard)
{
    return ring_used(&shard->file.completions) > 0 || host_arrived(shard->host)
           || shard_queues_arrived(shard->service);
}

static uint64_t sleep_ns(const struct shard *shard)
{
    if (store_work(shard->store)) return 0;
    if (service_work(shard->service)) return 0;
    if (shard_queues_delayed(shard->service) || !host_empty(shard->host)) return RETRY_NS;
    uint64_t sleep = store_idle(shard->store) ? SHARD_IDLE_TICK_NS : SHARD_TICK_NS;
    if (shard->draining || service_reads_wait(shard->service)) sleep = RETRY_NS;
    uint64_t next_ns = timer_next_ns(&shard->timers);
    uint64_t now_ns = shard->now.monotonic_ns;
    if (next_ns <= now_ns) return 0;
    return next_ns - now_ns < sleep ? next_ns - now_ns : sleep;
}

static uint32_t turn_wait(struct shard *shard, struct poll_event *events)
{
    uint64_t timeout_ns = sleep_ns(shard);
    wake_announce(&shard->wake);
    if (timeout_ns > 0 && rings_have(shard)) timeout_ns = 0;
    uint32_t count = poll_wait(&shard->poll, events, timeout_ns);
    wake_settle(&shard->wake);
    shard->now =
        (struct store_now){.monotonic_ns = clock_monotonic_ns(), .wall_us = clock_wall_us()};
    return count;
}

/* Descriptors or kernel memory ran out: polling the listener would only spin. */
static void accept_pause(struct shard *shard)
{
    shard->counters.accepts_failed++;
    poll_remove(&shard->poll, shard->listener);
    shard->listener_paused_ns = shard->now.monotonic_ns + ACCEPT_PAUSE_NS;
}

static void accept_resume(struct shard *shard)
{
    if (shard->listener_paused_ns == 0 || shard->draining) return;
    if (shard->now.monotonic_ns < shard->listener_paused_ns) return;
    enum status status = poll_add(&shard->poll, shard->listener, POLL_READ, TOKEN_LISTENER);
    shard->listener_paused_ns = status == STATUS_OK ? 0 : shard->now.monotonic_ns + ACCEPT_PAUSE_NS;
}

static void accept_some(struct shard *shard)
{
    for (int left = ACCEPTS_PER_TURN; left > 0; left--) {
        int fd;
        enum socket_answer answer = socket_accept(shard->listener, &fd);
        if (answer == SOCKET_GONE) accept_pause(shard);
        if (answer != SOCKET_OK) return;
        if (fd >= shard->node->descriptors.accepted_end) {
            shard->counters.connections_refused++;
            socket_close(fd);
            continue;
        }
        uint16_t target = shard->hand_next;
        shard->hand_next = (uint16_t)((target + 1) % shard->shards_count);
        if (target != shard->index) {
            struct shard_frame frame = {.kind = FRAME_CONNECTION, .fd = fd};
            shard_queues_post(shard->service, &frame, target, QUEUE_MAIN);
        } else if (http2_connection_open(grpc_server_transport(shard->grpc), fd) != STATUS_OK) {
            shard->counters.connections_refused++;
            socket_close(fd);
        }
    }
}

static void turn_sockets(struct shard *shard, const struct poll_event *events, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++) {
        uint64_t token = events[index].token;
        if (token == TOKEN_WAKE) {
            wake_drain(&shard->wake);
        } else if (token == TOKEN_LISTENER) {
            accept_some(shard);
        } else {
            assert(is_connection(token));
            http2_event(grpc_server_transport(shard->grpc), token, events[index].interest);
        }
    }
}

static void turn_timers(struct shard *shard)
{
    struct timer *timer;
    while ((timer = timer_due(&shard->timers, shard->now.monotonic_ns)) != NULL) {
        if (timer->kind == SERVICE_TIMER)
            service_timeout(shard->service, timer);
        else
            grpc_deadline_passed(shard->grpc, timer);
    }
}

static void turn_completions(struct shard *shard)
{
    struct io_request *request;
    while ((request = io_file_completed(&shard->file)) != NULL) {
        if (!service_read_done(shard->service, request)) store_complete(shard->store, request);
    }
}

/* One outcome, to the call that waits for it. */
static void turn_outcome(struct shard *shard, const struct store_outcome *outcome)
{
    struct pending *pending = pending_find(shard->service, outcome->token);
    assert(pending != NULL);
    if (pending->kind == PENDING_HOST)
        host_outcome(shard->host, pending, outcome);
    else
        service_outcome(shard->service, pending, outcome);
}

static void turn_answers(struct shard *shard)
{
    struct store_outcome outcome;
    while (store_outcome_next(shard->store, &outcome)) turn_outcome(shard, &outcome);
    if (shard->index == 0) host_metadata_pump(shard->host);
}

static void turn_outcomes(struct shard *shard)
{
    turn_answers(shard);
    struct engine_partition_id id;
    while (store_advance_next(shard->store, &id)) service_advance(shard->service, &id);
    if (service_is_ready(shard->service) && !shard->checkpointing) host_report(shard->host);
    enum status failed = store_failed(shard->store);
    if (failed != STATUS_OK) host_fail(shard->host, failed);
}

/* No client is served any more; what is in flight ends. */
static void drain_begin(struct shard *shard)
{
    shard->draining = 1;
    if (shard->listener >= 0) poll_remove(&shard->poll, shard->listener);
    grpc_server_drain(shard->grpc);
    service_drain(shard->service);
}

static void drain_advance(struct shard *shard)
{
    struct node *node = shard->node;
    int abandoning = (int)__atomic_load_n(&node->abandoning, __ATOMIC_ACQUIRE);
    /* The time is up: whatever still waits fails. */
    if (abandoning && !shard->drained) grpc_server_fail(shard->grpc, GRPC_ERROR_STOPPING);
    int calls_left = grpc_calls_count(shard->grpc) > 0;
    int quiet =
        !calls_left && pendings_count(shard->service) == 0 && shard_queues_empty(shard->service);
    if (!shard->drained && (quiet || abandoning)) {
        shard->drained = 1;
        __atomic_fetch_add(&node->drained_count, 1, __ATOMIC_ACQ_REL);
    }
    /* Others may still forward to this shard: only when all are quiet does the last checkpoint
     * begin. */
    if (__atomic_load_n(&node->drained_count, __ATOMIC_ACQUIRE) < shard->shards_count) return;
    if (!shard->checkpointing) {
        shard->checkpointing = 1;
        store_checkpoint_all(shard->store);
        return;
    }
    if (store_idle(shard->store) && !store_work(shard->store)) shard->done = 1;
    if (store_stuck(shard->store)) shard->done = 1;
    if (abandoning > 1) shard->done = 1;
}

static void turn_stop(struct shard *shard)
{
    struct node *node = shard->node;
    if (__atomic_load_n(&node->failed, __ATOMIC_ACQUIRE) != 0) {
        shard->done = 1;
        return;
    }
    if (!shard->draining && __atomic_load_n(&node->stopping, __ATOMIC_ACQUIRE)) drain_begin(shard);
    if (shard->draining) drain_advance(shard);
}

/* Between turns. Tables are looked at slot by slot once in so many turns. */
static int shard_invariants(const struct shard *shard)
{
    assert(shard->index < shard->shards_count);
    ergo(shard->drained, shard->draining);
    ergo(shard->checkpointing, shard->drained);
    ergo(shard->listener >= 0, shard->index == 0);
    ergo(shard->listener_paused_ns != 0, shard->listener >= 0);
    assert(shard->hand_next < shard->shards_count);
    assert(shard->pool.used_bytes <= shard->pool.region_size);
    int all = shard->counters.turns % TURNS_PER_WALK == 0;
    return grpc_invariants(shard->grpc) && service_invariants(shard->service, all)
           && host_invariants(shard->host);
}

void shard_turn(struct shard *shard)
{
    struct poll_event events[POLL_EVENTS_MAX];
    uint32_t count = turn_wait(shard, events);
    shard->counters.turns++;
    turn_stop(shard);

    turn_timers(shard);
    accept_resume(shard);
    store_tick(shard->store, shard->now);

    turn_completions(shard);
    service_retry(shard->service);
    host_receive(shard->host);
    shard_receive(shard, QUEUE_MAIN);
    turn_sockets(shard, events, count);

    store_flush(shard->store, shard->now);
    turn_outcomes(shard);
    service_go_on(shard->service);
    shard_receive(shard, QUEUE_REPLY);
    /* Tables that all shards have now: nothing else would wake this one for their answer. */
    turn_answers(shard);
    /* What outcomes led to (an applied metadata op, a group's InFlight) goes into this turn's round
     * if none is out yet. */
    if (store_work(shard->store)) store_flush(shard->store, shard->now);

    shard_sweep(shard);
    io_file_flush(&shard->file);
    http2_flush(grpc_server_transport(shard->grpc));
    http2_close_marked(grpc_server_transport(shard->grpc));
    shard_queues_flush(shard->service);
    host_flush(shard->host);
    checked(shard_invariants(shard));
}

static void pin(const struct shard *shard)
{
    if (!shard->node->config.shards_pinned) return;
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    CPU_SET(shard->index, &wanted);
    int failed = pthread_setaffinity_np(pthread_self(), sizeof wanted, &wanted);
    /* Counted CPUs may be outside of our cgroup: slower, not wrong. */
    maybe(failed == 0);
}

void shard_begin(struct shard *shard)
{
    shard->now =
        (struct store_now){.monotonic_ns = clock_monotonic_ns(), .wall_us = clock_wall_us()};
    host_start(shard->host);
}

/* A disk failed: calls that still wait get an error, as far as the socket accepts it at once.
 * At the next start the journal shows whether a batch was stored. */
static void calls_fail(struct shard *shard)
{
    enum status failed = -(enum status)__atomic_load_n(&shard->node->failed, __ATOMIC_ACQUIRE);
    if (failed == STATUS_OK) return;
    if (node_result(failed) != ENGINE_RESULT_STORAGE_FAILED) return;
    grpc_server_fail(shard->grpc, GRPC_ERROR_STORAGE_FAILED);
    http2_flush(grpc_server_transport(shard->grpc));
}

void *shard_run(void *context)
{
    struct shard *shard = context;
    pin(shard);
    shard_begin(shard);
    while (!shard->done) shard_turn(shard);
    calls_fail(shard);
    http2_close_all(grpc_server_transport(shard->grpc));
    if (__atomic_load_n(&shard->node->failed, __ATOMIC_ACQUIRE) == 0)
        host_counters_final(shard->host);
    host_flush(shard->host);
    __atomic_fetch_add(&shard->node->done_count, 1, __ATOMIC_ACQ_REL);
    wake_raise_always(&shard->node->stop_wake);
    return NULL;
}

enum status shard_attach(struct shard *shard)
{
    assert(!shard->thread_started);
    enum status status = poll_add(&shard->poll, shard->wake.fd, POLL_READ, TOKEN_WAKE);
    if (status != STATUS_OK) return status;
    if (shard->index == 0) {
        shard->listener = shard->node->listener;
        status = poll_add(&shard->poll, shard->listener, POLL_READ, TOKEN_LISTENER);
        if (status != STATUS_OK) return status;
    }
    return io_file_start(&shard->file);
}

enum status shard_run_start(struct shard *shard)
{
    enum status status = shard_attach(shard);
    if (status != STATUS_OK) return status;
    char name[16];
    snprintf(name, sizeof name, "headrace-%u", (unsigned)shard->index);
    status = thread_start(&shard->thread, name, shard_run, shard);
    shard->thread_started = status == STATUS_OK;
    return status;
}
