/* fuzz_access.c: what strangers say before they are known (tokens, timeouts, paths) and the rows
 * that say who is known (table deltas).
 *
 * Asserts that a token is accepted only in its one shape, and that a delta is taken whole or not at
 * all: a refused one leaves every count as it was. */
#include <string.h>

#include "catalog/grants.h"
#include "catalog/tables.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "fuzz_input.h"
#include "grpc/server.h"
#include "host/calls.h"
#include "service/methods.h"

enum { NOW_US = 1000000, NAMES_MAX = 8 };

/* A few names: they fill up. */
static void names_fresh(struct names *names, uint8_t *memory, uint32_t name_size_max)
{
    static const uint8_t secret[NAMES_SECRET_SIZE] = {7};
    memset(memory, 0, names_bytes(NAMES_MAX, name_size_max));
    names_init(names, memory, NAMES_MAX, name_size_max, secret);
}

static struct tables *tables_fresh(void)
{
    static struct tables tables;
    static struct arena arena;
    static struct table_topic *topics;
    static struct grant *slots;
    static uint8_t *topic_names;
    static uint8_t *projects;
    static const uint8_t sha256[32] = {1};
    if (arena.memory == NULL) {
        size_t topic_names_size = names_bytes(NAMES_MAX, ENGINE_TOPIC_NAME_SIZE_MAX);
        size_t projects_size = names_bytes(NAMES_MAX, ENGINE_PROJECT_NAME_SIZE_MAX);
        size_t size = arena_size(tables_topics_bytes()) + arena_size(grants_slots_bytes())
                      + arena_size(topic_names_size) + arena_size(projects_size);
        enum status status = arena_open(&arena, size);
        assert(status == STATUS_OK);
        topics = arena_take(&arena, tables_topics_bytes());
        slots = arena_take(&arena, grants_slots_bytes());
        topic_names = arena_take(&arena, topic_names_size);
        projects = arena_take(&arena, projects_size);
        assert(topics != NULL && slots != NULL && topic_names != NULL && projects != NULL);
        tables_init(&tables, topics);
        status = grants_init(&tables.grants, slots, "adminadmin\0\0\0\0\0", sha256);
        assert(status == STATUS_OK);
    }
    if (tables.topics_count > 0) memset(topics, 0, tables_topics_bytes());
    if (tables.grants.count > 0) memset(slots, 0, grants_slots_bytes());
    names_fresh(&tables.topic_names, topic_names, ENGINE_TOPIC_NAME_SIZE_MAX);
    names_fresh(&tables.projects, projects, ENGINE_PROJECT_NAME_SIZE_MAX);
    tables.topics_count = 0;
    tables.grants.count = 0;
    return &tables;
}

static void credentials(struct tables *tables, const char *value, size_t size)
{
    struct grant_token token;
    int shaped = grant_token_parse(value, size, &token);
    if (shaped) {
        assert(size <= GRANT_TOKEN_LENGTH_MAX);
        assert(token.public_id > value);
        assert(token.secret + GRANT_SECRET_LENGTH + 1 + GRANT_CHECK_LENGTH == value + size);
    }
    struct grant grant;
    enum grant_answer answer = grants_check(&tables->grants, value, size, NOW_US, &grant);
    ergo(answer == GRANT_ANSWER_OK || answer == GRANT_ANSWER_EXPIRED, shaped);
}

static void deltas(struct tables *tables, const uint8_t *bytes, size_t size)
{
    uint32_t topics = tables->topics_count;
    uint32_t grants = tables->grants.count;
    uint32_t revision = tables->grants.revision;
    uint32_t names = tables->topic_names.count + tables->projects.count;
    if (tables_apply(tables, bytes, size) != STATUS_OK) {
        assert(tables->topics_count == topics);
        assert(tables->grants.count == grants);
        assert(tables->grants.revision == revision);
        assert(tables->topic_names.count + tables->projects.count == names);
        return;
    }
    /* Twice is the same: a restart applies everything again. But for a delta that lets one topic
     * grow within itself. */
    topics = tables->topics_count;
    grants = tables->grants.count;
    enum status status = tables_apply(tables, bytes, size);
    assert(status == STATUS_OK || status == STATUS_PARTITIONS_FEWER);
    assert(tables->topics_count == topics);
    assert(tables->grants.count == grants);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tables *tables = tables_fresh();
    deltas(tables, bytes, size);
    credentials(tables, (const char *)bytes, size);
    uint64_t now_ns = UINT64_MAX / 2;
    uint64_t deadline_ns = grpc_timeout_deadline(bytes, size, now_ns);
    assert(deadline_ns == 0 || deadline_ns >= now_ns);
    const struct grpc_service services[] = {{service_methods, METHODS_COUNT, NULL},
                                            {&host_method, 1, NULL}};
    const struct grpc_service *service = NULL;
    const struct grpc_method *method = grpc_method_find(services, 2, bytes, size, &service);
    assert(method != NULL && service != NULL);
    return 0;
}
