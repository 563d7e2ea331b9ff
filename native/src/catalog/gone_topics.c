/* catalog/gone_topics.c: see catalog/gone_topics.h. A walk over all of them: only handles of
 * nothing pay for it. */
#include "catalog/gone_topics.h"

#include <stddef.h>

#include "foundation/assert.h"

const struct gone_topic *gone_topics_find(const struct gone_topics *gone, uint64_t topic)
{
    assert(topic != 0);
    for (uint32_t index = 0; index < GONE_TOPICS_COUNT_MAX; index++) {
        if (gone->topics[index].topic == topic) return &gone->topics[index];
    }
    return NULL;
}

void gone_topics_put(struct gone_topics *gone, const struct engine_row_topic *row,
                     uint32_t organization)
{
    const struct gone_topic *known = gone_topics_find(gone, row->topic);
    uint32_t slot =
        known ? (uint32_t)(known - gone->topics) : gone->next++ % (uint32_t)GONE_TOPICS_COUNT_MAX;
    struct gone_topic *topic = &gone->topics[slot];
    if (!known) *topic = (struct gone_topic){.topic = row->topic, .organization = organization};
    if (row->organization != 0) topic->organization = row->organization;
    topic->recreated = (row->flags & ENGINE_TOPIC_RECREATED) != 0;
}
