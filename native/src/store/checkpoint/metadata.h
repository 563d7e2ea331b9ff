/* store/checkpoint/metadata.h: the metadata replica: its ops are journaled like any other's and
 * executed by the host (A8).
 *
 *     submit -> prepare -> round -> committed -> handed out in order -> [host] -> applied ->
 *     commit_min + 1 -> outcome
 *
 * Its ring is its own: a host that is slow or stuck pins no other memory, and past half of the
 * ring metadata stops accepting (V9). A snapshot is asked for behind the last op handed out, so
 * that the host, which takes frames in order, stands exactly there. */
#ifndef STORE_CHECKPOINT_METADATA_H
#define STORE_CHECKPOINT_METADATA_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"

struct arena;
struct metadata;
struct replica;
struct ring_slot;
struct store;

enum { METADATA_SNAPSHOT_MAX = ENGINE_FRAME_SIZE_MAX };

size_t metadata_memory_bytes(int first);
/* Only the first shard has metadata; the others keep no room for it. */
struct metadata *metadata_make(struct arena *arena, int first);
void metadata_begin(struct store *store, struct replica *replica);
/* NULL = another shard has it. */
struct replica *metadata_replica(const struct store *store);

/* The snapshot's file is durable: its entry may be made; then the entry is. */
void metadata_file_durable(struct store *store);
void metadata_snapshot_durable(struct store *store, const struct ring_slot *slot);
/* One that is being made is in a file of this name. */
int metadata_names_file(const struct store *store, const uint8_t digest[16]);

/* A start reads the snapshot here; then it has. */
uint8_t *metadata_snapshot_buffer(struct store *store);
void metadata_found(struct store *store, uint64_t op, uint64_t size);

void metadata_invariants(const struct store *store);

#endif
