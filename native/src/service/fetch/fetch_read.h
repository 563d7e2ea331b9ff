/* service/fetch/fetch_read.h: a fetch whose batches lie in a file: from the page cache at
 * once, or by a read of the disk; then cut to whole verified batches. */
#ifndef SERVICE_FETCH_FETCH_READ_H
#define SERVICE_FETCH_FETCH_READ_H

struct fetch;
struct io_request;
struct service;
struct store_fetch;

void fetch_file(struct service *service, struct fetch *fetch, const struct store_fetch *found);
/* 1 = the request was one of ours. */
int fetch_read_done(struct service *service, struct io_request *request);

#endif
