#include "wire/proto.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "wire/proto_wire.h"

enum { FIELDS_MAX = 9, VARINT_SIZE_MAX = 10 };

/* Protobuf takes varints that are longer than need be: unlike records (foundation/bytes.h),
 * messages have no checksum to protect. */
static int proto_varint(struct proto_cursor *cursor, uint64_t *value)
{
    uint64_t result = 0;
    for (uint32_t index = 0; index < VARINT_SIZE_MAX; index++) {
        if (cursor->at == cursor->end) return 0;
        uint8_t byte = *cursor->at++;
        result |= (uint64_t)(byte & 0x7f) << (7 * index);
        if ((byte & 0x80) == 0) {
            *value = result;
            return 1;
        }
    }
    return 0;
}

static int proto_fixed(struct proto_cursor *cursor, size_t size)
{
    if ((size_t)(cursor->end - cursor->at) < size) return 0;
    cursor->at += size;
    return 1;
}

int proto_next(struct proto_cursor *cursor, struct proto_field *field)
{
    if (cursor->at == cursor->end) return 0;
    uint64_t tag;
    if (!proto_varint(cursor, &tag)) return -1;
    field->number = tag >> 3;
    field->wire = (uint32_t)(tag & 7);
    if (field->number == 0 || tag > UINT32_MAX) return -1;
    switch (field->wire) {
    case WIRE_VARINT: return proto_varint(cursor, &field->value) ? 1 : -1;
    case WIRE_I64: return proto_fixed(cursor, 8) ? 1 : -1;
    case WIRE_I32: return proto_fixed(cursor, 4) ? 1 : -1;
    case WIRE_BYTES: {
        uint64_t size;
        if (!proto_varint(cursor, &size)) return -1;
        if (size > (uint64_t)(cursor->end - cursor->at)) return -1;
        field->bytes = (struct proto_bytes){.data = cursor->at, .size = (size_t)size};
        cursor->at += size;
        return 1;
    }
    default: return -1;
    }
}

/* Scalars by field number into values[1..]; `bytes_number` is the one field of type bytes (0 =
 * none). */
static enum status proto_decode(const uint8_t *data, size_t size, uint64_t values[FIELDS_MAX],
                                uint64_t scalars_max, uint64_t bytes_number,
                                struct proto_bytes *bytes)
{
    assert(scalars_max < FIELDS_MAX);
    memset(values, 0, FIELDS_MAX * sizeof values[0]);
    struct proto_cursor cursor = {.at = data, .end = data + size};
    struct proto_field field = {0};
    int found;
    while ((found = proto_next(&cursor, &field)) == 1) {
        if (bytes_number != 0 && field.number == bytes_number) {
            if (field.wire != WIRE_BYTES) return STATUS_INVALID;
            *bytes = field.bytes;
        } else if (field.number <= scalars_max) {
            if (field.wire != WIRE_VARINT) return STATUS_INVALID;
            values[field.number] = field.value;
        }
    }
    return found == 0 ? STATUS_OK : STATUS_INVALID;
}

enum status proto_decode_produce(const uint8_t *bytes, size_t size,
                                 struct proto_produce_request *request)
{
    uint64_t values[FIELDS_MAX];
    struct proto_bytes batch = {0};
    enum status status = proto_decode(bytes, size, values, 5, 4, &batch);
    *request = (struct proto_produce_request){
        .topic = values[1],
        .created_revision = values[2],
        .partition = (uint32_t)values[3],
        .batch = batch,
        .request = values[5],
    };
    return status;
}

enum status proto_decode_fetch(const uint8_t *bytes, size_t size,
                               struct proto_fetch_request *request)
{
    uint64_t values[FIELDS_MAX];
    enum status status = proto_decode(bytes, size, values, 8, 0, NULL);
    *request = (struct proto_fetch_request){
        .topic = values[1],
        .created_revision = values[2],
        .partition = (uint32_t)values[3],
        .offset = values[4],
        .bytes_max = (uint32_t)values[5],
        .wait_ms_max = (uint32_t)values[6],
        .group = values[7],
        .generation = values[8],
    };
    return status;
}

enum status proto_decode_consume(const uint8_t *bytes, size_t size,
                                 struct proto_consume_request *request)
{
    uint64_t values[FIELDS_MAX];
    struct proto_bytes begin = {0};
    enum status status = proto_decode(bytes, size, values, 2, 1, &begin);
    *request = (struct proto_consume_request){.begin = begin, .credit = values[2]};
    if (status == STATUS_OK && begin.data != NULL && values[2] != 0) return STATUS_INVALID;
    return status;
}

