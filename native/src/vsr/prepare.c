/* vsr/prepare.c: a request becomes the next op of the log.
 *
 * The checksum is the op's identity (V3): it covers the client part, op, parent, append time, first
 * view and epoch, principal, operation, and the release that proposed it first, never what apply
 * fills in (base offset, cumulative bytes), so that replicas that re-prepare an op in a later view
 * keep it. Its parent is the checksum of the op before: one checksum fixes the whole log below
 * it. */
#include "vsr/vsr.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/identity.h"

static_assert(ENTRY_CHECKSUM_BYTES == sizeof(XXH128_hash_t), "a checksum is XXH3-128");

static void vsr_hash(const uint8_t *bytes, uint64_t size, uint8_t target[16])
{
    XXH128_hash_t hash = XXH3_128bits(bytes, size);
    bytes_put_u64(target, hash.low64);
    bytes_put_u64(target + 8, hash.high64);
}

void vsr_identity(const char *cluster_id, uint64_t topic, uint64_t created_revision,
                  uint32_t partition, uint8_t checksum[16])
{
    uint8_t identity[IDENTITY_BYTES];
    identity_put(identity, cluster_id, topic, created_revision, partition);
    vsr_hash(identity, sizeof identity, checksum);
}

void vsr_digest(const uint8_t *payload, uint64_t size, uint8_t digest[16])
{
    vsr_hash(payload, size, digest);
}

static void prepare_checksum(const uint8_t *bytes, uint8_t checksum[16])
{
    uint64_t size;
    const uint8_t *identity = entry_prepare_identity(bytes, &size);
    vsr_hash(identity, size, checksum);
}

void vsr_prepare_encode(struct entry_prepare *prepare, uint8_t bytes[ENTRY_PREPARE_BYTES])
{
    entry_prepare_put(bytes, prepare);
    prepare_checksum(bytes, prepare->checksum);
    entry_prepare_set_checksum(bytes, prepare->checksum);
}

enum status vsr_prepare_decode(const uint8_t *bytes, struct entry_prepare *prepare)
{
    uint8_t checksum[16];
    enum status status = entry_prepare_get(bytes, ENTRY_PREPARE_BYTES, prepare);
    assert(status == STATUS_OK);
    prepare_checksum(bytes, checksum);
    if (memcmp(checksum, prepare->checksum, 16) != 0) return STATUS_JOURNAL_DAMAGED;
    return prepare->version == ENTRY_PREPARE_VERSION ? STATUS_OK : STATUS_OP_UNKNOWN;
}

void vsr_prepare_read(const uint8_t *bytes, struct entry_prepare *prepare)
{
    checked(vsr_prepare_decode(bytes, prepare) == STATUS_OK);
    enum status status = entry_prepare_get(bytes, ENTRY_PREPARE_BYTES, prepare);
    assert(status == STATUS_OK);
}

void vsr_prepare_request(struct vsr *vsr, const struct vsr_event *event, struct vsr_update *update)
{
    if (vsr->status != VSR_NORMAL) {
        update->status = vsr->status == VSR_DAMAGED ? STATUS_DAMAGED : STATUS_REBUILDING;
        return;
    }
    struct entry_prepare *prepare = &update->prepare;
    *prepare = event->prepare;
    prepare->op = vsr->op + 1;
    prepare->first_view = vsr->view;
    prepare->epoch = vsr->epoch;
    prepare->release = vsr->release;
    prepare->append_time_us =
        event->time_us > vsr->append_time_us ? event->time_us : vsr->append_time_us + 1;
    memcpy(prepare->parent, vsr->checksum, 16);

    vsr_prepare_encode(prepare, update->header);
    vsr->op = prepare->op;
    vsr->append_time_us = prepare->append_time_us;
    memcpy(vsr->checksum, prepare->checksum, 16);
    update->journal = 1;
}
