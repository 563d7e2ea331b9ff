/* partition/producer_table.c: see partition/producer_table.h.
 *
 * Lookups walk the list from the newest: a partition has few producers that write at the same time,
 * and they are at the front. At the cap of 256 a walk costs some microseconds; a hash would have to
 * be rebuilt from checkpoints for that case alone. */
#include "partition/producer_table.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"

enum { PRODUCER_ENTRY_FIXED_BYTES = 40, PRODUCER_REMEMBERED_BYTES = 28 };

static const int64_t PRODUCER_EXPIRY_US = (int64_t)PRODUCER_EXPIRY_HOURS * 3600 * 1000000;

size_t producer_pool_bytes(uint32_t entries_count, uint32_t reserve_count)
{
    return arena_size(((size_t)entries_count + reserve_count) * sizeof(struct producer_entry));
}

enum status producer_pool_init(struct producer_pool *pool, struct arena *arena,
                               uint32_t entries_count, uint32_t reserve_count)
{
    assert(entries_count > 0);
    uint32_t count = entries_count + reserve_count;
    struct producer_entry *entries = arena_take(arena, (size_t)count * sizeof *entries);
    memset(pool, 0, sizeof *pool);
    if (!entries) return STATUS_NO_MEMORY;
    for (uint32_t index = count; index > 0; index--) {
        entries[index - 1].older = pool->free;
        pool->free = &entries[index - 1];
    }
    pool->free_count = count;
    pool->count = count;
    pool->reserve = reserve_count;
    return STATUS_OK;
}

void producer_table_init(struct producer_table *table, struct producer_pool *pool)
{
    memset(table, 0, sizeof *table);
    table->pool = pool;
}

static void producer_table_unlink(struct producer_table *table, struct producer_entry *entry)
{
    if (entry->newer)
        entry->newer->older = entry->older;
    else
        table->newest = entry->older;
    if (entry->older)
        entry->older->newer = entry->newer;
    else
        table->oldest = entry->newer;
    entry->newer = NULL;
    entry->older = NULL;
}

static void producer_table_link_newest(struct producer_table *table, struct producer_entry *entry)
{
    assert(!entry->newer && !entry->older);
    entry->older = table->newest;
    if (table->newest)
        table->newest->newer = entry;
    else
        table->oldest = entry;
    table->newest = entry;
}

static void producer_table_free(struct producer_table *table, struct producer_entry *entry)
{
    assert(entry->remembered_count == 0);
    assert(entry->unresolved == 0);
    assert(table->admitted_count > 0);
    producer_table_unlink(table, entry);
    table->admitted_count--;
    memset(entry, 0, sizeof *entry);
    entry->older = table->pool->free;
    table->pool->free = entry;
    table->pool->free_count++;
    assert(table->pool->free_count <= table->pool->count);
}

/* Its batches are no longer known. It stays only for what is unresolved. */
static void producer_table_forget(struct producer_table *table, struct producer_entry *entry)
{
    if (entry->remembered_count > 0) {
        assert(table->remembered_count > 0);
        table->remembered_count--;
        table->admitted_count++;
        entry->remembered_count = 0;
        entry->remembered_next = 0;
        entry->next_sequence = 0;
        entry->epoch = 0;
        entry->used_us = 0;
        memset(entry->remembered, 0, sizeof entry->remembered);
    }
    if (entry->unresolved == 0) producer_table_free(table, entry);
}

void producer_table_deinit(struct producer_table *table)
{
    while (table->newest) {
        table->newest->unresolved = 0;
        producer_table_forget(table, table->newest);
    }
    assert(table->remembered_count == 0);
    assert(table->admitted_count == 0);
}

static struct producer_entry *producer_table_find(const struct producer_table *table,
                                                  const struct producer_id *producer)
{
    assert(table->remembered_count + table->admitted_count <= 2 * PARTITION_PRODUCERS_MAX + 1);
    for (struct producer_entry *entry = table->newest; entry; entry = entry->older) {
        if (memcmp(&entry->producer, producer, sizeof *producer) == 0) return entry;
    }
    return NULL;
}

/* A fresh entry, admitted only, the newest. NULL: the pool is empty. */
static struct producer_entry *producer_table_take(struct producer_table *table,
                                                  const struct producer_id *producer)
{
    struct producer_entry *entry = table->pool->free;
    if (!entry) return NULL;
    assert(table->pool->free_count > 0);
    table->pool->free = entry->older;
    table->pool->free_count--;
    memset(entry, 0, sizeof *entry);
    entry->producer = *producer;
    table->admitted_count++;
    producer_table_link_newest(table, entry);
    return entry;
}

static int producer_is_none(const struct producer_id *producer)
{
    return bytes_all_zero(producer->bytes, sizeof producer->bytes);
}

