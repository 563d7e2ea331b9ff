/* service/fetch/fetch_remote.h: a fetch of a call, on the shard that owns the partition.
 *
 * A fetch of a call on another shard is the same fetch with another requester; its reply is lent
 * across. */
#ifndef SERVICE_FETCH_FETCH_REMOTE_H
#define SERVICE_FETCH_FETCH_REMOTE_H

#include "grpc/error.h"
#include "service/shard_frame.h"

struct call;
struct service;

/* Ask for a call, here or on the owning shard; its access was judged. One at a time. The answer may
 * come before this returns. Not NONE: nothing was begun. */
enum grpc_error fetch_begin(struct call *call, const struct fetch_request *wanted);
/* The call is gone: forget its fetch at once. */
void fetch_cancel(struct call *call);
/* For another shard. */
void fetch_remote(struct service *service, const struct shard_frame *frame);
void fetch_remote_cancel(struct service *service, const struct shard_frame *frame);

#endif
