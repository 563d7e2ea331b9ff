/* http2/connection.h: HTTP/2 for a server: connections, their streams, flow control, output.
 *
 * Owns sockets, nghttp2 sessions and what waits for the kernel. Refuses to know what a stream says:
 * its owner hands over a table of callbacks and gets
 *
 *     begin -> header* -> headers -> data* -> end        what the client sends
 *     fields, writable, sent, released                   what becomes of the answer
 *     closed                                             exactly once per stream
 *
 * A connection is closed only between turns, never inside a callback. Output of a turn leaves with
 * as few writev as the kernel takes: frame headers and small bodies are copied into one block,
 * large bodies are referenced in place. Memory and limits are given at the start. */
#ifndef HTTP2_CONNECTION_H
#define HTTP2_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/queue.h"
#include "foundation/status.h"

enum {
    HTTP2_CONNECTIONS_COUNT_MAX = 1024,
    HTTP2_STREAMS_MAX = 256, /* of one connection at once */
    HTTP2_STREAM_WINDOW = 8388608,
    HTTP2_CONNECTION_WINDOW = 16777216,
    HTTP2_FRAME_SIZE_MAX = 131072,
    HTTP2_HEADERS_SIZE_MAX = 16384,
    HTTP2_REFERENCE_SIZE_MIN = 4096, /* smaller bodies are copied: a vector costs more */
    HTTP2_FIELDS_COUNT_MAX = 8,      /* of one header block of ours */
};

/* What a stream is reset with (RFC 9113, 7). */
enum http2_code { HTTP2_NO_ERROR = 0, HTTP2_CALM = 11 };

struct arena;
struct buffer_pool;
struct poll;
struct http2;
struct http2_connection;

/* Bytes on their way out, first in what their owner makes of them. They stay where they are until
 * the last reference is gone: one of the stream's queue, one of each frame that is being sent. */
struct http2_body {
    struct http2_body *next;
    uint8_t *data;
    uint32_t size;
    uint32_t taken; /* bytes that went into DATA frames */
    uint32_t references;
    uint8_t followed; /* its owner is called once the kernel has all of it */
    uint8_t reserved[3];
    uint64_t sent_at; /* of the connection's output: where its last byte ends */
};

/* One request and its response, first in what its owner makes of it. */
struct http2_stream {
    struct http2_connection *connection; /* NULL = none */
    struct queue_link link;              /* in its connection's streams */
    struct http2_body *bodies_head;      /* to be sent */
    struct http2_body *bodies_tail;
    uint64_t bodies_bytes;
    uint64_t bodies_ns; /* the connection took of them, or the first one came */
    int32_t id;
    uint8_t started;     /* its headers are complete */
    uint8_t half_closed; /* the client sends no more */
    uint8_t responded;   /* response headers were submitted */
    uint8_t finished;    /* nothing comes behind the bodies that are queued */
    uint8_t deferred;    /* the session waits for a body */
    uint8_t reserved[3];
};

struct http2_field {
    const uint8_t *name;
    const uint8_t *value;
    size_t name_size;
    size_t value_size;
    int constant; /* the value outlives the connection: it is not copied */
};

/* A header block of ours. */
enum http2_block {
    HTTP2_BLOCK_RESPONSE = 1, /* bodies follow */
    HTTP2_BLOCK_TRAILERS = 2,
    HTTP2_BLOCK_ALONE = 3, /* response and trailers in one: there are no bodies */
};

