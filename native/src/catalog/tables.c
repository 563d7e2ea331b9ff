#include "catalog/tables.h"

#include <string.h>

#include "foundation/assert.h"

enum { ROW_ALIGNMENT = 8 };

size_t tables_topics_bytes(void)
{
    return sizeof(struct table_topic) * TABLES_TOPIC_SLOTS_COUNT;
}

void tables_init(struct tables *tables, struct table_topic *topics)
{
    assert(topics != NULL);
    _Static_assert(TABLES_TOPIC_SLOTS_COUNT >= 2 * TABLES_TOPICS_COUNT_MAX, "probing stays short");
    *tables = (struct tables){.topics = topics};
}

static uint32_t topic_home(uint64_t topic)
{
    uint64_t mixed = topic * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(mixed >> 48) & (TABLES_TOPIC_SLOTS_COUNT - 1);
}

static uint32_t topic_slot(const struct tables *tables, uint64_t topic)
{
    uint32_t slot = topic_home(topic);
    for (uint32_t probe = 0; probe < TABLES_TOPIC_SLOTS_COUNT; probe++) {
        uint64_t found = tables->topics[slot].topic;
        if (found == 0 || found == topic) return slot;
        slot = (slot + 1) & (TABLES_TOPIC_SLOTS_COUNT - 1);
    }
    unreachable();
}

const struct table_topic *tables_topic(const struct tables *tables, uint64_t topic)
{
    if (topic == 0) return NULL;
    const struct table_topic *found = &tables->topics[topic_slot(tables, topic)];
    return found->topic == 0 ? NULL : found;
}

const struct gone_topic *tables_gone(const struct tables *tables, uint64_t topic)
{
    return topic == 0 ? NULL : gone_topics_find(&tables->gone, topic);
}

static void topic_put(struct tables *tables, const struct engine_row_topic *row,
                      const uint8_t *name)
{
    struct table_topic *topic = &tables->topics[topic_slot(tables, row->topic)];
    if (topic->topic == 0) {
        if (tables->topics_count == TABLES_TOPICS_COUNT_MAX) {
            tables->topics_refused_count++;
            return;
        }
        tables->topics_count++;
    }
    *topic = (struct table_topic){
        .topic = row->topic,
        .created_revision = row->created_revision,
        .organization = row->organization,
        .project = row->project,
        .partitions_count = row->partitions_count,
        .message_bytes_max = row->message_bytes_max,
        .flags = row->flags,
        .turn = topic->turn,
    };
    /* A table of names that is full has counted it: the number works without. */
    (void)names_put(&tables->topic_names, row->project, row->topic, name, row->name_size);
}

uint32_t tables_turn(struct tables *tables, uint64_t number)
{
    struct table_topic *topic = &tables->topics[topic_slot(tables, number)];
    assert(topic->topic == number);
    return topic->turn++ % topic->partitions_count;
}

static void topic_remove(struct tables *tables, uint64_t number)
{
    names_remove(&tables->topic_names, number);
    uint32_t mask = TABLES_TOPIC_SLOTS_COUNT - 1;
    uint32_t hole = topic_slot(tables, number);
    if (tables->topics[hole].topic == 0) return;
    assert(tables->topics_count > 0);
    tables->topics_count--;
    uint32_t slot = (hole + 1) & mask;
    while (tables->topics[slot].topic != 0) {
        uint32_t home = topic_home(tables->topics[slot].topic);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            tables->topics[hole] = tables->topics[slot];
            hole = slot;
        }
        slot = (slot + 1) & mask;
    }
    tables->topics[hole] = (struct table_topic){0};
}

static int name_valid(size_t size, size_t fixed, uint32_t name_size, uint32_t name_max)
{
    return name_size <= name_max && size == fixed + name_size;
}

/* The row's own fields; its size was checked against the delta. */
static int row_valid(uint16_t kind, const uint8_t *at, size_t size)
{
    struct engine_row_topic topic;
    struct engine_row_project project;
    switch (kind) {
    case ENGINE_ROW_TOPIC:
    case ENGINE_ROW_TOPIC_GONE:
        if (size < sizeof topic) return 0;
        memcpy(&topic, at, sizeof topic);
        return name_valid(size, sizeof topic, topic.name_size, ENGINE_TOPIC_NAME_SIZE_MAX)
               && topic.topic != 0 && (kind == ENGINE_ROW_TOPIC_GONE || topic.partitions_count > 0);
    case ENGINE_ROW_GRANT:
    case ENGINE_ROW_GRANT_GONE:
        return size == sizeof(struct engine_row_grant)
               && at[offsetof(struct engine_row_grant, key_id)] != 0;
    case ENGINE_ROW_PROJECT:
        if (size < sizeof project) return 0;
        memcpy(&project, at, sizeof project);
        return name_valid(size, sizeof project, project.name_size, ENGINE_PROJECT_NAME_SIZE_MAX)
               && project.name_size > 0 && project.project != 0;
    default: return 0;
    }
}

