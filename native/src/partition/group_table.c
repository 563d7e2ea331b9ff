/* partition/group_table.c: see partition/group_table.h. Rows are few and sorted: equal states
 * have equal bytes. */
#include "partition/group_table.h"

#include <string.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"

enum { GROUP_ROW_BYTES = 56 };

void group_table_init(struct group_table *table)
{
    memset(table, 0, sizeof *table);
}

/* Position of the first row with a group >= `group`. */
static uint32_t group_table_position(const struct group_table *table, uint64_t group)
{
    uint32_t low = 0;
    uint32_t high = table->count;
    assert(high <= PARTITION_GROUPS_MAX);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (table->rows[middle].group < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct group_row *group_table_find(const struct group_table *table, uint64_t group)
{
    uint32_t position = group_table_position(table, group);
    if (position == table->count || table->rows[position].group != group) return NULL;
    return &table->rows[position];
}

static void group_row_state(const struct group_row *row, struct group_state *state)
{
    *state = (struct group_state){
        .generation = row->owner_generation,
        .committed = row->committed,
        .has_committed = row->has_committed,
        .closed = row->owner_generation > 0 && row->frozen_generation <= row->owner_generation,
    };
}

/* A row that is there, or an empty one in `fresh`, to be kept by group_table_keep once the
 * operation is accepted. */
static struct group_row *group_table_row(struct group_table *table, uint64_t group,
                                         struct group_row *fresh)
{
    uint32_t position = group_table_position(table, group);
    if (position < table->count && table->rows[position].group == group)
        return &table->rows[position];
    *fresh = (struct group_row){.group = group};
    return fresh;
}

static enum status group_table_keep(struct group_table *table, const struct group_row *row)
{
    uint32_t position = group_table_position(table, row->group);
    if (position < table->count && table->rows[position].group == row->group) return STATUS_OK;
    if (table->count == PARTITION_GROUPS_MAX) return STATUS_TOO_MANY_GROUPS;
    memmove(&table->rows[position + 1], &table->rows[position],
            (table->count - position) * sizeof table->rows[0]);
    table->rows[position] = *row;
    table->count++;
    return STATUS_OK;
}

/* One owner per generation (G3): the owner itself, no older member, and no newer one before its
 * CLOSE is in this log. */
static enum status group_row_owned(const struct group_row *row, uint64_t generation)
{
    if (generation < row->owner_generation) return STATUS_FENCED;
    if (generation > row->owner_generation) return STATUS_GROUP_PENDING;
    return STATUS_OK;
}

enum status group_table_commit(struct group_table *table, uint64_t group, uint64_t generation,
                               uint64_t offset, uint64_t end_offset, struct group_state *state)
{
    struct group_row fresh;
    struct group_row *row = group_table_row(table, group, &fresh);
    enum status status = group_row_owned(row, generation);
    if (status == STATUS_OK && offset > end_offset) status = STATUS_OFFSET_BEYOND_END;
    if (status == STATUS_OK) {
        /* A frozen owner still commits (G1): what it delivered before must not be delivered again.
         * */
        maybe(row->frozen_generation > generation);
        struct group_row next = *row;
        next.committed = offset;
        next.has_committed = 1;
        status = row == &fresh ? group_table_keep(table, &next) : STATUS_OK;
        if (status == STATUS_OK) *row = next;
    }
    group_row_state(row, state);
    return status;
}

enum status group_table_in_flight(struct group_table *table, uint64_t group, uint64_t generation,
                                  struct group_state *state)
{
    struct group_row fresh;
    struct group_row *row = group_table_row(table, group, &fresh);
    enum status status = group_row_owned(row, generation);
    if (status == STATUS_OK && generation < row->frozen_generation) status = STATUS_FENCED;
    if (status == STATUS_OK && generation > 0) {
        assert(row != &fresh);
        row->in_flight_generation = generation;
    }
    if (row != &fresh) row->in_flight_proposed = 0;
    group_row_state(row, state);
    return status;
}

/* T1: a delayed retry of an earlier decision must not undo a later one. The same decision again is
 * harmless. */
static enum status group_row_fence(const struct group_row *row, uint64_t generation,
                                   uint64_t intent_op)
{
    if (intent_op < row->intent_op) return STATUS_STALE_INTENT;
    if (generation < row->owner_generation) return STATUS_FENCED;
    return STATUS_OK;
}

enum status group_table_freeze(struct group_table *table, uint64_t group, uint64_t generation,
                               uint64_t intent_op, struct group_state *state)
{
    struct group_row fresh;
    struct group_row *row = group_table_row(table, group, &fresh);
    enum status status = group_row_fence(row, generation, intent_op);
    if (status == STATUS_OK) {
        struct group_row next = *row;
        next.intent_op = intent_op;
        if (generation > next.frozen_generation) next.frozen_generation = generation;
        status = row == &fresh ? group_table_keep(table, &next) : STATUS_OK;
        if (status == STATUS_OK) *row = next;
    }
    group_row_state(row, state);
    return status;
}

enum status group_table_close(struct group_table *table, uint64_t group, uint64_t generation,
                              uint64_t intent_op, struct group_state *state)
{
    struct group_row fresh;
    struct group_row *row = group_table_row(table, group, &fresh);
    enum status status = group_row_fence(row, generation, intent_op);
    if (status == STATUS_OK) {
        struct group_row next = *row;
        next.intent_op = intent_op;
        if (generation > next.owner_generation) next.in_flight_proposed = 0;
        next.owner_generation = generation;
        if (generation > next.frozen_generation) next.frozen_generation = generation;
        status = row == &fresh ? group_table_keep(table, &next) : STATUS_OK;
        if (status == STATUS_OK) *row = next;
    }
    group_row_state(row, state);
    return status;
}

enum status group_table_fetch(const struct group_table *table, uint64_t group, uint64_t generation)
{
    const struct group_row *row = group_table_find(table, group);
    if (!row) return generation == 0 ? STATUS_OK : STATUS_GROUP_PENDING;
    enum status status = group_row_owned(row, generation);
    if (status != STATUS_OK) return status;
    if (generation < row->frozen_generation) return STATUS_FENCED;
    /* Generation 0 has no owner: there is no handover whose start an InFlight would have to hold
     * back. */
    if (generation > 0 && row->in_flight_generation != generation) return STATUS_GROUP_PENDING;
    return STATUS_OK;
}

void group_table_propose(struct group_table *table, uint64_t group)
{
    uint32_t position = group_table_position(table, group);
    if (position < table->count && table->rows[position].group == group)
        table->rows[position].in_flight_proposed = 1;
}

int group_table_proposed(const struct group_table *table, uint64_t group)
{
    const struct group_row *row = group_table_find(table, group);
    return row && row->in_flight_proposed;
}

enum status group_table_state(const struct group_table *table, uint64_t group,
                              struct group_state *state)
{
    const struct group_row *row = group_table_find(table, group);
    *state = (struct group_state){0};
    if (!row) return STATUS_NOT_FOUND;
    group_row_state(row, state);
    return STATUS_OK;
}

size_t group_table_encoded_bytes(const struct group_table *table)
{
    return 4 + (size_t)table->count * GROUP_ROW_BYTES;
}

/* u32 count, then rows by ascending group: group | owner | frozen | in flight | intent | committed,
 * u64 each | has_committed u8 | zero 7 */
void group_table_encode(const struct group_table *table, struct bytes_writer *writer)
{
    bytes_write_u32(writer, table->count);
    for (uint32_t index = 0; index < table->count; index++) {
        const struct group_row *row = &table->rows[index];
        bytes_write_u64(writer, row->group);
        bytes_write_u64(writer, row->owner_generation);
        bytes_write_u64(writer, row->frozen_generation);
        bytes_write_u64(writer, row->in_flight_generation);
        bytes_write_u64(writer, row->intent_op);
        bytes_write_u64(writer, row->committed);
        bytes_write_u64(writer, row->has_committed);
    }
}

enum status group_table_decode(struct group_table *table, struct bytes_reader *reader)
{
    group_table_init(table);
    uint32_t count = bytes_read_u32(reader);
    if (reader->failed || count > PARTITION_GROUPS_MAX) return STATUS_CHECKPOINT_DAMAGED;
    for (uint32_t index = 0; index < count; index++) {
        struct group_row *row = &table->rows[index];
        row->group = bytes_read_u64(reader);
        row->owner_generation = bytes_read_u64(reader);
        row->frozen_generation = bytes_read_u64(reader);
        row->in_flight_generation = bytes_read_u64(reader);
        row->intent_op = bytes_read_u64(reader);
        row->committed = bytes_read_u64(reader);
        uint64_t has_committed = bytes_read_u64(reader);
        if (reader->failed || has_committed > 1) return STATUS_CHECKPOINT_DAMAGED;
        if (index > 0 && row->group <= row[-1].group) return STATUS_CHECKPOINT_DAMAGED;
        row->has_committed = (uint8_t)has_committed;
    }
    table->count = count;
    return STATUS_OK;
}

int group_table_invariants(const struct group_table *table)
{
    assert(table->count <= PARTITION_GROUPS_MAX);
    for (uint32_t index = 0; index < table->count; index++) {
        const struct group_row *row = &table->rows[index];
        ergo(index > 0, table->rows[index - 1].group < row->group);
        assert(row->owner_generation <= row->frozen_generation);
        ergo(!row->has_committed, row->committed == 0);
    }
    return 1;
}
