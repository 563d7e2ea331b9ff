/* service/ready_queue.h: calls that go on by themselves: a Consume, a ListOffsets that reads.
 * Each has at most one fetch out; when that is answered it is ready, and its next step comes in
 * the same turn or the next one, never inside the answer: steps do not nest. */
#ifndef SERVICE_READY_QUEUE_H
#define SERVICE_READY_QUEUE_H

struct call;
struct fetch_result;
struct service;

/* The next step may be possible. Nothing while its fetch is out. */
void work_ready(struct call *call);
/* The one answer to its fetch. */
void work_fetched(struct call *call, const struct fetch_result *fetched);
/* The call is gone. */
void work_forget(struct call *call);
/* Once a turn: one step of each that is ready. */
void works_go_on(struct service *service);

int ready_queue_invariants(const struct service *service);

#endif
