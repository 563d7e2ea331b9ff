/* catalog/gone_topics.h: recently deleted topics, so that a handle of an earlier revision of
 * a name gets RECREATED instead of TOPIC_NOT_FOUND.
 *
 * Bounded: the one that went first is forgotten, and its handles are NOT_FOUND from then on. Owns
 * numbers and whose they were; never a decision about files. */
#ifndef CATALOG_GONE_TOPICS_H
#define CATALOG_GONE_TOPICS_H

#include <stdint.h>

#include "engine.h"

enum { GONE_TOPICS_COUNT_MAX = 1024 };

struct gone_topic {
    uint64_t topic;        /* 0 = none */
    uint32_t organization; /* 0 = unknown */
    uint8_t recreated;     /* its name has a topic again */
};

struct gone_topics {
    struct gone_topic topics[GONE_TOPICS_COUNT_MAX];
    uint32_t next;
};

/* A row of TOPIC_GONE. `organization` as the topic's own row said, if there was one: else 0. */
void gone_topics_put(struct gone_topics *gone, const struct engine_row_topic *row,
                     uint32_t organization);
/* NULL: never heard of it, or too long ago. */
const struct gone_topic *gone_topics_find(const struct gone_topics *gone, uint64_t topic);

#endif
