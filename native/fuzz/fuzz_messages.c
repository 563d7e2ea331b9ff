/* fuzz_messages.c: Publish and FetchMessages: plain messages into a batch and out of it.
 *
 * The input is what a PublishRequest is measured against (partitions, room, the time) and then the
 * request; the same bytes are taken as a FetchMessagesRequest and as records of a batch. Asserts
 * that what is lent lies inside, that a request that is accepted makes a batch which every check of
 * batches accepts and which holds the same messages, and that a reply made of it decodes to them
 * again. */
#include <string.h>

#include "batch/batch_records.h"
#include "batch/partitioner.h"
#include "foundation/assert.h"
#include "fuzz_input.h"
#include "wire/message_batch.h"
#include "wire/proto.h"
#include "wire/proto_messages.h"
#include "wire/proto_wire.h"

enum {
    PART_ROOM = 1, /* numbers of fuzz_room */
    RECORDS_ROOM = 2,
    REPLY_ROOM = 3,
    RECORDS_COUNT_MAX = 65536, /* more are measured, not taken apart */
    REPLY_MESSAGES_FIELD = 6,
};

static const uint64_t first_offset = (1u << 21) - 2; /* its varint grows on the way */

static void inside(struct proto_bytes all, const uint8_t *data, int64_t size)
{
    if (size <= 0) return;
    assert(data >= all.data);
    assert(data <= all.data + all.size);
    assert((size_t)size <= (size_t)(all.data + all.size - data));
}

static void field_same(const struct batch_field *field, const struct batch_field *other)
{
    assert(field->size == other->size);
    if (field->size > 0) assert(memcmp(field->bytes, other->bytes, (size_t)field->size) == 0);
}

/* ---- a message and a record ---- */

static void message_same(const struct proto_message *message, const struct batch_record *record,
                         int64_t now_us)
{
    int64_t time_us = message->timestamp_us != 0 ? message->timestamp_us : now_us;
    assert(record->timestamp_us == time_us);
    field_same(&record->key, &message->key);
    field_same(&record->value, &message->value);
    assert(record->headers_count == message->headers_count);
    struct proto_bytes left = message->all;
    const uint8_t *at = record->headers;
    for (uint32_t index = 0; index < record->headers_count; index++) {
        struct batch_header sent;
        struct batch_header kept;
        int found = proto_header_next(&left, &sent);
        assert(found == 1);
        batch_header_next(&at, &kept);
        field_same(&kept.name, &sent.name);
        field_same(&kept.value, &sent.value);
    }
    assert(at == record->headers + record->headers_bytes);
    struct batch_header none;
    assert(proto_header_next(&left, &none) == 0);
}

