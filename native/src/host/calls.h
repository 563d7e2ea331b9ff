/* host/calls.h: cold calls: everything that is not served on the shard crosses to the Python host.
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
#include "grpc/call.h"

struct shard;

void host_call_open(struct call *call);
void host_call_message(struct call *call, const uint8_t *message, size_t size);
void host_call_half_close(struct call *call);
/* The host's work is no longer wanted. */
void host_call_cancel(struct call *call);
/* So many bytes of its answers left for the client. */
void host_call_credit(struct call *call, size_t size);
void host_call_timeout(struct shard *shard, struct timer *timer);
void host_call_frame(struct shard *shard, const struct engine_frame *frame, const uint8_t *body,
                     size_t size);

#endif
