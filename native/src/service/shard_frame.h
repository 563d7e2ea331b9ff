/* service/shard_frame.h: what shards of a node say to each other (service/shard_queues.h).
 *
 * A request goes to the owner of its partition, which answers with the requester's token. Bodies
 * are lent: the frame carries a pointer into the sender's memory that stays untouched until the
 * answer (a request's batch) or until FRAME_RELEASE (a reply). */
#ifndef SERVICE_SHARD_FRAME_H
#define SERVICE_SHARD_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"
#include "store/store.h"

enum shard_frame_kind {
    FRAME_PRODUCE = 1,
    FRAME_COMMIT = 2,
    FRAME_FETCH_OFFSETS = 3,
    FRAME_FETCH = 4,
    FRAME_FETCH_CANCEL = 5,
    FRAME_CONNECTION = 6, /* a socket accepted by shard 0 */
    FRAME_TABLES = 7,     /* a delta; answered by TABLES_DONE */
    FRAME_READY = 8,
    FRAME_TIME = 9,
    FRAME_OUTCOME = 16,
    FRAME_FETCHED = 17,
    FRAME_RELEASE = 18,
    FRAME_TABLES_DONE = 19,
    FRAME_OFFSETS = 20,
    FRAME_TIME_FOUND = 21,
};

struct frame_produce {
    struct engine_partition_id id;
    const uint8_t *batch; /* lent until the outcome */
    uint64_t batch_size;
    uint32_t principal;
    uint32_t message_bytes_max;
};

struct frame_commit {
    struct engine_partition_id id;
    uint64_t group;
    uint64_t generation;
    uint64_t offset;
};

#define FETCH_FOREVER UINT64_MAX

enum fetch_flag {
    FETCH_CONSUME = 1,      /* the reply is a ConsumeReply; it waits for room as it does for data */
    FETCH_ANSWER_EMPTY = 2, /* answer EMPTY once instead of waiting */
    FETCH_SEARCH = 4,       /* the bytes are for the shard that asks, not for a client */
};

struct fetch_request {
    struct engine_partition_id id;
    uint64_t offset;
    uint64_t group;
    uint64_t generation;
    uint64_t deadline_ns; /* FETCH_FOREVER = a stream waits as long as it lives */
    uint32_t bytes_max;
    uint32_t messages_max; /* > 0: answered by a FetchMessagesReply */
    uint32_t flags;        /* enum fetch_flag */
    uint32_t principal;
};

struct frame_outcome {
    enum status status;
    uint32_t record_count;
    uint32_t persisted;
    uint32_t replicas;
    uint64_t base_offset;
    uint64_t expected;
    int64_t append_time_us;
    uint8_t duplicate;
};

struct fetch_result {
    enum status status;    /* OK: reply holds a FetchReply; else the call fails */
    uint32_t fetch_status; /* enum proto_fetch_status of the reply */
    uint64_t expected;
    struct reply *reply;    /* lent until FRAME_RELEASE */
    uint64_t next_offset;   /* of a stream or a search: where to go on */
    uint64_t batches_bytes; /* of those: the bytes of batches at the reply's end */
};

struct frame_offsets {
    enum status status;
    uint32_t found;
    uint64_t offset;
    uint64_t generation;
    uint64_t log_start;
    uint64_t high_watermark;
};

struct frame_time {
    struct engine_partition_id id;
    int64_t time_us;
};

struct frame_tables {
    uint64_t op;
    const uint8_t *delta; /* lent until TABLES_DONE */
    uint64_t size;
};

struct shard_frame {
    uint16_t kind; /* enum shard_frame_kind */
    uint16_t source;
    uint16_t target;
    uint16_t reserved;
    uint64_t token; /* of the requester's pending */
    union {
        struct frame_produce produce;
        struct frame_commit commit;
        struct fetch_request fetch;
        struct frame_outcome outcome;
        struct fetch_result fetched;
        struct frame_offsets offsets;
        struct frame_time time;
        struct store_time time_found;
        struct frame_tables tables;
        struct reply *released;
        int fd;
    };
};

#endif
