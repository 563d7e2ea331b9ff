#include "store/checkpoint/replica_checkpoint.h"

#include <string.h>

#include "foundation/assert.h"
#include "store/checkpoint/checkpoint_file.h"
#include "store/registry.h"
#include "store/state.h"

void replica_checkpoint_found(struct replica *replica, uint64_t op,
                              const struct entry_checkpoint *entry)
{
    struct replica_checkpoint *own = &replica->checkpoint;
    own->op = op;
    own->is_file = entry->is_file;
    own->bytes = entry->size;
    memcpy(own->digest, entry->digest, 16);
}

void replica_checkpoint_replace(struct store *store, struct replica *replica, uint64_t op,
                                const struct entry_checkpoint *entry)
{
    const struct replica_checkpoint *own = &replica->checkpoint;
    assert(op >= own->op);
    if (own->is_file && memcmp(own->digest, entry->digest, 16) != 0)
        checkpoint_file_replaced(store, own->digest);
    replica_checkpoint_found(replica, op, entry);
    store->statistics.checkpoints++;
}

void replica_checkpoint_set_active(struct replica *replica, uint64_t active)
{
    replica->checkpoint.active = active;
}

void replica_checkpoint_gone(struct store *store, const struct replica *replica)
{
    if (replica->checkpoint.is_file) checkpoint_file_replaced(store, replica->checkpoint.digest);
}

uint64_t replica_checkpoint_op(const struct replica *replica)
{
    return replica->checkpoint.op;
}

int replica_checkpoint_is_file(const struct replica *replica)
{
    return replica->checkpoint.is_file;
}

uint32_t replica_checkpoint_bytes(const struct replica *replica)
{
    return replica->checkpoint.bytes;
}

const uint8_t *replica_checkpoint_digest(const struct replica *replica)
{
    return replica->checkpoint.digest;
}

int replica_checkpoint_names(const struct replica *replica, uint64_t segment)
{
    return replica->checkpoint.active == segment + 1;
}

int replica_checkpoint_names_below(const struct replica *replica, uint64_t segment)
{
    return replica->checkpoint.active != 0 && replica->checkpoint.active - 1 < segment;
}

int replica_checkpoint_any_names_file(const struct store *store, const uint8_t digest[16])
{
    uint32_t cursor = 0;
    const struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        const struct replica_checkpoint *own = &replica->checkpoint;
        if (own->is_file && memcmp(own->digest, digest, 16) == 0) return 1;
    }
    return 0;
}

void replica_checkpoint_invariants(const struct store *store)
{
    uint32_t cursor = 0;
    const struct replica *replica;
    if (store->recovering) return;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        const struct replica_checkpoint *own = &replica->checkpoint;
        assert(own->is_file <= 1);
        ergo(own->is_file, own->bytes > 0);
        ergo(own->op == 0, own->active == 0);
        assert(own->op <= replica->vsr.op);
    }
}
