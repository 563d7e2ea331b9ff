/* store/replica.h: one partition as its shard keeps it, beside what its log says of it: what is on
 * its way to the journal and to segment files, what waits for whom.
 *
 * Each part belongs to the file that defines it, which alone looks into it; the others ask that
 * file. What stands here belongs to store/registry.c, and as the comments say. */
#ifndef STORE_REPLICA_H
#define STORE_REPLICA_H

#include <stdint.h>

#include "foundation/queue.h"
#include "journal/journal.h"
#include "partition/partition.h"
#include "store/accounting/producer_quota.h"
#include "store/accounting/retention.h"
#include "store/accounting/storage_meter.h"
#include "store/accounting/usage_windows.h"
#include "store/checkpoint/live_entries.h"
#include "store/checkpoint/replica_checkpoint.h"
#include "store/files/retire.h"
#include "store/files/segment_writer.h"
#include "store/files/trim.h"
#include "store/read/fetch.h"
#include "store/recovery/recovery.h"
#include "store/seal.h"
#include "vsr/vsr.h"

struct replica {
    uint64_t topic;
    uint64_t created_revision;
    uint32_t partition;
    uint32_t next; /* in its bucket or the free list, index + 1 */
    uint8_t used;
    uint8_t is_metadata;
    /* Why it is not served any more; set where the cause is found. */
    uint8_t corrupt;     /* a read or a start found damage */
    uint64_t unknown_op; /* of a newer release: nothing from it on can be executed; 0 = none */
    /* In the journal or on its way: store/propose.c, and a start. */
    uint8_t founded;                       /* the view state */
    struct partition_configure configured; /* of the last CONFIGURE; all zero = there is none */
    /* store/round.c */
    struct journal_mark mark;
    /* store/outbox.c */
    struct queue_link advance_link;
    /* store/checkpoint/checkpoint.c: one is being made */
    uint8_t checkpoint_under_way;

    struct vsr vsr;
    struct partition state;
    struct segment_writes writes;
    struct replica_live live;
    struct replica_checkpoint checkpoint;
    struct replica_retire retire;
    struct replica_trim trim;
    struct replica_usage usage;
    struct replica_storage storage;
    struct replica_producers producers;
    struct replica_retention retention;
    struct replica_seal seal;
    struct replica_walks reads;
    struct replica_recovery recovery;
};

#endif
