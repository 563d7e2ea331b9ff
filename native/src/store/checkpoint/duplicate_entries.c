/* store/checkpoint/duplicate_entries.c: which entries lie in the journal more than once, and
 * where the newest copy is.
 *
 * An entry that is appended again (J5) lives on in its copy once the extent of the old one is given
 * back. A crash in between leaves both. Were both taken for live, every crash would add a copy of a
 * stopped replica, until giving an extent back takes more room than it makes. Recovery notes the
 * copies that it meets; of those only the newest lives.
 *
 * Forgetting is safe: what is not in the table is live. */
#include "store/state.h"

static void copy_digest(const uint8_t *entry, uint8_t digest[16])
{
    /* Header and checksum: copies are equal to the byte, and nothing else is equal to them. */
    vsr_digest(entry, JOURNAL_ENTRY_HEADER_BYTES, digest);
}

/* Where it is, or the first free place; NULL = neither is near. */
static struct store_copy *copy_find(struct store *store, const uint8_t digest[16])
{
    uint64_t hash = bytes_get_u64(digest);
    for (uint32_t step = 0; step < STORE_COPIES_STEPS; step++) {
        struct store_copy *copy = &store->copies[(hash + step) % STORE_COPIES_MAX];
        if (copy->lsn == 0 || memcmp(copy->digest, digest, 16) == 0) return copy;
    }
    return NULL;
}

void store_copy_note(struct store *store, const uint8_t *entry, uint64_t origin_lsn, uint64_t lsn)
{
    assert(lsn > 0);
    if (origin_lsn == lsn) return;
    uint8_t digest[16];
    copy_digest(entry, digest);
    struct store_copy *copy = copy_find(store, digest);
    if (!copy) return;
    memcpy(copy->digest, digest, 16);
    if (lsn > copy->lsn) copy->lsn = lsn;
}

int store_copy_is_newest(struct store *store, const uint8_t *entry, uint64_t lsn)
{
    uint8_t digest[16];
    copy_digest(entry, digest);
    const struct store_copy *copy = copy_find(store, digest);
    return !copy || copy->lsn <= lsn;
}
