/* shard/sweep.h: calls and connections that have lost their right to stay. */
#ifndef SHARD_SWEEP_H
#define SHARD_SWEEP_H

struct shard;

/* Once a turn; does something every SHARD_SWEEP_MS and whenever the grants changed. */
void shard_sweep(struct shard *shard);

#endif
