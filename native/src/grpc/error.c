#include "grpc/error.h"

#include <string.h>

#include "foundation/assert.h"

#define ENTRY(name, grpc, kind_name, retry_ms, text, next) \
    [GRPC_ERROR_##name] = {GRPC_##grpc, #name, KIND_##kind_name, retry_ms, text, next}

static const struct grpc_error_entry entries[GRPC_ERROR_COUNT] = {
    ENTRY(MISSING_CREDENTIALS, UNAUTHENTICATED, TERMINAL, 0, "the call carries no key",
          "send the metadata `authorization: Bearer hr_...`"),
    ENTRY(INVALID_CREDENTIALS, UNAUTHENTICATED, TERMINAL, 0,
          "the key is malformed, unknown or revoked", "copy the whole token, or make a new key"),
    ENTRY(EXPIRED_CREDENTIALS, UNAUTHENTICATED, TERMINAL, 0, "the key has expired",
          "make a new key and replace this one"),
    ENTRY(PERMISSION_DENIED, PERMISSION_DENIED, TERMINAL, 0,
          "the key's role does not allow this here",
          "ask an owner of the project for a key with the fitting role"),
    ENTRY(TOPIC_NOT_FOUND, NOT_FOUND, TERMINAL, 0, "no such topic in the key's organization",
          "look the topic up again, or create it"),
    ENTRY(TOPIC_RECREATED, FAILED_PRECONDITION, TERMINAL, 0,
          "the topic was deleted and made again since its handle was read",
          "resolve the topic's name again"),
    ENTRY(PARTITION_NOT_FOUND, NOT_FOUND, TERMINAL, 0, "the topic has no partition of this index",
          "look up how many partitions the topic has"),
    ENTRY(SYSTEM_TOPIC, PERMISSION_DENIED, TERMINAL, 0,
          "only the node itself writes to topics whose name begins with an underscore",
          "produce to a topic of your own"),
    ENTRY(METHOD_UNKNOWN, UNIMPLEMENTED, TERMINAL, 0, "the node serves no method of this name",
          "check the client's version against the node's"),
    ENTRY(MALFORMED_REQUEST, INVALID_ARGUMENT, TERMINAL, 0,
          "the request's bytes are not the message that this method takes",
          "use the published stream.proto"),
    ENTRY(COMPRESSION_REFUSED, UNIMPLEMENTED, TERMINAL, 0, "gRPC message compression is not served",
          "compress inside the batch (codec lz4 or zstd) instead"),
    ENTRY(CONTENT_TYPE, INVALID_ARGUMENT, TERMINAL, 0, "the content-type is not application/grpc",
          "speak gRPC to this port; REST has a port of its own"),
    ENTRY(REQUEST_TOO_LARGE, RESOURCE_EXHAUSTED, TERMINAL, 0,
          "the message is larger than the node takes", "send smaller batches"),
    ENTRY(HEADERS_TOO_LARGE, RESOURCE_EXHAUSTED, TERMINAL, 0,
          "the call's metadata is larger than the node takes", "send at most 16 KiB of metadata"),
    ENTRY(MEMORY_EXHAUSTED, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 50,
          "the shard's memory for messages is used up",
          "repeat after a short wait, or raise node.memory_mib"),
    ENTRY(TOO_MANY_CALLS, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 50,
          "the shard serves as many calls as it can", "repeat after a short wait"),
    ENTRY(HOST_BUSY, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 50,
          "the node's queue for administrative calls is full", "repeat after a short wait"),
    ENTRY(NOT_READY, UNAVAILABLE, RETRY_SAME_NODE, 200, "the node is still recovering",
          "repeat after a short wait"),
    ENTRY(STOPPING, UNAVAILABLE, RETRY_OTHER_NODE, 0, "the node is stopping",
          "refresh the routes and repeat on another node"),
    ENTRY(DEADLINE_EXCEEDED, DEADLINE_EXCEEDED, COMMITTED_UNKNOWN, 0,
          "the call's deadline passed before its answer",
          "repeat with the same producer id and sequence"),
    ENTRY(CANCELLED, CANCELLED, COMMITTED_UNKNOWN, 0, "the caller went away",
          "repeat with the same producer id and sequence"),
    ENTRY(BUSY, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 20,
          "a bounded queue or table of the shard is full", "repeat after a short wait"),
    ENTRY(STORAGE_FULL, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 1000,
          "the node's disk has reached its reserve",
          "free space or add disk; writes resume by themselves"),
    ENTRY(STORAGE_FAILED, UNAVAILABLE, COMMITTED_UNKNOWN, 0,
          "the node's disk failed under the write",
          "repeat with the same producer id and sequence once the node is back"),
    ENTRY(DAMAGED, DATA_LOSS, TERMINAL, 0,
          "the partition lost acknowledged data and was isolated after damage",
          "an operator must decide: see the runbook"),
    ENTRY(CORRUPT, DATA_LOSS, TERMINAL, 0,
          "stored bytes fail their checksum; the partition was stopped",
          "an operator must decide: see the runbook"),
    ENTRY(OP_UNKNOWN, FAILED_PRECONDITION, TERMINAL, 0,
          "the partition's log has an operation that this release of the node does not know",
          "run the newer release that wrote it: nothing is lost"),
    ENTRY(NOT_PRIMARY, UNAVAILABLE, RETRY_OTHER_NODE, 0, "another node is this partition's primary",
          "refresh the routes and repeat there"),
    ENTRY(REBUILDING, UNAVAILABLE, RETRY_SAME_NODE, 200, "the partition is being recovered",
          "repeat after a short wait"),
    ENTRY(INVALID_BATCH, INVALID_ARGUMENT, TERMINAL, 0, "the batch breaks a rule of the format",
          "encode it with the SDK, or see docs/internals/log-format.md"),
    ENTRY(MESSAGE_TOO_LARGE, INVALID_ARGUMENT, TERMINAL, 0,
          "the batch is larger than the topic allows",
          "send smaller batches or raise the topic's max_message_bytes"),
    ENTRY(OFFSET_OUT_OF_RANGE, OUT_OF_RANGE, TERMINAL, 0,
          "the offset lies beyond the end of the log", "continue at the high watermark"),
    ENTRY(TRUNCATED, OUT_OF_RANGE, TERMINAL, 0, "the records were removed by retention",
          "continue at the log's start"),
    ENTRY(ALREADY_COMMITTED, ALREADY_EXISTS, TERMINAL, 0,
          "the batch was stored before, too long ago to say where", "go on with the next batch"),
    ENTRY(OUT_OF_SEQUENCE, FAILED_PRECONDITION, TERMINAL, 0,
          "the producer's sequence has a gap: an earlier batch is missing",
          "resume at the sequence in `expected`"),
    ENTRY(SESSION_EXPIRED, FAILED_PRECONDITION, SESSION_EXPIRED, 0,
          "the producer is not known here (any more)", "begin a new session at sequence 0"),
    ENTRY(PRODUCER_FENCED, FAILED_PRECONDITION, TERMINAL, 0,
          "a newer epoch of this producer exists", "stop this producer"),
    ENTRY(TOO_MANY_IN_FLIGHT, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 5,
          "too many unresolved batches of this producer in this partition",
          "wait for their answers"),
    ENTRY(FENCED, FAILED_PRECONDITION, TERMINAL, 0, "a newer generation owns this partition",
          "stop reading it and wait for a new assignment"),
    ENTRY(GROUP_PENDING, UNAVAILABLE, RETRY_SAME_NODE, 10,
          "the assignment is not yet in the partition's log", "repeat after a short wait"),
    ENTRY(OFFSET_BEYOND_END, OUT_OF_RANGE, TERMINAL, 0,
          "the committed offset lies beyond the end of the log", "commit offsets that were read"),
    ENTRY(TOO_MANY_GROUPS, RESOURCE_EXHAUSTED, TERMINAL, 0,
          "the partition's table of consumer groups is full",
          "use a group that has read this topic, or read without one"),
    ENTRY(TOPIC_CLOSED, FAILED_PRECONDITION, TERMINAL, 0, "the topic is being deleted",
          "produce to another topic"),
    ENTRY(SEGMENTS_FULL, RESOURCE_EXHAUSTED, TERMINAL, 0,
          "the partition has as many segments as it may",
          "produce to another partition, and give topics of this size larger segments"),
    ENTRY(SEGMENT_POOL_FULL, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 1000,
          "the shard's memory for segments is used up",
          "delete unused topics or raise node.partitions_max"),
    ENTRY(PRODUCERS_FULL, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 1000,
          "the shard remembers as many producers as it can",
          "go on with producers it knows, or repeat later"),
    ENTRY(QUOTA_EXCEEDED, RESOURCE_EXHAUSTED, RETRY_SAME_NODE, 100, "the quota is used up",
          "repeat after retry_after_ms"),
    ENTRY(UNSUPPORTED, UNIMPLEMENTED, TERMINAL, 0, "this release does not know the operation",
          "upgrade the node first"),
    ENTRY(PROJECT_NOT_FOUND, NOT_FOUND, TERMINAL, 0, "no such project",
          "name a project with a topic on this cluster, or use a key of that project"),
    ENTRY(MESSAGES_SPAN_PARTITIONS, INVALID_ARGUMENT, TERMINAL, 0,
          "the messages' keys belong to different partitions, and a request goes to one",
          "send one request for each partition, or name the partition"),
    ENTRY(INVALID_MESSAGES, INVALID_ARGUMENT, TERMINAL, 0,
          "the messages cannot be stored as one batch",
          "send 1 to 1000000 messages of at most 256 headers each, with UTF-8 header keys"),
    ENTRY(PARTITION_REQUIRED, INVALID_ARGUMENT, TERMINAL, 0,
          "a request with a producer id must name its partition: sequences count per partition",
          "set `partition`, or leave the producer's fields out for at-least-once"),
    ENTRY(REPLY_TOO_LARGE, FAILED_PRECONDITION, TERMINAL, 0,
          "the message is larger than a reply of plain messages may be",
          "read it with the SDK, or go on behind it, at the offset in `expected`"),
    ENTRY(READ_FAILED, UNAVAILABLE, RETRY_SAME_NODE, 1000, "the node's disk failed under the read",
          "repeat after a short wait; if it stays so, an operator must look at the disk"),
    ENTRY(PARTITIONS_FULL, RESOURCE_EXHAUSTED, TERMINAL, 0,
          "the shard holds as many partitions as it may",
          "delete unused topics or raise node.partitions_max"),
    ENTRY(INTERNAL, INTERNAL, COMMITTED_UNKNOWN, 0, "the node answered in a way it never should",
          "report this with the node's log"),
};

const struct grpc_error_entry *grpc_error_entry(enum grpc_error error)
{
    assert(error > GRPC_ERROR_NONE);
    assert(error < GRPC_ERROR_COUNT);
    assert(entries[error].code != NULL);
    return &entries[error];
}

static enum grpc_error error_of_batch(enum status status)
{
    return status <= STATUS_BATCH_SHORT && status >= STATUS_BATCH_COMPRESSION
               ? GRPC_ERROR_INVALID_BATCH
               : GRPC_ERROR_INTERNAL;
}

static enum grpc_error error_of(enum status status)
{
    switch (status) {
    case STATUS_REPLIES_FULL:
    case STATUS_NO_MEMORY: return GRPC_ERROR_MEMORY_EXHAUSTED;
    case STATUS_JOURNAL_FULL:
    case STATUS_METER_FULL:
    case STATUS_BUSY: return GRPC_ERROR_BUSY;
    case STATUS_SEGMENTS_FULL: return GRPC_ERROR_SEGMENTS_FULL;
    case STATUS_SEGMENT_POOL_FULL: return GRPC_ERROR_SEGMENT_POOL_FULL;
    case STATUS_PRODUCERS_SHARE:
    case STATUS_PRODUCERS_FULL: return GRPC_ERROR_PRODUCERS_FULL;
    case STATUS_STORAGE_FULL: return GRPC_ERROR_STORAGE_FULL;
    case STATUS_STOPPING: return GRPC_ERROR_STOPPING;
    case STATUS_TIMEOUT: return GRPC_ERROR_DEADLINE_EXCEEDED;
    case STATUS_CANCELLED: return GRPC_ERROR_CANCELLED;
    case STATUS_INVALID: return GRPC_ERROR_MALFORMED_REQUEST;
    case STATUS_UNSUPPORTED: return GRPC_ERROR_UNSUPPORTED;
    case STATUS_IO_FAILED:
    case STATUS_STORAGE_READ_ONLY:
    case STATUS_ACCESS_REFUSED:
    case STATUS_DESCRIPTORS_USED_UP:
    case STATUS_IO_POISONED: return GRPC_ERROR_STORAGE_FAILED;
    case STATUS_MESSAGE_TOO_LARGE: return GRPC_ERROR_MESSAGE_TOO_LARGE;
    case STATUS_NOT_FOUND: return GRPC_ERROR_PARTITION_NOT_FOUND;
    case STATUS_TOPIC_NOT_FOUND: return GRPC_ERROR_TOPIC_NOT_FOUND;
    case STATUS_RECREATED: return GRPC_ERROR_TOPIC_RECREATED;
    case STATUS_NOT_PRIMARY: return GRPC_ERROR_NOT_PRIMARY;
    case STATUS_REBUILDING: return GRPC_ERROR_REBUILDING;
    case STATUS_DAMAGED: return GRPC_ERROR_DAMAGED;
    case STATUS_CORRUPT: return GRPC_ERROR_CORRUPT;
    case STATUS_OP_UNKNOWN: return GRPC_ERROR_OP_UNKNOWN;
    case STATUS_OFFSET_OUT_OF_RANGE: return GRPC_ERROR_OFFSET_OUT_OF_RANGE;
    case STATUS_TRUNCATED: return GRPC_ERROR_TRUNCATED;
    case STATUS_ALREADY_COMMITTED: return GRPC_ERROR_ALREADY_COMMITTED;
    case STATUS_OUT_OF_SEQUENCE: return GRPC_ERROR_OUT_OF_SEQUENCE;
    case STATUS_SESSION_EXPIRED: return GRPC_ERROR_SESSION_EXPIRED;
    case STATUS_PRODUCER_FENCED: return GRPC_ERROR_PRODUCER_FENCED;
    case STATUS_TOO_MANY_IN_FLIGHT: return GRPC_ERROR_TOO_MANY_IN_FLIGHT;
    case STATUS_SYSTEM_TOPIC: return GRPC_ERROR_SYSTEM_TOPIC;
    case STATUS_CLOSED: return GRPC_ERROR_TOPIC_CLOSED;
    case STATUS_STALE_INTENT:
    case STATUS_GROUP_CLOSED:
    case STATUS_FENCED: return GRPC_ERROR_FENCED;
    case STATUS_GROUP_PENDING: return GRPC_ERROR_GROUP_PENDING;
    case STATUS_OFFSET_BEYOND_END: return GRPC_ERROR_OFFSET_BEYOND_END;
    case STATUS_TOO_MANY_GROUPS: return GRPC_ERROR_TOO_MANY_GROUPS;
    case STATUS_MESSAGES_SPAN_PARTITIONS: return GRPC_ERROR_MESSAGES_SPAN_PARTITIONS;
    case STATUS_MESSAGES_COUNT:
    case STATUS_MESSAGE_PRODUCER:
    case STATUS_MESSAGE_HEADERS:
    case STATUS_MESSAGE_HEADER_NAME: return GRPC_ERROR_INVALID_MESSAGES;
    case STATUS_PARTITIONS_FULL: return GRPC_ERROR_PARTITIONS_FULL;
    case STATUS_READ_FAILED: return GRPC_ERROR_READ_FAILED;
    case STATUS_REPLY_TOO_LARGE: return GRPC_ERROR_REPLY_TOO_LARGE;
    case STATUS_QUOTA_EXCEEDED: return GRPC_ERROR_QUOTA_EXCEEDED;
    default: return error_of_batch(status);
    }
}

struct grpc_failure grpc_failure_of(enum status status)
{
    assert(status != STATUS_OK);
    enum grpc_error error = error_of(status);
    struct grpc_failure failure = {.error = error};
    /* Many ways to break a batch share one code: the message says which. */
    if (error == GRPC_ERROR_INVALID_BATCH || error == GRPC_ERROR_INVALID_MESSAGES
        || status == STATUS_PRODUCERS_SHARE || status == STATUS_REPLIES_FULL)
        failure.detail = status_text(status);
    return failure;
}

void grpc_failure_proto(const struct grpc_failure *failure, struct proto_error *error)
{
    const struct grpc_error_entry *entry = grpc_error_entry(failure->error);
    *error = (struct proto_error){
        .code = entry->code,
        .kind = (uint32_t)entry->kind,
        .message = failure->detail != NULL ? failure->detail : entry->message,
        .hint = failure->hint != NULL ? failure->hint : entry->hint,
        .retry_after_ms = entry->retry_after_ms,
        .expected = failure->expected,
    };
}

size_t grpc_percent_encode(const uint8_t *text, size_t size, uint8_t *target, size_t target_size)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t written = 0, whole = 0;
    for (size_t index = 0; index < size; index++) {
        uint8_t byte = text[index];
        int plain = byte >= 0x20 && byte <= 0x7e && byte != '%';
        if ((byte & 0xc0) != 0x80) whole = written;
        if (written + (plain ? 1 : 3) > target_size) return whole;
        if (plain) {
            target[written++] = byte;
        } else {
            target[written++] = '%';
            target[written++] = (uint8_t)digits[byte >> 4];
            target[written++] = (uint8_t)digits[byte & 15];
        }
    }
    return written;
}

size_t grpc_base64(const uint8_t *bytes, size_t size, uint8_t *target)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t written = 0;
    for (size_t index = 0; index < size; index += 3) {
        size_t left = size - index;
        uint32_t group = (uint32_t)bytes[index] << 16;
        if (left > 1) group |= (uint32_t)bytes[index + 1] << 8;
        if (left > 2) group |= bytes[index + 2];
        target[written++] = (uint8_t)alphabet[group >> 18 & 63];
        target[written++] = (uint8_t)alphabet[group >> 12 & 63];
        if (left > 1) target[written++] = (uint8_t)alphabet[group >> 6 & 63];
        if (left > 2) target[written++] = (uint8_t)alphabet[group & 63];
    }
    return written;
}
