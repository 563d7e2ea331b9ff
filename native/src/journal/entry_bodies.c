#include "journal/entry_bodies.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum { VIEW_STATE_METERED = 1 };

enum { CHECKPOINT_INLINE = 1, CHECKPOINT_FILE = 2 };

void entry_prepare_put(uint8_t *body, const struct entry_prepare *prepare)
{
    memcpy(body, prepare->checksum, 16);
    memcpy(body + 16, prepare->parent, 16);
    memcpy(body + 32, prepare->digest, 16);
    bytes_put_u64(body + 48, prepare->op);
    bytes_put_i64(body + 56, prepare->append_time_us);
    bytes_put_u64(body + 64, prepare->first_view);
    bytes_put_u32(body + 72, prepare->principal);
    bytes_put_u32(body + 76, prepare->payload_bytes);
    bytes_put_u32(body + 80, prepare->epoch);
    bytes_put_u16(body + 84, prepare->operation);
    bytes_put_u16(body + 86, ENTRY_PREPARE_VERSION);
    memset(body + 88, 0, ENTRY_PREPARE_BYTES - 88);
}

enum status entry_prepare_get(const uint8_t *body, uint64_t size, struct entry_prepare *prepare)
{
    if (size < ENTRY_PREPARE_BYTES) return STATUS_JOURNAL_DAMAGED;
    memcpy(prepare->checksum, body, 16);
    memcpy(prepare->parent, body + 16, 16);
    memcpy(prepare->digest, body + 32, 16);
    prepare->op = bytes_get_u64(body + 48);
    prepare->append_time_us = bytes_get_i64(body + 56);
    prepare->first_view = bytes_get_u64(body + 64);
    prepare->principal = bytes_get_u32(body + 72);
    prepare->payload_bytes = bytes_get_u32(body + 76);
    prepare->epoch = bytes_get_u32(body + 80);
    prepare->operation = bytes_get_u16(body + 84);
    prepare->version = bytes_get_u16(body + 86);
    return STATUS_OK;
}

const uint8_t *entry_prepare_identity(const uint8_t *body, uint64_t *size)
{
    *size = ENTRY_PREPARE_BYTES - ENTRY_CHECKSUM_BYTES;
    return body + ENTRY_CHECKSUM_BYTES;
}

const uint8_t *entry_prepare_checksum(const uint8_t *body)
{
    return body;
}

void entry_prepare_set_checksum(uint8_t *body, const uint8_t checksum[16])
{
    memcpy(body, checksum, ENTRY_CHECKSUM_BYTES);
}

void entry_view_state_put(uint8_t *body, const struct entry_view_state *state)
{
    assert(state->log_view <= state->view);
    assert(state->segment_us >= 0);
    memset(body, 0, ENTRY_VIEW_STATE_BYTES);
    bytes_put_u16(body, ENTRY_VIEW_STATE_VERSION);
    bytes_put_u16(body + 2, state->metered ? VIEW_STATE_METERED : 0);
    bytes_put_u32(body + 4, state->members_count);
    bytes_put_u64(body + 8, state->view);
    bytes_put_u64(body + 16, state->log_view);
    bytes_put_u32(body + 24, state->epoch);
    bytes_put_u32(body + 28, state->tenure);
    bytes_put_u64(body + 32, state->segment_bytes);
    bytes_put_i64(body + 40, state->segment_us);
}

enum status entry_view_state_get(const uint8_t *body, uint64_t size, struct entry_view_state *state)
{
    if (size < ENTRY_VIEW_STATE_BYTES) return STATUS_JOURNAL_DAMAGED;
    if (bytes_get_u16(body) != ENTRY_VIEW_STATE_VERSION) return STATUS_JOURNAL_DAMAGED;
    *state = (struct entry_view_state){
        .metered = bytes_get_u16(body + 2) & VIEW_STATE_METERED,
        .members_count = bytes_get_u32(body + 4),
        .view = bytes_get_u64(body + 8),
        .log_view = bytes_get_u64(body + 16),
        .epoch = bytes_get_u32(body + 24),
        .tenure = bytes_get_u32(body + 28),
        .segment_bytes = bytes_get_u64(body + 32),
        .segment_us = bytes_get_i64(body + 40),
    };
    if (state->log_view > state->view || state->segment_us < 0) return STATUS_JOURNAL_DAMAGED;
    return STATUS_OK;
}

void entry_checkpoint_put(uint8_t *body, const struct entry_checkpoint *checkpoint)
{
    entry_view_state_put(body, &checkpoint->view_state);
    memcpy(body + 64, checkpoint->checksum, 16);
    bytes_put_i64(body + 80, checkpoint->append_time_us);
    bytes_put_u32(body + 88, checkpoint->is_file ? CHECKPOINT_FILE : CHECKPOINT_INLINE);
    bytes_put_u32(body + 92, checkpoint->size);
    memcpy(body + 96, checkpoint->digest, 16);
}

enum status entry_checkpoint_get(const uint8_t *body, uint64_t size,
                                 struct entry_checkpoint *checkpoint)
{
    if (size < ENTRY_CHECKPOINT_BYTES) return STATUS_CHECKPOINT_DAMAGED;
    memcpy(checkpoint->checksum, body + 64, 16);
    checkpoint->append_time_us = bytes_get_i64(body + 80);
    checkpoint->is_file = bytes_get_u32(body + 88) == CHECKPOINT_FILE;
    checkpoint->size = bytes_get_u32(body + 92);
    memcpy(checkpoint->digest, body + 96, 16);
    return entry_view_state_get(body, size, &checkpoint->view_state);
}

void entry_tail_closed_put(uint8_t *body, const struct entry_tail_closed *closed)
{
    assert(closed->lsn_from <= closed->lsn_to);
    bytes_put_u64(body, closed->lsn_from);
    bytes_put_u64(body + 8, closed->lsn_to);
}

enum status entry_tail_closed_get(const uint8_t *body, uint64_t size,
                                  struct entry_tail_closed *closed)
{
    if (size != ENTRY_TAIL_CLOSED_BYTES) return STATUS_JOURNAL_DAMAGED;
    closed->lsn_from = bytes_get_u64(body);
    closed->lsn_to = bytes_get_u64(body + 8);
    return STATUS_OK;
}

void entry_abstain_put(uint8_t *body, const struct entry_abstain *abstain)
{
    bytes_put_u64(body, abstain->op_good);
    bytes_put_u64(body + 8, abstain->op_lost);
    bytes_put_u64(body + 16, 0);
}

enum status entry_abstain_get(const uint8_t *body, uint64_t size, struct entry_abstain *abstain)
{
    if (size < ENTRY_ABSTAIN_BYTES) return STATUS_JOURNAL_DAMAGED;
    abstain->op_good = bytes_get_u64(body);
    abstain->op_lost = bytes_get_u64(body + 8);
    return STATUS_OK;
}

void entry_metadata_floor_put(uint8_t *body, uint64_t op)
{
    bytes_put_u64(body, op);
}

enum status entry_metadata_floor_get(const uint8_t *body, uint64_t size, uint64_t *op)
{
    if (size < ENTRY_METADATA_FLOOR_BYTES) return STATUS_JOURNAL_DAMAGED;
    *op = bytes_get_u64(body);
    return STATUS_OK;
}
