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

struct shard;

/* Of every path that the shard does not serve. */
extern const struct grpc_method host_method;

void host_call_frame(struct shard *shard, const struct engine_frame *frame, const uint8_t *body,
                     size_t size);

#endif
