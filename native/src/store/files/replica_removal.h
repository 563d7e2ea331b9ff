/* store/files/replica_removal.h: how one partition leaves this node after its topic did (A10,
 * REC-1..3).
 *
 *     DOOMED -> FORGETTING -> FORGOTTEN -> LISTING -> UNLINKING -> FOLDER_SYNCING -> PARTING
 *                                 ^                                       -> PARENT_SYNCING -> gone
 *                                 '-- anything failed: wait 1 s, doubling to 60 s, begin again
 *
 * Pure: a step looks at the removal, at what the shard sees and at the time, and names the one
 * thing to do next; only the pump does it. Level-triggered: called again at any time,
 * after any failure or a restart, it reaches the same end.
 *
 * Two phases, two kinds of durable: a tombstone (FORGET, behind the metadata floor, behind every
 * entry of the replica) before the first file goes; every file and the folder gone, durably, before
 * the tombstone and the state in memory may go. Refuses to know paths, rings and files. */
#ifndef STORE_FILES_REPLICA_REMOVAL_H
#define STORE_FILES_REPLICA_REMOVAL_H

#include <stdint.h>

#include "foundation/status.h"

enum replica_removal_phase {
    REMOVAL_NONE = 0,       /* it lives */
    REMOVAL_DOOMED,         /* no more calls; what is on its way to the journal gets there */
    REMOVAL_FORGETTING,     /* the tombstone is on its way */
    REMOVAL_FORGOTTEN,      /* it is durable: what is in flight ends, then files may go */
    REMOVAL_LISTING,        /* what lies in the folder */
    REMOVAL_UNLINKING,      /* all of that */
    REMOVAL_FOLDER_SYNCING, /* so that no name comes back */
    REMOVAL_PARTING,        /* the empty folder */
    REMOVAL_PARENT_SYNCING, /* so that it does not come back either */
    REMOVAL_PHASES_COUNT,
};

enum replica_removal_action {
    REMOVAL_WAIT = 0,
    REMOVAL_WITHDRAW, /* take back a checkpoint that has not left */
    REMOVAL_FORGET,   /* floor and tombstone into the journal, then replica_removal_move */
    REMOVAL_DISCARD,  /* batches that wait for their segment write */
    REMOVAL_CLOSE,    /* its open files */
    REMOVAL_LIST,     /* this and the following: issue, then replica_removal_move */
    REMOVAL_UNLINK,
    REMOVAL_SYNC_FOLDER,
    REMOVAL_PART,
    REMOVAL_SYNC_PARENT,
    REMOVAL_PAUSE, /* it failed: give the turn to another removal */
    REMOVAL_DROP,  /* nothing of it is left: the state in memory may go */
};

enum replica_removal_limit { REMOVAL_PAUSE_MS_MIN = 1000, REMOVAL_PAUSE_MS_MAX = 60000 };

struct replica_removal {
    uint8_t phase;    /* enum replica_removal_phase */
    uint8_t failed;   /* some request of this phase */
    uint16_t pauses;  /* since something last went well; stops counting at its end */
    uint32_t flights; /* requests in flight */
    uint64_t retry_ns;
};

/* What the shard sees of the replica, and of the turn. */
struct replica_removal_seen {
    uint8_t undurable;    /* operations of it are on their way to the journal */
    uint8_t withdrawable; /* a checkpoint of it can still be taken back */
    uint8_t leaving;      /* a checkpoint or copies of its entries are going to the journal */
    uint8_t writing;      /* a write to its segments is in flight */
    uint8_t queued;       /* batches wait for one */
    uint8_t files;        /* open */
    uint8_t turn;         /* no other removal is listing or unlinking */
    uint8_t names;        /* of the list are left to be unlinked */
};

/* The topic is gone. */
void replica_removal_doom(struct replica_removal *removal);
/* Found by a start: the tombstone is durable already; something went wrong there if `failed`. */
void replica_removal_found(struct replica_removal *removal, uint64_t now_ns);
enum replica_removal_action replica_removal_step(struct replica_removal *removal,
                                                 const struct replica_removal_seen *seen,
                                                 uint64_t now_ns);
/* The action was issued as `flights` requests (FORGET: none). */
void replica_removal_move(struct replica_removal *removal, enum replica_removal_action action,
                          uint32_t flights);
/* The tombstone is durable. */
void replica_removal_forgotten(struct replica_removal *removal);
/* A request ended. 1 = it failed. */
int replica_removal_done(struct replica_removal *removal, enum status status);

#endif
