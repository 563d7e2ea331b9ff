#include "store/checkpoint/duplicate_entries.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "journal/format.h"
#include "vsr/vsr.h"

enum { DUPLICATES_MAX = 8192, DUPLICATES_STEPS = 16 };

struct duplicate {
    uint8_t digest[16]; /* of the entry's header */
    uint64_t lsn;       /* of the newest round that holds it; 0 = free */
};

struct duplicate_entries {
    struct duplicate entries[DUPLICATES_MAX];
};

size_t duplicate_entries_memory_bytes(void)
{
    return arena_size(sizeof(struct duplicate_entries));
}

struct duplicate_entries *duplicate_entries_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct duplicate_entries));
}

static void duplicate_digest(const uint8_t *entry, uint8_t digest[16])
{
    /* Header and checksum: duplicates are equal to the byte, and nothing else is equal to them. */
    vsr_digest(entry, JOURNAL_ENTRY_HEADER_BYTES, digest);
}

/* The place where it is, or the first free one; DUPLICATES_MAX = neither is near. */
static uint32_t duplicate_find(const struct duplicate_entries *duplicates, const uint8_t digest[16])
{
    uint64_t hash = bytes_get_u64(digest);
    for (uint32_t step = 0; step < DUPLICATES_STEPS; step++) {
        uint32_t place = (uint32_t)((hash + step) % DUPLICATES_MAX);
        const struct duplicate *duplicate = &duplicates->entries[place];
        if (duplicate->lsn == 0 || memcmp(duplicate->digest, digest, 16) == 0) return place;
    }
    return DUPLICATES_MAX;
}

void duplicate_entries_note(struct duplicate_entries *duplicates, const uint8_t *entry,
                            uint64_t origin_lsn, uint64_t lsn)
{
    assert(lsn > 0);
    if (origin_lsn == lsn) return;
    uint8_t digest[16];
    duplicate_digest(entry, digest);
    uint32_t place = duplicate_find(duplicates, digest);
    if (place == DUPLICATES_MAX) return;
    struct duplicate *duplicate = &duplicates->entries[place];
    memcpy(duplicate->digest, digest, 16);
    if (lsn > duplicate->lsn) duplicate->lsn = lsn;
}

int duplicate_entries_is_newest(const struct duplicate_entries *duplicates, const uint8_t *entry,
                                uint64_t lsn)
{
    uint8_t digest[16];
    duplicate_digest(entry, digest);
    uint32_t place = duplicate_find(duplicates, digest);
    return place == DUPLICATES_MAX || duplicates->entries[place].lsn <= lsn;
}

int duplicate_entries_invariants(const struct duplicate_entries *duplicates, uint64_t lsn_next)
{
    static const uint8_t none[16];
    for (uint32_t place = 0; place < DUPLICATES_MAX; place++) {
        const struct duplicate *duplicate = &duplicates->entries[place];
        assert(duplicate->lsn < lsn_next);
        ergo(duplicate->lsn == 0, memcmp(duplicate->digest, none, 16) == 0);
        /* It is found from its own place: nothing before it in its run is free. */
        ergo(duplicate->lsn != 0, duplicate_find(duplicates, duplicate->digest) == place);
    }
    return 1;
}
