/* foundation/random.c: xoshiro256** seeded by splitmix64, as its authors advise: small, fast,
 * passes BigCrush, easy to repeat. */
#include "foundation/random.h"

#include "foundation/assert.h"

static uint64_t random_rotate(uint64_t value, int count)
{
    return (value << count) | (value >> (64 - count));
}

void random_init(struct random *random, uint64_t seed)
{
    for (int index = 0; index < 4; index++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t word = seed;
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
        word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
        random->state[index] = word ^ (word >> 31);
    }
}

uint64_t random_u64(struct random *random)
{
    uint64_t *state = random->state;
    assert((state[0] | state[1] | state[2] | state[3]) != 0);
    uint64_t result = random_rotate(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = random_rotate(state[3], 45);
    return result;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    assert(bound > 0);
    /* Draws below 2^64 mod bound are thrown away, so that every answer is equally likely. */
    uint64_t threshold = (0 - bound) % bound;
    for (;;) {
        uint64_t draw = random_u64(random);
        if (draw >= threshold) return draw % bound;
    }
}

uint64_t random_between(struct random *random, uint64_t low, uint64_t high)
{
    assert(low <= high);
    if (low == 0 && high == UINT64_MAX) return random_u64(random);
    return low + random_below(random, high - low + 1);
}

int random_chance(struct random *random, uint32_t numerator, uint32_t denominator)
{
    assert(denominator > 0);
    assert(numerator <= denominator);
    return random_below(random, denominator) < numerator;
}
