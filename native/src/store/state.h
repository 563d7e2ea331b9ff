/* store/state.h: the structs behind store/store.h, shared by the files of store/ and no others.
 *
 * Who may change what:
 *     admit.c                         admission
 *     round.c                         gathered entries into rounds
 *     turn.c                          what became durable, and what is committed by it
 *     execute.c                       what is committed
 *     metadata.c                      the replica of topic 0, its snapshot file
 *     registry.c                      topics, replicas that come
 *     seal.c                          a partition's last operations, when its topic goes
 *     files/segment_writer.c          executed batches into segment files
 *     files/retire.c                  replicas that go
 *     files/trim.c                    segment files that no log names any more
 *     checkpoint/checkpoint.c         checkpoints, and extents given back
 *     checkpoint/duplicate_entries.c  entries that lie in the journal twice
 *     accounting/usage_windows.c      windows and unacknowledged closes
 *     accounting/producer_quota.c     who may take entries of the shard's table
 *     accounting/storage_meter.c      what is stored for how long
 *     accounting/retention.c          what policies, purges and holds propose, and its evidence
 *     recovery/recovery.c             all of it, before anything is answered */
#ifndef STORE_STATE_H
#define STORE_STATE_H

#include "catalog/gone_topics.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/queue.h"
#include "io/io.h"
#include "journal/entry_bodies.h"
#include "journal/journal.h"
#include "partition/partition.h"
#include "store/accounting/shard_records.h"
#include "store/clock.h"
#include "store/execute.h"
#include "store/files/replica_removal.h"
#include "store/outbox.h"
#include "store/prepare_ring.h"
#include "store/replica.h"
#include "store/store.h"
#include "vsr/vsr.h"

enum store_limit {
    STORE_SLOT_JOURNAL = 0,
    STORE_SLOT_CHECKPOINT = 1,
    STORE_SLOT_SNAPSHOT = 2,
    STORE_SLOT_FILES = 3,       /* segment files from here */
    STORE_FILES_MAX = 512,      /* open at once: half of the usual limit of descriptors */
    STORE_IOS_MAX = 512,        /* requests in flight but the round's */
    STORE_TOPICS_MAX = 32768,
    STORE_INLINE_CHECKPOINT_MAX = 65536, /* J7 */
    STORE_BLOB_MAX = 4194304,            /* a partition's checkpoint file */
    STORE_SNAPSHOT_MAX = ENGINE_FRAME_SIZE_MAX,
    STORE_RESULTS_BYTES = ENGINE_FRAME_SIZE_MAX + 1048576,
    STORE_RELEASE_BATCH_MAX = 256,
    STORE_COPIES_MAX = 8192, /* entries that recovery found more than once */
    STORE_COPIES_STEPS = 16,
    STORE_GARBAGE_MAX = 64,
    /* Offsets that reads are on the way to, by hash in sets of STORE_RESUME_WAYS: one forgotten is
     * begun again. */
    STORE_RESUMES_MAX = 1024,
    STORE_RESUME_WAYS = 4,
    STORE_SNAPSHOT_OPS = 1024,
    STORE_SNAPSHOT_BYTES = 1048576,
    STORE_SEGMENT_SHARE = 8,        /* a segment spans an eighth of what the topic keeps .. */
    STORE_SEGMENT_US_MIN = 1000000, /* .. and no less than a second */
    STORE_DETAIL_BYTES = 256,
    STORE_REMOVAL_NAMES_BYTES = 524288, /* one folder: twice the names of all its segments */
    STORE_WITNESS_AFTER_NS =
        20000000, /* an idle shard's witness round: not in the way of the next request */
    STORE_RETRY_AFTER_NS = 500000000, /* a full disk is asked again */
};

#define STORE_NOBODY UINT64_MAX /* topic of entries that belong to no replica */