static const struct producer_remembered *producer_remembered_find(
    const struct producer_entry *entry, const struct producer_batch *batch)
{
    for (uint32_t index = 0; index < entry->remembered_count; index++) {
        const struct producer_remembered *known = &entry->remembered[index];
        if (known->base_sequence == batch->base_sequence
            && known->record_count == batch->record_count)
            return known;
    }
    return NULL;
}

static uint64_t producer_remembered_lowest(const struct producer_entry *entry)
{
    assert(entry->remembered_count > 0);
    uint64_t lowest = UINT64_MAX;
    for (uint32_t index = 0; index < entry->remembered_count; index++) {
        if (entry->remembered[index].base_sequence < lowest)
            lowest = entry->remembered[index].base_sequence;
    }
    return lowest;
}

/* P1, for a producer of which `next_sequence` is expected in `epoch`; entry may be NULL or without
 * remembered batches. */
static struct producer_decision producer_decide(const struct producer_entry *entry,
                                                const struct producer_batch *batch)
{
    struct producer_decision decision = {.status = STATUS_OK};
    if (!entry || entry->remembered_count == 0 || batch->epoch > entry->epoch) {
        /* Unknown, or a new epoch: both begin at 0. */
        if (batch->base_sequence != 0) decision.status = STATUS_SESSION_EXPIRED;
        return decision;
    }
    if (batch->epoch < entry->epoch) {
        decision.status = STATUS_PRODUCER_FENCED;
        return decision;
    }
    if (batch->base_sequence == entry->next_sequence) return decision;
    const struct producer_remembered *known = producer_remembered_find(entry, batch);
    if (known) {
        decision.duplicate = 1;
        decision.base_offset = known->base_offset;
        decision.append_time_us = known->append_time_us;
        return decision;
    }
    if (batch->base_sequence + batch->record_count <= producer_remembered_lowest(entry)) {
        decision.status = STATUS_ALREADY_COMMITTED;
        return decision;
    }
    decision.status = STATUS_OUT_OF_SEQUENCE;
    decision.expected = entry->next_sequence;
    return decision;
}

int producer_table_unresolved(const struct producer_table *table,
                              const struct producer_id *producer)
{
    if (producer_is_none(producer)) return 0;
    const struct producer_entry *entry = producer_table_find(table, producer);
    return entry && entry->unresolved > 0;
}

struct producer_decision producer_table_decide(const struct producer_table *table,
                                               const struct producer_batch *batch)
{
    if (producer_is_none(&batch->producer)) return (struct producer_decision){.status = STATUS_OK};
    return producer_decide(producer_table_find(table, &batch->producer), batch);
}

/* The decision as if everything unresolved were applied. */
static struct producer_decision producer_decide_admitted(const struct producer_entry *entry,
                                                         const struct producer_batch *batch)
{
    struct producer_decision decision = {.status = STATUS_OK};
    if (batch->epoch < entry->admitted_epoch) {
        decision.status = STATUS_PRODUCER_FENCED;
    } else if (batch->epoch > entry->admitted_epoch) {
        if (batch->base_sequence != 0) decision.status = STATUS_SESSION_EXPIRED;
    } else if (batch->base_sequence > entry->admitted_sequence) {
        decision.status = STATUS_OUT_OF_SEQUENCE;
        decision.expected = entry->admitted_sequence;
    } else if (batch->epoch == entry->epoch && batch->base_sequence < entry->next_sequence) {
        decision = producer_decide(entry, batch);
    }
    /* What is left repeats an unresolved batch or follows it: apply will know. */
    return decision;
}

struct producer_decision producer_table_admit(struct producer_table *table,
                                              const struct producer_batch *batch)
{
    assert(batch->record_count > 0);
    assert(batch->base_sequence <= UINT64_MAX - batch->record_count);
    struct producer_decision decision = {.status = STATUS_OK};
    if (producer_is_none(&batch->producer)) return decision;

    struct producer_entry *entry = producer_table_find(table, &batch->producer);
    if (entry && entry->unresolved > 0)
        decision = producer_decide_admitted(entry, batch);
    else
        decision = producer_decide(entry, batch);
    if (decision.status != STATUS_OK || decision.duplicate) return decision;

    if (entry && entry->unresolved >= PRODUCER_DEPTH) {
        decision.status = STATUS_TOO_MANY_IN_FLIGHT;
        return decision;
    }
    if (!entry) {
        if (table->admitted_count < PARTITION_PRODUCERS_MAX
            && table->pool->free_count > table->pool->reserve)
            entry = producer_table_take(table, &batch->producer);
        if (!entry) {
            decision.status = STATUS_PRODUCERS_FULL;
            return decision;
        }
    }
    uint64_t after = batch->base_sequence + batch->record_count;
    int renewed = entry->unresolved == 0 || batch->epoch > entry->admitted_epoch;
    if (renewed || after > entry->admitted_sequence) entry->admitted_sequence = after;
    entry->admitted_epoch = batch->epoch;
    entry->unresolved++;
    return decision;
}

