/* segment/segment.h: the segments of a partition: their list, where the next batch goes, and the
 * footer of a sealed one.
 *
 * A segment is sealed when the next batch would begin at or beyond the topic's segment_bytes, or
 * comes so late that what is old would be kept for what is young (segment_limit): decided at apply,
 * by committed bytes and append times alone, so that replicas' files are equal.
 *
 * The active segment carries a running XXH3-128 of its bytes. It is in memory only: after a restart
 * the active segment is walked from its beginning (segment_walk), which also rebuilds its offset
 * index. */
#ifndef SEGMENT_SEGMENT_H
#define SEGMENT_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "foundation/limits.h"
#include "foundation/status.h"
#include "segment/offset_index.h"

struct arena;
struct bytes_reader;
struct bytes_writer;

/* The digest's state wants 64-byte alignment, which cffi cannot declare: there is room to align it
 * by hand. */
enum { SEGMENT_CHUNK_COUNT = 16, SEGMENT_DIGEST_WORDS = 80 };

/* A partition with so many segments begins none for its age: those are short beside what it keeps,
 * and one that nothing leaves (a hold) must not come to SEGMENTS_COUNT_MAX by the clock. */
enum { SEGMENT_AGED_COUNT_MAX = 64 };

/* Where a segment ends; in the log, and so the same on every replica. */
struct segment_limit {
    uint64_t bytes;
    int64_t time_us; /* between its first batch and the one that begins the next; 0 = any */
};

struct segment {
    uint64_t base_offset;
    uint64_t end_offset; /* first offset after it */
    uint64_t data_bytes; /* where the next batch, or the footer, begins */
    uint64_t first_op;
    uint64_t last_op;
    int64_t min_time_us; /* append times */
    int64_t max_time_us;
    uint64_t record_count;
    uint64_t walked_offset; /* end of what index.walked_bytes covers */
    uint8_t sealed;
    uint8_t reserved[7];
    struct offset_index index;
};

struct segment_chunk {
    struct segment_chunk *next;
    uint32_t count;
    uint32_t reserved;
    struct segment segments[SEGMENT_CHUNK_COUNT];
};

/* Chunks of the whole shard. Never more are reserved than are free. */
struct segment_pool {
    struct segment_chunk *free;
    uint32_t free_count;
    uint32_t count;
    /* Of the free ones: what admitted batches may need, and what a replay of trimmed partitions
     * needs again. */
    uint32_t reserved;
};

/* Primary only: the admitted batches of one partition, not yet applied. */
struct segment_reservation {
    uint64_t bytes;
    uint64_t last_bytes;        /* of the last admitted, within `bytes` */
    struct segment_limit limit; /* the least under which any of them may be applied */
    int64_t first_us;           /* no append time of theirs is before that .. */
    int64_t last_us;            /* .. and none behind that, but by a microsecond for each */
    uint32_t batches;
    uint32_t chunks; /* what they take from the pool at most */
};

/* Chunks by time: a start replays from the last checkpoint, and may then hold at once whatever was
 * held since, of every partition. So what a trim gave back stays reserved until a checkpoint has
 * it. */
struct segment_chunks {
    uint32_t used;
    uint32_t peak;      /* since the last durable checkpoint */
    uint32_t peak_next; /* since the checkpoint that is being made */
    uint32_t reserved;  /* of the pool's reserved ones: the more of replay and admission */
};

/* What checksums begin with (J10): a batch's with its partition, on every replica alike; a
 * footer's, which is of this node alone, with the node too. */
struct segment_seeds {
    uint32_t batch;
    uint32_t footer;
};

struct segment_list {
    struct segment_seeds seeds;
    struct segment_pool *pool;
    struct offset_index_pool *index_pool;
    struct segment_chunk *first;
    struct segment_chunk *last;
    uint32_t count;
    uint32_t digest_valid; /* the running digest covers all bytes of the active segment */
    struct segment_reservation reservation;
    struct segment_chunks chunks;
    uint64_t digest_state[SEGMENT_DIGEST_WORDS];
};

struct segment_footer {
    uint64_t base_offset;
    uint64_t end_offset;
    uint64_t data_bytes;
    uint64_t first_op;
    uint64_t last_op;
    int64_t min_time_us;
    int64_t max_time_us;
    uint64_t digest_low;
    uint64_t digest_high;
    uint64_t record_count;
};

/* What segment_append did. */
struct segment_place {
    uint64_t base_offset; /* of the segment to write to */
    uint64_t position;    /* where in it */
    uint8_t opened;       /* 1 = this is the first batch of a new segment */
    uint8_t sealed; /* 1 = before it, a segment was sealed: write the footer behind its data */
    uint64_t sealed_base_offset;
    uint64_t sealed_data_bytes;
    uint8_t footer[SEGMENT_FOOTER_BYTES];
};

