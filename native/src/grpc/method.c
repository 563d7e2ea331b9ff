#include "grpc/method.h"

#include <string.h>

#include "foundation/assert.h"

const struct grpc_method *grpc_method_find(const struct grpc_service *services, uint32_t count,
                                           const uint8_t *path, size_t size,
                                           const struct grpc_service **service)
{
    const struct grpc_method *other = NULL;
    assert(count <= GRPC_SERVICES_COUNT_MAX);
    for (uint32_t at = 0; at < count; at++) {
        for (uint32_t index = 0; index < services[at].methods_count; index++) {
            const struct grpc_method *method = &services[at].methods[index];
            size_t length = strlen(method->path);
            if (length != 0 && (length != size || memcmp(method->path, path, size) != 0)) continue;
            *service = &services[at];
            if (length != 0) return method;
            other = method;
        }
    }
    return other;
}
