/* service/fetch/fetch.h: Fetch: what a client asks for, whether it may, how it is answered. How its
 * batches are found: service/fetch/fetch_run.h. */
#ifndef SERVICE_FETCH_FETCH_H
#define SERVICE_FETCH_FETCH_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "service/shard_frame.h"

enum {
    FETCH_WAIT_MS_MAX = 60000, /* a long poll */
    FETCH_BYTES_DEFAULT = 1048576,
    FETCH_BYTES_MAX = 8388608,
};

struct service;
struct pending;

void fetch_message(struct call *call, struct grpc_message *message);
/* Until when a call waits that may wait so long, CLOCK_MONOTONIC ns; 0 = not at all. */
uint64_t fetch_deadline(const struct call *call, uint32_t wait_ms_max);
/* The one answer to what fetch_begin began, its reply given away. */
void fetch_call_answer(struct call *call, const struct fetch_result *fetched);
/* The same, from the owning shard. Frees the pending. */
void fetch_answered(struct service *service, struct pending *pending,
                    const struct fetch_result *fetched);

#endif
