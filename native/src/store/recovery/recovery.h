/* store/recovery/recovery.h: from a data directory to a shard that may answer.
 *
 *     journal opened (or formatted) -> first walk: damage classified, checkpoints and view states
 *     found
 *     -> the last round written again, durably (J3) -> checkpoint files read -> segments cut to
 *     their checkpointed length and walked -> ops replayed in the order of their parents -> damage
 *     named, remembered (J4) -> witness round
 *
 * Deterministic: the same bytes on disk give the same bytes again, and recovering twice changes
 * nothing more. */
#ifndef STORE_RECOVERY_RECOVERY_H
#define STORE_RECOVERY_RECOVERY_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"

struct arena;
struct journal_report;
struct store;

enum { RECOVERY_DETAIL_BYTES = 256 };

/* What a replica keeps of a start; recovery's alone. */
struct replica_recovery {
    uint64_t stop_extent_cycle; /* of the newest entry that stops it */
    uint64_t absent_end;        /* of the segments that a checkpoint names and were not found */
};

/* One start. */
struct store_recovery {
    struct store *store;
    uint64_t progress;
    uint64_t behind;
    char detail[RECOVERY_DETAIL_BYTES];
};

size_t recovery_memory_bytes(void);
struct journal_report *recovery_make(struct arena *arena);

/* The steps between the journal's opening and its last round, one walk or file each:
 * store/recovery/replay.c. */
enum status recovery_states(struct store_recovery *recovery);
enum status recovery_segments(struct store_recovery *recovery);
enum status recovery_ops(struct store_recovery *recovery);

#endif
