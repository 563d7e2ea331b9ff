/* wire/message_batch.h: plain messages of a PublishRequest into one client part, codec none.
 *
 * Pure: bytes in, bytes out. The request is walked twice: once to judge every message, to choose
 * the partition and to know the size, once to write. Nothing of it is kept in between, so a
 * request's memory is the request and its batch. */
#ifndef WIRE_MESSAGE_BATCH_H
#define WIRE_MESSAGE_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"
#include "wire/proto_messages.h"

struct message_batch {
    uint32_t records_bytes;
    uint32_t records_count;
    int64_t base_timestamp_us;
    int64_t max_timestamp_us;
    int64_t now_us;
    uint32_t partition; /* of the keys, if there are any */
    uint32_t has_key;
};

/* Judge the messages. Times of 0 become `now_us`. `part_bytes_max` bounds the client part. Keys are
 * looked at unless the request names its partition. INVALID: malformed; MESSAGES_COUNT,
 * MESSAGES_SPAN_PARTITIONS, MESSAGE_HEADERS, MESSAGE_HEADER_NAME, MESSAGE_TOO_LARGE,
 * MESSAGE_PRODUCER, BATCH_TIMESTAMP. */
enum status message_batch_measure(const struct proto_publish_request *request, int64_t now_us,
                                  uint32_t partitions_count, uint32_t part_bytes_max,
                                  struct message_batch *batch);

/* Of the client part. */
size_t message_batch_bytes(const struct message_batch *batch);
/* Write it: a request that was measured, message_batch_bytes of room. */
void message_batch_write(const struct proto_publish_request *request,
                         const struct message_batch *batch, uint8_t *part);

#endif
