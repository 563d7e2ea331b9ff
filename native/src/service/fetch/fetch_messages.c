#include "service/fetch/fetch_messages.h"

#include <string.h>

#include "batch/batch_records.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/access.h"
#include "service/attribution.h"
#include "service/fetch/fetch.h"
#include "service/fetch/fetch_remote.h"
#include "service/fetch/fetch_reply.h"
#include "service/names.h"
#include "service/state.h"
#include "wire/proto_messages.h"

enum {
    /* The largest buffer of the pool, but for what lies in front of the messages. */
    MESSAGES_BYTES_MAX = 16777216 - 16 - (int)sizeof(struct reply) - GRPC_PREFIX_SIZE - FETCH_ROOM,
    FETCH_MESSAGES_DEFAULT = 500,
    FETCH_MESSAGES_MAX = 10000,
    MESSAGES_BYTES_FIRST = 65536, /* a reply's room to begin with; doubled as it fills */
};

/* A reply that is being filled. */
struct messages {
    struct service *service;
    const struct fetch_request *request;
    struct reply *reply;
    size_t capacity; /* of its messages */
    size_t size;
    uint64_t payload_bytes; /* of keys, values and headers */
    uint32_t count;
    uint32_t full; /* no more of them */
    uint64_t next_offset;
};

