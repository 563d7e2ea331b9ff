/* store/checkpoint/replica_checkpoint.h: the checkpoint that a replica has in the journal: what a
 * start begins with, and what all ops up to its own need not be kept for.
 *
 * Owns what is in use. Refuses to know how one is made: store/checkpoint/checkpoint.h does, and for
 * metadata its host. */
#ifndef STORE_CHECKPOINT_REPLICA_CHECKPOINT_H
#define STORE_CHECKPOINT_REPLICA_CHECKPOINT_H

#include <stdint.h>

#include "journal/entry_bodies.h"

struct replica;
struct store;

/* What a replica keeps for it; store/checkpoint/replica_checkpoint.c's alone. */
struct replica_checkpoint {
    uint8_t is_file;
    uint32_t bytes;
    uint64_t op;
    uint8_t digest[16];
    uint64_t active; /* base offset + 1 of its active segment; 0 = none */
};

/* It is durable, and in use from now on; a file that it replaces goes once that is witnessed. */
void replica_checkpoint_replace(struct store *store, struct replica *replica, uint64_t op,
                                const struct entry_checkpoint *entry);
/* A start found it. */
void replica_checkpoint_found(struct replica *replica, uint64_t op,
                              const struct entry_checkpoint *entry);
/* The segment that is active in it: base offset + 1; 0 = none. */
void replica_checkpoint_set_active(struct replica *replica, uint64_t active);
/* The replica goes, and a file of its own with it. */
void replica_checkpoint_gone(struct store *store, const struct replica *replica);

uint64_t replica_checkpoint_op(const struct replica *replica);
int replica_checkpoint_is_file(const struct replica *replica);
uint32_t replica_checkpoint_bytes(const struct replica *replica);
const uint8_t *replica_checkpoint_digest(const struct replica *replica);
/* The segment is the active one in it; one below it is. */
int replica_checkpoint_names(const struct replica *replica, uint64_t segment);
int replica_checkpoint_names_below(const struct replica *replica, uint64_t segment);
/* Any replica's is in a file of this name. */
int replica_checkpoint_any_names_file(const struct store *store, const uint8_t digest[16]);
void replica_checkpoint_invariants(const struct store *store);

#endif
