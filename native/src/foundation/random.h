/* foundation/random.h: a seeded generator (xoshiro256**): same seed, same world. For simulation,
 * jitter and tests, never for secrets. */
#ifndef FOUNDATION_RANDOM_H
#define FOUNDATION_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_init(struct random *random, uint64_t seed);
uint64_t random_u64(struct random *random);

/* Uniform in [0, bound); bound > 0. */
uint64_t random_below(struct random *random, uint64_t bound);

/* Uniform in [low, high], both included. */
uint64_t random_between(struct random *random, uint64_t low, uint64_t high);

/* 1 with probability numerator / denominator. */
int random_chance(struct random *random, uint32_t numerator, uint32_t denominator);

#endif
