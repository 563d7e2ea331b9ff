/* store/admit.h: may this be written into a partition's log now?
 *
 * Admission is decided before anything is changed. Room (J6): the ring has some, the journal has
 * extents beyond the reserve for all that is gathered, live bytes stay within half of it, and one
 * more call can be answered. Records: the checks of a batch are one list, in order; the first that
 * refuses gives the verdict. Nothing is answered from here that is not already durable, but
 * refusals. */
#ifndef STORE_ADMIT_H
#define STORE_ADMIT_H

#include <stdint.h>

#include "foundation/status.h"

struct prepare_ring;
struct store;

/* Whether a call may be answered at once, without an operation: OK, BUSY. */
enum status admit_answer(struct store *store);
/* OK, BUSY, STOPPING. */
enum status admit_entry(struct store *store, struct prepare_ring *ring, uint64_t entry_bytes);
/* An op of a partition with so many bytes of payload, and the configuration that may have to go
 * before it. Also MESSAGE_TOO_LARGE. */
enum status admit_op(struct store *store, uint64_t payload_bytes);

#endif