struct http2_callbacks {
    /* A request begins: its stream, zeroed; NULL = refused. */
    struct http2_stream *(*begin)(void *owner, struct http2_connection *connection);
    /* One field of its headers; then: they are complete. */
    void (*header)(struct http2_stream *stream, const uint8_t *name, size_t name_size,
                   const uint8_t *value, size_t value_size);
    void (*headers)(struct http2_stream *stream);
    /* Returns the bytes whose window is kept until http2_window_return. */
    size_t (*data)(struct http2_stream *stream, const uint8_t *data, size_t size);
    /* The client sends no more. */
    void (*end)(struct http2_stream *stream);
    /* A header block is due: http2_submit, whose answer it returns. */
    int (*fields)(struct http2_stream *stream, enum http2_block block);
    /* A body of so many bytes lies in frames: there is room for another. */
    void (*writable)(struct http2_stream *stream, uint32_t size);
    /* The stream is over and belongs to its owner alone. */
    void (*closed)(struct http2_stream *stream);
    /* The kernel has all of a body that is followed. */
    void (*sent)(void *owner, struct http2_body *body);
    /* The last reference to a body is gone. */
    void (*released)(void *owner, struct http2_body *body);
};

/* None is 0. */
struct http2_limits {
    uint32_t connections_count; /* at once; at most HTTP2_CONNECTIONS_COUNT_MAX */
    uint32_t silence_ms;        /* without trust and without a stream */
    uint32_t idle_ms;           /* without a stream */
    uint32_t age_ms;            /* then no new streams */
    uint32_t age_grace_ms;      /* then closed */
    uint32_t stall_ms;          /* its socket takes nothing */
};

struct http2_config {
    const struct http2_callbacks *callbacks;
    void *owner;
    size_t peer_bytes; /* for the owner, a connection: zeroed when it opens, wiped when it closes */
    struct buffer_pool *pool;
    struct poll *poll; /* tokens below HTTP2_CONNECTIONS_COUNT_MAX are connections */
    const uint64_t *now_ns;
    struct http2_limits limits;
};

/* Only the owner's thread writes. */
struct http2_counters {
    uint64_t connections_opened, connections_closed;
    uint64_t connections_silent, connections_evicted, connections_idle, connections_aged,
        connections_stalled, connections_malformed;
    uint64_t floods_pings, floods_resets, floods_frames;
    uint64_t bytes_received, bytes_sent;
};

size_t http2_memory_bytes(size_t peer_bytes);
/* NULL = no memory. */
struct http2 *http2_open(struct arena *arena, const struct http2_config *config);
void http2_close(struct http2 *http2);

/* Take a socket. Any status but OK: the socket is still the caller's. */
enum status http2_connection_open(struct http2 *http2, int fd);
/* What the poll said of a connection: enum poll_interest. */
void http2_event(struct http2 *http2, uint64_t token, uint32_t interest);
/* At the end of a turn: what was submitted leaves, then what is to be closed closes. */
void http2_flush(struct http2 *http2);
void http2_close_marked(struct http2 *http2);
/* Connections that have lost their right to stay. */
void http2_sweep(struct http2 *http2);
/* No new streams on any connection; those open may end. */
void http2_drain(struct http2 *http2);
/* At once, whatever they wait for. */
void http2_close_all(struct http2 *http2);
uint32_t http2_connections_count(const struct http2 *http2);
const struct http2_counters *http2_counters(const struct http2 *http2);

/* The owner's bytes of a connection. */
void *http2_peer(const struct http2_connection *connection);
/* Its open streams, by `link`. */
const struct queue *http2_streams(const struct http2_connection *connection);
/* It has shown that somebody known sends: it is neither evicted nor ended for silence. */
void http2_trust(struct http2_connection *connection);
/* 1 = the socket takes nothing now. */
int http2_blocked(const struct http2_connection *connection);

/* http2/stream.c: the body becomes the stream's; starts the response. */
void http2_send(struct http2_stream *stream, struct http2_body *body);
/* Nothing more is sent. */
void http2_finish(struct http2_stream *stream);
/* Only from the callback `fields`. 0 = submitted. */
int http2_submit(struct http2_stream *stream, enum http2_block block,
                 const struct http2_field *fields, size_t count);
/* Give back so much of the stream's window. */
void http2_window_return(struct http2_stream *stream, size_t size);
void http2_reset(struct http2_stream *stream, enum http2_code code);
/* Give up a reference. */
void http2_body_release(const struct http2 *http2, struct http2_body *body);

#endif
