/* http2/connection.h: connections: a socket and an nghttp2 server session each.
 *
 * Owns sockets, sessions, flow control, output. Knows nothing of gRPC: what arrives is handed to
 * grpc/server.h. A connection is closed only between turns, never inside a callback. Output of a
 * turn leaves with as few writev as the kernel takes: frame headers and small bodies are copied
 * into one block, large bodies are referenced in place. */
#ifndef HTTP2_CONNECTION_H
#define HTTP2_CONNECTION_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"
#include "foundation/status.h"
#include "grpc/call.h"

enum {
    HTTP2_STREAMS_MAX = 256, /* of one connection at once */
    HTTP2_STREAM_WINDOW = 8388608,
    HTTP2_CONNECTION_WINDOW = 16777216,
    HTTP2_FRAME_SIZE_MAX = 131072,
    HTTP2_READ_SIZE = 262144, /* of one read; the buffer is the shard's */
    HTTP2_READS_PER_TURN = 4,
    HTTP2_OUTPUT_SIZE = 65536 - 16, /* copied bytes waiting for the socket */
    HTTP2_VECTORS_MAX = 64,
    HTTP2_REFERENCE_SIZE_MIN = 4096, /* smaller bodies are copied: a vector costs more */
    HTTP2_TOKENS_CACHED = 4,
};

/* http2/guard.c: what one connection may send that costs it nothing and us something. */
enum {
    HTTP2_RESETS_BURST = 10000, /* X30: a client that cancels long polls is fine, a flood is not */
    HTTP2_RESETS_PER_S = 2000,
    /* PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA. A client that reads fast sends many
     * window updates: calls and bytes sent to it earn more. */
    HTTP2_FRAMES_BURST = 10000,
    HTTP2_FRAMES_PER_S = 5000,
    HTTP2_FRAMES_PER_CALL = 4,
    HTTP2_BYTES_PER_FRAME = 8192,
    /* Without a call, and none for a second: a keepalive, not a measurement of bandwidth. */
    HTTP2_PINGS_BURST = 10,
    HTTP2_PINGS_PER_S = 1,
};

enum http2_flood {
    HTTP2_FLOOD_NONE = 0,
    HTTP2_FLOOD_PINGS = 1,
    HTTP2_FLOOD_RESETS = 2,
    HTTP2_FLOOD_FRAMES = 3,
};

struct shard;

struct output_vector {
    const uint8_t *data;
    size_t size;
    struct reply *reply; /* counted while it waits here; NULL = lies in the output block */
};

/* An authorization header that was verified: valid while the grants' revision is the same. */
struct cached_token {
    uint32_t revision; /* 0 = empty */
    uint32_t size;
    int64_t expires_at_us;
    uint8_t secret_sha256[32];
    struct engine_caller caller;
    uint8_t token[96];
};

struct connection {
    struct shard *shard;
    nghttp2_session *session;
    int fd;
    uint32_t index;
    uint8_t open;
    uint8_t closing;     /* on the shard's list of connections to close */
    uint8_t dirty;       /* on the shard's list of connections to flush */
    uint8_t write_armed; /* waits for the socket to take more */
    uint8_t goaway_sent;
    uint8_t tokens_next;
    uint8_t authenticated; /* showed a good key once */
    uint8_t flood;         /* enum http2_flood: to be ended for it */
    uint64_t opened_ns;
    uint64_t active_ns;  /* a call began or ended */
    uint64_t written_ns; /* the socket took something, or nothing waited for it */
    uint32_t unearned;   /* bytes sent since the last frame they earned */
    uint64_t pings_ns;   /* http2/guard.c: the time up to which each kind is used up */
    uint64_t resets_ns;
    uint64_t frames_ns;
    uint64_t messages_bytes; /* held by messages that are not complete */
    uint64_t pushed_bytes;   /* of Consume replies that its socket has not yet taken */
    uint8_t pushed_held;     /* one of its Consumes waits for them */
    uint8_t *output;         /* a block of HTTP2_OUTPUT_SIZE while something waits, else NULL */
    uint32_t output_used;
    uint32_t vectors_first;
    uint32_t vectors_count;
    struct output_vector vectors[HTTP2_VECTORS_MAX];
    /* Replies that somebody pays for once their last byte is sent, in the order of their bytes. */
    struct reply *followed_head;
    struct reply *followed_tail;
    struct reply *followed_open; /* from here on in the frame that is being written */
    uint64_t output_total;       /* bytes ever put into the output */
    uint64_t sent_total;         /* of those, taken by the kernel */
    struct cached_token tokens[HTTP2_TOKENS_CACHED];
    struct queue calls;
    struct connection *next_dirty;
    struct connection *next_closing;
    struct connection *next_free;
};

struct http2_shared {
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    nghttp2_mem memory;
};

enum status http2_shared_open(struct shard *shard);
void http2_shared_close(struct shard *shard);

/* Take a socket. Any status but OK: the socket is still the caller's. */
enum status http2_connection_open(struct shard *shard, int fd);
void http2_readable(struct connection *connection);
void http2_writable(struct connection *connection);
/* Something was submitted: flush this connection at the end of the turn. */
void http2_mark_dirty(struct connection *connection);
void http2_flush_dirty(struct shard *shard);
/* Say goodbye as far as the socket takes it, and close at the end of the turn. */
void http2_abandon(struct connection *connection, uint32_t error_code);
/* Close at the end of the turn. */
void http2_mark_closing(struct connection *connection);
void http2_close_marked(struct shard *shard);
/* No new streams; those open may end. */
void http2_goaway(struct connection *connection);

/* A frame arrived. 0 = one too many: connection->flood says of what. */
int http2_guard_frame(struct connection *connection, const nghttp2_frame *frame);
/* We had to reset a stream of theirs: as good as a reset of their own. */
void http2_guard_reset(struct connection *connection);
void http2_guard_earn(struct connection *connection, uint64_t frames_count);
/* Say why, count, and close at the end of the turn. */
void http2_guard_end(struct connection *connection);

/* http2/output.c: the output of one connection. */
ssize_t http2_output_copy(struct connection *connection, const uint8_t *data, size_t size);
int http2_output_data(struct connection *connection, const uint8_t header[9], struct reply *reply,
                      const uint8_t *data, size_t size);
/* All of this reply is in the frame that is being written: whoever pays for it does so once the
 * kernel has taken it. Its reference goes to the connection. */
void http2_output_follow(struct connection *connection, struct reply *reply);
/* That frame is in the output, or will never be. */
void http2_output_framed(struct connection *connection);
void http2_output_unframed(struct connection *connection);
/* 1 = everything left, 0 = the socket takes no more now, -1 = the peer is gone. */
int http2_output_write(struct connection *connection);
void http2_output_drop(struct connection *connection);
int http2_output_room(const struct connection *connection, size_t size);

#endif
