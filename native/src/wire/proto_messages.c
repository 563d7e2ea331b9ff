#include "wire/proto_messages.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "wire/proto_wire.h"

/* Field numbers of stream.proto. */
enum publish_field {
    PUBLISH_PROJECT = 1,
    PUBLISH_TOPIC = 2,
    PUBLISH_PARTITION = 3,
    PUBLISH_MESSAGES = 4,
    PUBLISH_PRODUCER_ID = 5,
    PUBLISH_PRODUCER_EPOCH = 6,
    PUBLISH_BASE_SEQUENCE = 7,
    PUBLISH_FIELD_MAX = 7,
};

enum message_field {
    MESSAGE_KEY = 1,
    MESSAGE_VALUE = 2,
    MESSAGE_HEADERS = 3,
    MESSAGE_TIMESTAMP = 4,
    MESSAGE_FIELD_MAX = 4,
};

enum header_field { HEADER_KEY = 1, HEADER_VALUE = 2, HEADER_FIELD_MAX = 2 };

enum fetch_field { FETCH_PROJECT = 1, FETCH_TOPIC = 2, FETCH_PARTITION = 3, FETCH_FIELD_MAX = 7 };

enum stored_field { STORED_OFFSET = 1, STORED_APPEND_TIME = 2, STORED_MESSAGE = 3 };

enum { REPLY_MESSAGES = 6, TAG_SIZE = 1 /* of every field here */ };

static struct batch_field field_of(const struct proto_bytes *bytes)
{
    assert(bytes->size <= INT32_MAX);
    return (struct batch_field){.bytes = bytes->data, .size = (int32_t)bytes->size};
}

/* Is the wire type the one this known field has? */
static int wire_fits(const struct proto_field *field, uint64_t bytes_fields, uint64_t field_max)
{
    if (field->number > field_max) return 1;
    int is_bytes = (bytes_fields >> field->number & 1) != 0;
    return field->wire == (is_bytes ? WIRE_BYTES : WIRE_VARINT);
}

static void publish_field(struct proto_publish_request *request, const struct proto_field *field)
{
    switch (field->number) {
    case PUBLISH_PROJECT: request->project = field->bytes; break;
    case PUBLISH_TOPIC: request->topic = field->bytes; break;
    case PUBLISH_PARTITION:
        request->partition = (uint32_t)field->value;
        request->has_partition = 1;
        break;
    case PUBLISH_MESSAGES:
        if (request->messages_count <= BATCH_RECORDS_COUNT_MAX) request->messages_count++;
        break;
    case PUBLISH_PRODUCER_ID: request->producer_id = field->bytes; break;
    case PUBLISH_PRODUCER_EPOCH: request->producer_epoch = (uint32_t)field->value; break;
    case PUBLISH_BASE_SEQUENCE: request->base_sequence = field->value; break;
    default: break;
    }
}

enum status proto_decode_publish(const uint8_t *bytes, size_t size,
                                 struct proto_publish_request *request)
{
    static const uint64_t bytes_fields = 1u << PUBLISH_PROJECT | 1u << PUBLISH_TOPIC
                                         | 1u << PUBLISH_MESSAGES | 1u << PUBLISH_PRODUCER_ID;
    *request = (struct proto_publish_request){.all = {.data = bytes, .size = size}};
    if (size > INT32_MAX) return STATUS_INVALID;
    struct proto_cursor cursor = {.at = bytes, .end = bytes + size};
    struct proto_field field = {0};
    int found;
    while ((found = proto_next(&cursor, &field)) == 1) {
        if (!wire_fits(&field, bytes_fields, PUBLISH_FIELD_MAX)) return STATUS_INVALID;
        publish_field(request, &field);
    }
    return found == 0 ? STATUS_OK : STATUS_INVALID;
}

static int message_decode(const struct proto_bytes *bytes, struct proto_message *message)
{
    static const uint64_t bytes_fields =
        1u << MESSAGE_KEY | 1u << MESSAGE_VALUE | 1u << MESSAGE_HEADERS;
    *message = (struct proto_message){.key.size = -1, .value.size = -1, .all = *bytes};
    struct proto_cursor cursor = {.at = bytes->data, .end = bytes->data + bytes->size};
    struct proto_field field = {0};
    int found;
    while ((found = proto_next(&cursor, &field)) == 1) {
        if (!wire_fits(&field, bytes_fields, MESSAGE_FIELD_MAX)) return -1;
        switch (field.number) {
        case MESSAGE_KEY: message->key = field_of(&field.bytes); break;
        case MESSAGE_VALUE: message->value = field_of(&field.bytes); break;
        case MESSAGE_HEADERS:
            if (message->headers_count <= BATCH_RECORD_HEADERS_COUNT_MAX) message->headers_count++;
            break;
        case MESSAGE_TIMESTAMP: message->timestamp_us = (int64_t)field.value; break;
        default: break;
        }
    }
    return found == 0 ? 1 : -1;
}

