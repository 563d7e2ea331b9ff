#include "service/access.h"

#include <stddef.h>

#include "foundation/assert.h"

enum grpc_error access_check(const struct tables *tables, const struct engine_caller *caller,
                             const struct engine_partition_id *id, uint32_t verb,
                             const struct table_topic **topic)
{
    assert(verb == ENGINE_VERB_PRODUCE || verb == ENGINE_VERB_CONSUME);
    assert(caller->principal != 0);
    const struct table_topic *found = tables_topic(tables, id->topic);
    int is_admin = (caller->verbs & ENGINE_VERB_ADMIN) != 0;
    if (found == NULL) {
        const struct gone_topic *gone = tables_gone(tables, id->topic);
        int theirs = gone != NULL && (is_admin || gone->organization == caller->organization);
        return theirs && gone->recreated ? GRPC_ERROR_TOPIC_RECREATED : GRPC_ERROR_TOPIC_NOT_FOUND;
    }
    /* Another organization's topics do not exist: neither their names nor their numbers can be
     * found out. */
    if (!is_admin && found->organization != caller->organization) return GRPC_ERROR_TOPIC_NOT_FOUND;
    if (found->created_revision != id->created_revision) return GRPC_ERROR_TOPIC_RECREATED;
    if (verb == ENGINE_VERB_PRODUCE && (found->flags & ENGINE_TOPIC_SYSTEM))
        return GRPC_ERROR_SYSTEM_TOPIC;
    if (!is_admin && caller->project != 0 && caller->project != found->project)
        return GRPC_ERROR_PERMISSION_DENIED;
    if (!(caller->verbs & verb)) return GRPC_ERROR_PERMISSION_DENIED;
    if (id->partition >= found->partitions_count) return GRPC_ERROR_PARTITION_NOT_FOUND;
    *topic = found;
    return GRPC_ERROR_NONE;
}