/* A StoredMessage, taken apart by field number, says what the record says. */
static void stored_same(struct proto_bytes stored, const struct batch_record *record,
                        uint64_t offset, int64_t append_us)
{
    struct proto_cursor cursor = {.at = stored.data, .end = stored.data + stored.size};
    struct proto_field field = {0};
    uint64_t scalars[3] = {0};
    struct proto_bytes inner = {0};
    int found;
    while ((found = proto_next(&cursor, &field)) == 1) {
        assert(field.number >= 1 && field.number <= 3);
        if (field.number < 3) scalars[field.number] = field.value;
        if (field.number == 3) inner = field.bytes;
    }
    assert(found == 0);
    assert(scalars[1] == offset);
    assert((int64_t)scalars[2] == append_us);
    /* The field `messages` of a request, by its tag, size in front: as long as what came out. */
    static uint8_t request[FUZZ_COPY_SIZE_MAX + 16];
    uint8_t *at = request;
    *at++ = 4 << 3 | WIRE_BYTES;
    for (size_t size = inner.size;; size >>= 7) {
        *at++ = (uint8_t)((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
        if (size <= 0x7f) break;
    }
    if (inner.size > 0) memcpy(at, inner.data, inner.size);
    struct proto_bytes left = {.data = request, .size = (size_t)(at - request) + inner.size};
    struct proto_message message;
    found = proto_message_next(&left, &message);
    assert(found == 1);
    assert(left.size == 0);
    assert(message.timestamp_us == record->timestamp_us);
    message_same(&message, record, 0);
}

/* ---- records out ---- */

static size_t reply_bytes(const uint8_t *records, const struct batch_client *client,
                          int64_t append_us)
{
    size_t size = 0;
    const uint8_t *at = records;
    for (uint32_t index = 0; index < client->record_count; index++) {
        struct batch_record record;
        enum status status = batch_record_next(&at, records, client, index, &record);
        assert(status == STATUS_OK);
        size += proto_stored_message_bytes(&record, first_offset + index, append_us);
    }
    return size;
}

/* Records that were read become a reply, and the reply is read. */
static void reply_check(const uint8_t *records, const struct batch_client *client,
                        int64_t append_us)
{
    size_t size = reply_bytes(records, client, append_us);
    if (size > FUZZ_COPY_SIZE_MAX) return;
    uint8_t *reply = fuzz_room(REPLY_ROOM, size);
    uint8_t *end = reply;
    const uint8_t *at = records;
    struct proto_cursor cursor = {.at = reply, .end = reply + size};
    for (uint32_t index = 0; index < client->record_count; index++) {
        struct batch_record record;
        (void)batch_record_next(&at, records, client, index, &record);
        end = proto_encode_stored_message(&record, first_offset + index, append_us, end);
        struct proto_field field = {0};
        int found = proto_next(&cursor, &field);
        assert(found == 1);
        assert(field.number == REPLY_MESSAGES_FIELD);
        assert(cursor.at == end);
        stored_same(field.bytes, &record, first_offset + index, append_us);
    }
    assert(end == reply + size);
    assert(proto_check(reply, size) == STATUS_OK);
}

/* Any bytes as records: both readers agree, and what they accept can be sent. */
static void records_check(const uint8_t *bytes, size_t size, uint32_t count, int64_t base_us)
{
    struct batch_client client = {
        .record_count = count,
        .records_bytes = (uint32_t)size,
        .base_timestamp_us = base_us,
        .max_timestamp_us = INT64_MIN,
    };
    const uint8_t *at = bytes;
    uint32_t whole = 0;
    struct batch_record record;
    while (whole < count && batch_record_next(&at, bytes, &client, whole, &record) == STATUS_OK) {
        whole++;
        inside((struct proto_bytes){bytes, size}, record.key.bytes, record.key.size);
        inside((struct proto_bytes){bytes, size}, record.value.bytes, record.value.size);
        if (record.timestamp_us > client.max_timestamp_us)
            client.max_timestamp_us = record.timestamp_us;
    }
    int accepted = batch_records_read(bytes, &client, NULL) == STATUS_OK;
    assert(accepted == (whole == count && at == bytes + size));
    if (accepted && count > 0) reply_check(bytes, &client, base_us);
}

/* ---- messages in ---- */

/* Every message and header that a walk gives, whatever the request is worth. */
static void request_walk(const struct proto_publish_request *request, int whole)
{
    struct proto_bytes left = request->all;
    struct proto_message message;
    uint32_t count = 0;
    int found;
    while ((found = proto_message_next(&left, &message)) == 1) {
        count++;
        inside(request->all, message.key.bytes, message.key.size);
        inside(request->all, message.value.bytes, message.value.size);
        struct proto_bytes headers = message.all;
        struct batch_header header;
        while (proto_header_next(&headers, &header) == 1) {
            inside(message.all, header.name.bytes, header.name.size);
            inside(message.all, header.value.bytes, header.value.size);
        }
    }
    if (!whole) return;
    assert(count <= request->messages_count);
    ergo(found == 0, count == request->messages_count);
}

/* The batch's records read as columns, one by one, and written again: the same. */
static void columns_same(const uint8_t *records, const struct batch_client *client)
{
    static int64_t timestamps_us[RECORDS_COUNT_MAX];
    static uint32_t positions[3][RECORDS_COUNT_MAX];
    static int32_t sizes[2][RECORDS_COUNT_MAX];
    static uint32_t header_counts[RECORDS_COUNT_MAX];
    const struct batch_columns columns = {
        .timestamps_us = timestamps_us,
        .key_positions = positions[0],
        .key_sizes = sizes[0],
        .value_positions = positions[1],
        .value_sizes = sizes[1],
        .header_positions = positions[2],
        .header_counts = header_counts,
    };
    enum status status = batch_records_read(records, client, &columns);
    assert(status == STATUS_OK);
    const uint8_t *at = records;
    for (uint32_t index = 0; index < client->record_count; index++) {
        struct batch_record record;
        status = batch_record_next(&at, records, client, index, &record);
        assert(status == STATUS_OK);
        assert(timestamps_us[index] == record.timestamp_us);
        assert(sizes[0][index] == record.key.size);
        assert(sizes[1][index] == record.value.size);
        assert(records + positions[0][index] == record.key.bytes);
        assert(records + positions[1][index] == record.value.bytes);
        assert(records + positions[2][index] == record.headers);
        assert(header_counts[index] == record.headers_count);
        const uint8_t *begin = at - batch_record_bytes(&record, index, client->base_timestamp_us);
        static uint8_t again[FUZZ_COPY_SIZE_MAX];
        uint8_t *end = batch_record_write(&record, index, client->base_timestamp_us, again);
        assert(memcmp(begin, again, (size_t)(end - again)) == 0);
        assert(begin + (end - again) == record.headers);
    }
}

static void batch_same(const struct proto_publish_request *request,
                       const struct message_batch *batch, uint32_t partitions)
{
    size_t size = message_batch_bytes(batch);
    uint8_t *part = fuzz_room(PART_ROOM, size);
    message_batch_write(request, batch, part);
    struct batch_client client;
    enum status status = batch_check_client(part, size, BATCH_CLIENT_BYTES_MAX, &client);
    assert(status == STATUS_OK);
    assert(client.record_count == request->messages_count);
    assert(client.base_sequence == request->base_sequence);
    assert(client.producer_epoch == request->producer_epoch);
    assert(client.idempotent == (request->producer_id.size != 0));
    uint8_t *records = fuzz_room(RECORDS_ROOM, client.records_bytes);
    status = batch_records_open(part, &client, records);
    assert(status == STATUS_OK);
    columns_same(records, &client);
    const uint8_t *at = records;
    struct proto_bytes left = request->all;
    for (uint32_t index = 0; index < client.record_count; index++) {
        struct proto_message message;
        struct batch_record record;
        int found = proto_message_next(&left, &message);
        assert(found == 1);
        (void)batch_record_next(&at, records, &client, index, &record);
        message_same(&message, &record, batch->now_us);
        if (message.key.size < 0 || request->has_partition) continue;
        assert(batch->has_key);
        assert(batch->partition < partitions);
        size_t key_bytes = (size_t)message.key.size;
        assert(partitioner_of(message.key.bytes, key_bytes, partitions) == batch->partition);
    }
    reply_check(records, &client, batch->now_us);
}

static int refusal_named(enum status status)
{
    switch (status) {
    case STATUS_INVALID:
    case STATUS_MESSAGES_COUNT:
    case STATUS_MESSAGES_SPAN_PARTITIONS:
    case STATUS_MESSAGE_HEADERS:
    case STATUS_MESSAGE_HEADER_NAME:
    case STATUS_MESSAGE_TOO_LARGE:
    case STATUS_MESSAGE_PRODUCER:
    case STATUS_BATCH_TIMESTAMP: return 1;
    default: return 0;
    }
}

static void publish_check(const uint8_t *bytes, size_t size, uint32_t partitions, uint32_t room,
                          int64_t now_us)
{
    struct proto_publish_request request;
    int whole = proto_decode_publish(bytes, size, &request) == STATUS_OK;
    ergo(whole, proto_check(bytes, size) == STATUS_OK);
    request_walk(&request, whole);
    if (!whole) return;
    inside(request.all, request.project.data, (int64_t)request.project.size);
    inside(request.all, request.topic.data, (int64_t)request.topic.size);
    inside(request.all, request.producer_id.data, (int64_t)request.producer_id.size);
    struct message_batch batch;
    enum status status = message_batch_measure(&request, now_us, partitions, room, &batch);
    if (status != STATUS_OK) {
        assert(refusal_named(status));
        return;
    }
    assert(message_batch_bytes(&batch) <= room);
    if (batch.records_count <= RECORDS_COUNT_MAX) batch_same(&request, &batch, partitions);
}

static void fetch_check(const uint8_t *bytes, size_t size)
{
    struct proto_fetch_messages_request request;
    if (proto_decode_fetch_messages(bytes, size, &request) != STATUS_OK) return;
    assert(proto_check(bytes, size) == STATUS_OK);
    struct proto_bytes all = {.data = bytes, .size = size};
    inside(all, request.project.data, (int64_t)request.project.size);
    inside(all, request.topic.data, (int64_t)request.topic.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.at = bytes, .end = bytes + size};
    uint32_t partitions = fuzz_u16(&input) + 1u;
    uint32_t room = fuzz_u32(&input) % (FUZZ_COPY_SIZE_MAX + 1);
    int64_t now_us = (int64_t)fuzz_u64(&input);
    uint32_t count = fuzz_u16(&input);
    size_t left = (size_t)(input.end - input.at);
    if (left > FUZZ_COPY_SIZE_MAX) return 0;
    uint8_t *copy = fuzz_copy(input.at, left);
    publish_check(copy, left, partitions, room, now_us);
    fetch_check(copy, left);
    records_check(copy, left, count, now_us);
    return 0;
}
