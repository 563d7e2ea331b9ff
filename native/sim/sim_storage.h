/* sim_storage.h: a disk in memory behind io.h, with a memory of what is durable and what is not.
 *
 * Files are pages of 4 KiB in two versions: current (what reads see) and durable. A sync makes the
 * current version durable. A crash keeps of everything unsynced what the seed says: all, nothing,
 * or each 512-byte sector by itself; names likewise.
 *
 * Requests wait in a queue and are carried out one by one by sim_storage_step, so that a crash can
 * come between any two, or in the middle of a write. */
#ifndef SIM_STORAGE_H
#define SIM_STORAGE_H

#include <stddef.h>
#include <stdint.h>

#include "io.h"
#include "random.h"
#include "status.h"

struct arena;

enum sim_storage_limit {
    SIM_PAGE_BYTES = 4096,
    SIM_PAGES_MAX = 16384,
    SIM_FILE_PAGES_MAX = 2048,
    SIM_FILES_MAX = 512,
    SIM_NAMES_MAX = 1024,
    SIM_SLOTS_MAX = 1024,
};

enum sim_fault {
    SIM_CRASH = 0,
    SIM_LOST_WRITE,
    SIM_TORN_SECTOR,
    SIM_LOST_NAME,
    SIM_LOST_SIZE,
    SIM_CUT_REQUEST,
    SIM_DISK_FULL,
    SIM_RECOVERY_CRASH,
    SIM_BIT_ROT,
    SIM_KILL,
    SIM_FAULTS_COUNT,
};

/* What a crash is: as the seed says; of the process alone; of everything that was not synced. */
enum sim_fate { SIM_FATE_ANY = 0, SIM_FATE_KILL, SIM_FATE_LOSE };

struct sim_file {
    uint64_t size;
    uint64_t size_durable;
    uint32_t pages[SIM_FILE_PAGES_MAX]; /* 0 = zeros */
    uint32_t pages_durable[SIM_FILE_PAGES_MAX];
    uint8_t used;
};

struct sim_name {
    char path[IO_PATH_SIZE];
    uint32_t file; /* index + 1; 0 = no such name */
    uint32_t file_durable;
};

struct sim_storage {
    struct io io;
    struct random random;
    uint8_t *page_memory;
    uint16_t *page_users;
    uint32_t pages_used;
    uint32_t page_hint;
    struct sim_file *files;
    struct sim_name *names;
    uint32_t names_count;
    uint32_t slots[SIM_SLOTS_MAX]; /* file index + 1 */
    struct io_request *queue_head;
    struct io_request *queue_tail;
    uint64_t requests; /* carried out */
    uint64_t crash_at; /* performs fail from here on; 0 = never */
    uint8_t dead;
    uint8_t disk_full;
    uint8_t fate; /* of the crashes to come: enum sim_fate */
    uint64_t faults[SIM_FAULTS_COUNT];
};

size_t sim_storage_memory_bytes(void);
void sim_storage_init(struct sim_storage *storage, struct arena *arena, uint64_t seed);
void sim_storage_copy(struct sim_storage *target, const struct sim_storage *source);
struct io *sim_storage_io(struct sim_storage *storage);

/* Carry out the oldest request and return it; NULL = none waits. */
struct io_request *sim_storage_step(struct sim_storage *storage);

/* A crash: the queue is gone, the write at its head may be half done. A kill leaves unsynced bytes
 * readable: a later power cut may still take them from under a recovery that read them (J3). */
void sim_storage_crash(struct sim_storage *storage);

/* A file as it reads now: its size, or -1. At most `size` bytes are copied from `offset`. */
long sim_storage_read(struct sim_storage *storage, const char *path, uint64_t offset,
                      uint8_t *target, uint64_t size);
/* Damage: overwrite durable and current bytes. */
void sim_storage_poke(struct sim_storage *storage, const char *path, uint64_t offset,
                      const uint8_t *bytes, uint64_t size);
/* XXH3 over all names, sizes and bytes; journal_too = 0: only of what lies under topics/. */
uint64_t sim_storage_digest(struct sim_storage *storage, int journal_too);

#endif