enum status proto_decode_consume_begin(struct proto_bytes bytes, struct proto_consume_begin *begin)
{
    uint64_t values[FIELDS_MAX];
    enum status status = proto_decode(bytes.data, bytes.size, values, 8, 0, NULL);
    *begin = (struct proto_consume_begin){
        .topic = values[1],
        .created_revision = values[2],
        .partition = (uint32_t)values[3],
        .offset = values[4],
        .credit = values[5],
        .group = values[6],
        .generation = values[7],
        .bytes_max = (uint32_t)values[8],
    };
    return status;
}

enum status proto_decode_list(const uint8_t *bytes, size_t size, struct proto_list_request *request)
{
    uint64_t values[FIELDS_MAX];
    enum status status = proto_decode(bytes, size, values, 4, 0, NULL);
    *request = (struct proto_list_request){
        .topic = values[1],
        .created_revision = values[2],
        .partition = (uint32_t)values[3],
        .time_us = (int64_t)values[4],
    };
    return status;
}

enum status proto_decode_commit(const uint8_t *bytes, size_t size,
                                struct proto_commit_request *request)
{
    uint64_t values[FIELDS_MAX];
    enum status status = proto_decode(bytes, size, values, 6, 0, NULL);
    *request = (struct proto_commit_request){
        .topic = values[1],
        .created_revision = values[2],
        .partition = (uint32_t)values[3],
        .group = values[4],
        .generation = values[5],
        .offset = values[6],
    };
    return status;
}

enum status proto_decode_fetch_offsets(const uint8_t *bytes, size_t size,
                                       struct proto_commit_request *request)
{
    uint64_t values[FIELDS_MAX];
    enum status status = proto_decode(bytes, size, values, 4, 0, NULL);
    *request = (struct proto_commit_request){
        .topic = values[1],
        .created_revision = values[2],
        .partition = (uint32_t)values[3],
        .group = values[4],
    };
    return status;
}

enum status proto_check(const uint8_t *bytes, size_t size)
{
    uint64_t values[FIELDS_MAX];
    return proto_decode(bytes, size, values, 0, 0, NULL);
}

struct proto_bytes proto_status_message(const uint8_t *bytes, size_t size)
{
    uint64_t values[FIELDS_MAX];
    struct proto_bytes message = {0};
    enum status status = proto_decode(bytes, size, values, 1, 2, &message);
    return status == STATUS_OK ? message : (struct proto_bytes){0};
}

static uint8_t *put_scalar(uint8_t *at, uint32_t number, uint64_t value)
{
    if (value == 0) return at;
    at = bytes_put_uvarint(at, (uint64_t)number << 3 | WIRE_VARINT);
    return bytes_put_uvarint(at, value);
}

static uint8_t *put_bytes(uint8_t *at, uint32_t number, const void *bytes, size_t size)
{
    if (size == 0) return at;
    at = bytes_put_uvarint(at, (uint64_t)number << 3 | WIRE_BYTES);
    at = bytes_put_uvarint(at, size);
    memcpy(at, bytes, size);
    return at + size;
}

static size_t put_error(const struct proto_error *error, uint8_t *target)
{
    uint8_t *at = target;
    at = put_bytes(at, 1, error->code, strlen(error->code));
    at = put_scalar(at, 2, error->kind);
    at = put_bytes(at, 3, error->message, strlen(error->message));
    at = put_bytes(at, 4, error->hint, strlen(error->hint));
    at = put_scalar(at, 5, error->retry_after_ms);
    at = put_scalar(at, 6, error->expected);
    return (size_t)(at - target);
}

size_t proto_encode_produce_reply(const struct proto_produce_reply *reply, uint8_t *target)
{
    uint8_t *at = target;
    at = put_scalar(at, 1, reply->request);
    at = put_scalar(at, 2, reply->base_offset);
    at = put_scalar(at, 3, reply->record_count);
    at = put_scalar(at, 4, reply->persisted);
    at = put_scalar(at, 5, reply->replicas);
    at = put_scalar(at, 6, reply->duplicate);
    at = put_scalar(at, 7, (uint64_t)reply->append_time_us);
    if (reply->error != NULL) {
        uint8_t error[PROTO_PRODUCE_REPLY_SIZE_MAX];
        size_t size = put_error(reply->error, error);
        at = put_bytes(at, 15, error, size);
    }
    assert((size_t)(at - target) <= PROTO_PRODUCE_REPLY_SIZE_MAX);
    return (size_t)(at - target);
}

