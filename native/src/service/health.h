/* service/health.h: Health.Check: SERVING while calls are served and the host beats. */
#ifndef SERVICE_HEALTH_H
#define SERVICE_HEALTH_H

#include "grpc/call.h"

struct service;

void health_check(struct call *call, struct grpc_message *message);
/* The host is alive. */
void health_beat(struct service *service);

#endif
