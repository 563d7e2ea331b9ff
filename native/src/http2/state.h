/* http2/state.h: the state of the connections of one shard: of this room alone. */
#ifndef HTTP2_STATE_H
#define HTTP2_STATE_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>
#include <stdint.h>

#include "foundation/buffer_pool.h"
#include "http2/connection.h"

enum {
    HTTP2_READ_SIZE = 262144, /* of one read; the buffer is shared */
    HTTP2_READS_PER_TURN = 4,
    HTTP2_OUTPUT_SIZE = 65536 - 16, /* copied bytes waiting for the socket */
    HTTP2_OUTPUT_SPARES = 16,
    HTTP2_VECTORS_MAX = 64,
};

/* http2/guard.c: what one connection may send that costs it nothing and us something. */
enum {
    HTTP2_RESETS_BURST = 10000, /* X30: a client that cancels long polls is fine, a flood is not */
    HTTP2_RESETS_PER_S = 2000,
    /* PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA. A client that reads fast sends many
     * window updates: requests and bytes sent to it earn more. */
    HTTP2_FRAMES_BURST = 10000,
    HTTP2_FRAMES_PER_S = 5000,
    HTTP2_FRAMES_PER_STREAM = 4,
    HTTP2_BYTES_PER_FRAME = 8192,
    /* Without a stream, and none for a second: a keepalive, not a measurement of bandwidth. */
    HTTP2_PINGS_BURST = 10,
    HTTP2_PINGS_PER_S = 1,
};

enum http2_flood {
    HTTP2_FLOOD_NONE = 0,
    HTTP2_FLOOD_PINGS = 1,
    HTTP2_FLOOD_RESETS = 2,
    HTTP2_FLOOD_FRAMES = 3,
};

struct http2_vector {
    const uint8_t *data;
    size_t size;
    struct http2_body *body; /* counted while it waits here; NULL = lies in the output block */
};

struct http2_connection {
    struct http2 *http2;
    nghttp2_session *session;
    void *peer; /* the owner's bytes */
    int fd;
    uint32_t index;
    uint8_t open;
    uint8_t closing;     /* on the list of connections to close */
    uint8_t dirty;       /* on the list of connections to flush */
    uint8_t write_armed; /* waits for the socket to take more */
    uint8_t goaway_sent;
    uint8_t trusted;
    uint8_t flood; /* enum http2_flood: to be ended for it */
    uint64_t opened_ns;
    uint64_t active_ns;  /* a stream began or ended */
    uint64_t written_ns; /* the socket took something, or nothing waited for it */
    uint32_t unearned;   /* bytes sent since the last frame they earned */
    uint64_t pings_ns;   /* http2/guard.c: the time up to which each kind is used up */
    uint64_t resets_ns;
    uint64_t frames_ns;
    uint8_t *output; /* a block of HTTP2_OUTPUT_SIZE while something waits, else NULL */
    uint32_t output_used;
    uint32_t vectors_first;
    uint32_t vectors_count;
    struct http2_vector vectors[HTTP2_VECTORS_MAX];
    /* Bodies whose owner is called once their last byte is sent, in the order of their bytes. */
    struct http2_body *followed_head;
    struct http2_body *followed_tail;
    struct http2_body *followed_open; /* from here on in the frame that is being written */
    uint64_t output_total;            /* bytes ever put into the output */
    uint64_t sent_total;              /* of those, taken by the kernel */
    struct queue streams;
    struct http2_connection *next_dirty;
    struct http2_connection *next_closing;
    struct http2_connection *next_free;
};

struct http2 {
    const struct http2_callbacks *callbacks;
    void *owner;
    struct buffer_pool *pool;
    struct poll *poll;
    const uint64_t *now_ns;
    struct http2_limits limits;
    struct http2_connection *connections; /* HTTP2_CONNECTIONS_COUNT_MAX */
    struct http2_connection *connections_free;
    struct http2_connection *dirty;
    struct http2_connection *closing;
    uint32_t connections_count;
    uint32_t output_spares_count;
    uint8_t *output_spares[HTTP2_OUTPUT_SPARES];
    uint8_t *read_buffer;
    size_t peer_bytes;
    nghttp2_session_callbacks *session_callbacks;
    nghttp2_option *session_option;
    nghttp2_mem session_memory;
    struct http2_counters counters;
};

/* http2/session.c */
enum status http2_sessions_configure(struct http2 *http2);
/* NULL = no memory. */
nghttp2_session *http2_session_make(struct http2_connection *connection);

/* http2/connection.c */
/* Something was submitted: flush this connection at the end of the turn. */
void http2_mark_dirty(struct http2_connection *connection);
/* Close at the end of the turn. */
void http2_mark_closing(struct http2_connection *connection);
/* Say goodbye as far as the socket takes it, and close at the end of the turn. */
void http2_abandon(struct http2_connection *connection, uint32_t error_code);

/* http2/sweep.c: no new streams; those open may end. */
void http2_goaway(struct http2_connection *connection);

/* http2/guard.c */
/* A frame arrived. 0 = one too many: connection->flood says of what. */
int http2_guard_frame(struct http2_connection *connection, const nghttp2_frame *frame);
/* We had to reset a stream of theirs: as good as a reset of their own. */
void http2_guard_reset(struct http2_connection *connection);
void http2_guard_earn(struct http2_connection *connection, uint64_t frames_count);
/* Say why, count, and close at the end of the turn. */
void http2_guard_end(struct http2_connection *connection);

/* http2/output.c: the output of one connection. */
ssize_t http2_output_copy(struct http2_connection *connection, const uint8_t *data, size_t size);
int http2_output_data(struct http2_connection *connection, const uint8_t header[9],
                      struct http2_body *body, const uint8_t *data, size_t size);
/* All of this body is in the frame that is being written: its owner is called once the kernel has
 * taken it. Its reference goes to the connection. */
void http2_output_follow(struct http2_connection *connection, struct http2_body *body);
/* That frame is in the output, or will never be. */
void http2_output_framed(struct http2_connection *connection);
void http2_output_unframed(struct http2_connection *connection);
/* 1 = everything left, 0 = the socket takes no more now, -1 = the peer is gone. */
int http2_output_write(struct http2_connection *connection);
void http2_output_drop(struct http2_connection *connection);
int http2_output_room(const struct http2_connection *connection, size_t size);

/* http2/stream.c */
/* A DATA frame of `size` bytes of the first body, referenced where it lies. */
void http2_stream_send(struct http2_stream *stream, const uint8_t header[9], size_t size);
/* Over: out of its connection, its bodies released, back to its owner. */
void http2_stream_close(struct http2_stream *stream);

#endif
