/* storage/sim_storage.h: a disk in memory behind io/io.h, with a memory of what is durable and
 * what is not.
 *
 * Files are pages of 4 KiB in two versions: current (what reads see) and durable. A sync makes the
 * current version durable. A crash keeps of everything unsynced what the seed says: all, nothing,
 * or each 512-byte sector by itself; names likewise.
 *
 * Requests wait in a queue and are carried out one by one by sim_storage_step, so that a crash can
 * come between any two, or in the middle of a write. */
#ifndef STORAGE_SIM_STORAGE_H
#define STORAGE_SIM_STORAGE_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/random.h"
#include "foundation/status.h"
#include "io/io.h"

struct arena;

enum sim_storage_limit {
    SIM_PAGE_BYTES = 4096,
    SIM_PAGES_MAX = 16384,
    SIM_FILE_PAGES_MAX = 2048,
    SIM_FILES_MAX = 512,
    SIM_NAMES_MAX = 1024,
    SIM_SLOTS_MAX = 1024,
};

/* Every kind of fault that a run declares: a run of many seeds in which one never fired proves
 * nothing about it and fails.
 *
 *     crashes        what is left of unsynced bytes, names and sizes; cuts at any sector
 *     requests       one request fails, or lies
 *     damage         bytes or files that were durable are not what they were
 *     surroundings   disk space, time, the host */
#define SIM_FAULT_TABLE(X)                  \
    X(CRASH, crash)                         \
    X(KILL, kill)                           \
    X(LOST_WRITE, lost_write)               \
    X(TORN_SECTOR, torn_sector)             \
    X(TORN_CUT, torn_cut)                   \
    X(LOST_NAME, lost_name)                 \
    X(LOST_SIZE, lost_size)                 \
    X(CUT_REQUEST, cut_request)             \
    X(RECOVERY_CRASH, recovery_crash)       \
    X(CHECKPOINT_CRASH, checkpoint_crash)   \
    X(WRITE_FAILED, write_failed)           \
    X(SYNC_FAILED, sync_failed)             \
    X(DROPPED_PAGE, dropped_page)           \
    X(READ_FAILED, read_failed)             \
    X(SHORT_READ, short_read)               \
    X(MISDIRECTED_READ, misdirected_read)   \
    X(MISDIRECTED_WRITE, misdirected_write) \
    X(SLOW_DISK, slow_disk)                 \
    X(DISK_FULL, disk_full)                 \
    X(DISK_FULL_NAME, disk_full_name)       \
    X(RECOVERY_FULL, recovery_full)         \
    X(ROT_WITNESSED, rot_witnessed)         \
    X(ROT_LAST, rot_last)                   \
    X(ROT_EXTENT_HEADER, rot_extent_header) \
    X(ROT_FILE_HEADER, rot_file_header)     \
    X(ROT_SEGMENT, rot_segment)             \
    X(ROT_FOOTER, rot_footer)               \
    X(ROT_CHECKPOINT, rot_checkpoint)       \
    X(FILE_MISSING, file_missing)           \
    X(FILE_TRUNCATED, file_truncated)       \
    X(FILE_RENAMED, file_renamed)           \
    X(CLOCK_JUMP, clock_jump)               \
    X(CLOCK_STOP, clock_stop)               \
    X(MONOTONIC_STALL, monotonic_stall)     \
    X(HOST_LATE, host_late)                 \
    X(SNAPSHOT_REFUSED, snapshot_refused)

enum sim_fault {
#define SIM_FAULT_ENUM(name, text) SIM_##name,
    SIM_FAULT_TABLE(SIM_FAULT_ENUM)
#undef SIM_FAULT_ENUM
        SIM_FAULTS_COUNT,
};

/* What a crash is: as the seed says; of the process alone; of everything that was not synced. */
enum sim_fate { SIM_FATE_ANY = 0, SIM_FATE_KILL, SIM_FATE_LOSE };

/* What the next requests of a kind suffer, once: see faults/sim_io_faults.c. */
struct sim_ambush {
    uint64_t at; /* requests carried out before it; 0 = none is laid */
    enum sim_fault kind;
    uint8_t fired;           /* since it was laid */
    char path[IO_PATH_SIZE]; /* of the file it hit */
};

struct sim_file {
    uint64_t size;
    uint64_t size_durable;
    uint32_t pages[SIM_FILE_PAGES_MAX]; /* 0 = zeros */
    uint32_t pages_durable[SIM_FILE_PAGES_MAX];
    uint64_t dropped[SIM_FILE_PAGES_MAX / 64]; /* a bit a page */
    uint8_t used;
    uint8_t folder; /* no bytes: what its name stands for is that files may be made in it */
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
    struct sim_ambush ambush;
    uint8_t poisoned[SIM_SLOTS_MAX]; /* a sync failed: until the slot is closed */
    uint8_t dead;
    uint8_t disk_full;
    uint8_t fate; /* of the crashes to come: enum sim_fate */
    uint64_t faults[SIM_FAULTS_COUNT];
};

size_t sim_storage_memory_bytes(void);
void sim_storage_init(struct sim_storage *storage, struct arena *arena, uint64_t seed);
void sim_storage_copy(struct sim_storage *target, const struct sim_storage *source);
struct io *sim_storage_io(struct sim_storage *storage);

const char *sim_fault_name(uint32_t fault);

/* Carry out the oldest request and return it; NULL = none waits. */
struct io_request *sim_storage_step(struct sim_storage *storage);

/* A crash: the queue is gone, the write at its head may be half done. A kill leaves unsynced bytes
 * readable: a later power cut may still take them from under a recovery that read them (J3). */
void sim_storage_crash(struct sim_storage *storage);

/* A file as it reads now: its size, or -1. At most `size` bytes are copied from `offset`. */
long sim_storage_read(struct sim_storage *storage, const char *path, uint64_t offset,
                      uint8_t *target, uint64_t size);
/* 1 = a power cut now would leave these bytes as they are. */
int sim_storage_durable(struct sim_storage *storage, const char *path, uint64_t offset,
                        uint64_t size);
/* Damage: overwrite durable and current bytes. */
void sim_storage_poke(struct sim_storage *storage, const char *path, uint64_t offset,
                      const uint8_t *bytes, uint64_t size);
/* The `index`-th name that is there, by order of making; NULL = there are fewer. */
const char *sim_storage_name(const struct sim_storage *storage, uint32_t index);
/* Durably: gone, cut to `size`, exchanged with another. */
void sim_storage_remove(struct sim_storage *storage, const char *path);
void sim_storage_cut(struct sim_storage *storage, const char *path, uint64_t size);
void sim_storage_swap(struct sim_storage *storage, const char *path, const char *other);
/* XXH3 over names, sizes and bytes of all whose path begins with `prefix`. */
uint64_t sim_storage_digest(struct sim_storage *storage, const char *prefix);

#endif
