/* store/files/replica_removal.h: how one partition leaves this node after its topic did (A10,
 * REC-1..3).
 *
 *     DOOMED -> FORGETTING -> FORGOTTEN -> LISTING -> UNLINKING -> FOLDER_SYNCING -> PARTING
 *                                 ^                                       -> PARENT_SYNCING -> gone
 *                                 '-- anything failed: wait 1 s, doubling to 60 s, begin again
 *
 * Pure: a step looks at the removal, at what the shard sees and at the time, and names the one
 * thing to do next; only the pump does it. Level-triggered: whoever calls it again at any time,
 * after any failure or a restart, gets to the same end.
 *
 * Two phases, two kinds of durable: a tombstone (FORGET, behind the metadata floor, behind every
 * entry of the replica) before the first file goes; every file and the folder gone, durably, before
 * the tombstone and the state in memory may go. Refuses to know paths, rings and files. */
#ifndef STORE_FILES_REPLICA_REMOVAL_H
#define STORE_FILES_REPLICA_REMOVAL_H

#include <stdint.h>

#include "foundation/status.h"

enum reconcile_phase {
    RECONCILE_NONE = 0,       /* it lives */
    RECONCILE_DOOMED,         /* no more calls; what is on its way to the journal gets there */
    RECONCILE_FORGETTING,     /* the tombstone is on its way */
    RECONCILE_FORGOTTEN,      /* it is durable: what is in flight ends, then files may go */
    RECONCILE_LISTING,        /* what lies in the folder */
    RECONCILE_UNLINKING,      /* all of that */
    RECONCILE_FOLDER_SYNCING, /* so that no name comes back */
    RECONCILE_PARTING,        /* the empty folder */
    RECONCILE_PARENT_SYNCING, /* so that it does not come back either */
    RECONCILE_PHASES_COUNT,
};

enum reconcile_action {
    RECONCILE_WAIT = 0,
    RECONCILE_WITHDRAW, /* take back a checkpoint that has not left */
    RECONCILE_FORGET,   /* floor and tombstone into the journal, then reconcile_move */
    RECONCILE_DISCARD,  /* batches that wait for their segment write */
    RECONCILE_CLOSE,    /* its open files */
    RECONCILE_LIST,     /* this and the following: issue, then reconcile_move */
    RECONCILE_UNLINK,
    RECONCILE_SYNC_FOLDER,
    RECONCILE_PART,
    RECONCILE_SYNC_PARENT,
    RECONCILE_PAUSE, /* it failed: give the turn to another removal */
    RECONCILE_DROP,  /* nothing of it is left: the state in memory may go */
};

enum reconcile_limit { RECONCILE_PAUSE_MS_MIN = 1000, RECONCILE_PAUSE_MS_MAX = 60000 };

struct reconcile {
    uint8_t phase;    /* enum reconcile_phase */
    uint8_t failed;   /* some request of this phase */
    uint16_t pauses;  /* since something last went well; stops counting at its end */
    uint32_t flights; /* requests in flight */
    uint64_t retry_ns;
};

/* What the shard sees of the replica, and of the turn. */
struct reconcile_seen {
    uint8_t undurable; /* operations of it are on their way to the journal */
    uint8_t held;      /* a checkpoint of it can still be taken back */
    uint8_t leaving;   /* a checkpoint or copies of its entries are going to the journal */
    uint8_t writing;   /* a write to its segments is in flight */
    uint8_t queued;    /* batches wait for one */
    uint8_t files;     /* open */
    uint8_t turn;      /* nobody else is listing or unlinking */
    uint8_t names;     /* of the list are left to be unlinked */
};

/* The topic is gone. */
void reconcile_doom(struct reconcile *removal);
/* Found by a start: the tombstone is durable already; something went wrong there if `failed`. */
void reconcile_found(struct reconcile *removal, uint64_t now_ns);
enum reconcile_action reconcile_step(struct reconcile *removal, const struct reconcile_seen *seen,
                                     uint64_t now_ns);
/* The action was issued as `flights` requests (FORGET: none). */
void reconcile_move(struct reconcile *removal, enum reconcile_action action, uint32_t flights);
/* The tombstone is durable. */
void reconcile_forgotten(struct reconcile *removal);
/* A request ended. 1 = it failed. */
int reconcile_done(struct reconcile *removal, enum status status);

#endif
