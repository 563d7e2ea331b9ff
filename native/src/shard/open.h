/* shard/open.h: the memory of a shard, taken once, and its recovery. */
#ifndef SHARD_OPEN_H
#define SHARD_OPEN_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"

struct node;
struct shard;

/* On failure `detail` names the thing; shard_close must be called all the same. */
enum status shard_open(struct shard *shard, struct node *node, uint16_t index, const char *folder,
                       char *detail, size_t detail_size);
void shard_close(struct shard *shard);

#endif
