/* foundation/limits.c: the proofs. Each relation between limits that some code relies on stands
 * here once. */
#include "foundation/limits.h"

#include "foundation/assert.h"

static_assert(BATCH_HEADERS_BYTES == BATCH_SERVER_HEADER_BYTES + BATCH_CLIENT_HEADER_BYTES,
              "headers lie end to end");
static_assert(BATCH_STORED_BYTES_MAX == BATCH_CLIENT_BYTES_MAX + BATCH_SERVER_HEADER_BYTES,
              "a stored batch is both parts");
static_assert(BATCH_RECORDS_BYTES_MAX >= BATCH_CLIENT_BYTES_MAX,
              "uncompressed records of the largest part are allowed");
static_assert((long)BATCH_RECORDS_COUNT_MAX * BATCH_RECORD_BYTES_MIN <= BATCH_RECORDS_BYTES_MAX,
              "counts fit bytes");
static_assert(BATCH_SERVER_HEADER_BYTES % 8 == 0, "the client part of an aligned batch is aligned");
static_assert(SEGMENT_FOOTER_BYTES % 8 == 0, "a footer keeps alignment");
static_assert(PRODUCER_DEPTH >= 2,
              "a retry of the last batch and one behind it must both be known");
static_assert(METER_CLOSES_MAX >= 2, "one close may be open for an ack while the next is made");
static_assert(RETENTION_EVENTS_MAX >= 2, "the trim that carries an ack leaves an event itself");
