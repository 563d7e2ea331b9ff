/* fuzz_node.h: a node for fuzz targets and the thread sanitizer: an engine with one topic and one
 * key, and a host that echoes.
 *
 * Without threads (fuzz targets) fuzz_node_turn carries out one turn of every shard in order: what
 * an input does, it does on the caller's stack. With threads the engine's own run, and
 * fuzz_node_serve is called by the one that plays the host. */
#ifndef FUZZ_NODE_H
#define FUZZ_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"

enum { FUZZ_TOPIC = 20, FUZZ_REVISION = 7, FUZZ_PARTITIONS = 6 };

#define FUZZ_TOKEN "Bearer hr_user_editor0001_sssssssssssssssssssssssssssssssssssssssssss_000000"

struct fuzz_node {
    struct engine *engine;
    uint32_t ready;             /* atomic: METADATA_READY came */
    uint32_t furnished;         /* atomic: the topic and the key are there */
    uint8_t stopped;            /* STOPPED came */
    uint64_t counter_rows;      /* reported by shards */
    struct engine_frame opened; /* the last call that the host was notified of */
};

/* A directory of its own below build/fuzz, emptied; with `keep` as the last node left it. */
void fuzz_node_open(struct fuzz_node *node, const char *name, uint16_t shards_count, int keep);
/* Attach without threads, turn until the topic and the key are there. */
void fuzz_node_attach(struct fuzz_node *node);
void fuzz_node_turn(struct fuzz_node *node);
/* Answer everything that waits for the host. */
void fuzz_node_serve(struct fuzz_node *node);
/* As fuzz_node_serve needs it: the host's requests that furnish the node. */
void fuzz_node_furnish(struct fuzz_node *node);

#endif
