/* service/list_offsets.h: ListOffsets: from a time to the offset of the first batch that late.
 *
 *     ask the owner (store/read/time_search.c) -> found, or nothing that late -> answered
 *                                  -> WALK: fetch from there and look into the headers, on and on
 *
 * The index leads to within a stride, so one fetch settles it, but for segments that were not
 * read since the start: their first reader walks them (store/read/fetch.c) and so builds the
 * index. */
#ifndef SERVICE_LIST_OFFSETS_H
#define SERVICE_LIST_OFFSETS_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/call.h"
#include "service/shard_frame.h"

struct service;
struct pending;

void list_offsets_message(struct call *call, struct grpc_message *message);
/* The next fetch (service/ready_queue.h), and its answer. */
void list_offsets_step(struct call *call);
void list_offsets_fetched(struct call *call, const struct fetch_result *fetched);

void list_offsets_remote(struct service *service, const struct shard_frame *frame);
void list_offsets_answered(struct service *service, struct pending *pending,
                           const struct store_time *found);

#endif
