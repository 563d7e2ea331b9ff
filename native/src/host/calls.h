/* host/calls.h: host calls: everything that is not served on the shard crosses to the Python host.
 *
 * The shard owns the call: deadline, credentials, window, and the one terminal status. A call ends
 * at its client's deadline or after limits.call_ms, whichever comes first; only a member's session
 * may last. The host gets OPEN, MESSAGE, HALF_CLOSE and CREDIT, and answers MESSAGE, CREDIT and
 * STATUS. A cancel is a flag in the call's slot, so that it cannot be lost in a full ring; the
 * frame CANCELLED only wakes. */
#ifndef HOST_CALLS_H
#define HOST_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "grpc/method.h"

struct arena;
struct host;

/* Of every path that the shard does not serve. */
extern const struct grpc_method host_method;

size_t host_calls_memory_bytes(void);
/* 0 = no memory. */
int host_calls_make(struct host *host, struct arena *arena);
int host_calls_invariants(const struct host *host);

void host_call_frame(struct host *host, const struct engine_frame *frame, const uint8_t *body,
                     size_t size);

/* By the host's thread: a frame for each call whose client has gone since, at most `count`. *seen
 * is the caller's, 0 at first. */
size_t host_calls_cancelled_take(struct host *host, uint32_t *seen, struct engine_frame *calls,
                                 size_t count);

#endif
