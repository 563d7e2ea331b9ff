/* store/outbox.h: what leaves the store at the end of a turn: one outcome for each accepted call,
 * and the partitions that waiting fetches should look at again.
 *
 *     outbox_accept .. outbox_answer      a call that waits for its operation
 *     outbox_answer_now                   one that was answered without
 *
 * Owns how many calls may be accepted, the order of answers, and the bytes of metadata's results.
 * How many members hold what is answered is asked of vsr/vsr.h, here alone. Refuses to know what an
 * answer says. */
#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct outbox;
struct replica;
struct store;
struct store_outcome;

size_t outbox_memory_bytes(size_t results_bytes);
/* NULL = the arena is too small. */
struct outbox *outbox_make(struct arena *arena, size_t results_bytes);

/* One more call may be accepted. */
int outbox_fits(const struct outbox *outbox);
void outbox_accept(struct outbox *outbox);

/* The outcome's token and what else it says are the caller's; `replica` = NULL: a partition in
 * which nothing happened yet. */
void outbox_answer(struct outbox *outbox, const struct replica *replica,
                   struct store_outcome *outcome);
/* Only while outbox_fits: accepted calls keep their places. */
void outbox_answer_now(struct outbox *outbox, const struct replica *replica,
                       struct store_outcome *outcome);

/* Bytes of a result, copied: they stay until all outcomes with such bytes were taken. */
int outbox_result_fits(struct outbox *outbox, size_t size);
const uint8_t *outbox_result(struct outbox *outbox, const uint8_t *bytes, size_t size);

/* There is more to fetch, or a fence moved. */
void outbox_advance(struct outbox *outbox, struct replica *replica);
/* The replica goes. */
void outbox_forget(struct outbox *outbox, struct replica *replica);
/* What a start went through is nothing new. */
void outbox_forget_advances(struct outbox *outbox);

void outbox_invariants(const struct outbox *outbox);

#endif
