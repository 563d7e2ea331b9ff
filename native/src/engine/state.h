/* engine/state.h: one engine: a node's shared state, its shards, and what only the host's threads
 * touch. */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include <pthread.h>
#include <stdint.h>

#include "engine.h"
#include "host/node.h"

struct shard;

enum engine_phase { ENGINE_PHASE_OPENED = 1, ENGINE_PHASE_STARTED = 2, ENGINE_PHASE_STOPPED = 3 };

struct engine {
    struct node node;
    struct shard *shards;
    uint16_t shards_opened;
    uint8_t phase; /* enum engine_phase; the host's threads only */
    int lock_fd;
    uint16_t port;
    pthread_mutex_t
        send_mutex; /* engine_send: producers of the rings to the shards; no shard takes it */
    uint32_t cancelled_seen[ENGINE_SHARDS_MAX]; /* engine_cancelled: of calls_cancelled_count */
    uint16_t receive_next;                      /* engine_receive: where the last crossing ended */
};

struct shard *engine_shard(const struct engine *engine, uint16_t index);

#endif
