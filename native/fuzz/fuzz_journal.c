/* fuzz_journal.c: recovery of a damaged journal, with everything behind it.
 *
 * A store on the simulator's disk writes a journal of a few rounds once. Each input is a list of
 * damages to that image: raw bytes, swapped and copied blocks, and changes that keep every checksum
 * right, as a bug of ours or a hostile hand would leave them; or, behind a first byte 0, a whole
 * image. Asserts that opening answers with a status, and that opening again what the first opening
 * left gives equal bytes (J3). */
#include <string.h>
#include <sys/mman.h>

#include "batch/batch.h"
#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"
#include "fuzz_input.h"
#include "journal/format.h"
#include "storage/sim_storage.h"
#include "store/store.h"

enum {
    EXTENT_BYTES = 16 * JOURNAL_BLOCK_BYTES,
    IMAGE_BYTES = 6 * EXTENT_BYTES + JOURNAL_FILE_HEADER_BYTES,
    BLOCKS_COUNT = IMAGE_BYTES / JOURNAL_BLOCK_BYTES,
    BATCHES_COUNT = 40,
    BATCH_BYTES = 700,
    DAMAGES_MAX = 16,
    BLOCK_FIELDS_AT = 16,
    BLOCK_FIELDS_BYTES = 32,
    POKE_BYTES_MAX = 32,
    STORE_MEMORY_BYTES = 64 << 20,
};

static const char journal_path[] = "journal";

static struct sim_storage storage;
static uint8_t image[IMAGE_BYTES];
static uint8_t *store_memory;

static struct store_config config(void)
{
    return (struct store_config){
        .shards_count = 1,
        .extent_bytes = EXTENT_BYTES,
        .journal_bytes = IMAGE_BYTES,
        .prepares_bytes = 256 << 10,
        .partitions_max = 4,
        .producers_max = 16,
        .metering_window_s = 1,
        .segments_max = 64,
        .index_blocks_max = 64,
        .cluster_id = "cl_fuzz",
        .node_id = "nd_fuzz",
        .node_incarnation = 1,
    };
}

/* The store of one start, over zeroed memory. */
static struct store *store_life(enum status *status)
{
    struct store_config wanted = config();
    struct arena arena;
    /* Most of it is never touched: cheaper than to write zeros over all of it. */
    int failed = madvise(store_memory, STORE_MEMORY_BYTES, MADV_DONTNEED);
    assert(failed == 0);
    arena_init(&arena, store_memory, STORE_MEMORY_BYTES);
    struct store *store = store_allocate(&wanted, &arena);
    assert(store != NULL);
    memset(storage.slots, 0, sizeof storage.slots);
    storage.queue_head = NULL;
    storage.queue_tail = NULL;
    struct store_now now = {.monotonic_ns = 1000000000, .wall_us = 1767225600000000};
    char detail[256];
    *status = store_open(store, sim_storage_io(&storage), now, detail, sizeof detail);
    return store;
}

static void store_run(struct store *store, struct store_now now)
{
    struct store_outcome outcome;
    struct io_request *request;
    do {
        store_flush(store, now);
        request = sim_storage_step(&storage);
        if (request != NULL) store_complete(store, request);
        while (store_outcome_next(store, &outcome)) assert(outcome.status == STATUS_OK);
    } while (request != NULL || store_work(store));
}

static size_t part_make(uint8_t *part, uint32_t number)
{
    memset(part, 0, BATCH_BYTES);
    bytes_put_u32(part, BATCH_BYTES);
    part[8] = 1;
    bytes_put_u32(part + 12, 1);
    bytes_put_u32(part + 64, BATCH_BYTES - BATCH_CLIENT_HEADER_BYTES);
    memset(part + BATCH_CLIENT_HEADER_BYTES, (int)number, BATCH_BYTES - BATCH_CLIENT_HEADER_BYTES);
    bytes_put_u32(part + 4, crc32c(part + 8, BATCH_BYTES - 8));
    return BATCH_BYTES;
}

