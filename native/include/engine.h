/* engine.h: the public API of the engine, read as it is by C and by cffi (types, enums and
 * prototypes only).
 *
 * One engine is one node's data plane: shards (threads) that serve gRPC, keep the journal and
 * replicate. The Python host opens it, starts it, then serves what the shards hand over: cold gRPC
 * calls and committed metadata ops. They meet in two bounded rings of frames and two eventfds; no
 * shard ever waits for the host or takes the GIL.
 *
 *     engine_open -> engine_start
 *                 -> { wait on engine_host_fd; engine_receive*; ...; engine_send* }
 *                 -> engine_stop -> engine_close
 *
 * engine_receive and engine_send move as many whole frames as fit in one crossing. One host thread
 * at a time may call engine_receive; engine_send is safe from any thread.
 *
 * A frame is a 32-byte header (struct engine_frame) and a body, padded with zeros to a multiple of
 * 8:
 *
 *     0         4      6      8      12           16        24        32
 *     size u32 | kind | shard | slot | slot_tag | arg0 u64 | arg1 u64 | body ...
 *
 * size counts header and body without the padding. (shard, slot, slot_tag) name a call; arg0 is a
 * cookie for requests of the host, echoed in ENGINE_REPLY.
 *
 * Starting: the shards recover, then shard 0 sends METADATA_RESTORE (empty body: no snapshot yet)
 * and one METADATA_APPLY per op above it. The host answers each with METADATA_APPLIED, in order.
 * After the last one recovered, shard 0 sends METADATA_READY: only then are calls accepted from
 * outside. */
#ifndef ENGINE_H
#define ENGINE_H

#include <stddef.h>
#include <stdint.h>

enum engine_limit {
    ENGINE_ID_SIZE = 48, /* an id as text, zero-padded */
    ENGINE_FRAME_HEADER_SIZE = 32,
    /* 9 MiB: a snapshot chunk or a message of a host call with its header */
    ENGINE_FRAME_SIZE_MAX = 9437184,
    ENGINE_SHARDS_MAX = 64,
    ENGINE_RELEASE = 0x000100, /* 0.1.0: major, minor, patch */
};

struct engine;

/* How long what takes room without using it may stay: http2/sweep.c, grpc/sweep.c. 0 = default. */
struct engine_limits {
    uint32_t host_beat_ms;      /* silence of the host, then health says NOT_SERVING; 5 s */
    uint32_t silence_ms;        /* a connection without a call and without ever a key; 10 s */
    uint32_t idle_ms;           /* a connection without a call; 15 min */
    uint32_t age_ms;            /* a connection: GOAWAY is sent then; 12 h */
    uint32_t age_grace_ms;      /* and ended so long after; 10 min */
    uint32_t stall_ms;          /* a client takes nothing of what waits for it; 60 s */
    uint32_t message_ms;        /* from a message's first bytes to its last; 30 s */
    uint32_t snapshot_retry_ms; /* a metadata snapshot that found no room is asked again; 1 s */
    uint32_t call_ms;           /* a host call that is no member's session: its answer; 60 s */
};

struct engine_config {
    const char *data_path; /* the node's directory; created if absent */
    const char *host;      /* address to listen on */
    uint16_t port;         /* 0 = any free port: see engine_port */
    uint16_t shards_count; /* 1.. ; must match the directory's */
    /* 1 = one CPU each; refused when there are more shards than CPUs */
    uint8_t shards_pinned;
    /* 1 = O_DIRECT + O_DSYNC where the file system takes it, 0 = pwrite + fdatasync */
    uint8_t direct_io;
    char cluster_id[48]; /* ENGINE_ID_SIZE */
    char node_id[48];
    /* public id of the one key that may call headrace.node.v1; zero-padded */
    char admin_key_id[16];
    uint8_t admin_sha256[32];
    uint64_t journal_bytes;     /* per shard; 0 = default */
    uint64_t extent_bytes;      /* 0 = default */
    uint64_t memory_bytes;      /* per shard, taken at the start; 0 = default */
    uint32_t metering_window_s; /* divides 60 */
    uint32_t partitions_max;    /* per shard; 0 = default */
    struct engine_limits limits;
};

