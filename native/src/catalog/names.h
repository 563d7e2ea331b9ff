/* catalog/names.h: from a name to a number, within a scope: topics by (project, "stream/topic"),
 * projects by (organization, name).
 *
 * Pure but for memory that is given. Names are chosen by strangers, so the hash is keyed with a
 * secret of this start: no client can choose names that fall into one run. Every number has one
 * entry; several numbers may bear one name for a while (a topic that is being deleted and its
 * successor): the highest, which is the newest, is meant. Refuses, counted, what finds the table
 * full: such a name is answered as if there were none, its number still works. */
#ifndef CATALOG_NAMES_H
#define CATALOG_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"

enum {
    NAMES_SECRET_SIZE = 16,
    NAMES_PROJECTS_COUNT_MAX = 8192,
    NAMES_SLOTS_PER_ENTRY = 2, /* open addressing stays short */
};

struct names {
    uint8_t *entries;    /* struct name_entry, each with room for name_size_max bytes behind it */
    uint32_t *by_name;   /* entry + 1; 0 = free */
    uint32_t *by_number; /* entry + 1; 0 = free */
    uint32_t entry_size;
    uint32_t name_size_max;
    uint32_t count_max; /* 0 = no table: everything is refused */
    uint32_t slots_mask;
    uint32_t count;
    uint32_t used; /* entries ever touched: those behind were never free'd */
    uint32_t free; /* entry + 1 of the first given back */
    uint32_t reserved;
    uint64_t refused_count; /* names that found the table full */
    uint64_t secret[2];
};

/* SipHash-2-4 of `size` bytes under a 128-bit key. */
uint64_t names_hash(const uint64_t secret[2], const uint8_t *bytes, size_t size);

/* Bytes of memory for so many names (a power of two) of at most so many bytes each. */
size_t names_bytes(uint32_t count_max, uint32_t name_size_max);
/* `memory` is zeroed, names_bytes of it. */
void names_init(struct names *names, void *memory, uint32_t count_max, uint32_t name_size_max,
                const uint8_t secret[NAMES_SECRET_SIZE]);

/* `number` (not 0) bears this name in this scope from now on, and no other. STATUS_BUSY if the
 * table is full (counted): the number has no name then. A name of size 0 only takes the old one
 * away. */
enum status names_put(struct names *names, uint64_t scope, uint64_t number, const uint8_t *name,
                      size_t size);
void names_remove(struct names *names, uint64_t number);

/* The highest number that bears the name in the scope; 0 = none. */
uint64_t names_find(const struct names *names, uint64_t scope, const uint8_t *name, size_t size);

/* 1; checked builds look after every delta. */
int names_invariants(const struct names *names);

#endif
