/* batch/partitioner.c: see batch/partitioner.h. A change here would send keys elsewhere than
 * clients do. */
#include "batch/partitioner.h"

#include "foundation/assert.h"
#include "foundation/bytes.h"

uint32_t partitioner_hash(const uint8_t *key, size_t size)
{
    const uint32_t factor = 0x5bd1e995u;
    uint32_t hash = 0x9747b28cu ^ (uint32_t)size;
    size_t whole = size & ~(size_t)3;
    for (size_t at = 0; at < whole; at += 4) {
        uint32_t word = bytes_get_u32(key + at) * factor;
        word = (word ^ word >> 24) * factor;
        hash = hash * factor ^ word;
    }
    if (whole < size) {
        uint32_t rest = 0;
        for (size_t at = whole; at < size; at++) rest |= (uint32_t)key[at] << (8 * (at - whole));
        hash = (hash ^ rest) * factor;
    }
    hash = (hash ^ hash >> 13) * factor;
    return hash ^ hash >> 15;
}

uint32_t partitioner_of(const uint8_t *key, size_t size, uint32_t partitions_count)
{
    assert(partitions_count > 0);
    return (partitioner_hash(key, size) & 0x7fffffffu) % partitions_count;
}
