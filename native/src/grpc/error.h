/* grpc/error.h: the one table of the errors that a call can return, and their encoding in
 * HTTP/2 trailers.
 *
 * Everything a client sees has a gRPC code, a stable UPPER_SNAKE code, a kind (what to do next), a
 * message (what and why) and a hint. A status of the core maps to one entry; nothing outside this
 * file writes an error's text. */
#ifndef GRPC_ERROR_H
#define GRPC_ERROR_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"
#include "wire/proto.h"

enum grpc_code {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

enum grpc_error_kind {
    KIND_TERMINAL = 1,
    KIND_RETRY_SAME_NODE = 2,
    KIND_RETRY_OTHER_NODE = 3,
    KIND_COMMITTED_UNKNOWN = 4,
    KIND_SESSION_EXPIRED = 5,
};

enum grpc_error {
    GRPC_ERROR_NONE = 0,
    GRPC_ERROR_MISSING_CREDENTIALS,
    GRPC_ERROR_INVALID_CREDENTIALS,
    GRPC_ERROR_EXPIRED_CREDENTIALS,
    GRPC_ERROR_PERMISSION_DENIED,
    GRPC_ERROR_TOPIC_NOT_FOUND,
    GRPC_ERROR_TOPIC_RECREATED,
    GRPC_ERROR_PARTITION_NOT_FOUND,
    GRPC_ERROR_SYSTEM_TOPIC,
    GRPC_ERROR_METHOD_UNKNOWN,
    GRPC_ERROR_MALFORMED_REQUEST,
    GRPC_ERROR_COMPRESSION_REFUSED,
    GRPC_ERROR_CONTENT_TYPE,
    GRPC_ERROR_REQUEST_TOO_LARGE,
    GRPC_ERROR_HEADERS_TOO_LARGE,
    GRPC_ERROR_MEMORY_EXHAUSTED,
    GRPC_ERROR_TOO_MANY_CALLS,
    GRPC_ERROR_HOST_BUSY,
    GRPC_ERROR_NOT_READY,
    GRPC_ERROR_STOPPING,
    GRPC_ERROR_DEADLINE_EXCEEDED,
    GRPC_ERROR_CANCELLED,
    GRPC_ERROR_BUSY,
    GRPC_ERROR_STORAGE_FULL,
    GRPC_ERROR_STORAGE_FAILED,
    GRPC_ERROR_DAMAGED,
    GRPC_ERROR_CORRUPT,
    GRPC_ERROR_OP_UNKNOWN,
    GRPC_ERROR_NOT_PRIMARY,
    GRPC_ERROR_REBUILDING,
    GRPC_ERROR_INVALID_BATCH,
    GRPC_ERROR_MESSAGE_TOO_LARGE,
    GRPC_ERROR_OFFSET_OUT_OF_RANGE,
    GRPC_ERROR_TRUNCATED,
    GRPC_ERROR_ALREADY_COMMITTED,
    GRPC_ERROR_OUT_OF_SEQUENCE,
    GRPC_ERROR_SESSION_EXPIRED,
    GRPC_ERROR_PRODUCER_FENCED,
    GRPC_ERROR_TOO_MANY_IN_FLIGHT,
    GRPC_ERROR_FENCED,
    GRPC_ERROR_GROUP_PENDING,
    GRPC_ERROR_OFFSET_BEYOND_END,
    GRPC_ERROR_TOO_MANY_GROUPS,
    GRPC_ERROR_TOPIC_CLOSED,
    GRPC_ERROR_SEGMENTS_FULL,
    GRPC_ERROR_SEGMENT_POOL_FULL,
    GRPC_ERROR_PRODUCERS_FULL,
    GRPC_ERROR_QUOTA_EXCEEDED,
    GRPC_ERROR_UNSUPPORTED,
    GRPC_ERROR_PROJECT_NOT_FOUND,
    GRPC_ERROR_MESSAGES_SPAN_PARTITIONS,
    GRPC_ERROR_INVALID_MESSAGES,
    GRPC_ERROR_PARTITION_REQUIRED,
    GRPC_ERROR_REPLY_TOO_LARGE,
    GRPC_ERROR_READ_FAILED,
    GRPC_ERROR_PARTITIONS_FULL,
    GRPC_ERROR_INTERNAL,
    GRPC_ERROR_COUNT,
};

/* A failure on its way to a client. `detail` (static memory, may be NULL) replaces the table's
 * message. */
struct grpc_failure {
    enum grpc_error error;
    const char *detail; /* instead of the error's message; NULL = that one */
    const char *hint;   /* instead of its hint; NULL = that one */
    uint64_t expected;
};

struct grpc_error_entry {
    enum grpc_code grpc_code;
    const char *code;
    enum grpc_error_kind kind;
    uint64_t retry_after_ms;
    const char *message;
    const char *hint;
};

const struct grpc_error_entry *grpc_error_entry(enum grpc_error error);
/* STATUS_OK is no failure: our error. */
struct grpc_failure grpc_failure_of(enum status status);
void grpc_failure_proto(const struct grpc_failure *failure, struct proto_error *error);

enum { GRPC_TRAILER_SIZE_MAX = 1536 };

/* grpc-message: percent-encoded as the gRPC specification asks. Returns the size; cut before
 * the character that does not fit into `target_size`. */
size_t grpc_percent_encode(const uint8_t *text, size_t size, uint8_t *target, size_t target_size);
/* grpc-status-details-bin: base64 without padding. `target` holds (size + 2) / 3 * 4. */
size_t grpc_base64(const uint8_t *bytes, size_t size, uint8_t *target);

#endif
