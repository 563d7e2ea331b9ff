/* store/read/read_cursor.c: how far reads for an offset have come.
 *
 * The index leads a read to a batch at or before its offset. When the way from there is longer than
 * one read, or the batch larger, the next attempt goes on where the last one ended, also if another
 * call makes it. Owns positions only, which never change once written: an entry that was given up,
 * or read by two at once, costs a repeated read and nothing else. */
#include "store/state.h"

static uint32_t store_resume_set(const struct replica *replica, uint64_t offset)
{
    uint64_t mixed = (replica->topic * 31 + replica->partition) * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ offset) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(mixed >> 40) % (STORE_RESUMES_MAX / STORE_RESUME_WAYS) * STORE_RESUME_WAYS;
}

const struct store_resume *store_resume_find(const struct store *store,
                                             const struct replica *replica, uint64_t offset)
{
    uint32_t set = store_resume_set(replica, offset);
    for (uint32_t way = 0; way < STORE_RESUME_WAYS; way++) {
        const struct store_resume *resume = &store->resumes[set + way];
        if (resume->used && resume->offset == offset && resume->topic == replica->topic
            && resume->partition == replica->partition
            && resume->created_revision == replica->created_revision)
            return resume;
    }
    return NULL;
}

void store_resume_keep(struct store *store, const struct replica *replica,
                       const struct store_resume *found)
{
    const struct store_resume *known = store_resume_find(store, replica, found->offset);
    /* Two read for the same offset: the further one counts. */
    if (known && known->position > found->position) return;
    uint32_t slot =
        known ? (uint32_t)(known - store->resumes)
              : store_resume_set(replica, found->offset) + store->resume_next++ % STORE_RESUME_WAYS;
    struct store_resume *resume = &store->resumes[slot];
    *resume = *found;
    resume->topic = replica->topic;
    resume->created_revision = replica->created_revision;
    resume->partition = replica->partition;
    resume->used = 1;
}
