/* service/pendings.h: operations whose outcome is to come, here or on the shard that owns the
 * partition, and who waits for it: a call, another shard, the host.
 *
 * A pending is named by its token, slot_tag << 32 | index. The tag grows when the slot is given
 * back and is never 0: an old token finds nothing. */
#ifndef SERVICE_PENDINGS_H
#define SERVICE_PENDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "service/shard_frame.h"

enum { PENDINGS_COUNT_MAX = 65536 };

enum pending_kind {
    PENDING_FREE = 0,
    PENDING_PRODUCE = 1, /* a call waits (here or forwarded) */
    PENDING_COMMIT = 2,
    PENDING_FETCH_OFFSETS = 3,
    PENDING_FETCH = 4,  /* forwarded: the owner runs the fetch */
    PENDING_REMOTE = 5, /* another shard waits: (shard, its token) */
    PENDING_TIME = 7,
    PENDING_HOST = 6, /* the host waits: (cookie, frame kind) */
};

struct pending {
    uint32_t slot_tag;   /* never 0 */
    uint8_t kind;        /* enum pending_kind */
    uint8_t remote_kind; /* PENDING_REMOTE: enum pending_kind on the other side */
    uint16_t shard;      /* PENDING_REMOTE */
    uint32_t call_index;
    uint32_t call_tag;
    uint64_t number;    /* produce: the client's request; remote: its token; host: cookie */
    uint32_t host_kind; /* PENDING_HOST: enum engine_frame_kind */
    uint32_t next_free;
    void *loan; /* a buffer lent to another shard until the outcome */
};

struct arena;
struct service;

size_t pendings_memory_bytes(void);
/* 0 = no memory. */
int pendings_make(struct service *service, struct arena *arena);
uint32_t pendings_count(const struct service *service);
int pendings_invariants(const struct service *service, int all);

/* 0 = the table is full. */
uint64_t pending_take(struct service *service, const struct pending *values);
/* NULL = it was given back. */
struct pending *pending_find(struct service *service, uint64_t token);
void pending_give(struct service *service, struct pending *pending);

/* 0 = the table is full. */
uint64_t pending_of_call(struct call *call, enum pending_kind kind, uint64_t number);
/* The answer has come: frees the pending and what it lent. NULL = the call is gone, which is
 * counted. */
struct call *pending_answered(struct service *service, struct pending *pending);
/* An outcome for a call of this shard. Frees the pending. */
void pending_outcome(struct service *service, struct pending *pending,
                     const struct frame_outcome *outcome);

#endif
