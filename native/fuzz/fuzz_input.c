#include "fuzz_input.h"

#include <string.h>
#include <sys/mman.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum { PAGE_BYTES = 4096 };

const uint8_t *fuzz_bytes(struct fuzz_input *input, size_t size, size_t *taken)
{
    size_t left = (size_t)(input->end - input->at);
    const uint8_t *bytes = input->at;
    *taken = size < left ? size : left;
    input->at += *taken;
    return bytes;
}

uint64_t fuzz_u64(struct fuzz_input *input)
{
    uint8_t number[8] = {0};
    size_t taken;
    const uint8_t *bytes = fuzz_bytes(input, sizeof number, &taken);
    if (taken > 0) memcpy(number, bytes, taken);
    return bytes_get_u64(number);
}

uint32_t fuzz_u32(struct fuzz_input *input)
{
    uint8_t number[4] = {0};
    size_t taken;
    const uint8_t *bytes = fuzz_bytes(input, sizeof number, &taken);
    if (taken > 0) memcpy(number, bytes, taken);
    return bytes_get_u32(number);
}

uint16_t fuzz_u16(struct fuzz_input *input)
{
    uint16_t low = fuzz_byte(input);
    return (uint16_t)(low | fuzz_byte(input) << 8);
}

uint8_t fuzz_byte(struct fuzz_input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

uint8_t *fuzz_room(uint32_t number, size_t size)
{
    static uint8_t *regions[FUZZ_ROOMS_COUNT];
    assert(number < FUZZ_ROOMS_COUNT);
    assert(size <= FUZZ_COPY_SIZE_MAX);
    if (regions[number] == NULL) {
        uint8_t *region = mmap(NULL, FUZZ_COPY_SIZE_MAX + PAGE_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert(region != MAP_FAILED);
        int failed = mprotect(region + FUZZ_COPY_SIZE_MAX, PAGE_BYTES, PROT_NONE);
        assert(failed == 0);
        regions[number] = region;
    }
    return regions[number] + FUZZ_COPY_SIZE_MAX - size;
}

uint8_t *fuzz_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = fuzz_room(0, size);
    if (size > 0) memcpy(copy, bytes, size);
    return copy;
}
