#include "store/files/folder_list.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "io/io.h"

enum { NAMES_BYTES = 524288 /* one folder: twice the names of all its segments */ };

struct folder_list {
    uint8_t *names;
    uint64_t at;
    uint64_t size;
    uint32_t owner; /* index + 1 of the replica whose names they are; 0 = none */
};

size_t folder_list_memory_bytes(void)
{
    return arena_size(sizeof(struct folder_list)) + NAMES_BYTES + ARENA_PAGE_BYTES;
}

struct folder_list *folder_list_make(struct arena *arena)
{
    struct folder_list *list = arena_take(arena, sizeof *list);
    if (!list) return NULL;
    list->names = arena_take_aligned(arena, NAMES_BYTES, ARENA_PAGE_BYTES);
    return list->names ? list : NULL;
}

int folder_list_is_free(const struct folder_list *list)
{
    return list->owner == 0;
}

int folder_list_is_of(const struct folder_list *list, uint32_t replica)
{
    return list->owner == replica + 1;
}

void folder_list_take(struct folder_list *list, uint32_t replica)
{
    assert(list->owner == 0 || list->owner == replica + 1);
    list->owner = replica + 1;
}

void folder_list_give(struct folder_list *list)
{
    list->owner = 0;
}

void folder_list_ask(struct folder_list *list, struct io_request *request)
{
    assert(request->operation == IO_LIST);
    request->buffer = list->names;
    request->size = NAMES_BYTES;
    list->at = list->size = 0;
}

void folder_list_answer(struct folder_list *list, const struct io_request *request)
{
    assert(request->operation == IO_LIST && request->buffer == list->names);
    assert(request->result_bytes <= NAMES_BYTES);
    list->at = 0;
    list->size = request->result_bytes;
}

int folder_list_has_more(const struct folder_list *list)
{
    return list->at < list->size;
}

const char *folder_list_next(struct folder_list *list)
{
    if (!folder_list_has_more(list)) return NULL;
    const char *name = (const char *)list->names + list->at;
    size_t length = strlen(name);
    assert(list->at + length < list->size);
    list->at += length + 1;
    return name;
}

void folder_list_clear(struct folder_list *list)
{
    list->at = list->size = 0;
}

void folder_list_invariants(const struct folder_list *list)
{
    assert(list->at <= list->size);
    assert(list->size <= NAMES_BYTES);
}
