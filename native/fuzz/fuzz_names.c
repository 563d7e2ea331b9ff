/* fuzz_names.c: names that rows of the tables bring and take away, and who finds what by them.
 *
 * The input is a history of rows and lookups over few numbers, scopes and letters, so that names
 * meet. Every answer is compared with a list that is searched from end to end; the tables of names
 * are small, so that they fill up. At the end everything goes, and nothing may be left. */
#include <string.h>

#include "catalog/tables.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "fuzz_input.h"
#include "service/names.h"

enum {
    NUMBERS_COUNT = 12, /* 1..12, of topics and of projects */
    SCOPES_COUNT = 3,
    TOPIC_NAMES_MAX = 8,
    PROJECTS_MAX = 4,
    STEPS_MAX = 200,
    DELTA_BYTES_MAX = 512,
};

/* What a number is called; size 0 = it has no name. */
struct bearer {
    uint32_t scope;
    uint32_t size;
    uint8_t name[ENGINE_TOPIC_NAME_SIZE_MAX];
};

struct model {
    struct bearer topics[NUMBERS_COUNT + 1];
    struct bearer projects[NUMBERS_COUNT + 1];
    uint8_t there[NUMBERS_COUNT + 1];
};

static struct tables tables;
static struct model model;

static void tables_fresh(void)
{
    static struct arena arena;
    static struct table_topic *topics;
    static uint8_t *names[2];
    static const uint8_t secret[NAMES_SECRET_SIZE] = {7};
    size_t topic_names = names_bytes(TOPIC_NAMES_MAX, ENGINE_TOPIC_NAME_SIZE_MAX);
    size_t projects = names_bytes(PROJECTS_MAX, ENGINE_PROJECT_NAME_SIZE_MAX);
    if (arena.memory == NULL) {
        enum status status =
            arena_open(&arena, arena_size(tables_topics_bytes()) + arena_size(topic_names)
                                   + arena_size(projects));
        assert(status == STATUS_OK);
        topics = arena_take(&arena, tables_topics_bytes());
        names[0] = arena_take(&arena, topic_names);
        names[1] = arena_take(&arena, projects);
        assert(topics != NULL && names[0] != NULL && names[1] != NULL);
    }
    memset(names[0], 0, topic_names);
    memset(names[1], 0, projects);
    tables_init(&tables, topics); /* the last run left no topic */
    names_init(&tables.topic_names, names[0], TOPIC_NAMES_MAX, ENGINE_TOPIC_NAME_SIZE_MAX, secret);
    names_init(&tables.projects, names[1], PROJECTS_MAX, ENGINE_PROJECT_NAME_SIZE_MAX, secret);
    memset(&model, 0, sizeof model);
}

/* ---- the list ---- */

static uint32_t bearers_count(const struct bearer *bearers)
{
    uint32_t count = 0;
    for (uint32_t number = 1; number <= NUMBERS_COUNT; number++) count += bearers[number].size > 0;
    return count;
}

static void bearer_put(struct bearer *bearers, uint32_t count_max, uint32_t number, uint32_t scope,
                       const uint8_t *name, uint32_t size)
{
    bearers[number].size = 0;
    if (size == 0 || bearers_count(bearers) == count_max) return;
    bearers[number].scope = scope;
    bearers[number].size = size;
    memcpy(bearers[number].name, name, size);
}

static uint32_t bearer_find(const struct bearer *bearers, uint32_t scope, const uint8_t *name,
                            size_t size)
{
    for (uint32_t number = NUMBERS_COUNT; number > 0 && size > 0; number--) {
        const struct bearer *bearer = &bearers[number];
        if (bearer->size == size && bearer->scope == scope && memcmp(bearer->name, name, size) == 0)
            return number;
    }
    return 0;
}

/* ---- what the input says ---- */

static uint32_t number_of(struct fuzz_input *input)
{
    return fuzz_byte(input) % NUMBERS_COUNT + 1;
}

static uint32_t scope_of(struct fuzz_input *input)
{
    return fuzz_byte(input) % SCOPES_COUNT + 1;
}

/* Mostly a few letters of a kind that the rules look at; now and then the longest. */
static size_t name_of(struct fuzz_input *input, uint8_t *name, size_t size_max)
{
    static const char *const known[] = {"default/", "default", "default/_", "_", "/", "a", "b", ""};
    uint8_t shape = fuzz_byte(input);
    size_t size = strlen(known[shape % 8]);
    memcpy(name, known[shape % 8], size);
    size_t wanted = shape >> 3 == 31 ? size_max - size : (size_t)(shape >> 3) % 4;
    size_t taken;
    const uint8_t *more = fuzz_bytes(input, shape >> 3 == 31 ? 1 : wanted, &taken);
    if (shape >> 3 == 31) {
        memset(name + size, taken > 0 ? more[0] : 'x', wanted);
        return size_max;
    }
    if (taken > 0) memcpy(name + size, more, taken);
    return size + taken;
}

/* ---- rows ---- */

static void delta_apply(const void *row, size_t row_size, const uint8_t *name, size_t name_size)
{
    static uint8_t delta[DELTA_BYTES_MAX];
    size_t padded = (row_size + name_size + 7) & ~(size_t)7;
    assert(padded <= sizeof delta);
    memset(delta, 0, padded);
    memcpy(delta, row, row_size);
    if (name_size > 0) memcpy(delta + row_size, name, name_size);
    enum status status = tables_apply(&tables, delta, padded);
    assert(status == STATUS_OK);
}

