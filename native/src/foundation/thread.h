/* foundation/thread.h: the engine's threads: named, and deaf to signals, which belong to the
 * host's main thread. */
#ifndef FOUNDATION_THREAD_H
#define FOUNDATION_THREAD_H

#include "foundation/status.h"

/* `name` is at most 15 characters. *thread is a pthread_t. */
enum status thread_start(unsigned long *thread, const char *name, void *(*run)(void *),
                         void *context);
void thread_join(unsigned long thread);

#endif
