/* store/checkpoint/checkpoint_file.h: checkpoints too large for an entry are files named by their
 * checksum (J7).
 *
 *     open, cut, write, sync, close, sync the folder     and only then the entry that names it may
 *                                                        enter a round
 *
 * A file that a newer one replaces goes when the newer entry is witnessed; what a crash leaves
 * behind the next start sweeps. One file of each slot, a replica's and metadata's, is written at a
 * time. */
#ifndef STORE_CHECKPOINT_CHECKPOINT_FILE_H
#define STORE_CHECKPOINT_CHECKPOINT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/status.h"
#include "io/io.h"

struct arena;
struct checkpoint_files;
struct file_request;
struct store;

size_t checkpoint_files_memory_bytes(void);
struct checkpoint_files *checkpoint_files_make(struct arena *arena);

void checkpoint_file_path(const uint8_t digest[16], char path[IO_PATH_SIZE]);
/* `slot`: of files/requests.h, the checkpoint's or the snapshot's. `data` stays until the owner of
 * the slot is notified that the file is durable: now, or once requests are free and the disk has
 * room. */
void checkpoint_file_write(struct store *store, uint32_t slot, const uint8_t digest[16],
                           uint8_t *data, uint64_t size);
/* Once more, from the first step: at the next tick. */
void checkpoint_file_again(struct store *store, uint32_t slot);
void checkpoint_file_step_done(struct store *store, const struct file_request *done);
void checkpoint_files_tick(struct store *store);

/* The entry in use was replaced by one that has just become durable. */
void checkpoint_file_replaced(struct store *store, const uint8_t digest[16]);
/* A round is durable: files whose replacement it witnesses go. */
void checkpoint_files_witnessed(struct store *store);

void checkpoint_files_invariants(const struct checkpoint_files *files);

#endif
