/* partition/producer_invariants.c: what holds of a table of producers, whatever was applied. */
#include <stddef.h>

#include "foundation/assert.h"
#include "partition/producer_table.h"

int producer_table_invariants(const struct producer_table *table)
{
    uint32_t remembered = 0;
    uint32_t admitted = 0;
    const struct producer_entry *newer = NULL;
    for (const struct producer_entry *entry = table->newest; entry; entry = entry->older) {
        assert(entry->newer == newer);
        assert(entry->remembered_count <= PRODUCER_DEPTH);
        assert(entry->remembered_next < PRODUCER_DEPTH);
        assert(entry->remembered_count > 0 || entry->unresolved > 0);
        remembered += entry->remembered_count > 0;
        admitted += entry->remembered_count == 0;
        newer = entry;
    }
    assert(table->oldest == newer);
    assert(remembered == table->remembered_count);
    assert(admitted == table->admitted_count);
    assert(table->pool->free_count <= table->pool->count);
    return 1;
}