void fetch_messages_message(struct call *call, struct grpc_message *message)
{
    struct service *service = service_of(call);
    struct proto_fetch_messages_request request;
    if (proto_decode_fetch_messages(message->data, message->size, &request) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    const struct table_topic *topic;
    struct grpc_failure failure =
        topic_by_name(service->tables, &call->caller, &request.project, &request.topic, &topic);
    struct fetch_request wanted = {.offset = request.offset, .principal = call->caller.principal};
    if (failure.error == GRPC_ERROR_NONE) {
        wanted.id = (struct engine_partition_id){
            .topic = topic->topic,
            .created_revision = topic->created_revision,
            .partition = request.partition,
        };
        failure.error =
            access_check(service->tables, &call->caller, &wanted.id, ENGINE_VERB_CONSUME, &topic);
    }
    if (failure.error != GRPC_ERROR_NONE) {
        grpc_finish(call, &failure);
        return;
    }
    attribution_request(call, topic);
    wanted.bytes_max = request.bytes_max == 0 ? FETCH_BYTES_DEFAULT : request.bytes_max;
    if (wanted.bytes_max > FETCH_BYTES_MAX) wanted.bytes_max = FETCH_BYTES_MAX;
    wanted.messages_max = request.messages_max == 0 ? FETCH_MESSAGES_DEFAULT : request.messages_max;
    if (wanted.messages_max > FETCH_MESSAGES_MAX) wanted.messages_max = FETCH_MESSAGES_MAX;
    wanted.deadline_ns = fetch_deadline(call, request.wait_ms_max);
    enum grpc_error error = fetch_begin(call, &wanted);
    if (error != GRPC_ERROR_NONE) grpc_finish_error(call, error);
}

static uint8_t *body_of(const struct reply *reply)
{
    return reply->body.data + GRPC_PREFIX_SIZE + FETCH_ROOM;
}

/* Room for so many bytes of messages. 0 = there is none: more than a reply holds, or no memory. */
static int messages_grow(struct messages *messages, size_t wanted)
{
    if (wanted <= messages->capacity) return 1;
    if (wanted > MESSAGES_BYTES_MAX) return 0;
    size_t size = messages->capacity == 0 ? MESSAGES_BYTES_FIRST : 2 * messages->capacity;
    if (size < wanted) size = wanted;
    if (size > MESSAGES_BYTES_MAX) size = MESSAGES_BYTES_MAX;
    struct reply *larger = grpc_reply_make(messages->service->grpc, FETCH_ROOM + size);
    if (larger == NULL) return 0;
    if (messages->reply != NULL) {
        memcpy(body_of(larger), body_of(messages->reply), messages->size);
        grpc_reply_release(messages->service->grpc, messages->reply);
    }
    messages->reply = larger;
    messages->capacity = size;
    return 1;
}

static uint64_t field_payload(const struct batch_field *field)
{
    return field->size < 0 ? 0 : (uint64_t)field->size;
}

static enum status messages_put(struct messages *messages, const struct batch_record *record,
                                uint64_t offset, int64_t append_time_us)
{
    const struct fetch_request *request = messages->request;
    uint64_t payload =
        field_payload(&record->key) + field_payload(&record->value) + record->headers_bytes;
    size_t size = proto_stored_message_bytes(record, offset, append_time_us);
    int first = messages->count == 0;
    messages->full = messages->count == request->messages_max
                     || (!first && messages->payload_bytes + payload > request->bytes_max);
    if (messages->full) return STATUS_OK;
    if (!messages_grow(messages, messages->size + size)) {
        messages->full = 1;
        messages->next_offset = first ? offset + 1 : offset;
        if (!first) return STATUS_OK;
        return size > MESSAGES_BYTES_MAX ? STATUS_REPLY_TOO_LARGE : STATUS_NO_MEMORY;
    }
    uint8_t *at = body_of(messages->reply) + messages->size;
    uint8_t *end = proto_encode_stored_message(record, offset, append_time_us, at);
    assert(end == at + size);
    messages->size += size;
    messages->payload_bytes += payload;
    messages->count++;
    messages->next_offset = offset + 1;
    return STATUS_OK;
}

static int place_is(const struct message_place *place, const struct engine_partition_id *id,
                    const struct batch_server *server, const struct batch_client *client)
{
    return place->server.size_bytes == server->size_bytes && place->crc32c == client->crc32c
           && place->server.base_offset == server->base_offset && place->server.op == server->op
           && place->id.topic == id->topic && place->id.partition == id->partition
           && place->id.created_revision == id->created_revision;
}

/* The records of a batch, decompressed and checked once however often a reader comes back. NULL =
 * they are not what its header says. */
static const uint8_t *records_open(struct messages *messages, const uint8_t *part,
                                   const struct batch_server *server,
                                   const struct batch_client *client)
{
    struct message_opener *opener = &messages->service->opener;
    struct message_place *place = &opener->place;
    const uint8_t *in_place = part + BATCH_CLIENT_HEADER_BYTES;
    int compressed = client->codec != BATCH_CODEC_NONE;
    if (place_is(place, &messages->request->id, server, client))
        return compressed ? opener->records : in_place;
    *place = (struct message_place){0};
    enum status status = compressed
                             ? batch_records_open_with(opener->codec, part, client, opener->records)
                             : STATUS_OK;
    const uint8_t *records = compressed ? opener->records : in_place;
    if (status == STATUS_OK) status = batch_records_read(records, client, NULL);
    if (status != STATUS_OK) return NULL;
    *place = (struct message_place){
        .id = messages->request->id, .server = *server, .crc32c = client->crc32c};
    return records;
}

/* The messages of one stored batch, from the offset on. */
static enum status messages_batch(struct messages *messages, const uint8_t *stored,
                                  const struct batch_server *server,
                                  const struct batch_client *client)
{
    const uint8_t *records =
        records_open(messages, stored + BATCH_SERVER_HEADER_BYTES, server, client);
    if (records == NULL) return STATUS_CORRUPT;
    struct message_place *place = &messages->service->opener.place;
    uint64_t wanted = messages->next_offset - server->base_offset;
    uint32_t index = place->index <= wanted ? place->index : 0;
    const uint8_t *at = records + (place->index <= wanted ? place->at : 0);
    enum status status = STATUS_OK;
    while (index < client->record_count && status == STATUS_OK) {
        const uint8_t *next = at;
        struct batch_record record;
        enum status checked = batch_record_next(&next, records, client, index, &record);
        assert(checked == STATUS_OK);
        if (index >= wanted) {
            status = messages_put(messages, &record, server->base_offset + index,
                                  server->append_time_us);
            if (messages->full) break;
        }
        at = next;
        index++;
    }
    place->index = index;
    place->at = (uint32_t)(at - records);
    return status;
}

/* Whole stored batches end to end, until the reply is full. */
static enum status messages_batches(struct messages *messages, const struct io_vector *batches)
{
    for (uint64_t at = 0; at < batches->size && !messages->full;) {
        struct batch_server server;
        struct batch_client client;
        const uint8_t *stored = batches->data + at;
        assert(batches->size - at >= BATCH_SERVER_HEADER_BYTES);
        batch_read_server(stored, &server); /* the store has checked it */
        assert(server.size_bytes <= batches->size - at);
        enum status status =
            batch_decode_client(stored + BATCH_SERVER_HEADER_BYTES,
                                server.size_bytes - BATCH_SERVER_HEADER_BYTES, &client);
        if (status != STATUS_OK) return STATUS_CORRUPT;
        uint64_t end = server.base_offset + client.record_count;
        at += server.size_bytes;
        if (end <= messages->next_offset) continue;
        if (server.base_offset > messages->next_offset) messages->next_offset = server.base_offset;
        status = messages_batch(messages, stored, &server, &client);
        /* No reader is stuck for ever on one batch (X38): it may go on behind it. */
        if (status == STATUS_CORRUPT && messages->count == 0) messages->next_offset = end;
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

static struct reply *messages_shape(struct messages *messages, enum proto_fetch_status status,
                                    const struct store_fetch *found)
{
    struct proto_messages_header header = {
        .status = (uint32_t)status,
        .log_start = found->log_start,
        .high_watermark = found->high_watermark,
        .log_end = found->log_end,
        .next_offset = messages->next_offset,
    };
    uint8_t encoded[PROTO_MESSAGES_HEADER_SIZE_MAX];
    _Static_assert((int)PROTO_MESSAGES_HEADER_SIZE_MAX <= (int)FETCH_ROOM, "it lies in the room");
    size_t size = proto_encode_messages_header(&header, encoded);
    fetch_reply_front(messages->reply, encoded, size, messages->size, 0);
    messages->service->counters.fetch_bytes += messages->size;
    return messages->reply;
}

struct reply *fetch_messages_reply(struct service *service, const struct fetch_request *request,
                                   enum proto_fetch_status status, const struct store_fetch *found,
                                   const struct io_vector *batches, uint32_t batches_count,
                                   enum status *failed, uint64_t *expected)
{
    struct messages messages = {
        .service = service, .request = request, .next_offset = request->offset};
    if (status == PROTO_FETCH_TRUNCATED) messages.next_offset = found->log_start;
    /* A reply without messages stays small: it is not counted in the budget. */
    messages.reply = batches_count == 0 ? grpc_reply_make(service->grpc, FETCH_ROOM) : NULL;
    int room = batches_count == 0 ? messages.reply != NULL : messages_grow(&messages, 1);
    enum status taken = room ? STATUS_OK : STATUS_NO_MEMORY;
    for (uint32_t index = 0; index < batches_count && taken == STATUS_OK && !messages.full; index++)
        taken = messages_batches(&messages, &batches[index]);
    /* What precedes a damaged batch is good. */
    if (taken == STATUS_CORRUPT && messages.count == 0) status = PROTO_FETCH_CORRUPT;
    if (taken == STATUS_OK || taken == STATUS_CORRUPT)
        return messages_shape(&messages, status, found);
    *failed = taken;
    if (taken == STATUS_REPLY_TOO_LARGE) *expected = messages.next_offset;
    if (messages.reply != NULL) grpc_reply_release(service->grpc, messages.reply);
    return NULL;
}
