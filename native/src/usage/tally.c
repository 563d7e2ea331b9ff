/* usage/tally.c: see usage/tally.h. */
#include "usage/tally.h"

#include "foundation/assert.h"

_Static_assert((TALLY_BUCKETS_COUNT & (TALLY_BUCKETS_COUNT - 1)) == 0, "a mask finds the bucket");
_Static_assert(sizeof((struct tally_row *)0)->sums == TALLY_METERS_COUNT * sizeof(uint64_t),
               "a sum for each meter");

size_t tally_bytes(void)
{
    return sizeof(struct tally_row) * TALLY_ROWS_MAX + sizeof(uint32_t) * TALLY_BUCKETS_COUNT;
}

void tally_init(struct tally *tally, void *memory)
{
    *tally = (struct tally){.rows = memory,
                            .buckets = (uint32_t *)((struct tally_row *)memory + TALLY_ROWS_MAX),
                            .rows_used = 1,
                            .rows_limit = TALLY_ROWS_MAX,
                            .turn = TALLY_QUIET_TURNS};
}

/* The server assigns numbers in order: no client can target a bucket. */
static uint32_t *bucket_of(const struct tally *tally, const struct tally_key *key)
{
    uint64_t mixed = key->topic * UINT64_C(0x9E3779B97F4A7C15);
    mixed ^= (key->created_revision + key->principal) * UINT64_C(0xC2B2AE3D27D4EB4F);
    return &tally->buckets[(mixed >> 33) & (TALLY_BUCKETS_COUNT - 1)];
}

static int key_equal(const struct tally_key *left, const struct tally_key *right)
{
    return left->topic == right->topic && left->principal == right->principal
           && left->created_revision == right->created_revision;
}

/* A row that was not used for a while leaves its bucket; 0 = none was found. */
static uint32_t row_reuse(struct tally *tally)
{
    if (tally->rows_used < 2) return 0;
    for (uint32_t probes = 0; probes < TALLY_PROBES; probes++) {
        if (++tally->probe >= tally->rows_used) tally->probe = 1;
        const struct tally_row *row = &tally->rows[tally->probe];
        if (row->changed || row->turn + TALLY_QUIET_TURNS > tally->turn) continue;
        uint32_t *at = bucket_of(tally, &row->key);
        while (*at != tally->probe + 1) at = &tally->rows[*at - 1].next;
        *at = row->next;
        tally->reused++;
        return tally->probe;
    }
    return 0;
}

static uint32_t row_make(struct tally *tally, const struct tally_key *key)
{
    uint32_t index;
    if (tally->rows_used < tally->rows_limit)
        index = tally->rows_used++;
    else
        index = row_reuse(tally);
    if (index == 0) return 0;
    uint32_t *bucket = bucket_of(tally, key);
    tally->rows[index] = (struct tally_row){.key = *key, .next = *bucket};
    *bucket = index + 1;
    return index;
}

static uint32_t row_find(struct tally *tally, const struct tally_key *key)
{
    if (key_equal(&tally->rows[tally->last].key, key)) return tally->last;
    uint32_t index = *bucket_of(tally, key);
    while (index != 0 && !key_equal(&tally->rows[index - 1].key, key))
        index = tally->rows[index - 1].next;
    return index != 0 ? index - 1 : row_make(tally, key);
}

void tally_add(struct tally *tally, const struct tally_key *key, enum tally_meter meter,
               uint64_t amount)
{
    assert(key->topic != 0);
    assert(meter < TALLY_METERS_COUNT);
    uint32_t index = row_find(tally, key);
    if (index == 0) tally->unattributed++;
    tally->last = index;
    struct tally_row *row = &tally->rows[index];
    row->sums[meter] += amount;
    row->turn = tally->turn;
    if (row->changed) return;
    row->changed = 1;
    row->changed_next = 0;
    if (tally->changed_first == 0)
        tally->changed_first = index + 1;
    else
        tally->rows[tally->changed_last - 1].changed_next = index + 1;
    tally->changed_last = index + 1;
    checked(tally_invariants(tally));
}

int tally_next(struct tally *tally, struct tally_change *change)
{
    while (tally->changed_first != 0) {
        struct tally_row *row = &tally->rows[tally->changed_first - 1];
        for (uint32_t meter = 0; meter < TALLY_METERS_COUNT; meter++) {
            uint64_t delta = row->sums[meter] - row->reported[meter];
            if (delta == 0) continue;
            row->reported[meter] = row->sums[meter];
            *change = (struct tally_change){.key = row->key,
                                            .delta = delta,
                                            .cumulative = row->sums[meter] & INT64_MAX,
                                            .meter = meter};
            return 1;
        }
        row->changed = 0;
        tally->changed_first = row->changed_next;
    }
    return 0;
}

void tally_turn(struct tally *tally)
{
    tally->turn++;
    checked(tally_invariants(tally));
}

/* A row and its chain: what was reported is part of what was counted, and the row is found by its
 * key. */
static int row_invariants(const struct tally *tally, uint32_t index)
{
    const struct tally_row *row = &tally->rows[index];
    for (uint32_t meter = 0; meter < TALLY_METERS_COUNT; meter++)
        ergo(!row->changed, row->reported[meter] == row->sums[meter]);
    assert(row->turn <= tally->turn);
    if (index == 0) return 1; /* unattributed: in no bucket */
    assert(row->key.topic != 0);
    uint32_t at = *bucket_of(tally, &row->key);
    while (at != index + 1) {
        assert(at != 0);
        at = tally->rows[at - 1].next;
    }
    return 1;
}

int tally_invariants(const struct tally *tally)
{
    assert(tally->rows_used >= 1);
    assert(tally->rows_used <= tally->rows_limit);
    assert(tally->rows_limit <= TALLY_ROWS_MAX);
    assert(tally->last < tally->rows_used);
    assert(tally->changed_first <= tally->rows_used);
    ergo(tally->changed_first != 0, tally->rows[tally->changed_first - 1].changed);
    ergo(tally->changed_first != 0, tally->rows[tally->changed_last - 1].changed_next == 0);
    return row_invariants(tally, tally->last);
}
