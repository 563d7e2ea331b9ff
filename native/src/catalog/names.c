/* catalog/names.c: see catalog/names.h. Two open-addressing indexes over one array of entries:
 * by the keyed hash of (scope, name), and by number. Holes are closed by moving later ones of a
 * run back: no tombstones, so that lookups never slow down. */
#include "catalog/names.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum { SCOPE_SIZE = 8, NAME_SIZE_MAX = 504 };

struct name_entry {
    uint64_t number;
    uint64_t scope;
    uint64_t hash;
    uint32_t size;
    uint32_t next_free; /* entry + 1, of those given back */
};

static uint64_t rotate(uint64_t value, unsigned count)
{
    return value << count | value >> (64 - count);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t names_hash(const uint64_t secret[2], const uint8_t *bytes, size_t size)
{
    /* "somepseudorandomlygeneratedbytes": the constants of the paper. */
    uint64_t v[4] = {
        secret[0] ^ UINT64_C(0x736f6d6570736575),
        secret[1] ^ UINT64_C(0x646f72616e646f6d),
        secret[0] ^ UINT64_C(0x6c7967656e657261),
        secret[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t whole = size & ~(size_t)7;
    for (size_t at = 0; at < whole; at += 8) sip_word(v, bytes_get_u64(bytes + at));
    uint64_t last = (uint64_t)size << 56;
    for (size_t at = whole; at < size; at++) last |= (uint64_t)bytes[at] << (8 * (at - whole));
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int left = 4; left > 0; left--) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t hash_of(const struct names *names, uint64_t scope, const uint8_t *name, size_t size)
{
    uint8_t keyed[SCOPE_SIZE + NAME_SIZE_MAX];
    assert(size <= NAME_SIZE_MAX);
    bytes_put_u64(keyed, scope);
    memcpy(keyed + SCOPE_SIZE, name, size);
    return names_hash(names->secret, keyed, SCOPE_SIZE + size);
}

static uint32_t entry_size(uint32_t name_size_max)
{
    return (uint32_t)bytes_round_up(sizeof(struct name_entry) + name_size_max, 8);
}

size_t names_bytes(uint32_t count_max, uint32_t name_size_max)
{
    size_t slots = (size_t)count_max * NAMES_SLOTS_PER_ENTRY * sizeof(uint32_t);
    return (size_t)count_max * entry_size(name_size_max) + 2 * slots;
}

void names_init(struct names *names, void *memory, uint32_t count_max, uint32_t name_size_max,
                const uint8_t secret[NAMES_SECRET_SIZE])
{
    assert(memory != NULL);
    assert(count_max > 0);
    assert((count_max & (count_max - 1)) == 0);
    assert(name_size_max <= NAME_SIZE_MAX);
    uint32_t slots = count_max * NAMES_SLOTS_PER_ENTRY;
    *names = (struct names){
        .entries = memory,
        .entry_size = entry_size(name_size_max),
        .name_size_max = name_size_max,
        .count_max = count_max,
        .slots_mask = slots - 1,
    };
    uint8_t *indexes = names->entries + (size_t)count_max * names->entry_size;
    names->by_name = (uint32_t *)(void *)indexes;
    names->by_number = names->by_name + slots;
    memcpy(names->secret, secret, NAMES_SECRET_SIZE);
}

static struct name_entry *entry_at(const struct names *names, uint32_t index)
{
    assert(index < names->used);
    return (struct name_entry *)(void *)(names->entries + (size_t)index * names->entry_size);
}

static uint8_t *name_of(struct name_entry *entry)
{
    return (uint8_t *)entry + sizeof *entry;
}

static uint64_t number_home(uint64_t number)
{
    return number * UINT64_C(0x9E3779B97F4A7C15) >> 32;
}

static uint32_t home_of(const struct names *names, const uint32_t *slots, uint32_t index)
{
    const struct name_entry *entry = entry_at(names, index);
    uint64_t home = slots == names->by_name ? entry->hash : number_home(entry->number);
    return (uint32_t)home & names->slots_mask;
}

static void slot_insert(struct names *names, uint32_t *slots, uint32_t index)
{
    uint32_t slot = home_of(names, slots, index);
    while (slots[slot] != 0) slot = (slot + 1) & names->slots_mask;
    slots[slot] = index + 1;
}

static void slot_remove(struct names *names, uint32_t *slots, uint32_t index)
{
    uint32_t mask = names->slots_mask;
    uint32_t hole = home_of(names, slots, index);
    while (slots[hole] != index + 1) {
        assert(slots[hole] != 0);
        hole = (hole + 1) & mask;
    }
    uint32_t slot = (hole + 1) & mask;
    while (slots[slot] != 0) {
        uint32_t home = home_of(names, slots, slots[slot] - 1);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            slots[hole] = slots[slot];
            hole = slot;
        }
        slot = (slot + 1) & mask;
    }
    slots[hole] = 0;
}

/* The entry of a number + 1; 0 = it has no name. */
static uint32_t entry_of(const struct names *names, uint64_t number)
{
    uint32_t slot = (uint32_t)number_home(number) & names->slots_mask;
    while (names->by_number[slot] != 0) {
        uint32_t found = names->by_number[slot];
        if (entry_at(names, found - 1)->number == number) return found;
        slot = (slot + 1) & names->slots_mask;
    }
    return 0;
}

void names_remove(struct names *names, uint64_t number)
{
    if (names->count_max == 0) return;
    uint32_t found = entry_of(names, number);
    if (found == 0) return;
    assert(names->count > 0);
    slot_remove(names, names->by_name, found - 1);
    slot_remove(names, names->by_number, found - 1);
    *entry_at(names, found - 1) = (struct name_entry){.next_free = names->free};
    names->free = found;
    names->count--;
}

static uint32_t entry_take(struct names *names)
{
    names->count++;
    if (names->free == 0) return names->used++;
    uint32_t index = names->free - 1;
    names->free = entry_at(names, index)->next_free;
    return index;
}

static int entry_bears(struct name_entry *entry, uint64_t scope, uint64_t hash, const uint8_t *name,
                       size_t size)
{
    if (entry->hash != hash || entry->scope != scope || entry->size != size) return 0;
    return memcmp(name_of(entry), name, size) == 0;
}

enum status names_put(struct names *names, uint64_t scope, uint64_t number, const uint8_t *name,
                      size_t size)
{
    assert(number != 0);
    names_remove(names, number);
    if (size == 0) return STATUS_OK;
    if (names->count == names->count_max) {
        names->refused_count++;
        return STATUS_BUSY;
    }
    assert(size <= names->name_size_max);
    uint32_t index = entry_take(names);
    struct name_entry *entry = entry_at(names, index);
    *entry = (struct name_entry){
        .number = number,
        .scope = scope,
        .hash = hash_of(names, scope, name, size),
        .size = (uint32_t)size,
    };
    memcpy(name_of(entry), name, size);
    slot_insert(names, names->by_name, index);
    slot_insert(names, names->by_number, index);
    return STATUS_OK;
}

uint64_t names_find(const struct names *names, uint64_t scope, const uint8_t *name, size_t size)
{
    if (names->count_max == 0 || size == 0 || size > names->name_size_max) return 0;
    uint64_t hash = hash_of(names, scope, name, size);
    uint64_t newest = 0;
    uint32_t slot = (uint32_t)hash & names->slots_mask;
    while (names->by_name[slot] != 0) {
        struct name_entry *entry = entry_at(names, names->by_name[slot] - 1);
        if (entry->number > newest && entry_bears(entry, scope, hash, name, size))
            newest = entry->number;
        slot = (slot + 1) & names->slots_mask;
    }
    return newest;
}

enum { NAMES_WALKED_MAX = 1024 /* a walk over more after every delta would be too dear */ };

int names_invariants(const struct names *names)
{
    assert(names->used <= names->count_max);
    assert(names->count <= names->used);
    if (names->count_max > NAMES_WALKED_MAX) return 1;
    uint32_t free_count = 0;
    for (uint32_t at = names->free; at != 0; at = entry_at(names, at - 1)->next_free) free_count++;
    assert(names->count + free_count == names->used);
    uint32_t by_name = 0;
    uint32_t by_number = 0;
    for (uint32_t slot = 0; names->count_max > 0 && slot <= names->slots_mask; slot++) {
        by_name += names->by_name[slot] != 0;
        by_number += names->by_number[slot] != 0;
    }
    assert(by_name == names->count);
    assert(by_number == names->count);
    return 1;
}
