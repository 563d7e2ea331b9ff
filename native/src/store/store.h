/* store/store.h: one shard's state: its journal, its replicas and the partitions they hold.
 *
 * Pure: no clock, no system call, no allocation after store_open. It is driven by calls and
 * completions and answers through queues that its caller drains once a turn:
 *
 *     pump turn: calls (store_produce, ..)
 *                -> store_complete for every finished request -> store_tick -> store_flush
 *                -> drain store_outcome_next, store_advance_next, store_metadata_next,
 *                   store_meter_next and store_trimmed_next
 *
 * The simulator and the shard drive the same functions. Every call either answers at once with a
 * status other than STATUS_OK, or is accepted and later gives exactly one outcome with its token.
 *
 * The replica of the cluster's metadata has topic 0; only shard 0 has it. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"
#include "io/io.h"

struct arena;
struct store;

struct store_config {
    uint16_t shard;
    uint16_t shards_count;
    uint8_t direct_io;
    uint8_t boot_uncertain; /* simulator: treat the clock as unconfirmed (C2) */
    uint64_t journal_bytes;
    uint64_t extent_bytes;
    uint64_t
        prepares_bytes; /* memory for prepares: in flight, not yet in segments, and the hot tail */
    uint32_t partitions_max;
    uint32_t files_max;     /* segments open at once; 0 = 512, which is the most */
    uint32_t producers_max; /* of the whole shard */
    uint32_t metering_window_s;
    uint32_t snapshot_ops;            /* a metadata snapshot is due after so many; 0 = 1024 */
    uint32_t checkpoint_inline_bytes; /* larger checkpoints are files (J7); 0 = 65536 */
    uint32_t segments_max;     /* of the whole shard; 0 = by partitions_max: simulator, tests */
    uint32_t index_blocks_max; /* of the whole shard; 0 = by partitions_max: simulator, tests */
    uint32_t fetch_way_bytes;  /* a read begins so far before its offset at most; 0 = 4 MiB */
    char cluster_id[ENGINE_ID_SIZE];
    char node_id[ENGINE_ID_SIZE];
    uint64_t node_incarnation;
    uint8_t formatted; /* a journal that is missing is damage, not a new beginning */
};

struct store_now {
    uint64_t monotonic_ns;
    int64_t wall_us;
};

struct store_produce {
    struct engine_partition_id id;
    const uint8_t *batch; /* a client part; borrowed until the call returns */
    size_t batch_size;
    uint32_t principal;
    uint32_t message_bytes_max;
    uint64_t token;
};

struct store_outcome {
    uint64_t token;
    /* STATUS_OK, STATUS_ALREADY_COMMITTED, STATUS_OUT_OF_SEQUENCE, STATUS_DAMAGED, .. */
    enum status status;
    uint64_t base_offset; /* produce; commit: the offset */
    uint64_t expected;    /* STATUS_OUT_OF_SEQUENCE */
    uint32_t record_count;
    uint32_t persisted;
    uint32_t replicas;
    uint8_t duplicate;
    int64_t append_time_us;
    struct engine_group_state group; /* fences and commits */
    struct engine_sealed sealed;     /* store_seal */
    struct engine_retained retained; /* store_purge, store_hold */
    const uint8_t
        *body; /* metadata: the result's bytes, borrowed until the next call into the store */
    size_t body_size;
};

enum store_fetch_place { STORE_FETCH_NOTHING = 0, STORE_FETCH_MEMORY = 1, STORE_FETCH_FILE = 2 };

/* As many as a fetch from memory gets at most, and as far as it looks back for them: further back a
 * file read gets more. */
enum { STORE_FETCH_BATCHES_MAX = 64 };

/* Where the batches from an offset on lie. MEMORY: whole consecutive batches of `size` bytes
 * together, the first contains the offset; borrowed until the next call into the store. FILE: read
 * `size` bytes at `file_offset` of the slot, then store_fetch_trim. */
struct store_fetch {
    /* OK, STATUS_TRUNCATED, STATUS_OFFSET_OUT_OF_RANGE, STATUS_CORRUPT, STATUS_FENCED, .. */
    enum status status;
    enum store_fetch_place place;
    uint64_t log_start;
    uint64_t high_watermark;
    uint64_t log_end;
    size_t size;
    struct io_vector batches[STORE_FETCH_BATCHES_MAX]; /* MEMORY */
    uint32_t batches_count;
    uint32_t file;
    uint64_t file_offset;
};

/* Bytes of memory that store_open will take from the arena. */
size_t store_memory_bytes(const struct store_config *config);
struct store *store_allocate(const struct store_config *config, struct arena *arena);

