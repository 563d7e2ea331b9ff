/* foundation/crc32c.h: CRC32C (Castagnoli), initial and final inversion as everywhere:
 * crc32c("123456789") = 0xE3069283. */
#ifndef FOUNDATION_CRC32C_H
#define FOUNDATION_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const uint8_t *data, size_t size);

/* Go on: crc32c_extend(crc32c(a), b) = crc32c(a then b). crc32c of nothing is 0. */
uint32_t crc32c_extend(uint32_t crc, const uint8_t *data, size_t size);

/* The same by tables, on any machine: what crc32c falls back to, and what tests compare it with. */
uint32_t crc32c_portable(uint32_t crc, const uint8_t *data, size_t size);

/* 1 = crc32c uses instructions of this processor. */
int crc32c_accelerated(void);

#endif
