/* io/descriptors.h: who may open how many of the process's descriptors.
 *
 * Connections, segments and the host share one limit (RLIMIT_NOFILE, raised to its hard value at
 * the start). Each has its share from the beginning, so that connections can never take what a
 * segment must be opened with: that failure would end the node. Below a least number the node
 * refuses to start. */
#ifndef IO_DESCRIPTORS_H
#define IO_DESCRIPTORS_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"

struct descriptors {
    uint32_t files_max;       /* segments open at once, of one shard */
    uint32_t connections_max; /* of one shard */
    int accepted_end;         /* a connection whose number is not below this is closed at once */
};

/* `limit` = how many the process may open. STATUS_DESCRIPTORS_FEW: `detail` says how many it takes
 * at least. */
enum status descriptors_share(uint64_t limit, uint16_t shards_count, struct descriptors *shares,
                              char *detail, size_t detail_size);

#endif
