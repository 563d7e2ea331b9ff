/* store/turn.h: a start drives the store itself, before there is a pump. */
#ifndef STORE_TURN_H
#define STORE_TURN_H

struct store;

/* Everything that a start carried out. */
void turn_completions(struct store *store);

#endif