/* What the inputs damage: rounds of one batch and rounds of many, over several extents. */
static void image_make(void)
{
    enum status status;
    struct store *store = store_life(&status);
    assert(status == STATUS_OK);
    struct store_now now = {.monotonic_ns = 1000000000, .wall_us = 1767225600000000};
    struct engine_row_topic row = {
        .row = {.kind = ENGINE_ROW_TOPIC, .size = sizeof row},
        .topic = 16,
        .created_revision = 1,
        .partitions_count = 4,
        .message_bytes_max = 1 << 20,
        .segment_bytes = 8192,
    };
    status = store_tables_apply(store, 1, (const uint8_t *)&row, sizeof row);
    assert(status == STATUS_OK);
    for (uint32_t number = 0; number < BATCHES_COUNT; number++) {
        uint8_t part[BATCH_BYTES];
        struct store_produce produce = {
            .id = {.topic = 16, .created_revision = 1, .partition = number % 3},
            .batch = part,
            .batch_size = part_make(part, number),
            .principal = 16,
            .message_bytes_max = 1 << 20,
            .token = number + 1,
        };
        status = store_produce(store, &produce);
        assert(status == STATUS_OK);
        if (number % 4 != 1) store_run(store, now);
    }
    store_run(store, now);
    long size = sim_storage_read(&storage, journal_path, 0, image, sizeof image);
    assert(size == IMAGE_BYTES);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    static struct arena disk;
    static struct arena memory;
    enum status status = arena_open(&disk, sim_storage_memory_bytes());
    assert(status == STATUS_OK);
    status = arena_open(&memory, STORE_MEMORY_BYTES);
    assert(status == STATUS_OK);
    store_memory = arena_take_aligned(&memory, STORE_MEMORY_BYTES, ARENA_PAGE_BYTES);
    assert(store_memory != NULL);
    sim_storage_init(&storage, &disk, 1);
    image_make();
    return 0;
}

/* No file, no page taken. */
static void disk_clear(void)
{
    for (uint32_t index = 0; index < SIM_FILES_MAX; index++) {
        if (storage.files[index].used) memset(&storage.files[index], 0, sizeof storage.files[0]);
    }
    memset(storage.names, 0, storage.names_count * sizeof storage.names[0]);
    memset(storage.page_users, 0, SIM_PAGES_MAX * sizeof storage.page_users[0]);
    storage.names_count = 0;
    storage.pages_used = 0;
    storage.page_hint = 0;
}

static void disk_fill(uint8_t *bytes, size_t size)
{
    struct io_request open = {.operation = IO_OPEN, .file = 1, .flags = IO_CREATE};
    memcpy(open.path, journal_path, sizeof journal_path);
    struct io_request write = {
        .operation = IO_WRITE, .file = 1, .buffer = bytes, .size = size, .offset = 0};
    struct io_request sync = {.operation = IO_SYNC, .file = 1};
    struct io_request names = {.operation = IO_SYNC_DIR, .path = "."};
    struct io *io = sim_storage_io(&storage);
    enum status status = io->perform(io->context, &open);
    if (status == STATUS_OK) status = io->perform(io->context, &write);
    if (status == STATUS_OK) status = io->perform(io->context, &sync);
    if (status == STATUS_OK) status = io->perform(io->context, &names);
    assert(status == STATUS_OK);
}

/* ---- damages ---- */

static void poke(uint8_t *target, size_t room, struct fuzz_input *input)
{
    size_t size;
    size_t at = fuzz_u16(input) % room;
    size_t wanted = fuzz_byte(input) % POKE_BYTES_MAX + 1;
    const uint8_t *bytes = fuzz_bytes(input, wanted, &size);
    if (size > room - at) size = room - at;
    memcpy(target + at, bytes, size);
}

static void block_reseal(uint8_t *block, uint64_t place)
{
    uint8_t seed[8];
    bytes_put_u64(seed, place);
    bytes_put_u32(block + 4,
                  crc32c_extend(crc32c(seed, sizeof seed), block + 8, JOURNAL_BLOCK_BYTES - 8));
}

/* Change the payload of a valid block, or its header, and make its checksum right again. */
static void block_change(uint8_t *block, uint64_t place, struct fuzz_input *input, int header)
{
    struct journal_block fields;
    if (!journal_block_get(block, bytes_get_u64(block + 8), place, &fields)) return;
    if (header) {
        poke(block + BLOCK_FIELDS_AT, BLOCK_FIELDS_BYTES, input);
        block_reseal(block, place);
        return;
    }
    journal_block_restore(block);
    poke(block + JOURNAL_BLOCK_HEADER_BYTES, JOURNAL_BLOCK_PAYLOAD_BYTES, input);
    journal_block_seal(block, &fields);
}