/* One frame's header, as it lies in the buffers. */
struct engine_frame {
    uint32_t size;
    uint16_t kind;
    uint16_t shard;
    uint32_t slot;
    uint32_t slot_tag;
    uint64_t arg0;
    uint64_t arg1;
};

enum engine_frame_kind {
    /* Shard to host: calls. */
    /* arg0 = deadline, CLOCK_MONOTONIC ns (0 = none); body = struct engine_caller, then the method
     * path */
    ENGINE_OPEN = 1,
    ENGINE_MESSAGE = 2,    /* body = one message of the client */
    ENGINE_HALF_CLOSE = 3, /* the client sends no more */
    /* arg0 = bytes that left for the client: so many more may be sent */
    ENGINE_CREDIT = 4,
    ENGINE_CANCELLED = 5, /* wake-up only: ask engine_cancelled, which cannot lose one */
    /* Shard to host: metadata (shard 0 only). */
    ENGINE_METADATA_RESTORE = 16,  /* arg0 = op of the snapshot; body = snapshot, empty if none */
    ENGINE_METADATA_APPLY = 17,    /* arg0 = op, arg1 = append time us; body = command */
    ENGINE_METADATA_READY = 18,    /* arg0 = last recovered op; recovery is over */
    ENGINE_METADATA_SNAPSHOT = 19, /* arg0 = op: answer with a snapshot of exactly this op */
    /* Shard to host: others. */
    /* to a request of the host: arg0 = cookie, arg1 = enum engine_result; body by kind */
    ENGINE_REPLY = 32,
    /* a closed window, repeated until acknowledged: struct engine_meter_close, then
     * engine_meter_sum[] */
    ENGINE_METER_CLOSE = 33,
    /* what a trim took away, repeated until acknowledged: struct engine_trimmed */
    ENGINE_TRIMMED = 35,
    /* what a shard counted in a window, said once: struct engine_counters, then engine_counter[] */
    ENGINE_COUNTERS = 36,
    /* a shard failed, the node must end: arg0 = enum engine_result, arg1 = the negated status */
    ENGINE_STOPPED = 34,

    /* Host to shard: calls. */
    ENGINE_SEND_MESSAGE = 64, /* body = one message for the client */
    ENGINE_SEND_CREDIT = 65,  /* arg0 = bytes consumed by the handler */
    /* terminal; arg0 = gRPC code; body = bytes of headrace.stream.v1.Status, empty for OK */
    ENGINE_SEND_STATUS = 66,
    /* Host to shard 0: metadata. */
    /* arg0 = cookie; body = command; answered by REPLY {body = result}, arg1; slot_tag = 0 */
    ENGINE_METADATA_SUBMIT = 80,
    /* arg0 = op, arg1 = bytes of the result; body = result, padded to 8, then table delta */
    ENGINE_METADATA_APPLIED = 81,
    ENGINE_METADATA_RESTORED = 82,    /* arg0 = op; body = the full tables as one delta */
    ENGINE_METADATA_SNAPSHOT_IS = 83, /* arg0 = op; body = snapshot */
    /* Host to the owning shard: partitions. arg0 = cookie, answered by REPLY. Body begins with
     * struct engine_partition_id. */
    ENGINE_PUBLISH = 96, /* then one client part; REPLY body = u64 base offset */
    /* then struct engine_group_fence; REPLY body = struct engine_group_state */
    ENGINE_GROUP_FENCE = 97,
    ENGINE_METER_ACK = 98, /* arg1 = sequence acknowledged; no reply */
    /* close the open window now; REPLY body = u64 last sequence, u64 last acknowledged */
    ENGINE_METER_FLUSH = 99,
    ENGINE_DESCRIBE = 100, /* REPLY body = struct engine_partition_state */
    /* then struct engine_seal: propose SEAL, which refuses every later batch, commit and fence, and
     * after it the last METER_CLOSE. REPLY body = struct engine_sealed; repeatable */
    ENGINE_SEAL = 101,
    ENGINE_TRIM_ACK = 102, /* arg1 = sequence acknowledged; no reply */
    /* then struct engine_purge: propose TRIM. REPLY body = struct engine_retained; repeatable */
    ENGINE_PURGE = 103,
    /* then struct engine_hold: propose SET_HOLD. REPLY body = struct engine_retained; repeatable */
    ENGINE_HOLD = 104,
    /* Host to one shard, its number in the header. arg0 = cookie: COUNTERS with all that was not
     * reported, then REPLY */
    ENGINE_COUNTERS_FLUSH = 105,
    /* Host to every shard. */
    ENGINE_HOST_BEAT = 112,     /* the host is alive; without one for 5 s health says NOT_SERVING */
    ENGINE_CLOCK_CONFIRM = 113, /* the operator vouches for the wall clock */
    /* Host to shard 0: what the host must say fits no frame (a snapshot, a delta); the node ends
     * with ENGINE_STOPPED. */
    ENGINE_HOST_FAILED = 114,
};

