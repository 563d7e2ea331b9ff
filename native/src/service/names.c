/* service/names.c: the rules of names of dataplane/services/names.py, on the pushed tables. Ids
 * (`tp_...`, `prj_...`) are not in them: this wire takes names only. */
#include "service/names.h"

#include <string.h>

#include "foundation/assert.h"

static const char default_project[] = "default";
static const char default_stream[] = "default/";

enum { DEFAULT_STREAM_SIZE = sizeof default_stream - 1 };

static struct grpc_failure no_project(void)
{
    return (struct grpc_failure){
        .error = GRPC_ERROR_PROJECT_NOT_FOUND,
        .detail = "there is no project of this name here for this key",
    };
}

/* The project's number; 0 = none for this caller. */
static uint32_t project_named(const struct tables *tables, const struct engine_caller *caller,
                              const struct proto_bytes *name)
{
    if (caller->project != 0 && name->size == 0) return caller->project;
    const uint8_t *wanted = name->size == 0 ? (const uint8_t *)default_project : name->data;
    size_t size = name->size == 0 ? sizeof default_project - 1 : name->size;
    uint32_t found = (uint32_t)names_find(&tables->projects, caller->organization, wanted, size);
    if (caller->project != 0 && found != caller->project) return 0;
    return found;
}

static uint64_t topic_named(const struct tables *tables, uint32_t project,
                            const struct proto_bytes *name)
{
    const uint8_t *text = name->data;
    size_t size = name->size;
    if (size == 0) return 0;
    /* Clients that always write stream/topic say default/_usage. */
    if (size > DEFAULT_STREAM_SIZE && text[DEFAULT_STREAM_SIZE] == '_'
        && memcmp(text, default_stream, DEFAULT_STREAM_SIZE) == 0) {
        text += DEFAULT_STREAM_SIZE;
        size -= DEFAULT_STREAM_SIZE;
    }
    if (text[0] == '_' || memchr(text, '/', size) != NULL)
        return names_find(&tables->topic_names, project, text, size);
    uint8_t full[ENGINE_TOPIC_NAME_SIZE_MAX];
    if (size > sizeof full - DEFAULT_STREAM_SIZE) return 0;
    memcpy(full, default_stream, DEFAULT_STREAM_SIZE);
    memcpy(full + DEFAULT_STREAM_SIZE, text, size);
    return names_find(&tables->topic_names, project, full, DEFAULT_STREAM_SIZE + size);
}

struct grpc_failure topic_by_name(const struct tables *tables, const struct engine_caller *caller,
                                  const struct proto_bytes *project, const struct proto_bytes *name,
                                  const struct table_topic **topic)
{
    *topic = NULL;
    if (caller->organization == 0) {
        return (struct grpc_failure){
            .error = GRPC_ERROR_PERMISSION_DENIED,
            .detail = "this key belongs to no organization, so that no name means a topic to it",
        };
    }
    uint32_t number = project_named(tables, caller, project);
    if (number == 0) return no_project();
    *topic = tables_topic(tables, topic_named(tables, number, name));
    if (*topic != NULL) return (struct grpc_failure){.error = GRPC_ERROR_NONE};
    return (struct grpc_failure){
        .error = GRPC_ERROR_TOPIC_NOT_FOUND,
        .detail = "there is no topic of this name in this project",
    };
}