struct segment_batch {
    const uint8_t *bytes; /* the stored batch, offsets assigned */
    uint32_t size_bytes;
    uint32_t record_count;
    uint64_t base_offset;
    uint64_t op;
    int64_t append_time_us;
};

size_t segment_pool_bytes(uint32_t chunks_count);
enum status segment_pool_init(struct segment_pool *pool, struct arena *arena,
                              uint32_t chunks_count);

void segment_list_init(struct segment_list *list, const struct segment_seeds *seeds,
                       struct segment_pool *pool, struct offset_index_pool *index_pool);
void segment_list_deinit(struct segment_list *list);

/* May a batch be appended after all that have room reserved? SEGMENT_POOL_FULL: the shard's chunks
 * are used or reserved; SEGMENTS_FULL. segment_reserve counts the batch until segment_resolve, so
 * that applying it never finds the pool empty, whatever other partitions take meanwhile. */
enum status segment_admit(const struct segment_list *list, const struct segment_limit *limit,
                          uint32_t size_bytes, int64_t now_us);
void segment_reserve(struct segment_list *list, const struct segment_limit *limit,
                     uint32_t size_bytes, int64_t now_us);
/* A batch was applied, refused or cancelled. Nothing if there is no reservation: a replay. */
void segment_resolve(struct segment_list *list, uint32_t size_bytes);
/* The same reservation after the list has changed. */
void segment_reservation_renew(struct segment_list *list);

/* 1; checked builds look after every step of the shard. */
int segment_list_invariants(const struct segment_list *list);

/* The decision at apply, from applied state only: SEGMENTS_FULL: the batch would begin segment
 * SEGMENTS_COUNT_MAX + 1. NO_MEMORY: there is no chunk though it was reserved. */
enum status segment_room(const struct segment_list *list, const struct segment_limit *limit,
                         int64_t append_time_us);
/* 1 = a batch of that append time begins a segment. */
int segment_rolls(const struct segment_list *list, const struct segment_limit *limit,
                  int64_t append_time_us);

/* Append a batch; seals before it if the active segment has reached its limit. segment_room said
 * OK. */
void segment_append(struct segment_list *list, const struct segment_batch *batch,
                    const struct segment_limit *limit, struct segment_place *place);

/* What left with a trim. */
struct segment_trimmed {
    uint64_t bytes;
    uint64_t records;
    int64_t min_time_us; /* 0 = no segment left */
    int64_t max_time_us;
    uint32_t segments;
    uint32_t reserved;
};

/* Forget the segments that end at or before `log_start`, the active one too. */
void segment_list_trim(struct segment_list *list, uint64_t log_start,
                       struct segment_trimmed *trimmed);
/* A checkpoint of this list is being made; it is durable. */
void segment_checkpoint_begun(struct segment_list *list);
void segment_checkpoint_done(struct segment_list *list);

/* The segment that holds `offset`; NULL = none does. The active one; NULL = no segment yet. In
 * order; NULL = past the last. */
struct segment *segment_find(struct segment_list *list, uint64_t offset);
struct segment *segment_active(struct segment_list *list);
struct segment *segment_at(struct segment_list *list, uint32_t position);

/* Walk a segment's data again after a restart, from its beginning, in pieces: checks every header,
 * its CRCs, offsets and times, notes the index and, for the active segment, the digest. `consumed`
 * says how much of the piece was taken (whole batches): the rest comes again at the front of the
 * next piece. Done when index.walked_bytes == data_bytes. SEGMENT_DAMAGED, BATCH_..: as found. */
void segment_walk_begin(struct segment_list *list, struct segment *segment);
enum status segment_walk(struct segment_list *list, struct segment *segment, const uint8_t *bytes,
                         size_t size, size_t *consumed);

/* File name of a segment: 20 digits, ".log". */
void segment_name(uint64_t base_offset, char name[SEGMENT_NAME_SIZE]);

void segment_footer_encode(const struct segment_footer *footer, uint32_t seed,
                           uint8_t bytes[SEGMENT_FOOTER_BYTES]);
enum status segment_footer_decode(const uint8_t *bytes, size_t size, uint32_t seed,
                                  struct segment_footer *footer);
/* FOOTER_DAMAGED: it is not this segment's. The digest is not looked at: only a scrub reads all
 * bytes. */
enum status segment_footer_check(const struct segment_footer *footer,
                                 const struct segment *segment);

size_t segment_list_encoded_bytes(const struct segment_list *list);
void segment_list_encode(const struct segment_list *list, struct bytes_writer *writer);
enum status segment_list_decode(struct segment_list *list, struct bytes_reader *reader);

#endif
