#include "journal/entry_bodies.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum { CHECKPOINT_INLINE = 1, CHECKPOINT_FILE = 2 };

enum { VIEW_STATE_MEMBERS_AT = 32, MEMBER_BYTES = 24 };

static_assert(VIEW_STATE_MEMBERS_AT + ENTRY_MEMBERS_MAX * MEMBER_BYTES == ENTRY_VIEW_STATE_BYTES,
              "the members end the view state");

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
    bytes_put_u32(body + 88, prepare->release);
    memset(body + 92, 0, ENTRY_PREPARE_BYTES - 92);
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
    prepare->release = bytes_get_u32(body + 88);
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
    assert(state->members_count > 0 && state->members_count <= ENTRY_MEMBERS_MAX);
    memset(body, 0, ENTRY_VIEW_STATE_BYTES);
    bytes_put_u16(body, ENTRY_VIEW_STATE_VERSION);
    bytes_put_u16(body + 2, (uint16_t)state->members_count);
    bytes_put_u32(body + 4, state->epoch);
    bytes_put_u64(body + 8, state->view);
    bytes_put_u64(body + 16, state->log_view);
    for (uint32_t index = 0; index < state->members_count; index++) {
        const struct entry_member *member = &state->members[index];
        uint8_t *at = body + VIEW_STATE_MEMBERS_AT + (uint64_t)index * MEMBER_BYTES;
        bytes_put_u64(at, member->node);
        bytes_put_u64(at + 8, member->incarnation);
        bytes_put_u32(at + 16, member->tenure);
        bytes_put_u32(at + 20, member->learner);
    }
}

enum status entry_view_state_get(const uint8_t *body, uint64_t size, struct entry_view_state *state)
{
    if (size < ENTRY_VIEW_STATE_BYTES) return STATUS_JOURNAL_DAMAGED;
    if (bytes_get_u16(body) > ENTRY_VIEW_STATE_VERSION) return STATUS_OP_UNKNOWN;
    if (bytes_get_u16(body) != ENTRY_VIEW_STATE_VERSION) return STATUS_JOURNAL_DAMAGED;
    *state = (struct entry_view_state){
        .members_count = bytes_get_u16(body + 2),
        .epoch = bytes_get_u32(body + 4),
        .view = bytes_get_u64(body + 8),
        .log_view = bytes_get_u64(body + 16),
    };
    if (state->members_count == 0 || state->members_count > ENTRY_MEMBERS_MAX)
        return STATUS_JOURNAL_DAMAGED;
    for (uint32_t index = 0; index < state->members_count; index++) {
        const uint8_t *at = body + VIEW_STATE_MEMBERS_AT + (uint64_t)index * MEMBER_BYTES;
        state->members[index] = (struct entry_member){.node = bytes_get_u64(at),
                                                      .incarnation = bytes_get_u64(at + 8),
                                                      .tenure = bytes_get_u32(at + 16),
                                                      .learner = bytes_get_u32(at + 20)};
    }
    return state->log_view <= state->view ? STATUS_OK : STATUS_JOURNAL_DAMAGED;
}

void entry_checkpoint_put(uint8_t *body, const struct entry_checkpoint *checkpoint)
{
    entry_view_state_put(body, &checkpoint->view_state);
    uint8_t *at = body + ENTRY_VIEW_STATE_BYTES;
    memcpy(at, checkpoint->checksum, 16);
    bytes_put_i64(at + 16, checkpoint->append_time_us);
    bytes_put_u32(at + 24, checkpoint->is_file ? CHECKPOINT_FILE : CHECKPOINT_INLINE);
    bytes_put_u32(at + 28, checkpoint->size);
    memcpy(at + 32, checkpoint->digest, 16);
}

enum status entry_checkpoint_get(const uint8_t *body, uint64_t size,
                                 struct entry_checkpoint *checkpoint)
{
    if (size < ENTRY_CHECKPOINT_BYTES) return STATUS_CHECKPOINT_DAMAGED;
    const uint8_t *at = body + ENTRY_VIEW_STATE_BYTES;
    memcpy(checkpoint->checksum, at, 16);
    checkpoint->append_time_us = bytes_get_i64(at + 16);
    checkpoint->is_file = bytes_get_u32(at + 24) == CHECKPOINT_FILE;
    checkpoint->size = bytes_get_u32(at + 28);
    memcpy(checkpoint->digest, at + 32, 16);
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
