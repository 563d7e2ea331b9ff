/* stream_publish.h: Publish: plain messages to a topic by name, stored as one batch. */
#ifndef STREAM_PUBLISH_H
#define STREAM_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

struct call;

void stream_publish(struct call *call, const uint8_t *message, size_t size);

#endif
