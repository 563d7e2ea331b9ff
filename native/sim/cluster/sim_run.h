/* cluster/sim_run.h: the simulator's entry: run a seed, get what it found. */
#ifndef CLUSTER_SIM_RUN_H
#define CLUSTER_SIM_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "storage/sim_storage.h"

enum sim_run_limit { SIM_MESSAGE_SIZE = 256, SIM_NODES_MAX = 3 };

struct sim_result {
    uint64_t seed;
    int failed;
    char message[SIM_MESSAGE_SIZE];
    uint64_t steps;
    uint64_t simulated_us;
    uint64_t faults[SIM_FAULTS_COUNT];
    uint64_t batches_acked;
    uint64_t recoveries;
    uint64_t metadata_ops;
    uint64_t closes;
    uint64_t extents_released;
    uint64_t segments_sealed;
    uint64_t topics_sealed; /* and then deleted */
    uint64_t topics_forced; /* deleted without */
    uint64_t topics_recreated;
    uint64_t topics_grown;
    uint64_t unlinks_failed;
    uint64_t trims; /* whose evidence came */
    uint64_t purges;
    uint64_t holds;
    uint64_t stopped; /* partitions that damage stopped */
    uint64_t refused; /* starts that damage kept from happening */
    uint64_t hash;    /* of all that could be observed: equal for equal seeds */
    size_t trace_size;
};

/* Run one seed of `steps` actions on `nodes_count` nodes. A trace of at most `trace_room` bytes,
 * lines of "time_us|lane|text", goes to `trace` if it is not NULL. Returns result->failed. */
int sim_run(uint64_t seed, uint32_t nodes_count, uint64_t steps, char *trace, size_t trace_room,
            struct sim_result *result);

/* For tests of storage: a client part with `records` records of `value_size` bytes each. Returns
 * its size. */
size_t sim_batch_encode(uint8_t *target, size_t room, uint32_t records, uint32_t value_size,
                        uint64_t mark, const uint8_t producer_id[16], uint32_t epoch,
                        uint64_t sequence);

#endif