enum store_io_kind {
    STORE_IO_ROUND = 1,
    STORE_IO_CONTROL, /* open, close, mkdir, truncate, unlink */
    STORE_IO_BEGIN,   /* an empty file for a segment */
    STORE_IO_BATCHES,
    STORE_IO_FOOTER,
    STORE_IO_SEAL_SYNC,
    STORE_IO_RELEASE_SYNC,
    STORE_IO_RELEASE_READ,
    STORE_IO_BLOB, /* all but the last request of a checkpoint file */
    STORE_IO_BLOB_DONE,
    STORE_IO_REMOVE, /* files and folder of a replica whose topic is gone */
    STORE_IO_TRIM,   /* segment files of a replica that lives */
};

struct store_io {
    struct io_request request;
    struct store_io *next; /* in the free list, or of those that finished */
    uint32_t replica;
    uint32_t file; /* index in files + 1; 0 = none */
    uint64_t bytes;
    uint32_t batches; /* of a segment write */
    uint32_t reserved;
    uint8_t footer[SEGMENT_FOOTER_BYTES];
};

struct store_file {
    struct queue_link link; /* least recently used first */
    uint64_t segment;
    uint32_t replica;
    uint32_t users; /* requests of ours in flight */
    uint32_t next;  /* in its bucket, index + 1 */
    uint8_t open;
    uint8_t broken;
};

struct store_topic {
    uint64_t topic;
    uint64_t created_revision;
    struct segment_limit segment_limit;
    uint32_t partitions_count;
    uint32_t flags;
    uint32_t next; /* in its bucket or the free list, index + 1 */
    uint32_t organization;
    struct partition_policy policy;
};

/* What one incarnation of a topic stores in this shard (store/accounting/storage_meter.c). */
struct store_account {
    uint64_t topic; /* 0 = free, and of the first: nobody's */
    uint64_t created_revision;
    uint64_t bytes;    /* now */
    uint64_t until_ms; /* monotonic: byte_seconds is complete up to then */
    uint64_t rest;     /* byte-milliseconds, less than a byte-second */
    uint64_t byte_seconds;
    uint64_t told;
    uint64_t told_ns;
    uint64_t turn;     /* in which it was told last */
    int64_t told_us;   /* where its next window begins */
    uint32_t replicas; /* partitions that add to it */
    uint32_t next;     /* in its bucket or the free list; 0 = none */
    struct queue_link link;
};

enum store_release_phase {
    STORE_RELEASE_IDLE = 0,
    STORE_RELEASE_COLLECT,
    STORE_RELEASE_WRITES,
    STORE_RELEASE_SYNCS,
    STORE_RELEASE_BLOB,
    STORE_RELEASE_ROUND,
    STORE_RELEASE_READ,
    STORE_RELEASE_WITNESS,
    STORE_RELEASE_PHASES_COUNT,
};

struct store_release_item {
    uint32_t replica;
    uint8_t is_file;
    uint8_t withdrawn; /* its replica was doomed before the entry left */
    uint64_t slot;     /* in the control ring */
    uint64_t batches;  /* must be written before the entry may go */
    uint64_t pin;
    uint64_t live_bytes;
    uint32_t entry_bytes;
    uint32_t blob_bytes;
    uint64_t active; /* base offset + 1 of the segment that is active in it; 0 = none */
    uint8_t digest[16];
};

struct store_release {
    enum store_release_phase phase;
    uint64_t generation;
    uint32_t count;
    uint32_t syncs;
    uint32_t blob_used;
    uint32_t all_cursor; /* checkpoint_all: next replica to look at */
    uint8_t all;
    uint8_t all_after; /* when this release is over */
    uint8_t read_done;
    uint64_t wait_position; /* of the control ring */
    uint64_t wait_lsn;
    uint64_t skip; /* live entries of the extent appended already */
    uint64_t seen;
    uint32_t sync_cursor;
    struct queue reappend; /* replicas whose live entries are copied from the extent */
    struct store_release_item items[STORE_RELEASE_BATCH_MAX];
};

struct store_garbage {
    uint64_t lsn; /* unlink once a round above it is durable; 0 = entry not durable yet */
    uint8_t digest[16];
};

struct store_copy {
    uint8_t digest[16]; /* of the entry's header */
    uint64_t lsn;       /* of the newest round that holds it; 0 = free */
};