/* One unresolved batch less; frees an entry that was there for it alone. */
static void producer_table_resolve(struct producer_table *table, struct producer_entry *entry)
{
    if (entry->unresolved > 0) entry->unresolved--;
    if (entry->unresolved == 0) {
        entry->admitted_epoch = 0;
        entry->admitted_sequence = 0;
        if (entry->remembered_count == 0) producer_table_free(table, entry);
    }
}

void producer_table_cancel(struct producer_table *table, const struct producer_batch *batch)
{
    if (producer_is_none(&batch->producer)) return;
    struct producer_entry *entry = producer_table_find(table, &batch->producer);
    assert(entry != NULL);
    assert(entry->unresolved > 0);
    /* Only the last admitted batch may be cancelled; a repetition of an earlier one leaves the
     * sequence alone. */
    if (batch->base_sequence + batch->record_count == entry->admitted_sequence) {
        entry->admitted_sequence = batch->base_sequence;
    }
    producer_table_resolve(table, entry);
}

void producer_table_refuse(struct producer_table *table, const struct producer_batch *batch)
{
    if (producer_is_none(&batch->producer)) return;
    struct producer_entry *entry = producer_table_find(table, &batch->producer);
    if (entry && entry->unresolved > 0) producer_table_resolve(table, entry);
}

void producer_table_expire(struct producer_table *table, int64_t append_time_us)
{
    producer_table_forget_until(table, append_time_us - PRODUCER_EXPIRY_US);
}

int producer_table_idle(const struct producer_table *table, int64_t used_until_us)
{
    const struct producer_entry *entry = table->oldest;
    while (entry && entry->remembered_count == 0) entry = entry->newer;
    return entry && entry->used_us <= used_until_us;
}

int producer_table_knows(const struct producer_table *table, const struct producer_id *producer)
{
    return producer_is_none(producer) || producer_table_find(table, producer) != NULL;
}

void producer_table_forget_until(struct producer_table *table, int64_t used_until_us)
{
    struct producer_entry *entry = table->oldest;
    while (entry) {
        struct producer_entry *newer = entry->newer;
        if (entry->remembered_count > 0) {
            if (entry->used_us > used_until_us) break;
            producer_table_forget(table, entry);
        }
        entry = newer;
    }
}

/* At the cap: the least recently used remembered entry goes, whatever else this replica knows about
 * it. */
static void producer_table_evict(struct producer_table *table)
{
    assert(table->remembered_count == PARTITION_PRODUCERS_MAX);
    struct producer_entry *entry = table->oldest;
    while (entry->remembered_count == 0) entry = entry->newer;
    producer_table_forget(table, entry);
    assert(table->remembered_count < PARTITION_PRODUCERS_MAX);
}

static void producer_remember(struct producer_entry *entry, const struct producer_batch *batch,
                              uint64_t base_offset, int64_t append_time_us)
{
    if (entry->remembered_count > 0 && batch->epoch > entry->epoch) {
        /* Sequences of the older epoch mean nothing any more. */
        entry->remembered_count = 0;
        entry->remembered_next = 0;
        memset(entry->remembered, 0, sizeof entry->remembered);
    }
    entry->remembered[entry->remembered_next] = (struct producer_remembered){
        .base_sequence = batch->base_sequence,
        .base_offset = base_offset,
        .append_time_us = append_time_us,
        .record_count = batch->record_count,
    };
    entry->remembered_next = (uint8_t)((entry->remembered_next + 1) % PRODUCER_DEPTH);
    if (entry->remembered_count < PRODUCER_DEPTH) entry->remembered_count++;
    entry->epoch = batch->epoch;
    entry->next_sequence = batch->base_sequence + batch->record_count;
    entry->used_us = append_time_us;
}

struct producer_decision producer_table_apply(struct producer_table *table,
                                              const struct producer_batch *batch,
                                              uint64_t next_offset, int64_t append_time_us)
{
    assert(batch->record_count > 0);
    struct producer_decision decision = {.status = STATUS_OK};
    if (producer_is_none(&batch->producer)) return decision;

    struct producer_entry *entry = producer_table_find(table, &batch->producer);
    decision = producer_decide(entry, batch);
    if (decision.status != STATUS_OK || decision.duplicate) {
        producer_table_refuse(table, batch);
        return decision;
    }
    if (!entry || entry->remembered_count == 0) {
        if (table->remembered_count == PARTITION_PRODUCERS_MAX) producer_table_evict(table);
        if (!entry) entry = producer_table_take(table, &batch->producer);
        if (!entry) {
            decision.status = STATUS_NO_MEMORY;
            return decision;
        }
        table->admitted_count--;
        table->remembered_count++;
    }
    producer_remember(entry, batch, next_offset, append_time_us);
    producer_table_unlink(table, entry);
    producer_table_link_newest(table, entry);
    if (entry->unresolved > 0) producer_table_resolve(table, entry);
    return decision;
}

