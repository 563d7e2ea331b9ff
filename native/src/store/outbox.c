#include "store/outbox.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/queue.h"
#include "store/state.h"

enum { OUTCOMES_MAX = 16384 /* accepted calls without an answer, and answers not taken */ };

struct outbox {
    struct store_outcome *outcomes;
    uint64_t head;
    uint64_t tail;
    uint64_t accepted; /* calls without an outcome yet */
    uint8_t *results;
    uint64_t results_size;
    uint64_t results_used;
    uint32_t results_waiting; /* outcomes that lend some of them */
    struct queue advances;
};

size_t outbox_memory_bytes(size_t results_bytes)
{
    return arena_size(sizeof(struct outbox))
           + arena_size(OUTCOMES_MAX * sizeof(struct store_outcome)) + arena_size(results_bytes);
}

struct outbox *outbox_make(struct arena *arena, size_t results_bytes)
{
    struct outbox *outbox = arena_take(arena, sizeof *outbox);
    if (!outbox) return NULL;
    outbox->outcomes = arena_take(arena, OUTCOMES_MAX * sizeof *outbox->outcomes);
    outbox->results = arena_take(arena, results_bytes);
    outbox->results_size = results_bytes;
    return outbox->outcomes && outbox->results ? outbox : NULL;
}

int outbox_fits(const struct outbox *outbox)
{
    return outbox->accepted + (outbox->head - outbox->tail) < OUTCOMES_MAX;
}

void outbox_accept(struct outbox *outbox)
{
    outbox->accepted++;
}

static void outbox_push(struct outbox *outbox, const struct replica *replica,
                        struct store_outcome *outcome)
{
    assert(outbox->accepted + (outbox->head - outbox->tail) < OUTCOMES_MAX);
    const struct vsr_reached reached = vsr_reached(replica ? &replica->vsr : NULL);
    outcome->persisted = reached.persisted;
    outcome->replicas = reached.replicas;
    if (outcome->body) outbox->results_waiting++;
    outbox->outcomes[outbox->head++ % OUTCOMES_MAX] = *outcome;
}

void outbox_answer(struct outbox *outbox, const struct replica *replica,
                   struct store_outcome *outcome)
{
    assert(outbox->accepted > 0);
    outbox->accepted--;
    outbox_push(outbox, replica, outcome);
}

void outbox_answer_now(struct outbox *outbox, const struct replica *replica,
                       struct store_outcome *outcome)
{
    assert(outbox_fits(outbox));
    outbox_push(outbox, replica, outcome);
}

int store_outcome_next(struct store *store, struct store_outcome *outcome)
{
    struct outbox *outbox = store->outbox;
    if (outbox->tail == outbox->head) return 0;
    *outcome = outbox->outcomes[outbox->tail++ % OUTCOMES_MAX];
    if (outcome->body) outbox->results_waiting--;
    return 1;
}

int outbox_result_fits(struct outbox *outbox, size_t size)
{
    if (outbox->results_waiting == 0) outbox->results_used = 0;
    return size <= outbox->results_size - outbox->results_used;
}

const uint8_t *outbox_result(struct outbox *outbox, const uint8_t *bytes, size_t size)
{
    assert(size <= outbox->results_size - outbox->results_used);
    uint8_t *result = outbox->results + outbox->results_used;
    if (size > 0) memcpy(result, bytes, size);
    outbox->results_used += size;
    return result;
}

void outbox_advance(struct outbox *outbox, struct replica *replica)
{
    if (replica->advance_link.queue == NULL) queue_push(&outbox->advances, &replica->advance_link);
}

void outbox_forget(struct outbox *outbox, struct replica *replica)
{
    if (replica->advance_link.queue) queue_remove(&outbox->advances, &replica->advance_link);
}

int store_advance_next(struct store *store, struct engine_partition_id *id)
{
    struct outbox *outbox = store->outbox;
    if (queue_empty(&outbox->advances)) return 0;
    const struct replica *replica =
        queue_element(queue_pop(&outbox->advances), struct replica, advance_link);
    *id = (struct engine_partition_id){.topic = replica->topic,
                                       .created_revision = replica->created_revision,
                                       .partition = replica->partition};
    return 1;
}

void outbox_forget_advances(struct outbox *outbox)
{
    while (!queue_empty(&outbox->advances)) (void)queue_pop(&outbox->advances);
}

void outbox_invariants(const struct outbox *outbox)
{
    assert(outbox->tail <= outbox->head);
    assert(outbox->accepted <= OUTCOMES_MAX);
    assert(outbox->accepted + (outbox->head - outbox->tail) <= OUTCOMES_MAX);
    assert(outbox->results_waiting <= outbox->head - outbox->tail);
    assert(outbox->results_used <= outbox->results_size);
}
