/* service/methods.h: the methods that a shard serves itself. */
#ifndef SERVICE_METHODS_H
#define SERVICE_METHODS_H

#include "grpc/call.h"
#include "grpc/method.h"

/* Places in the table. */
enum service_method {
    METHOD_PRODUCE = 0,
    METHOD_PRODUCE_STREAM,
    METHOD_FETCH,
    METHOD_COMMIT_OFFSETS,
    METHOD_FETCH_OFFSETS,
    METHOD_HEALTH_CHECK,
    METHOD_PUBLISH,
    METHOD_FETCH_MESSAGES,
    METHOD_CONSUME,
    METHOD_LIST_OFFSETS,
    METHODS_COUNT,
};

extern const struct grpc_method service_methods[METHODS_COUNT];

static inline int is_method(const struct call *call, enum service_method method)
{
    return call->method == &service_methods[method];
}

#endif