static enum status topic_check(const struct tables *tables, const uint8_t *at)
{
    struct engine_row_topic row;
    memcpy(&row, at, sizeof row);
    const struct table_topic *known = tables_topic(tables, row.topic);
    int fewer = known != NULL && row.partitions_count < known->partitions_count;
    return fewer ? STATUS_PARTITIONS_FEWER : STATUS_OK;
}

static enum status delta_check(const struct tables *tables, const uint8_t *delta, size_t size)
{
    for (size_t at = 0; at < size;) {
        struct engine_row row;
        if (size - at < sizeof row) return STATUS_INVALID;
        memcpy(&row, delta + at, sizeof row);
        size_t padded = ((size_t)row.size + ROW_ALIGNMENT - 1) & ~(size_t)(ROW_ALIGNMENT - 1);
        if (size - at < padded || !row_valid(row.kind, delta + at, row.size)) return STATUS_INVALID;
        enum status status =
            row.kind == ENGINE_ROW_TOPIC ? topic_check(tables, delta + at) : STATUS_OK;
        if (status != STATUS_OK) return status;
        at += padded;
    }
    return STATUS_OK;
}

static void row_apply(struct tables *tables, uint16_t kind, const uint8_t *at)
{
    if (kind == ENGINE_ROW_TOPIC || kind == ENGINE_ROW_TOPIC_GONE) {
        struct engine_row_topic row;
        memcpy(&row, at, sizeof row);
        if (kind == ENGINE_ROW_TOPIC) {
            topic_put(tables, &row, at + sizeof row);
        } else {
            const struct table_topic *known = tables_topic(tables, row.topic);
            gone_topics_put(&tables->gone, &row, known == NULL ? 0 : known->organization);
            topic_remove(tables, row.topic);
        }
    } else if (kind == ENGINE_ROW_GRANT || kind == ENGINE_ROW_GRANT_GONE) {
        struct engine_row_grant row;
        memcpy(&row, at, sizeof row);
        if (kind == ENGINE_ROW_GRANT)
            (void)grants_put(&tables->grants, &row);
        else
            grants_remove(&tables->grants, row.key_id);
    } else {
        assert(kind == ENGINE_ROW_PROJECT);
        struct engine_row_project row;
        memcpy(&row, at, sizeof row);
        (void)names_put(&tables->projects, row.organization, row.project, at + sizeof row,
                        row.name_size);
    }
}

enum status tables_apply(struct tables *tables, const uint8_t *delta, size_t size)
{
    enum status status = delta_check(tables, delta, size);
    if (status != STATUS_OK) return status;
    for (size_t at = 0; at < size;) {
        struct engine_row row;
        memcpy(&row, delta + at, sizeof row);
        row_apply(tables, row.kind, delta + at);
        at += ((size_t)row.size + ROW_ALIGNMENT - 1) & ~(size_t)(ROW_ALIGNMENT - 1);
    }
    checked(tables_invariants(tables));
    return STATUS_OK;
}

enum { TABLES_WALKED_COUNT = 256 /* slots a delta: all of them would be too dear */ };

int tables_invariants(const struct tables *tables)
{
    assert(tables->topics_count <= TABLES_TOPICS_COUNT_MAX);
    uint32_t parts = TABLES_TOPIC_SLOTS_COUNT / TABLES_WALKED_COUNT;
    uint32_t first = tables->topics_count % parts * TABLES_WALKED_COUNT;
    for (uint32_t slot = first; slot < first + TABLES_WALKED_COUNT; slot++) {
        const struct table_topic *topic = &tables->topics[slot];
        if (topic->topic == 0) continue;
        assert(topic->partitions_count > 0);
        /* No hole lies between its home and it. */
        assert(topic_slot(tables, topic->topic) == slot);
    }
    return names_invariants(&tables->topic_names) && names_invariants(&tables->projects);
}
