/* service/fetch/fetch_messages.h: FetchMessages: a Fetch by topic name whose batches are decoded
 * on the shard that owns the partition. */
#ifndef SERVICE_FETCH_FETCH_MESSAGES_H
#define SERVICE_FETCH_FETCH_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "batch/batch.h"
#include "engine.h"
#include "grpc/call.h"
#include "io/io.h"
#include "service/shard_frame.h"
#include "store/store.h"
#include "wire/proto.h"

struct service;

/* Where one shard last stopped in a batch. A reader comes back for the next messages of the same
 * batch: it is then neither decompressed again nor walked from its front. */
struct message_place {
    struct engine_partition_id id;
    struct batch_server server; /* size 0 = nowhere yet */
    uint32_t crc32c;            /* of the client part */
    uint32_t index;             /* of the record at `at` */
    uint32_t at;                /* bytes behind the first record */
    uint32_t reserved;
};

/* What a shard needs to look into batches, taken at the start. */
struct message_opener {
    uint8_t *records; /* BATCH_RECORDS_BYTES_MAX: a batch after decompression */
    void *codec;      /* batch_opener_make */
    struct message_place place;
};

void fetch_messages_message(struct call *call, struct grpc_message *message);

/* The reply to a fetch of messages (request->messages_max > 0). `batches` are whole stored batches,
 * the first holds the offset; none with a status other than OK. NULL: *failed says why, and
 * *expected where to go on if a message is too large. */
struct reply *fetch_messages_reply(struct service *service, const struct fetch_request *request,
                                   enum proto_fetch_status status, const struct store_fetch *found,
                                   const struct io_vector *batches, uint32_t batches_count,
                                   enum status *failed, uint64_t *expected);

#endif
