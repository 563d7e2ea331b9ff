/* engine/state.h: what the threads of one engine share: the shards, the host's wake, and a few
 * flags. */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include "io/descriptors.h"
#include <pthread.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"
#include "io/io_poll.h"

struct shard;

enum engine_phase { ENGINE_PHASE_OPENED = 1, ENGINE_PHASE_STARTED = 2, ENGINE_PHASE_STOPPED = 3 };

struct engine {
    struct engine_config config;
    char data_path[512];
    char host[256];
    struct shard *shards;
    uint16_t shards_count;
    uint16_t shards_opened;
    uint8_t phase; /* enum engine_phase; the host's threads only */
    int lock_fd;
    int listener;
    uint16_t port;
    struct descriptors descriptors;
    uint64_t node_incarnation;
    uint32_t formatted; /* as the directory's identity said at the start */
    struct wake host_wake;
    pthread_mutex_t
        send_mutex; /* engine_send: producers of the shards' host_in rings; no shard takes it */
    uint32_t cancelled_seen[ENGINE_SHARDS_MAX]; /* engine_cancelled: of calls_cancelled_count */
    uint16_t receive_next;                      /* engine_receive: where the last crossing ended */
    /* atomics */
    uint32_t host_raised; /* the host's wake is up already */
    uint32_t
        host_blocked;    /* engine_send found a ring full: a shard that made room raises the wake */
    uint32_t stopping;   /* shards drain */
    uint32_t abandoning; /* the drain's time is up */
    uint32_t failed;     /* negated status of the first shard that failed; 0 = none */
    uint32_t drained_count;
    uint32_t done_count;
    struct wake stop_wake; /* a shard is done */
};

struct shard *engine_shard(const struct engine *engine, uint16_t index);
/* By a shard that cannot go on: the whole node stops. The first one counts. */
void engine_fail(struct engine *engine, struct shard *shard, enum status status);
/* The host has something to read. */
void engine_raise_host(struct engine *engine);
enum engine_result engine_result_of(enum status status);

#endif