enum engine_result {
    ENGINE_RESULT_OK = 0,
    ENGINE_RESULT_NOT_FOUND = 1, /* no such partition here */
    ENGINE_RESULT_RECREATED = 2, /* created_revision differs */
    ENGINE_RESULT_BUSY = 3,      /* bounded resource full: repeat later */
    ENGINE_RESULT_FENCED = 4,    /* lower than what is stored */
    ENGINE_RESULT_DAMAGED = 5,   /* the partition is stopped after damage */
    ENGINE_RESULT_STOPPING = 6,
    ENGINE_RESULT_INVALID = 7,   /* the request is malformed */
    ENGINE_RESULT_DUPLICATE = 8, /* PUBLISH: already stored; body as for OK */
    ENGINE_RESULT_STORAGE_FULL = 9,
    ENGINE_RESULT_STORAGE_FAILED = 10,
    ENGINE_RESULT_CLOSED =
        11, /* sealed, or its topic is being deleted: nothing is appended any more */
    ENGINE_RESULT_HELD = 12,              /* PURGE: beyond where the partition is held */
    ENGINE_RESULT_TOO_MANY_GROUPS = 13,   /* GROUP_FENCE: the partition's group table is full */
    ENGINE_RESULT_OFFSET_BEYOND_END = 14, /* PURGE: the partition ends before */
    ENGINE_RESULT_PRODUCER_LOST = 15,     /* PUBLISH: a new producer id has to be taken */
    ENGINE_RESULT_NEEDS_RELEASE = 16,     /* the log has operations of a newer release */
    ENGINE_RESULT_NOT_PRIMARY = 17,       /* another node is the partition's primary */
};

enum engine_verb { ENGINE_VERB_PRODUCE = 1, ENGINE_VERB_CONSUME = 2, ENGINE_VERB_ADMIN = 4 };

/* Who calls: verified by the shard before OPEN. */
struct engine_caller {
    uint32_t principal; /* 0 = unauthenticated: only for methods that need no key */
    uint32_t organization;
    uint32_t project; /* 0 = every project of the organization */
    uint32_t verbs;   /* enum engine_verb */
    char key_id[16];
};

struct engine_partition_id {
    uint64_t topic;
    uint64_t created_revision;
    uint32_t partition;
    uint32_t reserved;
};

enum engine_fence_kind { ENGINE_FENCE_FREEZE = 1, ENGINE_FENCE_CLOSE = 2 };

struct engine_group_fence {
    uint64_t group;
    uint64_t generation; /* of the new owner */
    uint64_t intent_op;  /* the metadata op that decided it (T1) */
    uint32_t kind;       /* enum engine_fence_kind */
    uint32_t reserved;
};

struct engine_group_state {
    uint64_t generation;
    uint64_t committed;
    uint8_t has_committed;
    uint8_t closed;
    uint8_t reserved[6];
};

struct engine_seal {
    uint64_t intent_op; /* the DeleteTopic's metadata op (T1) */
};

struct engine_sealed {
    uint64_t log_end;
    uint64_t meter_sequence; /* of the last close; 0 = nothing was ever metered */
    uint64_t meter_acked;    /* the delete goes on once they are equal */
    uint64_t trim_sequence;  /* of the last trim's event, likewise */
    uint64_t trim_acked;
};

enum engine_purge_limit { ENGINE_PURGE_ALL = 0 };

