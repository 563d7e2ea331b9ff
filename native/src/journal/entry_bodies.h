/* journal/entry_bodies.h: the bytes behind an entry's header, of every kind of entry [bytes].
 *
 *     PREPARE           checksum (16) | parent (16) | digest (16) | op | append time | first view |
 *                       principal u32 | payload size u32 | epoch u32 | operation u16 |
 *                       version u16 | release u32 | 0 (20), then the payload
 *     VIEW_STATE        version u16 | members u16 | epoch u32 | view | log_view | 0 (8), then of
 *                       seven members: node u64 | incarnation u64 | tenure u32 | learner u32
 *     CHECKPOINT        view state (200) | checksum of the op (16) | append time | place u32: 1
 *                       inline, 2 file | size u32 | digest (16), then the checkpoint if it is
 * inline
 *     TAIL_CLOSED       first lsn | last lsn
 *     ABSTAIN           last good op | last op that may be lost | 0
 *     METADATA_FLOOR    op
 *     FORGET            nothing
 *     SUFFIX_INSTALLED  written by no release yet
 *
 * Encoded and decoded here and nowhere else; a golden file freezes each. Owns the layout and what
 * no release writes. Refuses to know what a body means, and to hash: vsr/vsr.h owns the identity of
 * a prepare. */
#ifndef JOURNAL_ENTRY_BODIES_H
#define JOURNAL_ENTRY_BODIES_H

#include <stdint.h>

#include "foundation/status.h"

enum entry_body_bytes {
    ENTRY_PREPARE_BYTES = 112, /* before the payload */
    ENTRY_VIEW_STATE_BYTES = 200,
    ENTRY_CHECKPOINT_BYTES = 248, /* before the checkpoint */
    ENTRY_TAIL_CLOSED_BYTES = 16,
    ENTRY_ABSTAIN_BYTES = 24,
    ENTRY_METADATA_FLOOR_BYTES = 8,
    ENTRY_CHECKSUM_BYTES = 16,
};

enum entry_body_version { ENTRY_PREPARE_VERSION = 1, ENTRY_VIEW_STATE_VERSION = 1 };

/* The header of a prepare. `checksum` covers everything behind it, and through `digest` the payload
 * (V3). */
struct entry_prepare {
    uint8_t checksum[16];
    uint8_t parent[16];
    uint8_t digest[16]; /* XXH3-128 of the payload; of a batch: of its client part only */
    uint64_t op;
    int64_t append_time_us;
    uint64_t first_view;
    uint32_t principal;
    uint32_t payload_bytes;
    uint32_t epoch;
    uint16_t operation;
    uint16_t version;
    uint32_t release; /* of the first proposer */
};

/* Five voters, and two that learn before a reconfiguration. */
enum { ENTRY_MEMBERS_MAX = 7 };

struct entry_member {
    uint64_t node; /* low half of XXH3-128 of its id, zero-padded to 48 bytes */
    uint64_t incarnation;
    uint32_t tenure; /* the epoch in which this replica joined (A4) */
    uint32_t learner;
};

/* What a replica must not forget of its replica set, and no more (V11): what apply depends on is in
 * the log itself. */
struct entry_view_state {
    uint64_t view;
    uint64_t log_view;
    uint32_t epoch;
    uint32_t members_count;
    struct entry_member members[ENTRY_MEMBERS_MAX];
};

struct entry_checkpoint {
    struct entry_view_state view_state;
    uint8_t checksum[16]; /* of the op it stands at */
    int64_t append_time_us;
    uint32_t size; /* of the checkpoint */
    uint8_t is_file;
    uint8_t digest[16]; /* of the checkpoint; the file's name */
};

struct entry_tail_closed {
    uint64_t lsn_from;
    uint64_t lsn_to;
};

struct entry_abstain {
    uint64_t op_good;
    uint64_t op_lost;
};

void entry_prepare_put(uint8_t *body, const struct entry_prepare *prepare);
void entry_view_state_put(uint8_t *body, const struct entry_view_state *state);
void entry_checkpoint_put(uint8_t *body, const struct entry_checkpoint *checkpoint);
void entry_tail_closed_put(uint8_t *body, const struct entry_tail_closed *closed);
void entry_abstain_put(uint8_t *body, const struct entry_abstain *abstain);
void entry_metadata_floor_put(uint8_t *body, uint64_t op);

/* `size` is of the whole body. JOURNAL_DAMAGED, of a checkpoint CHECKPOINT_DAMAGED: too short for
 * its kind. A view state, also a checkpoint's, with a right checksum that no release writes is
 * JOURNAL_DAMAGED: it is not gone by. OP_UNKNOWN: of a newer release (J13). */
enum status entry_prepare_get(const uint8_t *body, uint64_t size, struct entry_prepare *prepare);
enum status entry_view_state_get(const uint8_t *body, uint64_t size,
                                 struct entry_view_state *state);
enum status entry_checkpoint_get(const uint8_t *body, uint64_t size,
                                 struct entry_checkpoint *checkpoint);
enum status entry_tail_closed_get(const uint8_t *body, uint64_t size,
                                  struct entry_tail_closed *closed);
enum status entry_abstain_get(const uint8_t *body, uint64_t size, struct entry_abstain *abstain);
enum status entry_metadata_floor_get(const uint8_t *body, uint64_t size, uint64_t *op);

/* What a prepare's checksum covers: all of its header behind the checksum itself. */
const uint8_t *entry_prepare_identity(const uint8_t *body, uint64_t *size);
const uint8_t *entry_prepare_checksum(const uint8_t *body);
void entry_prepare_set_checksum(uint8_t *body, const uint8_t checksum[16]);

#endif
