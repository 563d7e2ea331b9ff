#include "service/fetch/fetch_read.h"

#include "foundation/assert.h"
#include "grpc/server.h"
#include "service/fetch/fetch_answer.h"
#include "service/fetch/fetch_reply.h"
#include "service/fetch/fetch_wait.h"
#include "service/state.h"

enum { FETCH_ATTEMPTS_MAX = 4, FETCH_ATTEMPTS_WORK_MAX = 200 };

/* Bytes of a segment are in the reply's buffer: cut to whole verified batches and answer. */
static void fetch_trimmed(struct service *service, struct fetch *fetch, struct reply *reply,
                          size_t size)
{
    struct store_fetch found = {0};
    struct engine_partition_state state = {0};
    size_t begin = 0;
    size_t end = 0;
    const uint8_t *bytes = reply->body.data + GRPC_PREFIX_SIZE + FETCH_ROOM;
    enum status status = store_fetch_trim(service->store, &fetch->request.id, fetch->request.offset,
                                          fetch->request.bytes_max, bytes, size, &begin, &end);
    if (status == STATUS_OK) status = store_describe(service->store, &fetch->request.id, &state);
    found.log_start = state.log_start;
    found.high_watermark = state.high_watermark;
    found.log_end = state.log_end;
    if (status != STATUS_OK) {
        grpc_reply_release(service->grpc, reply);
        if (status == STATUS_CORRUPT && !fetch_is_work(fetch))
            fetch_answer_status(service, fetch, PROTO_FETCH_CORRUPT, &found);
        else
            fetch_fail(service, fetch, status, 0);
        return;
    }
    assert(begin <= end && end <= size);
    int attempts_max = fetch_is_work(fetch) ? FETCH_ATTEMPTS_WORK_MAX : FETCH_ATTEMPTS_MAX;
    if (begin == end && fetch->attempts < attempts_max) {
        /* The store has learnt how much must be read: ask again at the end of the turn. */
        grpc_reply_release(service->grpc, reply);
        fetch->attempts++;
        fetch_queue(service, fetch);
        return;
    }
    if (begin == end) {
        grpc_reply_release(service->grpc, reply);
        fetch_fail(service, fetch, STATUS_BUSY, 0);
        return;
    }
    if (fetch->request.messages_max > 0) {
        struct io_vector batches = {.data = bytes + begin, .size = end - begin};
        fetch_answer_messages(service, fetch, PROTO_FETCH_OK, &found, &batches, 1);
        grpc_reply_release(service->grpc, reply);
        return;
    }
    struct proto_fetch_reply header = fetch_reply_header(PROTO_FETCH_OK, &found, end - begin);
    fetch_reply_shape(reply, &header, begin, fetch_is_consume(fetch));
    service->counters.fetch_bytes += end - begin;
    fetch_deliver(service, fetch, reply, bytes + begin, end - begin);
}

void fetch_file(struct service *service, struct fetch *fetch, const struct store_fetch *found)
{
    struct reply *reply = grpc_reply_make(service->grpc, FETCH_ROOM + found->size);
    if (reply == NULL) {
        fetch_fail(service, fetch, STATUS_NO_MEMORY, 0);
        return;
    }
    uint8_t *target = reply->body.data + GRPC_PREFIX_SIZE + FETCH_ROOM;
    if (io_file_read_now(service->file, found->file, found->file_offset, target, found->size)
        == STATUS_OK) {
        fetch_charge(service, fetch, reply);
        fetch_trimmed(service, fetch, reply, found->size);
        return;
    }
    struct fetch_read *read = fetch_read_take(service, &fetch->read);
    if (read == NULL) {
        /* Asked again when a read is free: by then the place may be another one. */
        grpc_reply_release(service->grpc, reply);
        fetch_queue(service, fetch);
        return;
    }
    fetch_charge(service, fetch, reply);
    fetch->state = FETCH_READING;
    read->fetch_index = fetch->index;
    read->fetch_tag = fetch->slot_tag;
    read->reply = reply;
    read->request = (struct io_request){
        .operation = IO_READ,
        .file = found->file,
        .offset = found->file_offset,
        .size = found->size,
        .buffer = target,
    };
    service->counters.fetch_reads++;
    service->file->io.submit(service->file->io.context, &read->request);
}

int fetch_read_done(struct service *service, struct io_request *request)
{
    uintptr_t at = (uintptr_t)request;
    uintptr_t first = (uintptr_t)&service->fetches.reads[0];
    if (at < first || at >= (uintptr_t)&service->fetches.reads[FETCH_READS_COUNT_MAX]) return 0;
    struct fetch_read *read = &service->fetches.reads[(at - first) / sizeof(struct fetch_read)];
    assert(read->used);
    struct fetch *fetch = &service->fetches.slots[read->fetch_index];
    assert(fetch->slot_tag == read->fetch_tag);
    assert(fetch->state == FETCH_READING);
    fetch->state = FETCH_RUNNING;
    struct reply *reply = read->reply;
    read->used = 0;
    if (fetch->cancelled) {
        grpc_reply_release(service->grpc, reply);
        fetch_give(service, fetch);
    } else if (request->status != STATUS_OK) {
        grpc_reply_release(service->grpc, reply);
        fetch_fail(service, fetch, STATUS_READ_FAILED, 0);
    } else {
        fetch_trimmed(service, fetch, reply, (size_t)request->result_bytes);
    }
    return 1;
}
