#include "io/descriptors.h"

#include <stdio.h>

#include "foundation/assert.h"

enum {
    HOST_COUNT = 112,      /* Python's own, the usage spool, 64 connections to /metrics */
    SHARD_COUNT = 12,      /* wakes, poll, folders, journal, checkpoint, snapshot */
    FILES_MIN = 8,         /* of a shard */
    FILES_MAX = 512,       /* more are rarely read at once */
    CONNECTIONS_MIN = 16,  /* of a shard */
    LIMIT_USED = 16777216, /* above it no share grows any more */
};

enum status descriptors_share(uint64_t limit, uint16_t shards_count, struct descriptors *shares,
                              char *detail, size_t detail_size)
{
    assert(shards_count > 0);
    if (limit > LIMIT_USED) limit = LIMIT_USED;
    uint64_t fixed = HOST_COUNT + (uint64_t)SHARD_COUNT * shards_count;
    uint64_t least = fixed + (uint64_t)(FILES_MIN + CONNECTIONS_MIN) * shards_count;
    if (limit < least) {
        snprintf(detail, detail_size, "the limit is %llu, %u shards take at least %llu",
                 (unsigned long long)limit, (unsigned)shards_count, (unsigned long long)least);
        return STATUS_DESCRIPTORS_FEW;
    }
    uint64_t each = (limit - fixed) / shards_count;
    uint64_t files = each / 4;
    if (files < FILES_MIN) files = FILES_MIN;
    if (files > FILES_MAX) files = FILES_MAX;
    *shares = (struct descriptors){
        .files_max = (uint32_t)files,
        .connections_max = (uint32_t)(each - files),
        /* The system gives the lowest number that is free: a connection with one so high
         * took the last that is not reserved for files. */
        .accepted_end = (int)(limit - fixed - files * shards_count + HOST_COUNT),
    };
    return STATUS_OK;
}
