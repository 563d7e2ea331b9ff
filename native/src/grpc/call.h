/* grpc/call.h: one gRPC call and what it says.
 *
 * A call is a slot of its shard's table, named by (index, slot tag): the tag grows when the
 * slot is freed, so a late answer finds another tag and is dropped. Replies are buffers
 * with a small header in front; they are counted, because a partly sent one is referenced by its
 * call's queue and by the connection's output at once. */
#ifndef GRPC_CALL_H
#define GRPC_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/queue.h"
#include "foundation/timer_wheel.h"
#include "grpc/error.h"
#include "usage/tally.h"

enum call_method {
    METHOD_NONE = 0,
    METHOD_PRODUCE = 1,
    METHOD_PRODUCE_STREAM = 2,
    METHOD_FETCH = 3,
    METHOD_COMMIT_OFFSETS = 4,
    METHOD_FETCH_OFFSETS = 5,
    METHOD_HEALTH_CHECK = 6,
    METHOD_HOST = 7,
    METHOD_PUBLISH = 8,
    METHOD_FETCH_MESSAGES = 9,
    METHOD_CONSUME = 10,
    METHOD_LIST_OFFSETS = 11,
    METHODS_COUNT,
};

enum {
    GRPC_PREFIX_SIZE = 5,
    CALL_PATH_SIZE = 128,
    CALL_MESSAGE_SIZE_MAX = 8388608
        + 65536, /* the largest client part and its request's other fields */
    CALL_HOST_MESSAGE_SIZE_MAX = 4194304,
    CALL_HEADERS_SIZE_MAX = 16384,
    CALL_QUEUED_BYTES_MAX = 33554432, /* of replies not yet sent: beyond it the call is ended */
};

struct connection;

struct reply {
    struct reply *next;
    uint8_t *data; /* gRPC prefix and message */
    uint32_t size;
    uint32_t taken; /* bytes that went into DATA frames */
    uint32_t references;
    uint16_t owner;                /* the shard whose pool it lies in */
    uint8_t charged;               /* in a budget of the owner: bucket + 1; 0 = not */
    uint8_t kind;                  /* enum reply_kind: in which */
    struct connection *connection; /* whose share of pushed replies it takes; NULL = no one's */
    struct tally_key payer;        /* topic 0 = nobody; else of its body, once all of it is sent */
    uint64_t sent_at;              /* of the connection's output: where its last byte ends */
    uint32_t body_bytes;           /* of batches or messages */
    uint32_t reserved;
};

struct call {
    uint32_t index;
    uint32_t slot_tag;             /* never 0 */
    struct connection *connection; /* NULL = free slot */
    int32_t stream_id;
    uint8_t method;      /* enum call_method */
    uint8_t started;     /* its headers were complete and accepted */
    uint8_t half_closed; /* the client sends no more */
    uint8_t responded;   /* response headers were submitted */
    uint8_t finished;    /* a status is decided: nothing more is taken from anybody */
    uint8_t deferred;    /* the data provider waits for a reply */
    uint8_t content_type_ok;
    uint8_t compressed; /* a grpc-encoding other than identity */
    uint8_t answer;     /* enum grant_answer */
    uint8_t host_opened;
    uint8_t host_half_close_owed;
    uint8_t early_error; /* enum grpc_error found in the headers */
    uint32_t headers_size;
    uint64_t deadline_ns; /* 0 = none */
    struct engine_caller caller;
    struct tally_key payer; /* of what the call last named; topic 0 = nobody */
    /* What `caller` rests on (answer OK): judged again when the grants change or it expires. */
    uint32_t grants_revision;
    int64_t expires_at_us; /* 0 = never */
    uint8_t secret_sha256[32];
    char path[CALL_PATH_SIZE];
    uint32_t path_size;
    /* the message being read */
    uint8_t prefix[GRPC_PREFIX_SIZE];
    uint8_t prefix_size;
    uint8_t draining; /* what still arrives is thrown away */
    uint32_t message_size;
    uint32_t message_filled;
    uint8_t *message; /* grows with what arrives, not with what was announced */
    uint32_t message_capacity;
    uint64_t message_since_ns; /* its first bytes; before them: the call's start */
    uint32_t messages_count;
    /* answers */
    uint32_t pending_count; /* operations whose outcome is still to come */
    uint32_t window_owed;   /* bytes of stream window kept back: by the host, or by a deep queue */
    struct queue_link held_link; /* in the shard's list of streams held back by that queue */
    struct reply *replies_head;
    struct reply *replies_tail;
    uint64_t replies_bytes;
    uint64_t replies_ns;         /* the connection took of them, or the first one came */
    struct grpc_failure failure; /* when finished: error NONE = OK */
    /* When finished without a failure: the host's code, 0 for OK. */
    uint32_t host_grpc_code;
    uint32_t host_status_size;
    uint8_t *host_status; /* its Status bytes, in the pool */
    uint32_t fetch_index; /* a fetch in progress + 1; 0 = none */
    uint16_t fetch_owner; /* the shard that carries it out */
    uint16_t reserved;
    uint64_t fetch_pending; /* the token of its pending there; 0 = none */
    struct engine_partition_id fetch_id;
    struct timer timer; /* of a cold call's deadline */
    struct queue_link connection_link;
};

#endif
