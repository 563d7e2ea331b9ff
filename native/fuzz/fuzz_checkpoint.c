/* fuzz_checkpoint.c: what a partition believes of disk and log: its checkpoint, the bodies of its
 * operations, segment footers, prepares, the node's identity.
 *
 * Asserts that a checkpoint that is accepted is canonical (the same bytes again), that one that is
 * refused leaves the partition empty, and that what an operation decodes to encodes to the same. */
#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"
#include "fuzz_input.h"
#include "io/node_identity.h"
#include "partition/partition.h"
#include "segment/segment.h"
#include "vsr/vsr.h"

enum { ENCODED_BYTES_MAX = 1 << 20, HEADER_BYTES = 16 };

static struct partition_pools *pools_open(void)
{
    static struct partition_pools pools;
    static struct arena arena;
    if (arena.memory != NULL) return &pools;
    struct partition_limits limits = {
        .producers_max = 512,
        .producers_reserve = 64,
        .segments_max = 256,
        .index_blocks_max = 64,
    };
    enum status status = arena_open(&arena, partition_pools_bytes(&limits) + ARENA_PAGE_BYTES);
    assert(status == STATUS_OK);
    status = partition_pools_init(&pools, &arena, &limits);
    assert(status == STATUS_OK);
    return &pools;
}

static void checkpoint(const uint8_t *bytes, size_t size)
{
    static uint8_t encoded[ENCODED_BYTES_MAX];
    static struct partition partition;
    const struct partition_config config = {.limits = {.segment_bytes = 1 << 20,
                                                       .producers_max = PARTITION_PRODUCERS_MAX,
                                                       .groups_max = PARTITION_GROUPS_MAX,
                                                       .metered = 1}};
    memset(&partition, 0, sizeof partition);
    partition_init(&partition, pools_open(), &config);
    size_t empty = partition_checkpoint_bytes(&partition);
    enum status status = partition_checkpoint_decode(&partition, bytes, size);
    size_t again = partition_checkpoint_bytes(&partition);
    if (status != STATUS_OK) {
        assert(again == empty);
        assert(partition.applied_op == 0);
    } else {
        partition_checkpoint_encode(&partition, encoded, again);
        assert(again == size && memcmp(encoded, bytes, size) == 0);
    }
    partition_deinit(&partition);
}

static void operations(const uint8_t *bytes, size_t size)
{
    uint8_t again[64];
    struct partition_commit commit;
    if (partition_decode_commit(bytes, size, &commit) == STATUS_OK) {
        partition_encode_commit(&commit, again);
        assert(memcmp(again, bytes, size) == 0);
    }
    struct partition_in_flight in_flight;
    if (partition_decode_in_flight(bytes, size, &in_flight) == STATUS_OK) {
        partition_encode_in_flight(&in_flight, again);
        assert(memcmp(again, bytes, size) == 0);
    }
    struct partition_fence fence;
    if (partition_decode_fence(bytes, size, &fence) == STATUS_OK) {
        partition_encode_fence(&fence, again);
        assert(memcmp(again, bytes, size) == 0);
    }
    struct partition_meter_close close;
    if (partition_decode_meter_close(bytes, size, &close) == STATUS_OK) {
        partition_encode_meter_close(&close, again);
        assert(memcmp(again, bytes, size) == 0);
    }
    struct partition_trim trim;
    if (partition_decode_trim(bytes, size, &trim) == STATUS_OK) {
        partition_encode_trim(&trim, again);
        assert(memcmp(again, bytes, size) == 0);
    }
    struct partition_configure configure;
    if (partition_decode_configure(bytes, size, &configure) == STATUS_OK) {
        partition_encode_configure(&configure, again);
        assert(memcmp(again, bytes, size) == 0);
    }
    struct partition_hold hold;
    if (partition_decode_hold(bytes, size, &hold) == STATUS_OK) {
        partition_encode_hold(&hold, again);
        assert(memcmp(again, bytes, size) == 0);
    }
}

/* Of journal entries: what decodes, encodes to the same fields again. */
static void bodies(const uint8_t *bytes, size_t size)
{
    uint8_t again[ENTRY_CHECKPOINT_BYTES];
    struct entry_checkpoint checkpoint;
    struct entry_checkpoint other;
    if (entry_checkpoint_get(bytes, size, &checkpoint) == STATUS_OK) {
        entry_checkpoint_put(again, &checkpoint);
        enum status status = entry_checkpoint_get(again, sizeof again, &other);
        assert(status == STATUS_OK);
        assert(other.view_state.members_count == checkpoint.view_state.members_count);
        assert(memcmp(other.digest, checkpoint.digest, sizeof other.digest) == 0);
    }
    struct entry_abstain abstain;
    if (entry_abstain_get(bytes, size, &abstain) == STATUS_OK) {
        entry_abstain_put(again, &abstain);
        assert(memcmp(again, bytes, ENTRY_ABSTAIN_BYTES - 8) == 0);
    }
    struct entry_tail_closed closed;
    (void)entry_tail_closed_get(bytes, size, &closed);
    uint64_t op;
    (void)entry_metadata_floor_get(bytes, size, &op);
}

static void files(const uint8_t *bytes, size_t size)
{
    struct segment_footer footer;
    (void)segment_footer_decode(bytes, size, 0, &footer);
    struct entry_prepare prepare;
    if (size >= ENTRY_PREPARE_BYTES) (void)vsr_prepare_decode(bytes, &prepare);
    bodies(bytes, size);
    if (size != NODE_IDENTITY_SIZE) return;
    struct node_identity identity;
    if (node_identity_decode(bytes, &identity) != STATUS_OK) return;
    /* They are printed when a node is started on another node's directory. */
    assert(identity.cluster_id[ENGINE_ID_SIZE - 1] == 0);
    assert(identity.node_id[ENGINE_ID_SIZE - 1] == 0);
    assert(identity.shards_count > 0);
    assert(identity.shards_count <= ENGINE_SHARDS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > ENCODED_BYTES_MAX) return 0;
    operations(bytes, size);
    files(bytes, size);
    checkpoint(bytes, size);
    if (size < HEADER_BYTES) return 0;
    /* All of them keep a CRC at 4 over what follows it. */
    uint8_t *copy = fuzz_copy(bytes, size);
    bytes_put_u32(copy + 4, crc32c(copy + 8, size - 8));
    files(copy, size);
    checkpoint(copy, size);
    bytes_put_u32(copy + 12, (uint32_t)size);
    bytes_put_u32(copy + 4, crc32c(copy + 8, size - 8));
    checkpoint(copy, size);
    return 0;
}
