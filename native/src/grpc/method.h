/* grpc/method.h: what a server serves: tables of methods, made by those who implement them.
 *
 *     path, limits, handlers, metric      one row a method (struct grpc_method)
 *     rows and what they work on          a service (struct grpc_service)
 *
 * A handler that is NULL has nothing to do. All are called by the server's thread. */
#ifndef GRPC_METHOD_H
#define GRPC_METHOD_H

#include <stddef.h>
#include <stdint.h>

#include "grpc/error.h"

struct call;

/* One whole message. `buffer` is the memory in the pool that it lies in, which a handler may take
 * over by setting it to NULL; NULL = the bytes are borrowed until the handler returns. */
struct grpc_message {
    const uint8_t *data;
    size_t size;
    uint8_t *buffer;
};

enum grpc_method_flag {
    GRPC_METHOD_OPEN = 1,     /* without a key, before the node is ready, and while it stops */
    GRPC_METHOD_STREAMS = 2,  /* the client may send more than one message, */
    GRPC_METHOD_QUIET = 4,    /* and pause as long as it likes before each */
    GRPC_METHOD_WAITS = 8,    /* a call may wait long: its key is judged again meanwhile */
    GRPC_METHOD_CREDIT = 16,  /* the window of messages is kept until the handler gives it back */
    GRPC_METHOD_CHARGED = 32, /* unsent replies are bounded by principal (grpc/reply_budget.h) */
};

struct grpc_method {
    const char *path;   /* "" = every path that no other method has */
    const char *metric; /* its name in the metrics */
    uint32_t message_size_max;
    uint32_t flags; /* enum grpc_method_flag */
    /* Instead of "a good key was shown". */
    enum grpc_error (*authorize)(const struct call *call);
    /* The headers were accepted. */
    void (*open)(struct call *call);
    void (*message)(struct call *call, struct grpc_message *message);
    /* The client sends no more. Without QUIET only after a message. */
    void (*end)(struct call *call);
    /* Bytes of the client were taken. 1 = their window is kept until grpc_window_return. */
    int (*withhold)(struct call *call);
    /* A reply with so many bytes lies in frames. */
    void (*writable)(struct call *call, size_t size);
    /* Now and then: what the call was allowed may be another matter now. */
    void (*review)(struct call *call);
    /* The call failed here, or its client is gone before it was answered. */
    void (*cancelled)(struct call *call);
    /* The slot is given up. */
    void (*closed)(struct call *call);
};

struct grpc_service {
    const struct grpc_method *methods;
    uint32_t methods_count;
    void *context; /* each call's `context` */
};

enum { GRPC_SERVICES_COUNT_MAX = 2, GRPC_METHODS_COUNT_MAX = 16 };

/* The method of a path among several services; NULL = none of them has it. */
const struct grpc_method *grpc_method_find(const struct grpc_service *services, uint32_t count,
                                           const uint8_t *path, size_t size,
                                           const struct grpc_service **service);

#endif
