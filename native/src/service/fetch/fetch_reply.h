/* service/fetch/fetch_reply.h: the bytes of a FetchReply around batches that lie in its
 * buffer already.
 *
 *     | prefix | room (FETCH_ROOM) | batches .. |
 *
 * Batches are copied or read once, behind the room; prefix and header are then written directly
 * before the first byte that is sent, wherever that is. */
#ifndef SERVICE_FETCH_FETCH_REPLY_H
#define SERVICE_FETCH_FETCH_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "service/shard_frame.h"
#include "store/store.h"
#include "wire/proto.h"

enum { FETCH_ROOM = PROTO_FETCH_HEADER_SIZE_MAX };

struct service;

struct proto_fetch_reply fetch_reply_header(enum proto_fetch_status status,
                                            const struct store_fetch *found, size_t size);
/* Prefix and encoded header directly before the `body_size` bytes of the body. */
void fetch_reply_front(struct reply *reply, const uint8_t *encoded, size_t encoded_size,
                       size_t body_size, size_t begin);
/* `begin`: bytes behind the room that are not sent. `consume`: as a ConsumeReply. */
void fetch_reply_shape(struct reply *reply, const struct proto_fetch_reply *header, size_t begin,
                       int consume);

/* The batches in memory that the store has found. NULL = no memory. */
struct reply *fetch_reply_memory(struct service *service, const struct store_fetch *found,
                                 int consume);

#endif
