#include "store/checkpoint/duplicate_entries.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "journal/format.h"
#include "vsr/vsr.h"

enum { COPIES_MAX = 8192, COPIES_STEPS = 16 };

struct copy {
    uint8_t digest[16]; /* of the entry's header */
    uint64_t lsn;       /* of the newest round that holds it; 0 = free */
};

struct duplicate_entries {
    struct copy copies[COPIES_MAX];
};

size_t duplicate_entries_memory_bytes(void)
{
    return arena_size(sizeof(struct duplicate_entries));
}

struct duplicate_entries *duplicate_entries_make(struct arena *arena)
{
    return arena_take(arena, sizeof(struct duplicate_entries));
}

static void copy_digest(const uint8_t *entry, uint8_t digest[16])
{
    /* Header and checksum: copies are equal to the byte, and nothing else is equal to them. */
    vsr_digest(entry, JOURNAL_ENTRY_HEADER_BYTES, digest);
}

/* The place where it is, or the first free one; COPIES_MAX = neither is near. */
static uint32_t copy_find(const struct duplicate_entries *duplicates, const uint8_t digest[16])
{
    uint64_t hash = bytes_get_u64(digest);
    for (uint32_t step = 0; step < COPIES_STEPS; step++) {
        uint32_t place = (uint32_t)((hash + step) % COPIES_MAX);
        const struct copy *copy = &duplicates->copies[place];
        if (copy->lsn == 0 || memcmp(copy->digest, digest, 16) == 0) return place;
    }
    return COPIES_MAX;
}

void duplicate_entries_note(struct duplicate_entries *duplicates, const uint8_t *entry,
                            uint64_t origin_lsn, uint64_t lsn)
{
    assert(lsn > 0);
    if (origin_lsn == lsn) return;
    uint8_t digest[16];
    copy_digest(entry, digest);
    uint32_t place = copy_find(duplicates, digest);
    if (place == COPIES_MAX) return;
    struct copy *copy = &duplicates->copies[place];
    memcpy(copy->digest, digest, 16);
    if (lsn > copy->lsn) copy->lsn = lsn;
}

int duplicate_entries_is_newest(const struct duplicate_entries *duplicates, const uint8_t *entry,
                                uint64_t lsn)
{
    uint8_t digest[16];
    copy_digest(entry, digest);
    uint32_t place = copy_find(duplicates, digest);
    return place == COPIES_MAX || duplicates->copies[place].lsn <= lsn;
}