struct store_snapshot {
    uint8_t *buffer;
    uint64_t size;
    uint64_t op;
    uint64_t slot; /* control ring position of the held entry */
    uint8_t digest[16];
    uint8_t busy;
    uint8_t borrowed;     /* recovery's copy is still being read */
    uint8_t wanted;       /* asked for, not yet given */
    uint8_t checksum[16]; /* of `op` */
    int64_t time_us;
    uint64_t handed_op; /* the last op handed out, its checksum and time */
    uint8_t handed_checksum[16];
    int64_t handed_time_us;
    uint64_t ops_wanted; /* counters when it was asked for */
    uint64_t bytes_wanted;
    uint64_t ops_since;
    uint64_t bytes_since;
};

struct store {
    struct store_config config;
    struct io *io;
    struct store_now now;
    enum status failed;
    uint8_t recovering;
    uint8_t storage_full;
    uint64_t storage_retry_ns;
    struct journal journal;
    struct partition_pools pools;
    struct prepare_ring control;
    struct prepare_ring metadata;
    struct prepare_ring data;
    /* replicas and topics */
    struct replica *replicas;
    uint32_t replicas_max;
    uint32_t replicas_free;
    uint32_t *replica_buckets;
    uint32_t replica_buckets_count;
    uint32_t replicas_count;
    struct store_topic *topics;
    uint32_t topics_free;
    uint32_t *topic_buckets;
    uint32_t topic_buckets_count;
    struct gone_topics gone;
    struct store_account *accounts;
    uint32_t *account_buckets; /* replica_buckets_count; 0 = none */
    uint32_t accounts_free;
    struct queue accounts_changed; /* since they were last told */
    struct queue accounts_quiet;   /* the others with bytes, oldest told first */
    uint64_t stored_turn;
    struct replica *metadata_replica;
    uint64_t metadata_handed; /* metadata ring: next to hand out, next to be applied */
    uint64_t metadata_applied;
    uint64_t floor_wanted;   /* before the next tombstone (V8) */
    uint64_t topic_highest;  /* number in any row since the start */
    uint64_t topics_refused; /* rows that found no room */
    struct store_nobody nobody;
    struct store_snapshot snapshot;
    struct outbox *outbox;
    /* queues */
    struct queue removals; /* replicas whose topic is gone, until their files are */
    uint32_t removing_now; /* index + 1 of the one whose list lies in removal_names */
    uint8_t *removal_names;
    uint64_t removal_at;
    uint64_t removal_size;
    struct queue writes;
    struct queue windows;
    struct queue closes_ready;
    struct queue closes_waiting;
    struct queue events_ready;
    struct queue events_waiting;
    struct queue trims;
    uint32_t *expiries; /* a heap of replicas by expiry_us */
    uint32_t expiries_count;
    uint64_t relieved_ns; /* when checkpoints were last asked for to free chunks of segments */
    struct queue *pins;   /* by generation mod extents */
    /* files and requests */
    struct store_io *ios;
    struct store_io *ios_free;
    struct store_io *finished_head; /* recovery: carried out, not yet completed */
    struct store_io *finished_tail;
    uint32_t ios_in_flight;
    struct store_io round;
    struct store_file *files;
    uint32_t *file_buckets;
    struct queue files_used;
    uint32_t files_opened; /* ever: from here on never used */
    uint32_t files_free;   /* closed ones, index + 1 */
    uint8_t *extent_buffer;
    uint8_t *blob;
    uint8_t blob_failed[2]; /* by slot: checkpoint, snapshot */
    uint8_t blob_retry[2];
    uint8_t blob_digest[2][16];
    uint64_t blob_size[2];
    struct store_release release;
    struct store_garbage garbage[STORE_GARBAGE_MAX];
    uint32_t garbage_count;
    struct store_copy copies[STORE_COPIES_MAX];
    struct store_resume resumes[STORE_RESUMES_MAX];
    uint64_t producers_at_ns;  /* the next look */
    uint32_t producers_cursor; /* the next replica whose silent producers are looked for */
    uint32_t resume_next;      /* the way to be given up next */
    /* rounds */
    struct committed committed; /* of the ring that is gone through */
    uint64_t round_at_ns;       /* when the last one was durable */
    uint8_t witness_due;        /* the last durable round had entries */
    uint8_t witness_now;
    struct store_clock *clock;
    uint64_t live_bytes;
    struct journal_report *report;
    struct store_statistics statistics;
};