/* The next field of this number; `left` moves behind it. */
static int field_next(struct proto_bytes *left, uint64_t number, struct proto_field *field)
{
    struct proto_cursor cursor = {.at = left->data, .end = left->data + left->size};
    int found;
    while ((found = proto_next(&cursor, field)) == 1 && field->number != number) {
    }
    *left = (struct proto_bytes){.data = cursor.at, .size = (size_t)(cursor.end - cursor.at)};
    if (found == 1 && field->wire != WIRE_BYTES) return -1;
    return found;
}

int proto_message_next(struct proto_bytes *left, struct proto_message *message)
{
    struct proto_field field = {0};
    int found = field_next(left, PUBLISH_MESSAGES, &field);
    return found == 1 ? message_decode(&field.bytes, message) : found;
}

int proto_header_next(struct proto_bytes *left, struct batch_header *header)
{
    static const uint64_t bytes_fields = 1u << HEADER_KEY | 1u << HEADER_VALUE;
    struct proto_field field = {0};
    int found = field_next(left, MESSAGE_HEADERS, &field);
    if (found != 1) return found;
    struct proto_bytes all = field.bytes;
    *header = (struct batch_header){.name.bytes = all.data, .value.size = -1};
    struct proto_cursor cursor = {.at = all.data, .end = all.data + all.size};
    while ((found = proto_next(&cursor, &field)) == 1) {
        if (!wire_fits(&field, bytes_fields, HEADER_FIELD_MAX)) return -1;
        if (field.number == HEADER_KEY) header->name = field_of(&field.bytes);
        if (field.number == HEADER_VALUE) header->value = field_of(&field.bytes);
    }
    return found == 0 ? 1 : -1;
}

enum status proto_decode_fetch_messages(const uint8_t *bytes, size_t size,
                                        struct proto_fetch_messages_request *request)
{
    static const uint64_t bytes_fields = 1u << FETCH_PROJECT | 1u << FETCH_TOPIC;
    uint64_t values[FETCH_FIELD_MAX + 1] = {0};
    *request = (struct proto_fetch_messages_request){0};
    struct proto_cursor cursor = {.at = bytes, .end = bytes + size};
    struct proto_field field = {0};
    int found;
    while ((found = proto_next(&cursor, &field)) == 1) {
        if (!wire_fits(&field, bytes_fields, FETCH_FIELD_MAX)) return STATUS_INVALID;
        if (field.number == FETCH_PROJECT) request->project = field.bytes;
        if (field.number == FETCH_TOPIC) request->topic = field.bytes;
        if (field.number >= FETCH_PARTITION && field.number <= FETCH_FIELD_MAX)
            values[field.number] = field.value;
    }
    request->partition = (uint32_t)values[FETCH_PARTITION];
    request->offset = values[4];
    request->messages_max = (uint32_t)values[5];
    request->bytes_max = (uint32_t)values[6];
    request->wait_ms_max = (uint32_t)values[7];
    return found == 0 ? STATUS_OK : STATUS_INVALID;
}

static uint8_t *put_tag(uint8_t *at, uint32_t number, enum proto_wire wire)
{
    assert(number < 16);
    *at = (uint8_t)(number << 3 | (uint32_t)wire);
    return at + TAG_SIZE;
}

static uint8_t *put_scalar(uint8_t *at, uint32_t number, uint64_t value)
{
    if (value == 0) return at;
    return bytes_put_uvarint(put_tag(at, number, WIRE_VARINT), value);
}

static size_t scalar_bytes(uint64_t value)
{
    return value == 0 ? 0 : TAG_SIZE + bytes_uvarint_size(value);
}

/* A field that has been set, empty or not. */
static uint8_t *put_field(uint8_t *at, uint32_t number, const struct batch_field *field)
{
    if (field->size < 0) return at;
    size_t size = (size_t)field->size;
    at = bytes_put_uvarint(put_tag(at, number, WIRE_BYTES), size);
    memcpy(at, field->bytes, size);
    return at + size;
}