static void topic_put(struct fuzz_input *input)
{
    uint8_t name[ENGINE_TOPIC_NAME_SIZE_MAX];
    uint32_t number = number_of(input);
    uint32_t project = scope_of(input);
    size_t size = name_of(input, name, sizeof name);
    const struct engine_row_topic row = {
        .row = {.kind = ENGINE_ROW_TOPIC, .size = (uint16_t)(sizeof row + size)},
        .topic = number,
        .created_revision = 1,
        .organization = 1,
        .project = project,
        .partitions_count = 1,
        .name_size = (uint32_t)size,
    };
    delta_apply(&row, sizeof row, name, size);
    model.there[number] = 1;
    bearer_put(model.topics, TOPIC_NAMES_MAX, number, project, name, (uint32_t)size);
}

static void topic_gone(uint32_t number)
{
    const struct engine_row_topic row = {.row = {.kind = ENGINE_ROW_TOPIC_GONE, .size = sizeof row},
                                         .topic = number};
    delta_apply(&row, sizeof row, NULL, 0);
    model.there[number] = 0;
    model.topics[number].size = 0;
}

static void project_put(struct fuzz_input *input)
{
    uint8_t name[ENGINE_PROJECT_NAME_SIZE_MAX];
    uint32_t number = number_of(input);
    uint32_t organization = scope_of(input);
    size_t size = name_of(input, name, sizeof name);
    if (size == 0) return; /* no row: refused as malformed */
    const struct engine_row_project row = {
        .row = {.kind = ENGINE_ROW_PROJECT, .size = (uint16_t)(sizeof row + size)},
        .organization = organization,
        .project = number,
        .name_size = (uint32_t)size,
    };
    delta_apply(&row, sizeof row, name, size);
    bearer_put(model.projects, PROJECTS_MAX, number, organization, name, (uint32_t)size);
}

/* ---- lookups ---- */

/* The name with its stream written out, by docs/internals/messages.md. */
static size_t full_name(const uint8_t *name, size_t size, uint8_t *full)
{
    static const char stream[] = "default/";
    size_t prefix = sizeof stream - 1;
    int system_long = size > prefix && memcmp(name, stream, prefix) == 0 && name[prefix] == '_';
    if (system_long) {
        memcpy(full, name + prefix, size - prefix);
        return size - prefix;
    }
    int whole = size == 0 || name[0] == '_';
    for (size_t at = 0; at < size; at++) whole |= name[at] == '/';
    if (whole) {
        memcpy(full, name, size);
        return size;
    }
    memcpy(full, stream, prefix);
    memcpy(full + prefix, name, size);
    return prefix + size;
}

static void lookup(struct fuzz_input *input)
{
    uint8_t project_name[ENGINE_PROJECT_NAME_SIZE_MAX + 1];
    uint8_t name[ENGINE_TOPIC_NAME_SIZE_MAX + 1];
    uint8_t full[ENGINE_TOPIC_NAME_SIZE_MAX + 16];
    uint8_t whose = fuzz_byte(input);
    const struct engine_caller caller = {
        .principal = 1,
        .organization = whose % (SCOPES_COUNT + 1),
        .project = (whose >> 2) % 4, /* 0 = of the organization */
    };
    size_t project_size = name_of(input, project_name, sizeof project_name);
    size_t size = name_of(input, name, sizeof name);
    uint32_t named =
        project_size == 0
            ? bearer_find(model.projects, caller.organization, (const uint8_t *)"default", 7)
            : bearer_find(model.projects, caller.organization, project_name, project_size);
    uint32_t project = named;
    if (caller.project != 0)
        project = project_size == 0 || named == caller.project ? caller.project : 0;
    size_t full_size = full_name(name, size, full);
    uint32_t number = project == 0 ? 0 : bearer_find(model.topics, project, full, full_size);

    const struct proto_bytes project_bytes = {.data = project_name, .size = project_size};
    const struct proto_bytes name_bytes = {.data = name, .size = size};
    const struct table_topic *topic;
    struct grpc_failure failure =
        topic_by_name(&tables, &caller, &project_bytes, &name_bytes, &topic);
    enum grpc_error expected = GRPC_ERROR_NONE;
    if (caller.organization == 0)
        expected = GRPC_ERROR_PERMISSION_DENIED;
    else if (project == 0)
        expected = GRPC_ERROR_PROJECT_NOT_FOUND;
    else if (number == 0)
        expected = GRPC_ERROR_TOPIC_NOT_FOUND;
    assert(failure.error == expected);
    assert((topic != NULL) == (expected == GRPC_ERROR_NONE));
    if (topic != NULL) assert(topic->topic == number);
}

static void agree(void)
{
    uint32_t there = 0;
    for (uint32_t number = 1; number <= NUMBERS_COUNT; number++) {
        there += model.there[number];
        assert((tables_topic(&tables, number) != NULL) == model.there[number]);
    }
    assert(tables.topics_count == there);
    assert(tables.topic_names.count == bearers_count(model.topics));
    assert(tables.projects.count == bearers_count(model.projects));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.at = bytes, .end = bytes + size};
    tables_fresh();
    for (uint32_t step = 0; step < STEPS_MAX && input.at < input.end; step++) {
        switch (fuzz_byte(&input) % 6) {
        case 0:
        case 1: topic_put(&input); break;
        case 2: topic_gone(number_of(&input)); break;
        case 3: project_put(&input); break;
        default: lookup(&input); break;
        }
    }
    agree();
    for (uint32_t number = 1; number <= NUMBERS_COUNT; number++) topic_gone(number);
    agree();
    return 0;
}
