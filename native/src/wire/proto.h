/* wire/proto.h: the small subset of protobuf that the hot methods need, bounded and without
 * allocation.
 *
 * Owns the byte layout of stream.proto's hot messages, grpc.health.v1 and the Error inside a
 * Status. Decoding follows the protobuf rules: unknown fields are skipped, the last of a repeated
 * scalar wins, uint32 takes the low 32 bits; groups, a wrong wire type of a known field, field
 * number 0 and anything that runs over its end are refused. Bytes are borrowed from the input.
 * Encoders write canonical proto3: fields in order of number, zeros left out. */
#ifndef WIRE_PROTO_H
#define WIRE_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"

struct proto_bytes {
    const uint8_t *data;
    size_t size;
};

struct proto_produce_request {
    uint64_t topic;
    uint64_t created_revision;
    uint64_t request;
    uint32_t partition;
    struct proto_bytes batch;
};

struct proto_fetch_request {
    uint64_t topic;
    uint64_t created_revision;
    uint64_t offset;
    uint64_t group;
    uint64_t generation;
    uint32_t partition;
    uint32_t bytes_max;
    uint32_t wait_ms_max;
};

/* One of both: the begin of a stream (NULL = none), or more credit. */
struct proto_consume_request {
    struct proto_bytes begin;
    uint64_t credit;
};

struct proto_consume_begin {
    uint64_t topic;
    uint64_t created_revision;
    uint64_t offset;
    uint64_t credit;
    uint64_t group;
    uint64_t generation;
    uint32_t partition;
    uint32_t bytes_max;
};

struct proto_list_request {
    uint64_t topic;
    uint64_t created_revision;
    int64_t time_us;
    uint32_t partition;
};

struct proto_commit_request {
    uint64_t topic;
    uint64_t created_revision;
    uint64_t group;
    uint64_t generation;
    uint64_t offset;
    uint32_t partition;
};

struct proto_error {
    const char *code;
    uint32_t kind;
    const char *message;
    const char *hint;
    uint64_t retry_after_ms;
    uint64_t expected;
};

struct proto_produce_reply {
    uint64_t request;
    uint64_t base_offset;
    uint32_t record_count;
    uint32_t persisted;
    uint32_t replicas;
    uint32_t duplicate;
    int64_t append_time_us;
    const struct proto_error *error; /* NULL = none */
};

enum proto_fetch_status {
    PROTO_FETCH_OK = 1,
    PROTO_FETCH_EMPTY = 2,
    PROTO_FETCH_TRUNCATED = 3,
    PROTO_FETCH_CORRUPT = 4,
    PROTO_FETCH_NOT_PRIMARY = 5,
    PROTO_FETCH_REBUILDING = 6,
};

struct proto_fetch_reply {
    uint32_t status;
    uint64_t log_start;
    uint64_t high_watermark;
    uint64_t log_end;
    size_t batches_size;
};

struct proto_list_reply {
    uint32_t found;
    uint64_t offset;
    int64_t append_time_us;
    uint64_t log_start;
    uint64_t high_watermark;
};

struct proto_offsets_reply {
    uint32_t found;
    uint64_t offset;
    uint64_t generation;
    uint64_t log_start;
    uint64_t high_watermark;
    uint64_t start;
};

enum proto_size {
    PROTO_PRODUCE_REPLY_SIZE_MAX = 1024, /* with an Error whose texts come from our own table */
    PROTO_FETCH_HEADER_SIZE_MAX = 64, /* everything of a FetchReply before the bytes of `batches` */
    PROTO_OFFSETS_REPLY_SIZE_MAX = 64,
    PROTO_STATUS_SIZE_MAX = 1024,
    PROTO_CONSUME_ERROR_SIZE_MAX = 1024,
};

enum status proto_decode_produce(const uint8_t *bytes, size_t size,
                                 struct proto_produce_request *request);
enum status proto_decode_fetch(const uint8_t *bytes, size_t size,
                               struct proto_fetch_request *request);
/* A message with both is refused: which one was meant is unknown. */
enum status proto_decode_consume(const uint8_t *bytes, size_t size,
                                 struct proto_consume_request *request);
enum status proto_decode_consume_begin(struct proto_bytes bytes, struct proto_consume_begin *begin);
enum status proto_decode_list(const uint8_t *bytes, size_t size,
                              struct proto_list_request *request);
enum status proto_decode_commit(const uint8_t *bytes, size_t size,
                                struct proto_commit_request *request);
/* FetchOffsetsRequest: generation and offset stay 0. */
enum status proto_decode_fetch_offsets(const uint8_t *bytes, size_t size,
                                       struct proto_commit_request *request);
/* Any message: checks its shape only. */
enum status proto_check(const uint8_t *bytes, size_t size);
/* The text in field 2 of a Status; size 0 = none or malformed. */
struct proto_bytes proto_status_message(const uint8_t *bytes, size_t size);

/* Each returns the bytes written; `target` holds the SIZE_MAX of its message. */
size_t proto_encode_produce_reply(const struct proto_produce_reply *reply, uint8_t *target);
/* Without the bytes of `batches`, which follow directly. */
size_t proto_encode_fetch_header(const struct proto_fetch_reply *reply, uint8_t *target);
/* The same inside a ConsumeReply: also at most PROTO_FETCH_HEADER_SIZE_MAX. */
size_t proto_encode_consume_header(const struct proto_fetch_reply *reply, uint8_t *target);
/* ConsumeReply {error}: at most PROTO_CONSUME_ERROR_SIZE_MAX. */
size_t proto_encode_consume_error(const struct proto_error *error, uint8_t *target);
size_t proto_encode_commit_reply(uint64_t offset, uint8_t *target);
size_t proto_encode_offsets_reply(const struct proto_offsets_reply *reply, uint8_t *target);
/* At most PROTO_OFFSETS_REPLY_SIZE_MAX. */
size_t proto_encode_list_reply(const struct proto_list_reply *reply, uint8_t *target);
size_t proto_encode_health(uint32_t serving_status, uint8_t *target);
/* headrace.stream.v1.Status {code, message, details = [Any{Error}]}. */
size_t proto_encode_status(uint32_t grpc_code, const struct proto_error *error, uint8_t *target);

#endif
