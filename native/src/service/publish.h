/* service/publish.h: Publish: plain messages to a topic given by its name, stored as one batch. */
#ifndef SERVICE_PUBLISH_H
#define SERVICE_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

struct call;
struct grpc_message;

void publish_message(struct call *call, struct grpc_message *message);

#endif
