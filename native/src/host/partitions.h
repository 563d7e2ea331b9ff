/* host/partitions.h: what the host asks of single partitions: publish, fences, meters, trims,
 * holds, descriptions. Every request but METER_ACK and TRIM_ACK is answered by exactly one REPLY
 * with its cookie. */
#ifndef HOST_PARTITIONS_H
#define HOST_PARTITIONS_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "store/store.h"

struct host;
struct pending;

void host_partition_frame(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                          size_t size);
/* The outcome of one of these, or of METADATA_SUBMIT. Frees the pending. */
void host_outcome(struct host *host, struct pending *pending, const struct store_outcome *outcome);
/* Closed windows to the host, until its ring is full. */
void host_meters(struct host *host);
/* What trims took away, likewise. */
void host_trims(struct host *host);

#endif
