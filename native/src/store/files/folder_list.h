/* store/files/folder_list.h: the names in one folder, which is being emptied: one replica at a time
 * has the list, since it is as long as all segments of a partition.
 *
 * Owns whose turn it is and how far the list was read. Refuses to know which names go. */
#ifndef STORE_FILES_FOLDER_LIST_H
#define STORE_FILES_FOLDER_LIST_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct folder_list;
struct io_request;

size_t folder_list_memory_bytes(void);
struct folder_list *folder_list_make(struct arena *arena);

/* `replica` is the index of one. */
int folder_list_is_free(const struct folder_list *list);
int folder_list_is_of(const struct folder_list *list, uint32_t replica);
void folder_list_take(struct folder_list *list, uint32_t replica);
void folder_list_give(struct folder_list *list);

/* A request to list goes, and was answered. */
void folder_list_ask(struct folder_list *list, struct io_request *request);
void folder_list_answer(struct folder_list *list, const struct io_request *request);
/* The next name; NULL = no more. It stays until the next request. */
const char *folder_list_next(struct folder_list *list);
int folder_list_has_more(const struct folder_list *list);
/* What is left of it is of no use. */
void folder_list_clear(struct folder_list *list);

void folder_list_invariants(const struct folder_list *list);

#endif
