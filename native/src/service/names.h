/* service/names.h: which topic a caller means by a name. */
#ifndef SERVICE_NAMES_H
#define SERVICE_NAMES_H

#include "catalog/tables.h"
#include "engine.h"
#include "grpc/error.h"
#include "wire/proto.h"

/* The topic of "stream/topic", or of "topic" in stream `default`, in the project that is named, the
 * key's own, or `default` for a key of the organization. NONE: *topic is its row (borrowed until
 * the tables change); whether the caller may use it says access_check. What is not the caller's
 * does not exist: the failure is that of an unknown name. */
struct grpc_failure topic_by_name(const struct tables *tables, const struct engine_caller *caller,
                                  const struct proto_bytes *project, const struct proto_bytes *name,
                                  const struct table_topic **topic);

#endif
