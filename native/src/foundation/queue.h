/* foundation/queue.h: an intrusive doubly linked queue. Takes no memory: the link lives in the
 * element.
 *
 *     struct call { struct queue_link link; ... };
 *     queue_push(&waiting, &call->link);
 *     struct call *first = queue_element(queue_pop(&waiting), struct call, link);
 *
 * An element is in at most one queue per link; its link is zero while it is in none, which push and
 * remove assert. */
#ifndef FOUNDATION_QUEUE_H
#define FOUNDATION_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/assert.h"

struct queue_link {
    struct queue_link *next;
    struct queue_link *previous;
    const void *queue; /* the one it is in; NULL = none */
};

struct queue {
    struct queue_link *head;
    struct queue_link *tail;
    uint64_t count;
};

/* The element around a link; NULL stays NULL. */
#define queue_element(link_pointer, type, member)                                                  \
    ({                                                                                             \
        struct queue_link *queue_element_link = (link_pointer);                                    \
        queue_element_link ? (type *)(void *)((char *)queue_element_link - offsetof(type, member)) \
                           : (type *)NULL;                                                         \
    })

/* Walk without removing. */
#define queue_each(queue_pointer, link_name)                              \
    for (struct queue_link *link_name = (queue_pointer)->head; link_name; \
         link_name = link_name->next)

static inline int queue_empty(const struct queue *queue)
{
    assert((queue->head == NULL) == (queue->count == 0));
    return queue->head == NULL;
}

static inline void queue_push(struct queue *queue, struct queue_link *link)
{
    assert(link->queue == NULL);
    link->queue = queue;
    link->next = NULL;
    link->previous = queue->tail;
    if (queue->tail)
        queue->tail->next = link;
    else
        queue->head = link;
    queue->tail = link;
    queue->count++;
}

static inline void queue_push_front(struct queue *queue, struct queue_link *link)
{
    assert(link->queue == NULL);
    link->queue = queue;
    link->previous = NULL;
    link->next = queue->head;
    if (queue->head)
        queue->head->previous = link;
    else
        queue->tail = link;
    queue->head = link;
    queue->count++;
}

static inline void queue_remove(struct queue *queue, struct queue_link *link)
{
    assert(link->queue == queue);
    assert(queue->count > 0);
    if (link->previous)
        link->previous->next = link->next;
    else
        queue->head = link->next;
    if (link->next)
        link->next->previous = link->previous;
    else
        queue->tail = link->previous;
    queue->count--;
    *link = (struct queue_link){0};
}

/* The oldest link, removed; NULL if the queue is empty. */
static inline struct queue_link *queue_pop(struct queue *queue)
{
    struct queue_link *link = queue->head;
    if (link) queue_remove(queue, link);
    return link;
}

#endif
