/* shard/queues.h: typed frames between the shards of a node.
 *
 * From every shard to every shard two bounded rings: the main lane (requests, hand-overs) and the
 * reply lane (outcomes, releases). The main lane may refuse (LANE_FULL): the caller tells its
 * client BUSY and the drop is counted. The reply lane never loses: what finds it full waits in
 * order in the sender's memory, and so do hand-overs of connections and tables. Bodies are lent:
 * the frame carries a pointer into the sender's memory that stays untouched until the answer (a
 * request's batch) or until LANE_RELEASE (a reply). The receiver checks that it is the target and
 * owns the partition. */
#ifndef SHARD_QUEUES_H
#define SHARD_QUEUES_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/ring.h"
#include "foundation/status.h"
#include "store/store.h"

enum lane { LANE_MAIN = 0, LANE_REPLY = 1, LANES_COUNT = 2 };

enum lane_kind {
    LANE_PRODUCE = 1,
    LANE_COMMIT = 2,
    LANE_FETCH_OFFSETS = 3,
    LANE_FETCH = 4,
    LANE_FETCH_CANCEL = 5,
    LANE_CONNECTION = 6, /* a socket accepted by shard 0 */
    LANE_TABLES = 7,     /* a delta; answered by TABLES_DONE */
    LANE_READY = 8,
    LANE_TIME = 9,
    LANE_OUTCOME = 16,
    LANE_FETCHED = 17,
    LANE_RELEASE = 18,
    LANE_TABLES_DONE = 19,
    LANE_OFFSETS = 20,
    LANE_TIME_FOUND = 21,
};

struct lane_produce {
    struct engine_partition_id id;
    const uint8_t *batch; /* lent until the outcome */
    uint64_t batch_size;
    uint32_t principal;
    uint32_t message_bytes_max;
};

struct lane_commit {
    struct engine_partition_id id;
    uint64_t group;
    uint64_t generation;
    uint64_t offset;
};

#define LANE_FETCH_FOREVER UINT64_MAX

enum lane_fetch_flag {
    LANE_FETCH_CONSUME = 1, /* the reply is a ConsumeReply; it waits for room as it does for data */
    LANE_FETCH_TELL_EMPTY = 2, /* answer EMPTY once instead of waiting */
    LANE_FETCH_SEARCH = 4,     /* the bytes are for the shard that asks, not for a client */
};

struct lane_fetch {
    struct engine_partition_id id;
    uint64_t offset;
    uint64_t group;
    uint64_t generation;
    uint64_t deadline_ns; /* LANE_FETCH_FOREVER = a stream waits as long as it lives */
    uint32_t bytes_max;
    uint32_t messages_max; /* > 0: answered by a FetchMessagesReply */
    uint32_t flags;        /* enum lane_fetch_flag */
    uint32_t principal;
};

struct lane_outcome {
    enum status status;
    uint32_t record_count;
    uint32_t persisted;
    uint32_t replicas;
    uint64_t base_offset;
    uint64_t expected;
    int64_t append_time_us;
    uint8_t duplicate;
};

struct lane_fetched {
    enum status status;    /* OK: reply holds a FetchReply; else the call fails */
    uint32_t fetch_status; /* enum proto_fetch_status of the reply */
    uint64_t expected;
    struct reply *reply;    /* lent until LANE_RELEASE */
    uint64_t next_offset;   /* of a stream or a search: where to go on */
    uint64_t batches_bytes; /* of those: the bytes of batches at the reply's end */
};

struct lane_offsets {
    enum status status;
    uint32_t found;
    uint64_t offset;
    uint64_t generation;
    uint64_t log_start;
    uint64_t high_watermark;
};

struct lane_time {
    struct engine_partition_id id;
    int64_t time_us;
};

struct lane_tables {
    uint64_t op;
    const uint8_t *delta; /* lent until TABLES_DONE */
    uint64_t size;
};

struct lane_frame {
    uint16_t kind; /* enum lane_kind */
    uint16_t source;
    uint16_t target;
    uint16_t reserved;
    uint64_t token; /* of the requester's pending */
    union {
        struct lane_produce produce;
        struct lane_commit commit;
        struct lane_fetch fetch;
        struct lane_outcome outcome;
        struct lane_fetched fetched;
        struct lane_offsets offsets;
        struct lane_time time;
        struct store_time time_found;
        struct lane_tables tables;
        struct reply *released;
        int fd;
    };
};

/* A frame that waits for room. */
struct lane_letter {
    struct lane_letter *next;
    struct lane_frame frame;
};

struct lane_end {
    struct ring *ring;
    struct lane_letter *letters_head;
    struct lane_letter *letters_tail;
};

enum { LANES_SHARDS_MAX = ENGINE_SHARDS_MAX };

struct lanes {
    struct lane_end out[LANES_SHARDS_MAX][LANES_COUNT]; /* by target */
    struct ring *in[LANES_SHARDS_MAX][LANES_COUNT];     /* by source */
    struct lane_letter *letters_free;
    uint64_t waiting; /* letters in all ends */
    uint64_t raise;   /* bit s: shard s got something this turn */
};

struct shard;

/* Letters of one shard: every pending, every lent reply and every hand-over at once. */
enum { LANE_LETTERS_COUNT = 131072 };

enum { LANE_SLOTS_MIN = 128, LANE_SLOTS_MAX = 4096 };

/* Slots of one ring, for so many shards. */
uint32_t lanes_slots(uint16_t shards_count);

/* 1 = taken, 0 = full (main lane, counted). */
int lanes_try(struct shard *shard, struct lane_frame *frame, uint16_t target);
/* Never lost. */
void lanes_post(struct shard *shard, struct lane_frame *frame, uint16_t target, enum lane lane);
/* Everything that arrived on one lane. */
void lanes_receive(struct shard *shard, enum lane lane);
/* Letters that found room, then the wakes of all shards written to. */
void lanes_flush(struct shard *shard);
int lanes_empty(const struct shard *shard);

#endif
