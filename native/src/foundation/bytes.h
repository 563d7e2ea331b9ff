/* foundation/bytes.h: little-endian integers and varints at any alignment, and two cursors that
 * cannot run over their ends.
 *
 * Everything written to disk or wire goes through here, so that structs never are. A reader turns
 * sour on the first read beyond its end and stays so: read all, then look at `failed` once. */
#ifndef FOUNDATION_BYTES_H
#define FOUNDATION_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "foundation/assert.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the formats are little-endian and so is every machine we run on");

static inline uint16_t bytes_get_u16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}
static inline uint32_t bytes_get_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}
static inline uint64_t bytes_get_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}
static inline int64_t bytes_get_i64(const uint8_t *at)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline void bytes_put_u16(uint8_t *at, uint16_t value)
{
    memcpy(at, &value, sizeof value);
}
static inline void bytes_put_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}
static inline void bytes_put_u64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}
static inline void bytes_put_i64(uint8_t *at, int64_t value)
{
    memcpy(at, &value, sizeof value);
}

/* 1 if all bytes are zero. For reserved fields and torn blocks. */
static inline int bytes_all_zero(const uint8_t *at, size_t size)
{
    uint8_t seen = 0;
    for (size_t index = 0; index < size; index++) seen |= at[index];
    return seen == 0;
}

static inline uint64_t bytes_round_up(uint64_t value, uint64_t multiple)
{
    assert(multiple > 0 && (multiple & (multiple - 1)) == 0);
    assert(value <= UINT64_MAX - (multiple - 1));
    return (value + multiple - 1) & ~(multiple - 1);
}

/* Bytes that `value` takes as a varint: 1..10. */
static inline size_t bytes_uvarint_size(uint64_t value)
{
    return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

/* Write a varint; room for it must be there. Returns the byte after it. */
static inline uint8_t *bytes_put_uvarint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Read a varint of at most `bytes_max` bytes. Returns the byte after it, or NULL: it does not end
 * in time, overflows 64 bits, or is longer than it needs to be (a second spelling of a value would
 * give a second checksum of the same record). */
static inline const uint8_t *bytes_get_uvarint(const uint8_t *at, const uint8_t *end,
                                               unsigned bytes_max, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned index = 0; index < bytes_max && at < end; index++) {
        uint8_t byte = *at++;
        if (index == 9 && byte > 1) return NULL;
        result |= (uint64_t)(byte & 0x7f) << (7 * index);
        if (byte & 0x80) continue;
        if (byte == 0 && index > 0) return NULL;
        *value = result;
        return at;
    }
    return NULL;
}

static inline uint64_t bytes_zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}
static inline int64_t bytes_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

struct bytes_reader {
    const uint8_t *at;
    const uint8_t *end;
    int failed;
};

/* The next `size` bytes, or NULL (and sour) if there are fewer. */
static inline const uint8_t *bytes_read(struct bytes_reader *reader, size_t size)
{
    if (reader->failed || size > (size_t)(reader->end - reader->at)) {
        reader->failed = 1;
        return NULL;
    }
    const uint8_t *at = reader->at;
    reader->at += size;
    return at;
}

static inline uint8_t bytes_read_u8(struct bytes_reader *reader)
{
    const uint8_t *at = bytes_read(reader, 1);
    return at ? *at : 0;
}

static inline uint16_t bytes_read_u16(struct bytes_reader *reader)
{
    const uint8_t *at = bytes_read(reader, 2);
    return at ? bytes_get_u16(at) : (uint16_t)0;
}

static inline uint32_t bytes_read_u32(struct bytes_reader *reader)
{
    const uint8_t *at = bytes_read(reader, 4);
    return at ? bytes_get_u32(at) : 0;
}

static inline uint64_t bytes_read_u64(struct bytes_reader *reader)
{
    const uint8_t *at = bytes_read(reader, 8);
    return at ? bytes_get_u64(at) : 0;
}

/* Running out of room is our error: the size was computed before. */
struct bytes_writer {
    uint8_t *at;
    uint8_t *end;
};

static inline uint8_t *bytes_write(struct bytes_writer *writer, size_t size)
{
    assert(size <= (size_t)(writer->end - writer->at));
    uint8_t *at = writer->at;
    writer->at += size;
    return at;
}

static inline void bytes_write_u8(struct bytes_writer *writer, uint8_t value)
{
    *bytes_write(writer, 1) = value;
}
static inline void bytes_write_u16(struct bytes_writer *writer, uint16_t value)
{
    bytes_put_u16(bytes_write(writer, 2), value);
}
static inline void bytes_write_u32(struct bytes_writer *writer, uint32_t value)
{
    bytes_put_u32(bytes_write(writer, 4), value);
}
static inline void bytes_write_u64(struct bytes_writer *writer, uint64_t value)
{
    bytes_put_u64(bytes_write(writer, 8), value);
}

#endif
