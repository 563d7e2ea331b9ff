/* store/read/fetch.h: where the batches from an offset on lie: in the ring, or in a segment file.
 *
 * The newest batches are in memory, one after the other but not end to end: a fetch from there gets
 * a list of them. Further back a file read gets many. Bytes from a file are handed on only after
 * their sums were checked (store_fetch_trim); the first reads of a segment sealed before the last
 * restart also rebuild its index. A read that does not reach its offset leaves behind where the
 * next one goes on (store/read/read_cursor.h). */
#ifndef STORE_READ_FETCH_H
#define STORE_READ_FETCH_H

#include <stdint.h>

enum {
    FETCH_WALKS_COUNT = 8 /* segments of one partition verified at once by different readers */
};

/* A segment sealed before the last start, as far as reads have verified it. */
struct fetch_walk {
    uint64_t segment;
    uint64_t offset; /* of the batch at its walked_bytes */
    uint8_t used;
};

/* What a replica keeps for its readers; store/read/fetch.c's alone. */
struct replica_walks {
    struct fetch_walk walks[FETCH_WALKS_COUNT];
    uint32_t next; /* the one to be given up when another segment is read */
};

#endif
