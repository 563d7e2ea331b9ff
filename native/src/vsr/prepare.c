/* vsr/prepare.c: a request becomes the next op of the log.
 *
 *     checksum | parent | digest | op | append time | first view | principal | payload size | epoch
 *     | operation | version | 0
 *
 * The checksum is the op's identity (V3): it covers the client part, op, parent, append time, first
 * view and principal, never what apply fills in (base offset, cumulative bytes), so that replicas
 * that re-prepare an op in a later view keep it. Its parent is the checksum of the op before: one
 * checksum fixes the whole log below it. */
#include "vsr/vsr.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

static_assert(VSR_CHECKSUM_BYTES == sizeof(XXH128_hash_t), "a checksum is XXH3-128");

static void vsr_hash(const uint8_t *bytes, uint64_t size, uint8_t target[16])
{
    XXH128_hash_t hash = XXH3_128bits(bytes, size);
    bytes_put_u64(target, hash.low64);
    bytes_put_u64(target + 8, hash.high64);
}

void vsr_digest(const uint8_t *payload, uint64_t size, uint8_t digest[16])
{
    vsr_hash(payload, size, digest);
}

void vsr_prepare_encode(struct vsr_prepare *prepare, uint8_t bytes[VSR_PREPARE_HEADER_BYTES])
{
    memset(bytes, 0, VSR_PREPARE_HEADER_BYTES);
    memcpy(bytes + 16, prepare->parent, 16);
    memcpy(bytes + 32, prepare->digest, 16);
    bytes_put_u64(bytes + 48, prepare->op);
    bytes_put_i64(bytes + 56, prepare->append_time_us);
    bytes_put_u64(bytes + 64, prepare->first_view);
    bytes_put_u32(bytes + 72, prepare->principal);
    bytes_put_u32(bytes + 76, prepare->payload_bytes);
    bytes_put_u32(bytes + 80, prepare->epoch);
    bytes_put_u16(bytes + 84, prepare->operation);
    bytes_put_u16(bytes + 86, VSR_VERSION);
    vsr_hash(bytes + 16, VSR_PREPARE_HEADER_BYTES - 16, prepare->checksum);
    memcpy(bytes, prepare->checksum, 16);
}

static int prepare_is_whole(const uint8_t *bytes)
{
    uint8_t checksum[16];
    vsr_hash(bytes + 16, VSR_PREPARE_HEADER_BYTES - 16, checksum);
    return memcmp(checksum, bytes, 16) == 0 && bytes_get_u16(bytes + 86) == VSR_VERSION;
}

void vsr_prepare_read(const uint8_t *bytes, struct vsr_prepare *prepare)
{
    checked(prepare_is_whole(bytes));
    *prepare = (struct vsr_prepare){
        .op = bytes_get_u64(bytes + 48),
        .append_time_us = bytes_get_i64(bytes + 56),
        .first_view = bytes_get_u64(bytes + 64),
        .principal = bytes_get_u32(bytes + 72),
        .payload_bytes = bytes_get_u32(bytes + 76),
        .epoch = bytes_get_u32(bytes + 80),
        .operation = bytes_get_u16(bytes + 84),
    };
    memcpy(prepare->checksum, bytes, 16);
    memcpy(prepare->parent, bytes + 16, 16);
    memcpy(prepare->digest, bytes + 32, 16);
}

int vsr_prepare_decode(const uint8_t *bytes, struct vsr_prepare *prepare)
{
    if (!prepare_is_whole(bytes)) return 0;
    vsr_prepare_read(bytes, prepare);
    return 1;
}

void vsr_prepare_request(struct vsr *vsr, const struct vsr_event *event, struct vsr_update *update)
{
    if (vsr->status != VSR_NORMAL) {
        update->status = vsr->status == VSR_DAMAGED ? STATUS_DAMAGED : STATUS_REBUILDING;
        return;
    }
    struct vsr_prepare *prepare = &update->prepare;
    *prepare = event->prepare;
    prepare->op = vsr->op + 1;
    prepare->first_view = vsr->view;
    prepare->epoch = vsr->epoch;
    prepare->append_time_us =
        event->time_us > vsr->append_time_us ? event->time_us : vsr->append_time_us + 1;
    memcpy(prepare->parent, vsr->checksum, 16);

    vsr_prepare_encode(prepare, update->header);
    vsr->op = prepare->op;
    vsr->append_time_us = prepare->append_time_us;
    memcpy(vsr->checksum, prepare->checksum, 16);
    update->journal = 1;
}
