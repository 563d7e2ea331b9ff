#include "service/fetch/fetch_reply.h"

#include <string.h>

#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/state.h"

void fetch_reply_front(struct reply *reply, const uint8_t *encoded, size_t encoded_size,
                       size_t body_size, size_t begin)
{
    size_t size = encoded_size + body_size;
    uint8_t *body = reply->body.data + GRPC_PREFIX_SIZE + FETCH_ROOM + begin;
    uint8_t *data = body - encoded_size - GRPC_PREFIX_SIZE;
    assert(data >= reply->body.data);
    data[0] = 0;
    data[1] = (uint8_t)(size >> 24);
    data[2] = (uint8_t)(size >> 16);
    data[3] = (uint8_t)(size >> 8);
    data[4] = (uint8_t)size;
    memcpy(data + GRPC_PREFIX_SIZE, encoded, encoded_size);
    reply->body.data = data;
    reply->payload_bytes = (uint32_t)body_size;
    reply->body.size = (uint32_t)(GRPC_PREFIX_SIZE + size);
}

void fetch_reply_shape(struct reply *reply, const struct proto_fetch_reply *header, size_t begin,
                       int consume)
{
    uint8_t encoded[PROTO_FETCH_HEADER_SIZE_MAX];
    size_t encoded_size = consume ? proto_encode_consume_header(header, encoded)
                                  : proto_encode_fetch_header(header, encoded);
    fetch_reply_front(reply, encoded, encoded_size, header->batches_size, begin);
}

struct proto_fetch_reply fetch_reply_header(enum proto_fetch_status status,
                                            const struct store_fetch *found, size_t size)
{
    return (struct proto_fetch_reply){
        .status = (uint32_t)status,
        .log_start = found->log_start,
        .high_watermark = found->high_watermark,
        .log_end = found->log_end,
        .batches_size = size,
    };
}

struct reply *fetch_reply_memory(struct service *service, const struct store_fetch *found,
                                 int consume)
{
    struct reply *reply = grpc_reply_make(service->grpc, FETCH_ROOM + found->size);
    if (reply == NULL) return NULL;
    uint8_t *target = reply->body.data + GRPC_PREFIX_SIZE + FETCH_ROOM;
    for (uint32_t index = 0; index < found->batches_count; index++) {
        memcpy(target, found->batches[index].data, found->batches[index].size);
        target += found->batches[index].size;
    }
    struct proto_fetch_reply header = fetch_reply_header(PROTO_FETCH_OK, found, found->size);
    fetch_reply_shape(reply, &header, 0, consume);
    service->counters.fetch_bytes += found->size;
    return reply;
}
