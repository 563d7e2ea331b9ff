/* store/registry.h: which topics this shard knows, and the replicas behind their partitions.
 *
 * A topic is a row of the compiled tables. A replica exists from the first operation on its
 * partition until its topic goes; a partition without writes costs nothing: no memory, no
 * entry, no folder. Owns both, and who is served. Refuses to know what becomes of a replica that
 * goes: store/files/retire.h does. */
#ifndef STORE_REGISTRY_H
#define STORE_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"
#include "partition/partition.h"
#include "segment/segment.h"

struct arena;
struct registry;
struct replica;
struct store;

struct store_topic {
    uint64_t topic;
    uint64_t created_revision;
    struct segment_limit segment_limit;
    uint32_t partitions_count;
    uint32_t flags;
    uint32_t next; /* in its bucket or the free list, index + 1 */
    uint32_t organization;
    struct partition_policy policy;
};

size_t registry_memory_bytes(uint32_t replicas_max);
struct registry *registry_make(struct arena *arena, uint32_t replicas_max);

/* NULL = not in the tables. */
const struct store_topic *registry_topic(const struct store *store, uint64_t topic);
/* The tables had room for every row and know a higher number, but not this one. */
int registry_proves_gone(const struct store *store, uint64_t topic);

struct replica *registry_find(const struct store *store, uint64_t topic, uint32_t partition);
struct replica *registry_at(const struct store *store, uint32_t index);
uint32_t registry_index(const struct store *store, const struct replica *replica);
/* Those there are, by index, from *cursor on, which moves behind the one that is given; NULL = no
 * more. */
struct replica *registry_next(const struct store *store, uint32_t *cursor);
uint32_t registry_replicas_max(const struct store *store);
uint32_t registry_replicas_count(const struct store *store);

/* What the topic's row asks of a partition's log. */
struct partition_configure registry_configuration(const struct store_topic *topic);
/* Before its log says so. */
extern const struct partition_configure registry_configuration_unknown;
/* NULL = there is no room. */
struct replica *registry_make_replica(struct store *store, uint64_t topic,
                                      uint64_t created_revision, uint32_t partition,
                                      const struct partition_configure *configuration);
void registry_drop(struct store *store, struct replica *replica);

/* The topic's row and the replica, NULL while nothing happened in the partition. */
enum status registry_lookup(struct store *store, const struct engine_partition_id *id,
                            struct replica **replica);
/* .. which is made if it is not there, and takes operations. */
enum status registry_open(struct store *store, const struct engine_partition_id *id,
                          struct replica **replica);

void registry_invariants(const struct store *store);

#endif