/* store/store.c */
void store_fail(struct store *store, enum status status);
struct store_io *store_io_take(struct store *store, enum store_io_kind kind,
                               enum io_operation operation);
void store_io_return(struct store *store, struct store_io *io);
/* Recovery carries the request out at once; whoever drives it completes it with
 * turn_completions. */
void store_io_send(struct store *store, struct store_io *io);
enum status store_perform(struct store *store, struct io_request *request);

/* store/registry.c */
struct store_topic *store_topic_find(struct store *store, uint64_t topic);
struct replica *registry_find(struct store *store, uint64_t topic, uint32_t partition);
extern const struct segment_limit store_limit_unknown;
struct replica *registry_make(struct store *store, uint64_t topic, uint64_t created_revision,
                              uint32_t partition, const struct segment_limit *limit, int metered);
void registry_drop(struct store *store, struct replica *replica);
enum status registry_lookup(struct store *store, const struct engine_partition_id *id,
                            struct replica **replica);
enum status registry_open(struct store *store, const struct engine_partition_id *id,
                          struct replica **replica);
uint32_t registry_index(const struct store *store, const struct replica *replica);
void replica_pin(struct store *store, struct replica *replica, uint64_t generation);

/* store/propose.c */
enum status store_admit(struct store *store, struct prepare_ring *ring, uint64_t entry_size);
enum status store_admit_op(struct store *store, uint64_t payload_size);
struct ring_slot *store_entry_begin(struct store *store, struct prepare_ring *ring,
                                    const struct journal_entry *entry, uint64_t *position);
void store_entry_ready(struct ring_slot *slot);
void store_prepare_op(struct store *store, struct prepare_ring *ring, struct replica *replica,
                      uint16_t operation, const uint8_t *body, size_t size, uint64_t token,
                      int outcome);
void store_prepare_batch(struct store *store, struct replica *replica,
                         const struct store_produce *request, const struct batch_client *client);
/* What the journal says of the replica's place in its log, and of its configuration. */
struct entry_view_state store_view_state(const struct replica *replica,
                                         const struct segment_limit *limit);
void store_view_state_entry(struct store *store, struct replica *replica);
void store_abstain_entry(struct store *store, struct replica *replica);

/* store/round.c */
void round_start(struct store *store);
int round_pending(const struct store *store);
void round_synced(struct store *store);
/* The next entry of a ring that became durable with it; NULL = none is left. */
struct ring_slot *round_next(struct prepare_ring *ring, uint64_t *position);

/* store/read/read_cursor.c */
const struct store_resume *store_resume_find(const struct store *store,
                                             const struct replica *replica, uint64_t offset);
void store_resume_keep(struct store *store, const struct replica *replica,
                       const struct store_resume *found);

/* store/files/segment_writer.c */
void replica_path(const struct replica *replica, char path[IO_PATH_SIZE]);
void store_segment_path(const struct replica *replica, uint64_t segment, char path[IO_PATH_SIZE]);
struct store_file *store_file_open(struct store *store, struct replica *replica, uint64_t segment,
                                   uint32_t flags);
int store_files_forget(struct store *store, const struct replica *replica, uint64_t below);
void store_batches_discard(struct store *store, struct replica *replica);
uint32_t store_file_slot(const struct store *store, const struct store_file *file);
void store_batch_queue(struct store *store, struct replica *replica, struct ring_slot *slot,
                       uint64_t position, const struct partition_result *result);
void store_segments_write(struct store *store);
/* One step of the partition that waits longest. 0 = none was possible. */
int store_segment_write(struct store *store);
void store_segment_done(struct store *store, struct store_io *io);

