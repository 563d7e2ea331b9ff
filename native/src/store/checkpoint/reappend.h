/* store/checkpoint/reappend.h: what still lives in an extent that is given back, and in no
 * checkpoint, is appended to the journal again, with its origin (J5).
 *
 * The extent is read whole; what finds no room in the control ring goes after the next round, from
 * another read. Owns how far that has come. Refuses to decide which replicas leave. */
#ifndef STORE_CHECKPOINT_REAPPEND_H
#define STORE_CHECKPOINT_REAPPEND_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct file_request;
struct reappend;
struct store;

size_t reappend_memory_bytes(void);
struct reappend *reappend_make(struct arena *arena);

void reappend_begin(struct store *store, uint64_t extent_cycle);
/* 0 = no request is free: later. Else the extent is being read, or it is over: damage left no
 * block that identifies the extent, and recovery has named what it lost. */
int reappend_read(struct store *store);
void reappend_done(struct store *store, const struct file_request *done);
int reappend_is_over(const struct store *store);
int reappend_has_more(const struct store *store);
/* The extent was given back. */
void reappend_end(struct store *store);

void reappend_invariants(const struct store *store);

#endif
