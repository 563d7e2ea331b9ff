/* service/access.h: may this caller do this to this partition? The one place where a topic
 * handle is judged. */
#ifndef SERVICE_ACCESS_H
#define SERVICE_ACCESS_H

#include <stdint.h>

#include "catalog/tables.h"
#include "engine.h"
#include "grpc/error.h"

/* NONE = yes, and *topic is its row (borrowed until the tables change). `verb` is one enum
 * engine_verb. */
enum grpc_error access_check(const struct tables *tables, const struct engine_caller *caller,
                             const struct engine_partition_id *id, uint32_t verb,
                             const struct table_topic **topic);

#endif
