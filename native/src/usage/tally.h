/* usage/tally.h: what calls cost whom, counted by one shard: a row for each (topic,
 * created_revision, principal) that did something.
 *
 *     tally_add    finds or takes the row and adds                                 O(1)
 *     tally_next   what a row holds that was not reported yet, row by row that changed O(1) each
 *     tally_turn   a window is over
 *
 * Sums only rise, for the life of the process; what is reported is the difference. Memory is fixed:
 * when every row is taken, one that was reported two windows ago and has not changed since begins
 * anew for somebody else. If none is found among TALLY_PROBES, the sum goes to the row of topic 0,
 * "unattributed": counted and shown, never lost, and not billed. Refuses to know names and
 * times. */
#ifndef USAGE_TALLY_H
#define USAGE_TALLY_H

#include <stddef.h>
#include <stdint.h>

enum {
    TALLY_ROWS_MAX = 65536, /* the first is the unattributed one */
    TALLY_BUCKETS_COUNT = 131072,
    TALLY_PROBES = 64, /* rows looked at for one that is quiet */
    TALLY_QUIET_TURNS = 2,
};

enum tally_meter { TALLY_EGRESS_BYTES = 0, TALLY_REQUESTS = 1, TALLY_METERS_COUNT };

struct tally_key {
    uint64_t topic; /* 0 = not billed */
    uint64_t created_revision;
    uint32_t principal;
    uint32_t reserved;
};

struct tally_row {
    struct tally_key key;
    uint64_t sums[2]; /* by enum tally_meter: TALLY_METERS_COUNT of them */
    uint64_t reported[2];
    uint64_t turn;         /* the last in which it changed */
    uint32_t next;         /* in its bucket, index + 1 */
    uint32_t changed_next; /* index + 1 */
    uint8_t changed;
    uint8_t reserved[7];
};

struct tally {
    struct tally_row *rows; /* TALLY_ROWS_MAX */
    uint32_t *buckets;      /* TALLY_BUCKETS_COUNT, index + 1 */
    uint32_t rows_used;
    uint32_t rows_limit;    /* TALLY_ROWS_MAX; tests take fewer */
    uint32_t last;          /* the row of the last add: calls come in runs */
    uint32_t probe;         /* where the next quiet row is looked for */
    uint32_t changed_first; /* index + 1 */
    uint32_t changed_last;
    uint64_t turn;
    uint64_t unattributed; /* adds that found no row */
    uint64_t reused;       /* rows that began anew for somebody else */
};

struct tally_change {
    struct tally_key key;
    uint64_t delta;
    uint64_t cumulative; /* of the row's life, modulo 2^63 */
    uint32_t meter;      /* enum tally_meter */
    uint32_t reserved;
};

size_t tally_bytes(void);
/* `memory` is zeroed, tally_bytes of it. */
void tally_init(struct tally *tally, void *memory);
void tally_add(struct tally *tally, const struct tally_key *key, enum tally_meter meter,
               uint64_t amount);
/* 1 = taken: it counts as reported. 0 = all is reported. */
int tally_next(struct tally *tally, struct tally_change *change);
void tally_turn(struct tally *tally);

/* 1; checked builds look after every change: at the whole, and at the last row that was used. */
int tally_invariants(const struct tally *tally);

#endif
