#include "host/node.h"

#include "foundation/assert.h"

void node_raise_host(struct node *node)
{
    /* One write until the host has looked: it clears the flag before it reads the rings. */
    if (__atomic_exchange_n(&node->host_raised, 1, __ATOMIC_ACQ_REL) == 0)
        wake_raise_always(&node->host_wake);
}

void node_raise_shards(struct node *node)
{
    for (uint16_t index = 0; index < node->shards_count; index++)
        if (node->shard_wakes[index] != NULL) wake_raise_always(node->shard_wakes[index]);
}

int node_fail(struct node *node, enum status status)
{
    assert(status != STATUS_OK);
    uint32_t none = 0;
    return __atomic_compare_exchange_n(&node->failed, &none, (uint32_t)-status, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

enum engine_result node_result(enum status status)
{
    switch (status) {
    case STATUS_OK: return ENGINE_RESULT_OK;
    case STATUS_TOPIC_NOT_FOUND:
    case STATUS_NOT_FOUND: return ENGINE_RESULT_NOT_FOUND;
    case STATUS_RECREATED: return ENGINE_RESULT_RECREATED;
    case STATUS_FENCED:
    case STATUS_GROUP_CLOSED:
    case STATUS_STALE_INTENT: return ENGINE_RESULT_FENCED;
    case STATUS_DAMAGED:
    case STATUS_CORRUPT: return ENGINE_RESULT_DAMAGED;
    case STATUS_STOPPING: return ENGINE_RESULT_STOPPING;
    case STATUS_ALREADY_COMMITTED: return ENGINE_RESULT_DUPLICATE;
    case STATUS_CLOSED: return ENGINE_RESULT_CLOSED;
    case STATUS_HELD: return ENGINE_RESULT_HELD;
    case STATUS_TOO_MANY_GROUPS: return ENGINE_RESULT_TOO_MANY_GROUPS;
    case STATUS_OFFSET_BEYOND_END: return ENGINE_RESULT_OFFSET_BEYOND_END;
    case STATUS_OUT_OF_SEQUENCE:
    case STATUS_SESSION_EXPIRED:
    case STATUS_PRODUCER_FENCED: return ENGINE_RESULT_PRODUCER_LOST;
    case STATUS_OP_UNKNOWN: return ENGINE_RESULT_NEEDS_RELEASE;
    case STATUS_NOT_PRIMARY: return ENGINE_RESULT_NOT_PRIMARY;
    case STATUS_STORAGE_FULL: return ENGINE_RESULT_STORAGE_FULL;
    case STATUS_IO_FAILED:
    case STATUS_STORAGE_READ_ONLY:
    case STATUS_ACCESS_REFUSED:
    case STATUS_DESCRIPTORS_USED_UP:
    case STATUS_IO_POISONED: return ENGINE_RESULT_STORAGE_FAILED;
    case STATUS_BUSY:
    case STATUS_NO_MEMORY:
    case STATUS_REBUILDING:
    case STATUS_GROUP_PENDING:
    case STATUS_TOO_MANY_IN_FLIGHT:
    case STATUS_SEGMENTS_FULL:
    case STATUS_SEGMENT_POOL_FULL:
    case STATUS_PRODUCERS_FULL:
    case STATUS_PARTITIONS_FULL:
    case STATUS_PRODUCERS_SHARE:
    case STATUS_TRIMS_FULL:
    case STATUS_JOURNAL_FULL: return ENGINE_RESULT_BUSY;
    default: return ENGINE_RESULT_INVALID;
    }
}