struct engine_purge {
    uint64_t log_start; /* the first offset that is kept; ENGINE_PURGE_ALL = all there is goes */
    uint64_t version;   /* the caller's; recorded in the event */
};

/* The last word on the whole partition: the lowest offset that anything holds. */
struct engine_hold {
    uint64_t intent_op; /* the metadata op that decided it (T1) */
    uint64_t from_offset;
    uint32_t held; /* 0 = nothing holds it any more, and from_offset is 0 */
    uint32_t reserved;
};

/* Where a log begins and what holds it, once the operation that was asked for is in it. */
struct engine_retained {
    uint64_t log_start;
    uint64_t log_end;
    uint64_t hold_intent_op; /* of the last SET_HOLD; 0 = never held */
    uint64_t held_from;
    uint32_t held;
    uint32_t reserved;
};

enum engine_trim_cause { ENGINE_TRIM_TIME = 1, ENGINE_TRIM_SIZE = 2, ENGINE_TRIM_PURGE = 3 };

struct engine_trimmed {
    struct engine_partition_id id;
    uint64_t sequence; /* 1, 2, 3, .. */
    uint64_t trim_op;
    uint64_t policy_version;
    uint64_t from_offset; /* where the log began before */
    uint64_t to_offset;   /* and begins since */
    uint64_t bytes;       /* of the segments that went whole, as the following */
    uint64_t records;
    int64_t min_time_us; /* append times; 0 = no segment went */
    int64_t max_time_us;
    int64_t trimmed_at_us;
    uint32_t cause; /* enum engine_trim_cause */
    uint32_t segments;
};

struct engine_partition_state {
    uint64_t log_start;
    uint64_t high_watermark;
    uint64_t log_end;
    uint64_t bytes;
    uint64_t cumulative_bytes;
    uint32_t state; /* 1 ready, 2 recovering, 3 damaged, 4 sealed, 5 op unknown */
    uint32_t held;  /* 1 = no trim goes beyond held_from */
    uint64_t held_from;
    uint64_t hold_intent_op;
    uint64_t held_bytes; /* that the policy would have taken, as of the last look */
    int64_t oldest_us;   /* append times of what the segments hold; 0 = nothing */
    int64_t newest_us;
    int64_t expires_us; /* when the policy is looked at again; 0 = not before an append */
};

struct engine_meter_close {
    struct engine_partition_id id;
    uint64_t sequence;
    uint64_t from_op;
    uint64_t to_op;
    int64_t window_start_us;
    int64_t window_end_us;
    uint32_t sums_count;
    uint32_t reserved;
};

struct engine_meter_sum {
    uint32_t principal;
    uint32_t reserved;
    uint64_t ingress_bytes;
    uint64_t records;
    uint64_t batches;
};

enum engine_meter {
    ENGINE_METER_EGRESS_BYTES = 1, /* of batches and messages that the kernel took */
    ENGINE_METER_REQUESTS = 2,
    ENGINE_METER_STORED_BYTE_SECONDS = 3, /* principal 0 */
};

struct engine_counters {
    int64_t window_end_us;
    uint32_t rows_count;
    uint32_t final; /* 1 = the shard stopped in order: its last */
};

/* One row: what was counted since the last report. A window lies within one hour, UTC. */
struct engine_counter {
    uint64_t topic; /* 0 = unattributed: the shard had no room to say whose it is */
    uint64_t created_revision;
    uint64_t delta;      /* > 0 */
    uint64_t cumulative; /* since the row began, modulo 2^63 */
    int64_t window_start_us;
    uint32_t principal;
    uint32_t meter; /* enum engine_meter */
};

/* The compiled tables (A8): a delta is rows end to end, each padded to 8; applied whole, by every
 * shard, in op order. */
enum engine_row_kind {
    ENGINE_ROW_TOPIC = 1, /* struct engine_row_topic: put */
    /* struct engine_row_topic: number, and flags: ENGINE_TOPIC_RECREATED = a topic of its name
     * lives again. Files of the topic's partitions are removed; may come again with other flags */
    ENGINE_ROW_TOPIC_GONE = 2,
    ENGINE_ROW_GRANT = 3,      /* struct engine_row_grant: put */
    ENGINE_ROW_GRANT_GONE = 4, /* only key_id counts */
    ENGINE_ROW_PROJECT = 5,    /* struct engine_row_project: put; never removed */
};

