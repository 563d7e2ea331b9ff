/* batch/partitioner.h: which partition a key belongs to: murmur2, as every client does
 * (headrace/producer/partitioner.py;
 * the vectors in tests/headrace/producer/test_partitioner.py are published). */
#ifndef BATCH_PARTITIONER_H
#define BATCH_PARTITIONER_H

#include <stddef.h>
#include <stdint.h>

/* murmur2, 32 bits, seed 0x9747b28c. */
uint32_t partitioner_hash(const uint8_t *key, size_t size);
/* The hash without its sign bit, modulo the count. An empty key is a key. */
uint32_t partitioner_of(const uint8_t *key, size_t size, uint32_t partitions_count);

#endif