/* Oldest first, so that decoding by linking each as the newest restores the order.
 *
 *     u32 count, then per entry:
 *         id 16 | epoch u32 | remembered u32 | next_sequence u64 | used_us u64
 *         per remembered, oldest first: sequence u64 | offset u64 | time u64 | records u32 */
size_t producer_table_encoded_bytes(const struct producer_table *table)
{
    size_t size = 4;
    for (const struct producer_entry *entry = table->oldest; entry; entry = entry->newer) {
        if (entry->remembered_count == 0) continue;
        size += PRODUCER_ENTRY_FIXED_BYTES
                + (size_t)entry->remembered_count * PRODUCER_REMEMBERED_BYTES;
    }
    return size;
}

static void producer_table_encode_entry(const struct producer_entry *entry,
                                        struct bytes_writer *writer)
{
    memcpy(bytes_write(writer, BATCH_PRODUCER_ID_BYTES), entry->producer.bytes,
           BATCH_PRODUCER_ID_BYTES);
    bytes_write_u32(writer, entry->epoch);
    bytes_write_u32(writer, entry->remembered_count);
    bytes_write_u64(writer, entry->next_sequence);
    bytes_write_u64(writer, (uint64_t)entry->used_us);
    uint32_t first = (uint32_t)(entry->remembered_next + PRODUCER_DEPTH - entry->remembered_count);
    for (uint32_t index = 0; index < entry->remembered_count; index++) {
        const struct producer_remembered *known =
            &entry->remembered[(first + index) % PRODUCER_DEPTH];
        bytes_write_u64(writer, known->base_sequence);
        bytes_write_u64(writer, known->base_offset);
        bytes_write_u64(writer, (uint64_t)known->append_time_us);
        bytes_write_u32(writer, known->record_count);
    }
}

void producer_table_encode(const struct producer_table *table, struct bytes_writer *writer)
{
    bytes_write_u32(writer, table->remembered_count);
    uint32_t written = 0;
    for (const struct producer_entry *entry = table->oldest; entry; entry = entry->newer) {
        if (entry->remembered_count == 0) continue;
        producer_table_encode_entry(entry, writer);
        written++;
    }
    assert(written == table->remembered_count);
}

static enum status producer_table_decode_entry(struct producer_table *table,
                                               struct bytes_reader *reader)
{
    const uint8_t *id = bytes_read(reader, BATCH_PRODUCER_ID_BYTES);
    if (!id) return STATUS_CHECKPOINT_DAMAGED;
    struct producer_id producer;
    memcpy(producer.bytes, id, sizeof producer.bytes);
    if (producer_is_none(&producer) || producer_table_find(table, &producer))
        return STATUS_CHECKPOINT_DAMAGED;

    struct producer_entry *entry = producer_table_take(table, &producer);
    if (!entry) return STATUS_NO_MEMORY;
    entry->epoch = bytes_read_u32(reader);
    uint32_t remembered = bytes_read_u32(reader);
    entry->next_sequence = bytes_read_u64(reader);
    entry->used_us = (int64_t)bytes_read_u64(reader);
    if (remembered == 0 || remembered > PRODUCER_DEPTH) return STATUS_CHECKPOINT_DAMAGED;
    for (uint32_t index = 0; index < remembered; index++) {
        struct producer_remembered *known = &entry->remembered[index];
        known->base_sequence = bytes_read_u64(reader);
        known->base_offset = bytes_read_u64(reader);
        known->append_time_us = (int64_t)bytes_read_u64(reader);
        known->record_count = bytes_read_u32(reader);
    }
    if (reader->failed) return STATUS_CHECKPOINT_DAMAGED;
    entry->remembered_count = (uint8_t)remembered;
    entry->remembered_next = (uint8_t)(remembered % PRODUCER_DEPTH);
    table->admitted_count--;
    table->remembered_count++;
    return STATUS_OK;
}

enum status producer_table_decode(struct producer_table *table, struct bytes_reader *reader)
{
    assert(table->newest == NULL);
    uint32_t count = bytes_read_u32(reader);
    if (reader->failed || count > PARTITION_PRODUCERS_MAX) return STATUS_CHECKPOINT_DAMAGED;
    for (uint32_t index = 0; index < count; index++) {
        enum status status = producer_table_decode_entry(table, reader);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}
