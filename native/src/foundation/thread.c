#include "foundation/thread.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "foundation/assert.h"

_Static_assert(sizeof(pthread_t) == sizeof(unsigned long),
               "headers that tests read name no pthread_t");

enum { NAME_LENGTH_MAX = 15 };

enum status thread_start(unsigned long *thread, const char *name, void *(*run)(void *),
                         void *context)
{
    assert(strlen(name) <= NAME_LENGTH_MAX);
    /* The new thread inherits the mask of this one: blocked here, it never sees one. Faults stay,
     * so that a crash is reported where it happens. */
    sigset_t deaf;
    sigset_t before;
    sigfillset(&deaf);
    sigdelset(&deaf, SIGSEGV);
    sigdelset(&deaf, SIGBUS);
    sigdelset(&deaf, SIGFPE);
    sigdelset(&deaf, SIGILL);
    sigdelset(&deaf, SIGABRT);
    int failed = pthread_sigmask(SIG_SETMASK, &deaf, &before);
    assert(failed == 0);
    pthread_t made;
    int refused = pthread_create(&made, NULL, run, context);
    failed = pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert(failed == 0);
    if (refused != 0) return STATUS_THREAD_FAILED;
    (void)pthread_setname_np(made, name);
    *thread = made;
    return STATUS_OK;
}

void thread_join(unsigned long thread)
{
    int failed = pthread_join(thread, NULL);
    assert(failed == 0);
}
