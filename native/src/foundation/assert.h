/* foundation/assert.h: our own assertions, always on.
 *
 * Two kinds of trouble exist. The world fails (a disk, a peer, a client's bytes): that is an `enum
 * status`. We are wrong: that is an assert, and the process stops, because going on with a broken
 * invariant is how data is lost. This header ignores NDEBUG on purpose: Python's own build flags
 * define it. Include it last, so that it has the last word.
 *
 *     assert(x)        x holds, or we are wrong
 *     ergo(a, b)       a implies b
 *     maybe(x)         both are fine; says so to the reader and checks that x still compiles
 *     unreachable()    control never comes here
 *     checked(x)       like assert, too dear for production: only under ENGINE_CHECKED */
#ifndef FOUNDATION_ASSERT_H
#define FOUNDATION_ASSERT_H

#include <stdio.h>
#include <stdlib.h>

__attribute__((noreturn, cold, noinline, unused)) static void assert_failed(const char *expression,
                                                                            const char *file,
                                                                            int line,
                                                                            const char *function)
{
    fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", file, line, function, expression);
    fflush(stderr);
    abort();
}

#undef assert
#define assert(expression)               \
    (__builtin_expect(!!(expression), 1) \
         ? (void)0                       \
         : assert_failed(#expression, __FILE__, __LINE__, __func__))

#define ergo(premise, conclusion) assert(!(premise) || (conclusion))

#define maybe(expression) ((void)sizeof(!!(expression)))

#define unreachable() assert_failed("unreachable", __FILE__, __LINE__, __func__)

#ifdef ENGINE_CHECKED
#define checked(expression) assert(expression)
#else
/* Never evaluated, yet a use: what only checks call would be an unused function otherwise. */
#define checked(expression) ((void)(0 && (expression)))
#endif

#ifndef static_assert
#define static_assert _Static_assert
#endif

#endif
