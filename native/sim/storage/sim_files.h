/* storage/sim_files.h: what the simulated disk is made of: pages in two versions, names, files.
 *
 * A page is shared by all that show the same bytes and copied when one of them is written. A page
 * that was dropped is readable and yet never reaches the disk, however often the file is synced:
 * its write-back failed once and the system forgot it; a write to it makes it ordinary again. */
#ifndef STORAGE_SIM_FILES_H
#define STORAGE_SIM_FILES_H

#include "storage/sim_storage.h"

enum { SIM_SECTOR_BYTES = 512, SIM_SECTORS_COUNT = 8 };

uint8_t *sim_page(const struct sim_storage *storage, uint32_t page);
void sim_page_release(struct sim_storage *storage, uint32_t page);
/* A page of its own with the bytes of `copied`. */
uint32_t sim_page_take(struct sim_storage *storage, uint32_t copied);
void sim_page_persist(struct sim_storage *storage, struct sim_file *file, uint64_t index);
int sim_page_dropped(const struct sim_file *file, uint64_t index);

/* NULL = no such name; with `make` it is made. */
struct sim_name *sim_name(struct sim_storage *storage, const char *path, int make);
int sim_name_in(const struct sim_name *name, const char *folder);
/* The folder of a path is there; "." always is. */
int sim_folder_exists(struct sim_storage *storage, const char *path);
void sim_folder_make(struct sim_storage *storage, const char *path);
struct sim_file *sim_file_make(struct sim_storage *storage, uint32_t *index);
struct sim_file *sim_file_at(struct sim_storage *storage, const char *path);
void sim_files_collect(struct sim_storage *storage);

void sim_write(struct sim_storage *storage, struct sim_file *file, uint64_t offset,
               const uint8_t *bytes, uint64_t size);
void sim_read(const struct sim_storage *storage, const struct sim_file *file, uint64_t offset,
              uint8_t *target, uint64_t size);
void sim_sync(struct sim_storage *storage, struct sim_file *file, uint64_t first, uint64_t end);
void sim_truncate(struct sim_storage *storage, struct sim_file *file, uint64_t size);

/* storage/sim_storage.c: a request, faults and all. */
enum status sim_carry_out(struct sim_storage *storage, struct io_request *request);

/* faults/sim_io_faults.c: 1 = the request fails, or is carried out otherwise than asked, here. */
int sim_io_fault(struct sim_storage *storage, struct io_request *request, enum status *status);

#endif
