/* store/checkpoint/duplicate_entries.h: which entries lie in the journal more than once, and where
 * the newest copy is.
 *
 * An entry that is appended again (J5) lives on in its copy once the extent of the old one is given
 * back. A crash in between leaves both. Were both taken for live, every crash would add a copy of a
 * stopped replica, until giving an extent back takes more room than it makes. Recovery notes the
 * copies that it meets; of those only the newest lives.
 *
 * Forgetting is safe: what is not in the table is live. */
#ifndef STORE_CHECKPOINT_DUPLICATE_ENTRIES_H
#define STORE_CHECKPOINT_DUPLICATE_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct duplicate_entries;

size_t duplicate_entries_memory_bytes(void);
struct duplicate_entries *duplicate_entries_make(struct arena *arena);

/* An entry whose origin is the round `origin_lsn` lies in the round `lsn`. */
void duplicate_entries_note(struct duplicate_entries *duplicates, const uint8_t *entry,
                            uint64_t origin_lsn, uint64_t lsn);
int duplicate_entries_is_newest(const struct duplicate_entries *duplicates, const uint8_t *entry,
                                uint64_t lsn);
/* All of it: at the end of a start, and nothing changes it later. */
int duplicate_entries_invariants(const struct duplicate_entries *duplicates, uint64_t lsn_next);

#endif