/* Recover everything of the shard (rules J1..J4): blocks, through io->perform. Running it twice
 * gives equal bytes. */
enum status store_open(struct store *store, struct io *io, struct store_now now, char *detail,
                       size_t detail_size);

/* Calls. Statuses at once: NOT_FOUND, RECREATED, INVALID_BATCH.., MESSAGE_TOO_LARGE, BUSY,
 * STORAGE_FULL, DAMAGED, FENCED. */
enum status store_produce(struct store *store, const struct store_produce *request);
enum status store_commit_offset(struct store *store, const struct engine_partition_id *id,
                                uint64_t group, uint64_t generation, uint64_t offset,
                                uint64_t token);
enum status store_group_fence(struct store *store, const struct engine_partition_id *id,
                              const struct engine_group_fence *fence, uint64_t token);
/* T3: SEAL into the partition's log, then its last METER_CLOSE; the outcome's `sealed` says what it
 * came to. Repeatable. Outcomes: OK, STALE_INTENT, BUSY (also: unacknowledged closes hold the last
 * one back), STORAGE_FULL. INVALID at once: intent 0, or a partition without operations whose topic
 * is not closing, which nothing would keep from getting some. */
enum status store_seal(struct store *store, const struct engine_partition_id *id,
                       uint64_t intent_op, uint64_t token);
/* T1, T2: TRIM or SET_HOLD into the partition's log; the outcome's `retained` says what holds
 * afterwards. Repeatable: a log that begins there already is OK. Outcomes: OK, HELD, TRIMS_FULL,
 * OFFSET_BEYOND_END, CLOSED; STALE_INTENT. INVALID at once: intent 0. */
enum status store_purge(struct store *store, const struct engine_partition_id *id,
                        const struct engine_purge *purge, uint64_t token);
enum status store_hold(struct store *store, const struct engine_partition_id *id,
                       const struct engine_hold *hold, uint64_t token);
enum status store_group_state(struct store *store, const struct engine_partition_id *id,
                              uint64_t group, struct engine_group_state *state);

/* Group fetches (group != 0): the first data of an assignment waits for InFlight(group, generation)
 * to be applied (G2): until then the status is STATUS_GROUP_PENDING and store_advance_next names
 * the partition when to ask again. */
void store_fetch(struct store *store, const struct engine_partition_id *id, uint64_t offset,
                 uint32_t bytes_max, uint64_t group, uint64_t generation,
                 struct store_fetch *result);

/* After a FILE read: cut to whole verified batches, the first holding `offset`. STATUS_CORRUPT
 * stops that partition. */
enum status store_fetch_trim(struct store *store, const struct engine_partition_id *id,
                             uint64_t offset, uint32_t bytes_max, const uint8_t *bytes, size_t size,
                             size_t *begin, size_t *end);

/* The first batch that was appended at or after a time. */
enum store_time_answer {
    STORE_TIME_NONE = 0,  /* nothing that late was committed: offset = high_watermark */
    STORE_TIME_FOUND = 1, /* offset and append_time_us */
    STORE_TIME_WALK = 2,  /* read from `offset` on and look with store_time_scan */
};

struct store_time {
    enum status status; /* OK, NOT_FOUND, RECREATED, DAMAGED, CORRUPT, .. */
    enum store_time_answer answer;
    uint64_t offset;
    int64_t append_time_us;
    uint64_t log_start;
    uint64_t high_watermark;
};

void store_time_find(struct store *store, const struct engine_partition_id *id, int64_t time_us,
                     struct store_time *found);
/* Whole batches, as store_fetch and its trim give them. 1 = found in them: the result's offset and
 * append_time_us. */
int store_time_scan(const uint8_t *bytes, size_t size, int64_t time_us, struct store_time *found);

/* The offset behind the last of these whole batches, as store_fetch and its trim give them. */
uint64_t store_fetch_next(const uint8_t *bytes, size_t size);

enum status store_describe(struct store *store, const struct engine_partition_id *id,
                           struct engine_partition_state *state);

/* Tables of metadata op `op`: topics come and go for this shard. Rows of other shards' partitions
 * are skipped. */
enum status store_tables_apply(struct store *store, uint64_t op, const uint8_t *delta, size_t size);

/* The tables of a start are whole, up to metadata op `op`: partitions whose deletion they prove
 * leave too. */
void store_tables_complete(struct store *store, uint64_t op);

/* Metadata (shard 0). submit: outcome carries the result. next: the lowest committed op not yet
 * handed out; its command is borrowed until applied. snapshot_due: an op of which a snapshot is
 * wanted. */
