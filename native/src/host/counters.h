/* host/counters.h: what a shard counted, window by window (usage/counters.h), on its way to the
 * host.
 *
 * A window is reported after COUNTERS_WINDOW_NS, or after the metering window if that is shorter,
 * at every full hour, when the host asks, and when the shard has stopped in order. Only what
 * changed is reported: egress and requests from the tally, stored byte-seconds from the store. A
 * host that does not read makes a window longer; at the end of an hour everything is reported, so
 * that no window lies in two. Nothing is repeated: shard and host end together, and what the host
 * has not made durable by then is lost and not billed. */
#ifndef HOST_COUNTERS_H
#define HOST_COUNTERS_H

#include <stdint.h>

struct host;
struct engine_frame;

/* A crash loses at most so much, and what it takes to get into the spool. */
#define COUNTERS_WINDOW_NS UINT64_C(9000000000)

enum { COUNTERS_ROWS_MAX = 256 }; /* of one frame */

/* Once a turn. */
void host_counters_turn(struct host *host);
/* ENGINE_COUNTERS_FLUSH. */
void host_counters_flush(struct host *host, const struct engine_frame *frame);
/* The thread's last words. */
void host_counters_final(struct host *host);

#endif
