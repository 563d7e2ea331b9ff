/* catalog/tables.h: what metadata compiled for the hot path: topics by number, names
 * (catalog/names.h) and keys (catalog/grants.h), and the rows that change them.
 *
 * Every shard has the whole table and applies the same deltas in op order (A8). A delta is taken
 * whole or not at all: it is checked before the first row changes anything. */
#ifndef CATALOG_TABLES_H
#define CATALOG_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "catalog/gone_topics.h"
#include "catalog/grants.h"
#include "catalog/names.h"
#include "engine.h"
#include "foundation/status.h"

enum {
    TABLES_TOPICS_COUNT_MAX = 32768,
    TABLES_TOPIC_SLOTS_COUNT = 65536,
};

struct table_topic {
    uint64_t topic; /* 0 = free slot: topic 0 is the metadata and never in a table */
    uint64_t created_revision;
    uint32_t organization;
    uint32_t project;
    uint32_t partitions_count;
    uint32_t message_bytes_max;
    uint32_t flags; /* enum engine_topic_flag */
    uint32_t turn;  /* of messages that have no key: tables_turn */
};

struct tables {
    struct table_topic *topics; /* TABLES_TOPIC_SLOTS_COUNT */
    uint32_t topics_count;
    uint32_t reserved;
    uint64_t topics_refused_count; /* rows that found the table full */
    struct grants grants;
    struct names topic_names; /* scope: the project's number */
    struct names projects;    /* scope: the organization's number */
    struct gone_topics gone;
};

size_t tables_topics_bytes(void);
/* `topics` is zeroed memory; grants are initialised by grants_init, names by names_init. */
void tables_init(struct tables *tables, struct table_topic *topics);
const struct table_topic *tables_topic(const struct tables *tables, uint64_t topic);

/* The next partition in turn of a topic that is there. */
uint32_t tables_turn(struct tables *tables, uint64_t topic);

/* A topic that went lately; NULL = never heard of. */
const struct gone_topic *tables_gone(const struct tables *tables, uint64_t topic);

/* Nothing is changed by a refused delta. STATUS_INVALID: malformed, or with rows of unknown kinds:
 * a newer host. STATUS_PARTITIONS_FEWER: a topic's row would take partitions away. */
enum status tables_apply(struct tables *tables, const uint8_t *delta, size_t size);

/* 1; checked builds look after every delta. */
int tables_invariants(const struct tables *tables);

#endif