struct engine_row {
    uint16_t kind;
    uint16_t size; /* this header included */
    uint32_t reserved;
};

enum engine_topic_flag {
    ENGINE_TOPIC_SYSTEM = 1,  /* never metered; only the host publishes */
    ENGINE_TOPIC_CLOSING = 2, /* being deleted: batches are refused, reads go on until it is gone */
    ENGINE_TOPIC_RECREATED = 4, /* of TOPIC_GONE: stale handles are answered TOPIC_RECREATED */
};

enum engine_name_limit {
    ENGINE_PROJECT_NAME_SIZE_MAX = 63,
    ENGINE_TOPIC_NAME_SIZE_MAX = 313, /* "stream/topic" */
};

struct engine_row_topic {
    struct engine_row row;
    uint64_t topic;
    uint64_t created_revision;
    uint32_t organization;
    uint32_t project;
    uint32_t partitions_count;
    uint32_t message_bytes_max;
    uint64_t segment_bytes;
    uint32_t flags;
    uint32_t name_size;       /* of "stream/topic", which follows; unique in its project */
    int64_t retention_ms;     /* records older than that go; <= 0 = however old */
    int64_t retention_bytes;  /* so much of a partition is kept; <= 0 = however much */
    int64_t retention_ms_min; /* no younger record goes for its size */
    uint64_t policy_version;  /* of the three above */
};

struct engine_row_project {
    struct engine_row row;
    uint32_t organization;
    uint32_t project;
    uint32_t name_size; /* of the name, which follows; unique in its organization */
    uint32_t reserved;
};

struct engine_row_grant {
    struct engine_row row;
    char key_id[16];    /* the public id inside the token, zero-padded */
    uint8_t sha256[32]; /* of the secret */
    uint32_t principal;
    uint32_t organization;
    uint32_t project; /* 0 = every project */
    uint32_t verbs;
    int64_t expires_at_us; /* 0 = never */
};

/* Check the configuration, take all memory, open or format the data directory, recover every shard.
 * Blocks. On failure *engine is NULL, the answer is a negative status (engine_status_text) and
 * `detail` (may be NULL) names the thing: a path, a limit, the other cluster's id. */
int engine_open(const struct engine_config *config, struct engine **engine, char *detail,
                size_t detail_size);

/* Bind, start the threads. The port is known afterwards. */
int engine_start(struct engine *engine, char *detail, size_t detail_size);
uint16_t engine_port(const struct engine *engine);

/* Readable (an eventfd) when frames may wait for the host. */
int engine_host_fd(const struct engine *engine);

/* Copy whole frames for the host into `target`. Returns bytes written; 0 = none waiting. */
size_t engine_receive(struct engine *engine, uint8_t *target, size_t size);

/* Take whole frames from the host. Returns bytes taken (whole frames from the front): less than
 * size = ring full, wait for engine_host_fd and send the rest. Negative: a malformed frame. */
long engine_send(struct engine *engine, const uint8_t *source, size_t size);

/* Calls whose client is gone: up to `count` frames' headers (shard, slot, slot_tag) of calls not
 * reported before. */
size_t engine_cancelled(struct engine *engine, struct engine_frame *calls, size_t count);

/* The text of /metrics that the engine owns, in the Prometheus format. Returns bytes needed; writes
 * at most `size`. */
size_t engine_metrics(const struct engine *engine, char *target, size_t size);

/* One metric of that text without other labels than the shard, summed over all shards; for callers
 * that need a number often. 0 = written; -1 = there is none of this name. */
int engine_metric_total(const struct engine *engine, const char *name, uint64_t *total);

/* Refuse new calls (GOAWAY), finish what is in flight, close windows, checkpoint. 0 = everything
 * ended within the time. */
int engine_stop(struct engine *engine, uint32_t timeout_ms);
void engine_close(struct engine *engine);

const char *engine_status_text(int status);
const char *engine_status_name(int status);

#endif
