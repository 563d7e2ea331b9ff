#include "service/health.h"

#include "grpc/server.h"
#include "service/state.h"
#include "wire/proto_messages.h"

enum { HEALTH_SERVING = 1, HEALTH_NOT_SERVING = 2 };

void health_check(struct call *call, struct grpc_message *message)
{
    if (proto_check(message->data, message->size) != STATUS_OK) {
        grpc_finish_error(call, GRPC_ERROR_MALFORMED_REQUEST);
        return;
    }
    const struct service *service = service_of(call);
    uint64_t silence_ns = service->now->monotonic_ns - service->host_beat_ns;
    int host_alive =
        service->host_beat_ns != 0 && silence_ns < service->host_beat_ms * UINT64_C(1000000);
    int serving = service->ready && !service->draining && host_alive;
    uint8_t reply[16];
    grpc_reply_small(call, reply,
                     proto_encode_health(serving ? HEALTH_SERVING : HEALTH_NOT_SERVING, reply));
    grpc_finish_ok(call);
}

void health_beat(struct service *service)
{
    service->host_beat_ns = service->now->monotonic_ns;
}