size_t proto_encode_fetch_header(const struct proto_fetch_reply *reply, uint8_t *target)
{
    uint8_t *at = target;
    at = put_scalar(at, 1, reply->status);
    at = put_scalar(at, 2, reply->log_start);
    at = put_scalar(at, 3, reply->high_watermark);
    at = put_scalar(at, 4, reply->log_end);
    if (reply->batches_size > 0) {
        at = bytes_put_uvarint(at, 5u << 3 | WIRE_BYTES);
        at = bytes_put_uvarint(at, reply->batches_size);
    }
    assert((size_t)(at - target) <= PROTO_FETCH_HEADER_SIZE_MAX);
    return (size_t)(at - target);
}

size_t proto_encode_consume_header(const struct proto_fetch_reply *reply, uint8_t *target)
{
    uint8_t fetch[PROTO_FETCH_HEADER_SIZE_MAX];
    size_t size = proto_encode_fetch_header(reply, fetch);
    uint8_t *at = bytes_put_uvarint(target, 1u << 3 | WIRE_BYTES);
    at = bytes_put_uvarint(at, size + reply->batches_size);
    memcpy(at, fetch, size);
    at += size;
    assert((size_t)(at - target) <= PROTO_FETCH_HEADER_SIZE_MAX);
    return (size_t)(at - target);
}

size_t proto_encode_consume_error(const struct proto_error *error, uint8_t *target)
{
    uint8_t body[PROTO_CONSUME_ERROR_SIZE_MAX];
    size_t size = put_error(error, body);
    size_t written = (size_t)(put_bytes(target, 15, body, size) - target);
    assert(written <= PROTO_CONSUME_ERROR_SIZE_MAX);
    return written;
}

size_t proto_encode_commit_reply(uint64_t offset, uint8_t *target)
{
    return (size_t)(put_scalar(target, 1, offset) - target);
}

size_t proto_encode_offsets_reply(const struct proto_offsets_reply *reply, uint8_t *target)
{
    uint8_t *at = target;
    at = put_scalar(at, 1, reply->found);
    at = put_scalar(at, 2, reply->offset);
    at = put_scalar(at, 3, reply->generation);
    at = put_scalar(at, 4, reply->log_start);
    at = put_scalar(at, 5, reply->high_watermark);
    at = put_scalar(at, 6, reply->start);
    assert((size_t)(at - target) <= PROTO_OFFSETS_REPLY_SIZE_MAX);
    return (size_t)(at - target);
}

size_t proto_encode_list_reply(const struct proto_list_reply *reply, uint8_t *target)
{
    uint8_t *at = target;
    at = put_scalar(at, 1, reply->found);
    at = put_scalar(at, 2, reply->offset);
    at = put_scalar(at, 3, (uint64_t)reply->append_time_us);
    at = put_scalar(at, 4, reply->log_start);
    at = put_scalar(at, 5, reply->high_watermark);
    assert((size_t)(at - target) <= PROTO_OFFSETS_REPLY_SIZE_MAX);
    return (size_t)(at - target);
}

size_t proto_encode_health(uint32_t serving_status, uint8_t *target)
{
    return (size_t)(put_scalar(target, 1, serving_status) - target);
}

size_t proto_encode_status(uint32_t grpc_code, const struct proto_error *error, uint8_t *target)
{
    static const char type_url[] = "type.googleapis.com/headrace.stream.v1.Error";
    uint8_t details[PROTO_STATUS_SIZE_MAX];
    uint8_t any[PROTO_STATUS_SIZE_MAX];
    size_t details_size = put_error(error, details);
    uint8_t *any_end = put_bytes(any, 1, type_url, sizeof type_url - 1);
    any_end = put_bytes(any_end, 2, details, details_size);

    uint8_t *at = target;
    at = put_scalar(at, 1, grpc_code);
    at = put_bytes(at, 2, error->message, strlen(error->message));
    at = put_bytes(at, 3, any, (size_t)(any_end - any));
    assert((size_t)(at - target) <= PROTO_STATUS_SIZE_MAX);
    return (size_t)(at - target);
}
