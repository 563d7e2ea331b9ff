/* wire/proto_messages.h: the bytes of Publish and FetchMessages: plain messages instead of batches.
 *
 * As wire/proto.h: pure, bounded by its input, without allocation, bytes are borrowed. A
 * repeated field is not gathered but walked: messages of a request, headers of a message, each
 * time from the front. The request was whole when it arrived, so a walk costs what reading it
 * costs. */
#ifndef WIRE_PROTO_MESSAGES_H
#define WIRE_PROTO_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "batch/batch_records.h"
#include "foundation/status.h"
#include "wire/proto.h"

struct proto_publish_request {
    struct proto_bytes project;
    struct proto_bytes topic;
    struct proto_bytes producer_id;
    struct proto_bytes all; /* the request: where proto_message_next begins */
    uint64_t base_sequence;
    uint32_t producer_epoch;
    uint32_t partition;
    uint32_t has_partition;
    uint32_t messages_count; /* counted to BATCH_RECORDS_COUNT_MAX + 1 */
};

struct proto_message {
    struct batch_field key; /* size -1 = absent */
    struct batch_field value;
    int64_t timestamp_us;
    struct proto_bytes all; /* the message: where proto_header_next begins */
    uint32_t headers_count; /* counted to BATCH_RECORD_HEADERS_COUNT_MAX + 1 */
    uint32_t reserved;
};

struct proto_publish_reply {
    uint64_t base_offset;
    uint32_t partition;
    uint32_t message_count;
    uint32_t persisted;
    uint32_t replicas;
    uint32_t duplicate;
    uint32_t reserved;
    int64_t append_time_us;
};

struct proto_fetch_messages_request {
    struct proto_bytes project;
    struct proto_bytes topic;
    uint64_t offset;
    uint32_t partition;
    uint32_t messages_max;
    uint32_t bytes_max;
    uint32_t wait_ms_max;
};

/* Everything of a FetchMessagesReply before its messages. */
struct proto_messages_header {
    uint32_t status; /* enum proto_fetch_status */
    uint64_t log_start;
    uint64_t high_watermark;
    uint64_t log_end;
    uint64_t next_offset;
};

enum proto_messages_size {
    PROTO_PUBLISH_REPLY_SIZE_MAX = 64,
    PROTO_MESSAGES_HEADER_SIZE_MAX = 64,
};

/* The shape of the whole request but for the inside of its messages: those are judged as they are
 * walked. */
enum status proto_decode_publish(const uint8_t *bytes, size_t size,
                                 struct proto_publish_request *request);
/* `left` shrinks from the front. 1 = a message, 0 = no more, -1 = malformed. */
int proto_message_next(struct proto_bytes *left, struct proto_message *message);
int proto_header_next(struct proto_bytes *left, struct batch_header *header);

enum status proto_decode_fetch_messages(const uint8_t *bytes, size_t size,
                                        struct proto_fetch_messages_request *request);

size_t proto_encode_publish_reply(const struct proto_publish_reply *reply, uint8_t *target);
size_t proto_encode_messages_header(const struct proto_messages_header *header, uint8_t *target);
/* One StoredMessage of the field `messages`, tag and size in front. The record was read from a
 * batch. */
size_t proto_stored_message_bytes(const struct batch_record *record, uint64_t offset,
                                  int64_t append_time_us);
uint8_t *proto_encode_stored_message(const struct batch_record *record, uint64_t offset,
                                     int64_t append_time_us, uint8_t *at);

#endif