static size_t sized_bytes(size_t size)
{
    return TAG_SIZE + bytes_uvarint_size(size) + size;
}

static size_t field_bytes(const struct batch_field *field)
{
    return field->size < 0 ? 0 : sized_bytes((size_t)field->size);
}

/* proto3 leaves out a string that is empty. */
static struct batch_field header_name(const struct batch_header *header)
{
    struct batch_field name = header->name;
    if (name.size == 0) name.size = -1;
    return name;
}

static size_t header_bytes(const struct batch_header *header)
{
    struct batch_field name = header_name(header);
    return field_bytes(&name) + field_bytes(&header->value);
}

static size_t message_bytes(const struct batch_record *record)
{
    size_t size = field_bytes(&record->key) + field_bytes(&record->value)
                  + scalar_bytes((uint64_t)record->timestamp_us);
    const uint8_t *at = record->headers;
    for (uint32_t index = 0; index < record->headers_count; index++) {
        struct batch_header header;
        batch_header_next(&at, &header);
        size += sized_bytes(header_bytes(&header));
    }
    return size;
}

static uint8_t *put_message(uint8_t *at, const struct batch_record *record)
{
    at = put_field(at, MESSAGE_KEY, &record->key);
    at = put_field(at, MESSAGE_VALUE, &record->value);
    const uint8_t *from = record->headers;
    for (uint32_t index = 0; index < record->headers_count; index++) {
        struct batch_header header;
        batch_header_next(&from, &header);
        at = bytes_put_uvarint(put_tag(at, MESSAGE_HEADERS, WIRE_BYTES), header_bytes(&header));
        struct batch_field name = header_name(&header);
        at = put_field(at, HEADER_KEY, &name);
        at = put_field(at, HEADER_VALUE, &header.value);
    }
    return put_scalar(at, MESSAGE_TIMESTAMP, (uint64_t)record->timestamp_us);
}

size_t proto_stored_message_bytes(const struct batch_record *record, uint64_t offset,
                                  int64_t append_time_us)
{
    size_t size = scalar_bytes(offset) + scalar_bytes((uint64_t)append_time_us);
    return sized_bytes(size + sized_bytes(message_bytes(record)));
}

uint8_t *proto_encode_stored_message(const struct batch_record *record, uint64_t offset,
                                     int64_t append_time_us, uint8_t *at)
{
    size_t message = message_bytes(record);
    size_t size =
        scalar_bytes(offset) + scalar_bytes((uint64_t)append_time_us) + sized_bytes(message);
    at = bytes_put_uvarint(put_tag(at, REPLY_MESSAGES, WIRE_BYTES), size);
    uint8_t *end = at + size;
    at = put_scalar(at, STORED_OFFSET, offset);
    at = put_scalar(at, STORED_APPEND_TIME, (uint64_t)append_time_us);
    at = bytes_put_uvarint(put_tag(at, STORED_MESSAGE, WIRE_BYTES), message);
    at = put_message(at, record);
    assert(at == end);
    return at;
}

size_t proto_encode_publish_reply(const struct proto_publish_reply *reply, uint8_t *target)
{
    uint8_t *at = target;
    at = put_scalar(at, 1, reply->partition);
    at = put_scalar(at, 2, reply->base_offset);
    at = put_scalar(at, 3, reply->message_count);
    at = put_scalar(at, 4, reply->persisted);
    at = put_scalar(at, 5, reply->replicas);
    at = put_scalar(at, 6, reply->duplicate);
    at = put_scalar(at, 7, (uint64_t)reply->append_time_us);
    assert((size_t)(at - target) <= PROTO_PUBLISH_REPLY_SIZE_MAX);
    return (size_t)(at - target);
}

size_t proto_encode_messages_header(const struct proto_messages_header *header, uint8_t *target)
{
    uint8_t *at = target;
    at = put_scalar(at, 1, header->status);
    at = put_scalar(at, 2, header->log_start);
    at = put_scalar(at, 3, header->high_watermark);
    at = put_scalar(at, 4, header->log_end);
    at = put_scalar(at, 5, header->next_offset);
    assert((size_t)(at - target) <= PROTO_MESSAGES_HEADER_SIZE_MAX);
    return (size_t)(at - target);
}
