/* foundation/identity.h: which replica set something belongs to, as bytes that checksums begin with
 * (J10) [bytes].
 *
 *     cluster id (48, zero-padded) | topic u64 | created_revision u64 | partition u32
 *
 * The same on every replica: nothing of a node, a shard or a path is in it. */
#ifndef FOUNDATION_IDENTITY_H
#define FOUNDATION_IDENTITY_H

#include <string.h>

#include "foundation/bytes.h"

enum { IDENTITY_CLUSTER_BYTES = 48, IDENTITY_BYTES = 68 };

static inline void identity_put(uint8_t bytes[IDENTITY_BYTES], const char *cluster_id,
                                uint64_t topic, uint64_t created_revision, uint32_t partition)
{
    memcpy(bytes, cluster_id, IDENTITY_CLUSTER_BYTES);
    bytes_put_u64(bytes + 48, topic);
    bytes_put_u64(bytes + 56, created_revision);
    bytes_put_u32(bytes + 64, partition);
}

#endif
