/* service/fetch/fetch_run.h: a fetch asks the store, and is answered, reads, or waits.
 *
 *     RUNNING -> answered            bytes in memory, in the page cache, or nothing and no wait
 *     RUNNING -> POLLING -> RUNNING  nothing yet: in its bucket until data or its fence moves
 *     RUNNING -> QUEUED -> READING   the disk must be read: one of a few reads, others wait
 *     RUNNING -> WAITING -> RUNNING  no room (grpc/reply_budget.h): until replies have left
 *                                    memory; a stream for ever, others until REPLIES_FULL
 * */
#ifndef SERVICE_FETCH_FETCH_RUN_H
#define SERVICE_FETCH_FETCH_RUN_H

struct fetch;
struct service;

void fetch_run(struct service *service, struct fetch *fetch);

#endif
