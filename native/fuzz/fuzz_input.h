/* fuzz_input.h: what all fuzz targets share: a reader of their input and memory that ends where it
 * says.
 *
 * Owns no corpus: seeds and what once failed lie in tests/data/fuzz. A target turns bytes into
 * calls and asserts what must hold of the answers; it refuses nothing itself. Since checksums keep
 * mutated bytes out, targets also try each input with its checksums made right. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct fuzz_input {
    const uint8_t *at;
    const uint8_t *end;
};

/* The next byte, or number; zeros once the input is used up. */
uint8_t fuzz_byte(struct fuzz_input *input);
uint16_t fuzz_u16(struct fuzz_input *input);
uint32_t fuzz_u32(struct fuzz_input *input);
uint64_t fuzz_u64(struct fuzz_input *input);
/* At most `size` bytes: borrowed from the input. */
const uint8_t *fuzz_bytes(struct fuzz_input *input, size_t size, size_t *taken);

enum { FUZZ_COPY_SIZE_MAX = 1 << 20, FUZZ_ROOMS_COUNT = 4 };

/* Memory with an unmapped page right behind it: reading or writing on ends the process, in code
 * without sanitizers too. Each number is one piece: what it held before is gone; `number` <
 * FUZZ_ROOMS_COUNT, size <= FUZZ_COPY_SIZE_MAX. */
uint8_t *fuzz_room(uint32_t number, size_t size);
/* A copy that may be changed, in room 0. */
uint8_t *fuzz_copy(const uint8_t *bytes, size_t size);

#endif