/* store/checkpoint/checkpoint.c, store/checkpoint/checkpoint_file.c */
void store_release_step(struct store *store);
void store_release_blob_done(struct store *store);
void store_release_read_done(struct store *store);
int store_release_due(const struct store *store);
int store_release_holds(const struct store *store);
void store_release_withdraw(struct store *store, struct replica *replica);
void store_checkpoint_durable(struct store *store, struct replica *replica,
                              const struct ring_slot *slot);
struct entry_checkpoint store_checkpoint_entry(const struct replica *replica, int is_file,
                                               uint64_t blob_size, const uint8_t digest[16]);
void store_blob_path(const uint8_t digest[16], char path[IO_PATH_SIZE]);
int store_blob_write(struct store *store, uint32_t slot, const uint8_t digest[16], uint8_t *data,
                     uint64_t size);
void store_blob_done(struct store *store, uint32_t slot);
void store_garbage_add(struct store *store, const uint8_t digest[16]);
void store_garbage_witnessed(struct store *store);

/* store/checkpoint/duplicate_entries.c */
void store_copy_note(struct store *store, const uint8_t *entry, uint64_t origin_lsn, uint64_t lsn);
int store_copy_is_newest(struct store *store, const uint8_t *entry, uint64_t lsn);

/* store/metadata.c */
void store_snapshot_blob_done(struct store *store);
void store_snapshot_durable(struct store *store, const struct ring_slot *slot);

/* store/accounting/usage_windows.c */
void store_meter_appended(struct store *store, struct replica *replica);
void store_meter_closed(struct store *store, struct replica *replica, enum status status);
void store_meter_tick(struct store *store);
void store_meter_watch(struct store *store, struct replica *replica);
enum status store_meter_propose(struct store *store, struct replica *replica, int force,
                                uint64_t token, int outcome);

/* store/accounting/storage_meter.c */
uint32_t store_accounts_max(uint32_t replicas_max);
void store_stored_init(struct store *store);
void store_stored_add(struct store *store, struct replica *replica, uint64_t bytes);
void store_stored_take(struct store *store, struct replica *replica, uint64_t bytes);
/* All that recovery found. */
void store_stored_recovered(struct store *store, struct replica *replica);
/* The replica goes: it stores nothing any more. */
void store_stored_forget(struct store *store, struct replica *replica);

/* store/accounting/retention.c */
void store_retention_touch(struct store *store, struct replica *replica);
void store_retention_policy(struct store *store, const struct store_topic *topic);
void store_retention_forget(struct store *store, struct replica *replica);
void store_retention_executed(struct store *store, struct replica *replica,
                              const struct partition_result *result, enum partition_op operation,
                              struct store_outcome *outcome);
void store_retention_watch(struct store *store, struct replica *replica);
void store_retention_tick(struct store *store);
void store_retention_relieve(struct store *store);

/* store/files/trim.c */
void store_trim_begin(struct store *store, struct replica *replica);
void store_trims_step(struct store *store);
int store_trims_rest(const struct store *store);
void store_trim_done(struct store *store, const struct store_io *io);

/* store/accounting/producer_quota.c */
void store_producers_tick(struct store *store);
/* May a producer that is new here take an entry? OK, PRODUCERS_SHARE. */
enum status store_producers_share(struct store *store, struct replica *replica,
                                  const struct batch_client *client);

/* store/seal.c */
void store_seal_executed(struct store *store, struct replica *replica, enum status status);
void store_seal_advance(struct store *store, struct replica *replica);

/* store/files/retire.c */
void store_removals_step(struct store *store);
int store_removals_rest(const struct store *store);
void store_removal_done(struct store *store, const struct store_io *io);
void store_topic_doom(struct store *store, uint64_t number, uint64_t op);
enum status store_removal_found(struct store *store, const struct journal_entry *entry,
                                uint64_t generation);

/* store/recovery/recovery.c, store/recovery/replay.c */
struct store_recovery {
    struct store *store;
    struct store_now now;
    uint64_t progress;
    uint64_t behind;
    char detail[STORE_DETAIL_BYTES];
};
enum status store_recover_states(struct store_recovery *recovery);
enum status store_recover_segments(struct store_recovery *recovery);
enum status store_recover_ops(struct store_recovery *recovery);

#endif
