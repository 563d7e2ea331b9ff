/* store/files/open_files.h: segment files that are open: opened when needed, closed when others
 * need their place.
 *
 * A file is named by a number from open_files_open; it stays open while somebody uses it. Owns the
 * places and which is to be given up next. Refuses to know what is written. */
#ifndef STORE_FILES_OPEN_FILES_H
#define STORE_FILES_OPEN_FILES_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct file_request;
struct open_files;
struct replica;
struct store;

enum { OPEN_FILES_MAX = 512 /* at once: half of the usual limit of descriptors */ };

size_t open_files_memory_bytes(void);
struct open_files *open_files_make(struct arena *arena, uint32_t files_max);

/* The file of a segment, opened if it is not. 0 = no place or request is free: later. */
uint32_t open_files_open(struct store *store, struct replica *replica, uint64_t segment,
                         uint32_t flags);
/* The slot that requests name it by (io/io.h). */
uint32_t open_files_slot(uint32_t file);
/* A request for it was sent, and ended. */
void open_files_use(struct open_files *files, uint32_t file);
void open_files_unuse(struct open_files *files, uint32_t file);
/* What opened it, or its folder, failed: it is opened again when it is needed. */
int open_files_broken(const struct open_files *files, uint32_t file);

/* Close unused files of segments below `below`; their places may be taken again. 1 = none is
 * left open. */
int open_files_forget(struct store *store, const struct replica *replica, uint64_t below);
int open_files_any(const struct store *store, const struct replica *replica);

/* A request that opens, closes, makes a folder or unlinks ended. */
void open_files_done(struct store *store, const struct file_request *done);

void open_files_invariants(const struct open_files *files);

#endif
