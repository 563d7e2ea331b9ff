/* service/fetch/fetch_answer.h: the one answer to a fetch, to its call or to the shard that
 * asked. */
#ifndef SERVICE_FETCH_FETCH_ANSWER_H
#define SERVICE_FETCH_FETCH_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"
#include "service/shard_frame.h"
#include "wire/proto.h"

struct fetch;
struct io_vector;
struct reply;
struct service;
struct store_fetch;

/* Its reply is given away. Frees the fetch, as all of these do but fetch_charge. */
void fetch_answer(struct service *service, struct fetch *fetch, const struct fetch_result *fetched);
void fetch_fail(struct service *service, struct fetch *fetch, enum status status,
                uint64_t expected);
/* Batches are in `reply`, shaped. */
void fetch_deliver(struct service *service, struct fetch *fetch, struct reply *reply,
                   const uint8_t *batches, size_t size);
/* A status without batches. */
void fetch_answer_status(struct service *service, struct fetch *fetch,
                         enum proto_fetch_status status, const struct store_fetch *found);
/* The messages of some batches, or a status for one who wants messages. */
void fetch_answer_messages(struct service *service, struct fetch *fetch,
                           enum proto_fetch_status status, const struct store_fetch *found,
                           const struct io_vector *batches, uint32_t batches_count);
/* The reply counts against the budget of its principal from now on. */
void fetch_charge(struct service *service, const struct fetch *fetch, struct reply *reply);

#endif
