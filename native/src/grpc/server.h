/* grpc/server.h: gRPC over the frames of io_http2: methods, message framing, deadlines,
 * credentials, status trailers.
 *
 * Every call gets exactly one terminal status. What arrives for a finished call is thrown away;
 * what is answered to a call that is gone is dropped by its tag. */
#ifndef GRPC_SERVER_H
#define GRPC_SERVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "grpc/call.h"
#include "grpc/error.h"

struct shard;

/* grpc/server.c: from the transport. */
void grpc_header(struct call *call, const uint8_t *name, size_t name_size, const uint8_t *value,
                 size_t value_size);
void grpc_start(struct call *call);
/* Returns the bytes whose stream window must be kept until the host gives credit. */
size_t grpc_data(struct call *call, const uint8_t *data, size_t size);
void grpc_half_close(struct call *call);
/* Forget the message that was being read. */
void grpc_message_drop(struct call *call);
/* The stream is over, whoever ended it. Frees the call. */
void grpc_closed(struct call *call);

/* grpc/headers.c */
/* "100m" to an absolute time; 0 = malformed. */
uint64_t grpc_timeout_deadline(const uint8_t *value, size_t size, uint64_t now_ns);
enum call_method grpc_method(const uint8_t *path, size_t size);
/* Is the key that opened the call still good? Cheap while nothing has changed; takes over what has:
 * rights may be others now. NONE = may go on. */
enum grpc_error grpc_credentials_again(struct call *call);

/* grpc/reply.c: to the transport. */
/* A reply with room for `size` bytes behind the prefix, which is filled in; NULL = no memory. */
struct reply *grpc_reply_make(struct shard *shard, size_t size);
/* The reply becomes the call's; starts the response. */
void grpc_reply_queue(struct call *call, struct reply *reply);
void grpc_reply_release(struct shard *shard, struct reply *reply);
/* The kernel has all of it: whoever pays for it does. */
void grpc_reply_sent(struct shard *shard, struct reply *reply);
/* Its last reference is gone: back to the pool of this shard, its owner. */
void grpc_reply_give(struct shard *shard, struct reply *reply);
/* Copy a small message and queue it. No memory ends the call. */
void grpc_reply_small(struct call *call, const uint8_t *message, size_t size);
void grpc_reply_send(struct call *call, const uint8_t header[9], size_t size);
void grpc_reply_drop(struct call *call);
/* Give back all of the stream's window that was kept. */
void grpc_window_return(struct call *call);
void grpc_finish_ok(struct call *call);
void grpc_finish(struct call *call, const struct grpc_failure *failure);
void grpc_finish_error(struct call *call, enum grpc_error error);
/* A status made by the host: a code and the bytes of a Status (copied). */
void grpc_finish_host(struct call *call, uint32_t code, const uint8_t *status, size_t size);

#endif
