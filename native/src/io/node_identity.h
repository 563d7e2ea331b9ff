/* io/node_identity.h: whose data directory this is (docs/internals/log-format.md), and the lock
 * that keeps others out.
 *
 * A directory of another cluster, another node, another number of shards or a newer release is
 * refused with a named error and nothing in it is changed. An empty one is formatted: written
 * beside, synced, renamed, directory synced. It says `formatted` only once every shard has its
 * journal: from then on a journal that is missing is damage, never a new beginning. */
#ifndef IO_NODE_IDENTITY_H
#define IO_NODE_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"

enum { NODE_IDENTITY_SIZE = 256, NODE_IDENTITY_VERSION = 1 };

struct node_identity {
    uint32_t shards_count;
    uint64_t layout;
    uint64_t node_incarnation;
    uint64_t boot_counter;
    uint32_t formatted;
    char cluster_id[ENGINE_ID_SIZE];
    char node_id[ENGINE_ID_SIZE];
};

/* Pure: the file's bytes. */
void node_identity_encode(const struct node_identity *identity, uint8_t bytes[NODE_IDENTITY_SIZE]);
enum status node_identity_decode(const uint8_t bytes[NODE_IDENTITY_SIZE],
                                 struct node_identity *identity);

/* Lock the directory (*lock_fd keeps it until closed), then read, or begin to format an empty
 * one. */
enum status node_identity_open(const struct engine_config *config, uint64_t incarnation,
                               struct node_identity *identity, int *lock_fd, char *detail,
                               size_t detail_size);

/* Every shard's journal is there: say so, durably. */
enum status node_identity_formatted(const struct engine_config *config,
                                    struct node_identity *identity);

#endif
