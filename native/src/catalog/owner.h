/* catalog/owner.h: which shard of a node owns a group.
 *
 * A pure function of the group's id and the shard count, the same on every thread and after every
 * restart: a routing table would only be a cache of it. The metadata group (topic 0) is typed,
 * never hashed: it belongs to shard 0 (SHD-1: a reserved id that was hashed once went to a shard
 * that did not own it). There is no default destination. */
#ifndef CATALOG_OWNER_H
#define CATALOG_OWNER_H

#include <stdint.h>

#include "foundation/assert.h"

enum { OWNER_METADATA_TOPIC = 0, OWNER_METADATA_SHARD = 0 };

static inline uint16_t owner_of(uint64_t topic, uint32_t partition, uint16_t shards_count)
{
    assert(shards_count > 0);
    if (topic == OWNER_METADATA_TOPIC) return OWNER_METADATA_SHARD;

    /* Neighbouring partitions of one topic go to different shards; the topic only rotates where
     * partition 0 begins. */
    uint64_t mixed = topic * UINT64_C(0x9E3779B97F4A7C15);
    mixed ^= mixed >> 32;
    uint64_t rotation = mixed % shards_count;
    uint16_t owner = (uint16_t)((rotation + partition) % shards_count);
    assert(owner < shards_count);
    return owner;
}

#endif
