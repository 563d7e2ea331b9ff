/* store/state.h: the shard's state, for the files of store/ and no others.
 *
 * It is made of parts. Each is a struct of its own, known to one file alone, with invariants that
 * checked builds look at after every step; the others call that file. What stands here by value is
 * what all of them read: the time of the turn, the journal, the rings, and whether the shard has
 * failed. */
#ifndef STORE_STATE_H
#define STORE_STATE_H

#include "engine.h"
#include "io/io.h"
#include "journal/journal.h"
#include "partition/partition.h"
#include "store/prepare_ring.h"
#include "store/replica.h"
#include "store/store.h"
#include "vsr/vsr.h"

struct store {
    struct store_config config;
    struct io *io;
    struct store_now now; /* of this turn */
    enum status failed;   /* store_fail */
    uint8_t recovering;
    struct entry_member member; /* this node, in the view states of its replicas */
    struct journal journal;
    struct partition_pools pools;
    struct prepare_ring control_ring;
    struct prepare_ring metadata_ring;
    struct prepare_ring data_ring;

    struct outbox *outbox;
    struct store_clock *clock;
    struct registry *registry;
    struct rounds *rounds;
    struct committed *committed;
    struct requests *requests;
    struct open_files *files;
    struct segment_writer *segment_writer;
    struct folder_list *folder_list;
    struct trims *trims;
    struct retiring *retiring;
    struct live_entries *live_entries;
    struct checkpoint *checkpoint;
    struct checkpoint_files *checkpoint_files;
    struct reappend *reappend;
    struct duplicate_entries *duplicates;
    struct metadata *metadata;
    struct usage_windows *usage_windows;
    struct storage_meter *storage_meter;
    struct producer_quota *producer_quota;
    struct store_retention *retention;
    struct shard_records *shard_records;
    struct read_cursors *read_cursors;

    /* Memory that a start uses before anything else runs, and later the files named here. */
    struct journal_report *report;
    uint8_t *extent_buffer;     /* store/checkpoint/reappend.c */
    uint8_t *checkpoint_buffer; /* store/checkpoint/checkpoint.c: CHECKPOINT_BYTES_MAX */

    struct store_statistics statistics; /* each figure is counted by one file */
};

/* store/state.c: the disk failed under the journal, or a replica cannot go on: the first one
 * counts. */
void store_fail(struct store *store, enum status status);
/* Of all parts, in checked builds. */
void store_invariants(const struct store *store);

#endif