/* The checksums of a round's head and of the entries that lie whole in its first block. */
static void round_reseal(uint8_t *payload)
{
    uint64_t items = (uint64_t)bytes_get_u32(payload + 12) + bytes_get_u32(payload + 16);
    uint64_t head = JOURNAL_ROUND_HEADER_BYTES + items * JOURNAL_DIRECTORY_ITEM_BYTES;
    if (head > JOURNAL_BLOCK_PAYLOAD_BYTES) return;
    journal_round_seal_head(payload, crc32c(payload + 8, head - 8));
    uint64_t at = head;
    while (at + JOURNAL_ENTRY_HEADER_BYTES <= JOURNAL_BLOCK_PAYLOAD_BYTES) {
        uint32_t size = bytes_get_u32(payload + at);
        if (size < JOURNAL_ENTRY_HEADER_BYTES || size > JOURNAL_BLOCK_PAYLOAD_BYTES - at) return;
        journal_entry_seal(payload + at);
        at += bytes_round_up(size, JOURNAL_ENTRY_ALIGNMENT);
    }
}

static void round_change(uint8_t *block, uint64_t place, struct fuzz_input *input)
{
    struct journal_block fields;
    if (!journal_block_get(block, bytes_get_u64(block + 8), place, &fields)) return;
    if (fields.kind != JOURNAL_BLOCK_ROUND || fields.number != 0) return;
    journal_block_restore(block);
    uint8_t *payload = block + JOURNAL_BLOCK_HEADER_BYTES;
    poke(payload, JOURNAL_BLOCK_PAYLOAD_BYTES, input);
    round_reseal(payload);
    journal_block_seal(block, &fields);
}

static void damage(uint8_t *bytes, struct fuzz_input *input)
{
    uint8_t kind = fuzz_byte(input) % 9;
    uint8_t *block = bytes + fuzz_byte(input) % BLOCKS_COUNT * JOURNAL_BLOCK_BYTES;
    uint8_t *other = bytes + fuzz_byte(input) % BLOCKS_COUNT * JOURNAL_BLOCK_BYTES;
    uint8_t kept[JOURNAL_BLOCK_BYTES];
    uint64_t place = (uint64_t)(block - bytes);
    switch (kind) {
    case 0: poke(block, JOURNAL_BLOCK_BYTES, input); return;
    case 1: block_change(block, place, input, 0); return;
    case 2: block_change(block, place, input, 1); return;
    case 3: memset(block, 0, JOURNAL_BLOCK_BYTES); return;
    case 4: memmove(block, other, JOURNAL_BLOCK_BYTES); return;
    case 6: /* as if it belonged there */
        memmove(block, other, JOURNAL_BLOCK_BYTES);
        block_reseal(block, place);
        return;
    case 5:
        memcpy(kept, block, sizeof kept);
        memmove(block, other, sizeof kept);
        memcpy(other, kept, sizeof kept);
        return;
    default: round_change(block, place, input); return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static uint8_t damaged[IMAGE_BYTES];
    struct fuzz_input input = {.at = bytes, .end = bytes + size};
    size_t filled = IMAGE_BYTES;
    if (fuzz_byte(&input) == 0) {
        const uint8_t *whole = fuzz_bytes(&input, IMAGE_BYTES, &filled);
        memset(damaged, 0, sizeof damaged);
        memcpy(damaged, whole, filled);
    } else {
        memcpy(damaged, image, IMAGE_BYTES);
        for (int left = DAMAGES_MAX; left > 0 && input.at < input.end; left--)
            damage(damaged, &input);
    }
    disk_clear();
    disk_fill(damaged, filled);
    enum status first;
    (void)store_life(&first);
    if (first != STATUS_OK) return 0;
    uint64_t digest = sim_storage_digest(&storage, "");
    enum status second;
    (void)store_life(&second);
    assert(second == STATUS_OK);
    assert(sim_storage_digest(&storage, "") == digest);
    return 0;
}
