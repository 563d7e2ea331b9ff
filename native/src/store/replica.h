/* store/replica.h: one partition as its shard keeps it, beside what its log says of it: what is on
 * its way to the journal and to segment files, what waits for whom. Changed by the files of store/
 * as store/state.h says. */
#ifndef STORE_REPLICA_H
#define STORE_REPLICA_H

#include <stdint.h>

#include "foundation/queue.h"
#include "journal/journal.h"
#include "partition/partition.h"
#include "store/files/replica_removal.h"
#include "vsr/vsr.h"

enum {
    STORE_WALKS_COUNT = 8, /* segments of one partition verified at once by different readers */
};

/* Segment files that a replica's log no longer names are on their way out (store/files/trim.c). */
enum store_trim_phase {
    STORE_TRIM_NONE = 0,
    STORE_TRIM_WAITING,
    STORE_TRIM_LISTING,
    STORE_TRIM_UNLINKING,
    STORE_TRIM_SYNCING,
    STORE_TRIM_PHASES_COUNT,
};

struct store_trim {
    uint8_t phase;  /* enum store_trim_phase */
    uint8_t failed; /* some request of this phase */
    uint8_t again;  /* the log was trimmed since the last list */
    uint8_t kept;   /* a file had to stay for now */
    uint8_t pauses; /* since something last went well */
    uint32_t flights;
    uint64_t retry_ns;
    uint64_t asked_ns; /* when a checkpoint was last asked for */
};

/* A segment sealed before the last start, as far as reads have verified it. */
struct store_walk {
    uint64_t segment;
    uint64_t offset; /* of the batch at its walked_bytes */
    uint8_t used;
};

/* Where reads for an offset have come to that did not reach it yet: the next one goes on there. */
struct store_resume {
    uint64_t topic;
    uint64_t created_revision;
    uint64_t offset;       /* looked for */
    uint64_t segment;      /* base offset */
    uint64_t position;     /* of a batch at or before it, in the segment's file */
    uint64_t batch_offset; /* of that batch */
    uint64_t bytes;        /* of that batch, if the last read was too short for it */
    uint32_t partition;
    uint32_t used;
};

struct replica {
    uint64_t topic;
    uint64_t created_revision;
    uint32_t partition;
    uint32_t next; /* in its bucket or the free list, index + 1 */
    uint8_t used;
    uint8_t in_release; /* a checkpoint of it is being made */
    uint8_t folder_made;
    uint8_t folder_dirty; /* names in it since the last sync of the folder */
    uint8_t data_dirty;   /* bytes in the active segment since its last sync */
    uint8_t write_busy;
    uint8_t meter_busy;    /* a METER_CLOSE is in flight */
    uint8_t expire_busy;   /* an EXPIRE_PRODUCERS is in flight */
    uint8_t trim_busy;     /* a TRIM of the policy is in flight */
    uint8_t sealing;       /* somebody waits for the seal and the last close */
    uint8_t footer_failed; /* the footer before the sync in flight was not written */
    uint8_t corrupt;       /* a read found damage: nothing is served any more */
    struct vsr vsr;
    struct journal_mark mark;
    struct segment_limit segment_limit; /* configuration as of the last view state entry */
    uint8_t metered;
    uint8_t metered_wanted;
    uint8_t checkpoint_is_file;
    uint64_t unknown_op; /* of a newer release: nothing from it on can be executed; 0 = none */
    uint8_t configured;  /* its view state is in the journal or on its way */
    uint32_t checkpoint_bytes;
    uint64_t checkpoint_op;
    uint64_t checkpoint_lsn;  /* of the entry in use, as recovery found it */
    uint64_t stop_generation; /* of the newest entry that stops it, likewise */
    uint8_t checkpoint_digest[16];
    uint64_t checkpoint_active; /* base offset + 1 of its active segment; 0 = none */
    uint64_t absent_end; /* of the segments that a checkpoint names and a start did not find */
    uint64_t pin;        /* generation of the oldest extent with a live entry; 0 = none */
    uint64_t live_bytes;
    struct queue_link pin_link;
    uint64_t hot_last;    /* newest batch in the ring: position + 1 */
    uint64_t write_first; /* chain of batches to be written: position + 1; 0 = none */
    uint64_t write_last;
    uint64_t batches_executed;
    uint64_t batches_written;
    uint64_t written_segment; /* all batches below (segment, position) are in files */
    uint64_t written_position;
    struct store_walk walks[STORE_WALKS_COUNT];
    uint32_t walk_next;             /* the one to be given up when another segment is read */
    uint32_t organization;          /* 0 = not asked for yet (store/accounting/producer_quota.c) */
    uint32_t account;               /* it adds its bytes to, index + 1; 0 = none */
    uint64_t stored_bytes;          /* in it */
    struct replica_removal removal; /* its phase is NONE while the replica lives */
    struct queue_link removal_link;
    struct queue_link write_link;
    struct queue_link advance_link;
    struct queue_link window_link;
    struct queue_link closes_link;
    uint64_t closes_at_ns;
    uint64_t closes_handed;
    uint64_t flush_token;
    struct store_trim trim;
    struct queue_link trim_link;
    struct queue_link events_link;
    uint64_t events_at_ns;
    uint64_t events_handed;
    int64_t expiry_us;   /* when its policy is looked at */
    uint32_t expiry_at;  /* in the heap, index + 1; 0 = not in it */
    uint64_t held_bytes; /* that it would have taken */
    uint64_t seal_token; /* while `sealing` */
    struct partition state;
};

#endif
