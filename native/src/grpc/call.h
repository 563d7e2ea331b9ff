/* grpc/call.h: one gRPC call and what it says.
 *
 * A call is a slot of its server's table, named by (index, slot tag): the tag grows when the slot
 * is freed, so a late answer finds another tag and is dropped. Handlers read the first part; the
 * rest belongs to grpc/. Replies are bodies with a small header in front. */
#ifndef GRPC_CALL_H
#define GRPC_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/queue.h"
#include "foundation/timer_wheel.h"
#include "grpc/error.h"
#include "grpc/method.h"
#include "http2/connection.h"
#include "usage/tally.h"

enum {
    GRPC_PREFIX_SIZE = 5,
    GRPC_CALLS_COUNT_MAX = 8192,
    CALL_PATH_SIZE = 128,
    CALL_MESSAGE_SIZE_MAX = 8388608
        + 65536, /* the largest client part and its request's other fields */
    CALL_HOST_MESSAGE_SIZE_MAX = 4194304,
    CALL_QUEUED_BYTES_MAX = 33554432, /* of replies not yet sent: beyond it the call is ended */
};

struct grpc_peer;
struct grpc_server;

struct reply {
    struct http2_body body;          /* gRPC prefix and message */
    uint16_t owner;                  /* the shard whose pool it lies in */
    uint8_t charged;                 /* in a budget of the owner: bucket + 1; 0 = not */
    uint8_t kind;                    /* enum reply_kind: in which */
    uint32_t payload_bytes;          /* of batches or messages */
    struct http2_connection *pushed; /* takes of this connection's share; NULL = of no one's */
    struct tally_key attribution;    /* of its payload, once all of it is sent; topic 0 = none */
};

struct call {
    struct http2_stream stream;
    uint32_t index;
    uint32_t slot_tag; /* never 0 */
    struct grpc_server *server;
    const struct grpc_method *method; /* NULL = no path yet */
    void *context;                    /* of the service that has the method */
    uint64_t deadline_ns;             /* 0 = none */
    struct engine_caller caller;
    char path[CALL_PATH_SIZE]; /* only where the method has every path */
    uint32_t path_size;
    uint32_t messages_count;
    uint8_t finished;        /* a status is decided: nothing more is taken from anybody */
    uint8_t answer;          /* enum grant_answer */
    uint8_t window_withheld; /* the handler keeps the window back on its own account */

    /* of grpc/ alone */
    uint8_t content_type_ok;
    uint8_t early_error;    /* enum grpc_error found in the headers */
    uint8_t status_code;    /* finished by grpc_finish_status: enum grpc_code */
    uint16_t method_index;  /* among those of all services */
    struct grpc_peer *peer; /* of its connection */
    uint32_t headers_size;
    /* What `caller` rests on (answer OK): judged again when the grants change or it expires. */
    uint32_t grants_revision;
    int64_t expires_at_us; /* 0 = never */
    uint8_t secret_sha256[32];
    /* the message being read */
    uint8_t prefix[GRPC_PREFIX_SIZE];
    uint8_t prefix_size;
    uint32_t message_size;
    uint32_t message_filled;
    uint32_t message_capacity;
    uint8_t *message;          /* grows with what arrives, not with what was announced */
    uint64_t message_since_ns; /* its first bytes; before them: the call's start */
    uint32_t window_owed;      /* bytes of stream window kept back */
    uint32_t status_size;
    uint8_t *status;             /* bytes of the handler's Status, in the pool */
    struct grpc_failure failure; /* when finished: error NONE = OK, or the handler's status */
    struct timer timer;          /* of its deadline */
};

#endif
