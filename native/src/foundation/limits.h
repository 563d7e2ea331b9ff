/* foundation/limits.h: every bound of the storage core, with its reason. All loops, tables and
 * queues end at one of these names.
 *
 * Constants of the disk format say [bytes]: they never change without a new version. Modules of the
 * effects (sockets, HTTP/2) keep theirs beside their code. foundation/limits.c proves the
 * relations. */
#ifndef FOUNDATION_LIMITS_H
#define FOUNDATION_LIMITS_H

enum limit_batch {
    BATCH_SERVER_HEADER_BYTES = 96, /* [bytes] */
    BATCH_CLIENT_HEADER_BYTES = 72, /* [bytes] */
    BATCH_HEADERS_BYTES = 168,      /* both: where a stored batch's records begin */
    BATCH_PRODUCER_ID_BYTES = 16,   /* [bytes] chosen by clients at random */

    /* A client part. Bounds what one request may pin in the journal: a round never holds more than
     * a few. */
    BATCH_CLIENT_BYTES_MAX = 8388608,
    BATCH_STORED_BYTES_MAX = 8388704, /* BATCH_CLIENT_BYTES_MAX + BATCH_SERVER_HEADER_BYTES */

    /* Records after decompression. Eight times the client part: a reader's memory is bounded by
     * what it accepts. */
    BATCH_RECORDS_BYTES_MAX = 67108864,

    /* Readers keep some tens of bytes for each record, so that the arrays stay in proportion to the
     * records. */
    BATCH_RECORDS_COUNT_MAX = 1000000,
    BATCH_RECORD_HEADERS_COUNT_MAX = 256,

    /* The smallest record: body size, delta 0, time 0, null key, null value, no headers. */
    BATCH_RECORD_BYTES_MIN = 6,
};

enum limit_segment {
    SEGMENT_FOOTER_BYTES = 96, /* [bytes] */
    SEGMENT_NAME_SIZE = 32,    /* 20 digits, ".log", a zero; rounded up */

    /* Segments of one partition in memory. At the API's default of 128 MiB a partition holds
     * 512 GiB, then SEGMENTS_FULL: topics that keep more want larger segments. */
    SEGMENTS_COUNT_MAX = 4096,

    /* Data bytes between two entries of the offset index: a lookup then walks at most so many bytes
     * of headers plus one batch. At 64 KiB the index takes 1/4096 of the data. */
    OFFSET_INDEX_STRIDE_BYTES = 65536,
};

enum limit_partition {
    /* P1: unresolved batches of one (producer, partition), and how many of its last batches are
     * remembered. More pipelining than eight gains nothing: a client's batch holds thousands of
     * records. */
    PRODUCER_DEPTH = 8,

    /* Producers remembered; then the least recently used goes. A whole fleet may reconnect over a
     * week, but few producers write to one partition at a time. */
    PARTITION_PRODUCERS_MAX = 256,

    PARTITION_GROUPS_MAX = 64,        /* consumer groups that ever committed in this partition */
    PARTITION_CHECKPOINT_VERSION = 1, /* [bytes] */

    /* An unheard producer is forgotten seven days (of append time) after its last batch. */
    PRODUCER_EXPIRY_HOURS = 168,

    /* When a shard has few entries left, also after an hour of silence, never earlier: a batch that
     * is sent again after that is stored again, and clients repeat for minutes. */
    PRODUCER_IDLE_MINUTES = 60,
};

enum limit_meter {
    METER_SUMS_MAX = 128, /* of one partition: its open window and unacknowledged closes together */
    METER_CLOSES_MAX = 8, /* unacknowledged closes kept; then the open window is extended (M1) */
};

enum limit_retention {
    /* Unacknowledged trims of one partition; then the log is not trimmed. A trim takes all that is
     * due at once, so eight are hours of them. */
    RETENTION_EVENTS_MAX = 8,
};

#endif