enum status store_metadata_submit(struct store *store, const uint8_t *command, size_t size,
                                  uint64_t token);
int store_metadata_next(struct store *store, uint64_t *op, int64_t *append_time_us,
                        const uint8_t **command, size_t *size);
enum status store_metadata_applied(struct store *store, uint64_t op, const uint8_t *result,
                                   size_t size);
int store_metadata_snapshot_due(struct store *store, uint64_t *op);
enum status store_metadata_snapshot(struct store *store, uint64_t op, const uint8_t *snapshot,
                                    size_t size);
/* What recovery found: the snapshot (borrowed until store_metadata_recovered) and the last op to be
 * replayed above it. */
void store_metadata_recovery(struct store *store, uint64_t *snapshot_op, const uint8_t **snapshot,
                             size_t *size, uint64_t *last_op);
void store_metadata_recovered(struct store *store);

/* Meters: closes not yet acknowledged, each handed out once per start and again on retry ticks. */
int store_meter_next(struct store *store, struct engine_meter_close *close,
                     struct engine_meter_sum *sums, uint32_t sums_max);
enum status store_meter_ack(struct store *store, const struct engine_partition_id *id,
                            uint64_t sequence);
/* Close the open window if anything billable was appended; the outcome's base_offset is the last
 * sequence, expected the last acknowledged one. */
enum status store_meter_flush(struct store *store, const struct engine_partition_id *id,
                              uint64_t token);

/* Retention events, likewise. */
int store_trimmed_next(struct store *store, struct engine_trimmed *trimmed);
enum status store_trim_ack(struct store *store, const struct engine_partition_id *id,
                           uint64_t sequence);

/* Stored byte-seconds: a turn, then what is to be reported in it: what changed and what was not
 * reported for a minute, or `all` that rose. `end_us` is where the window ends, `from_us` before
 * which none begins. 1 = filled; there is no principal. */
void store_stored_turn(struct store *store);
int store_stored_next(struct store *store, int all, int64_t from_us, int64_t end_us,
                      struct engine_counter *counter);
/* What a topic stores here now. */
uint64_t store_stored_bytes(struct store *store, uint64_t topic, uint64_t created_revision);
/* What windows close by: goes on when the wall clock is not believed. */
int64_t store_window_us(const struct store *store);

/* Time, I/O, turn's end. flush starts a round when none is in flight, and the segment writes of
 * what was applied. */
void store_tick(struct store *store, struct store_now now);
void store_complete(struct store *store, struct io_request *request);
void store_flush(struct store *store, struct store_now now);
/* The operator or the control plane vouches for the wall clock (C2). */
void store_clock_confirm(struct store *store, struct store_now now);

int store_idle(const struct store *store); /* nothing in flight, nothing gathered */
int store_work(const struct store *store); /* flush would start something */
/* What is left waits for room on the disk; all of it is in the journal, for the next start. */
int store_stuck(const struct store *store);
enum status store_failed(
    const struct store *store); /* not OK: the disk failed under the journal, the shard must stop */

int store_outcome_next(struct store *store, struct store_outcome *outcome);
int store_advance_next(struct store *store,
                       struct engine_partition_id *id); /* fetchable data grew, or a fence moved */

/* A final round with checkpoints, so that the next start replays little. Drive until store_idle. */
void store_checkpoint_all(struct store *store);

struct store_statistics {
    uint64_t rounds, round_bytes, syncs, entries, produce_batches, produce_bytes, produce_records,
        duplicates;
    uint64_t refused_busy, refused_full, refused_damaged, out_of_sequence, checkpoints,
        extents_released;
    uint64_t segments_opened, segments_sealed, replicas_live, replicas_damaged, prepares_bytes_used,
        journal_bytes_live;
    uint64_t replicas_removing, removal_failures, refused_producers_share, producers_used;
    uint64_t storage_full; /* 1 = writes are refused until the next try */
    uint64_t refused_op_unknown, replicas_op_unknown; /* their log is of a newer release */
    uint64_t trims, trims_held, trims_full, trimmed_bytes, trimmed_records;
    uint64_t partitions_trimming, trim_failures; /* files of what was trimmed */
    uint64_t stored_unattributed;                /* topics whose bytes found no account */
    uint64_t held_bytes;      /* that policies would have taken, as of their last looks */
    uint64_t clock_uncertain; /* 1 = no expiry until store_clock_confirm (C2) */
};
void store_statistics(const struct store *store, struct store_statistics *statistics);

#endif
