/* foundation/status.h: what the world may answer. One table makes the codes, their names and
 * their English.
 *
 * Zero is success; every failure is negative, so that a count or a size can share the return value
 * where a comment says so. Codes are not written to disk and not sent: the wire's codes are the
 * names (UPPER_SNAKE without STATUS_). Append freely, in the fitting group, with a number of your
 * own: numbers are never reused. The text says what went wrong and, where there is one, what to do
 * next; it is complete without an argument. */
#ifndef FOUNDATION_STATUS_H
#define FOUNDATION_STATUS_H

/* clang-format off */
#define STATUS_TABLE(X) \
    X(OK, 0, "done") \
    /* Bounded resources and configuration. */ \
    X(NO_MEMORY, -1, \
      "the memory given at start does not suffice: raise node.memory_mib, or " \
      "node.partitions_max if it was lowered") \
    X(BUSY, -2, "a bounded queue or table is full: repeat after a short wait") \
    X(STORAGE_FULL, -3, \
      "the disk has reached its reserve: free space or add disk, writes resume by " \
      "themselves") \
    X(CONFIG_INVALID, -4, "a configuration value is out of its range: the detail names it") \
    X(STOPPING, -5, "the node is stopping: repeat on another node") \
    X(TIMEOUT, -6, "the deadline passed before an answer: the outcome is unknown") \
    X(CANCELLED, -7, "the caller went away") \
    X(INVALID, -8, "the request breaks a rule of the protocol: the detail names it") \
    X(UNSUPPORTED, -9, "this release does not know the operation: upgrade the node first") \
    X(BUFFER_SHORT, -10, "the buffer given is smaller than what must be written") \
    X(MEMORY_REFUSED, -11, \
      "the system does not give the node that much memory: add memory or raise its limit, or " \
      "lower node.memory_mib or node.partitions_max") \
    /* The system underneath. */ \
    X(IO_FAILED, -20, \
      "the system refused a read or a write: look at the disk and the kernel log") \
    X(IO_POISONED, -21, \
      "an earlier sync of this file failed: its contents are unknown, the shard must restart") \
    X(FILE_NOT_FOUND, -22, "no such file") \
    X(FILE_EXISTS, -23, "the file exists already") \
    X(DIRECTORY_LOCKED, -24, "another process holds the data directory: stop it first") \
    X(ADDRESS_IN_USE, -25, "the address is taken: choose another port") \
    X(THREAD_FAILED, -26, "a thread could not be started or pinned") \
    X(STORAGE_READ_ONLY, -27, \
      "the file system is mounted read-only: often the kernel did so after a disk error, see its " \
      "log; mount it for writing again") \
    X(ACCESS_REFUSED, -28, \
      "the system does not let this user do that: give the node's user the file, or start it as " \
      "the file's owner") \
    X(DESCRIPTORS_USED_UP, -29, \
      "no more files can be opened: raise the limit (LimitNOFILE= of the unit, ulimit -n)") \
    /* The data directory's identity. */ \
    X(IDENTITY_DAMAGED, -30, "node.identity fails its checksum: restore it or re-admit the node") \
    X(IDENTITY_OTHER_CLUSTER, -31, \
      "the data directory belongs to another cluster: nothing in it was changed") \
    X(IDENTITY_OTHER_NODE, -32, \
      "the data directory belongs to another node: nothing in it was changed") \
    X(IDENTITY_NEWER, -33, "the data directory was written by a newer release: run that release") \
    X(IDENTITY_SHARDS, -34, "the data directory was laid out for another number of shards") \
    X(IDENTITY_MISSING, -35, \
      "the data directory has data but no node.identity: restore it, or choose an empty one") \
    X(READ_FAILED, -39, \
      "the disk failed under a read: repeat it, and look at the disk and the kernel log if it " \
      "stays so") \
    X(DESCRIPTORS_FEW, -37, \
      "the process may open too few files: raise the limit (LimitNOFILE= of the unit, ulimit -n) " \
      "or configure fewer shards") \
    X(ADDRESS_UNKNOWN, -38, \
      "this machine has no such address: correct node.host, 127.0.0.1 and 0.0.0.0 always are") \
    X(JOURNAL_MISSING, -36, \
      "a shard's journal is gone from a formatted directory: restore it, nothing was changed") \
    /* A batch that lies: each names the first thing found wrong. */ \
    X(BATCH_SHORT, -40, "the batch ends before its header says so") \
    X(BATCH_MAGIC, -41, "the bytes do not begin with a batch's magic") \
    X(BATCH_VERSION, -42, "the batch has a format version this release does not know") \
    X(BATCH_SIZE, -43, "the batch's size disagrees with its bytes") \
    X(BATCH_CHECKSUM, -44, \
      "the batch fails its CRC32C: it was damaged in transit, send it again") \
    X(BATCH_RESERVED, -45, "a reserved field or flag of the batch is not zero") \
    X(BATCH_CODEC, -46, \
      "the batch names a codec this release does not know: use none, lz4 or zstd") \
    X(BATCH_COUNT, -47, \
      "the batch's record count is zero, too large, or disagrees with its records") \
    X(BATCH_PRODUCER, -48, \
      "the batch has no producer id but an epoch or a sequence, or its sequence overflows") \
    X(BATCH_TIMESTAMP, -49, \
      "timestamps of the batch lie too far apart, or its largest disagrees with its records") \
    X(BATCH_RECORD, -50, "a record of the batch is malformed") \
    X(BATCH_COMPRESSION, -51, \
      "the batch's records do not decompress to the size its header states") \
    X(MESSAGE_TOO_LARGE, -52, \
      "the batch is larger than the topic allows: send smaller batches or raise " \
      "max_message_bytes") \
    /* Partitions, producers. */ \
    X(NOT_FOUND, -60, "no such partition here: refresh the routes") \
    X(TOPIC_NOT_FOUND, -77, "no such topic here (any more): look it up again, or create it") \
    X(RECREATED, -61, "the topic was deleted and made again: resolve its name again") \
    X(NOT_PRIMARY, -62, "another node is this partition's primary: refresh the routes") \
    X(REBUILDING, -63, "the partition is being recovered: repeat after a short wait") \
    X(DAMAGED, -64, \
      "the partition lost acknowledged data and was isolated: an operator must decide") \
    X(CORRUPT, -65, \
      "stored bytes fail their checksum: the partition was stopped, nothing wrong is served") \
    X(OFFSET_OUT_OF_RANGE, -66, "the offset lies beyond the end of the log") \
    X(TRUNCATED, -67, "the records were removed by retention: continue at the log's start") \
    X(ALREADY_COMMITTED, -68, "the batch was stored before, too long ago to say where") \
    X(OUT_OF_SEQUENCE, -69, \
      "the producer's sequence has a gap: an earlier batch is missing, resume at the expected " \
      "one") \
    X(SESSION_EXPIRED, -70, \
      "the producer is not known here (any more): begin a new session at sequence 0") \
    X(PRODUCER_FENCED, -71, "a newer epoch of this producer exists: this one must stop") \
    X(TOO_MANY_IN_FLIGHT, -72, \
      "too many unresolved batches of this producer: wait for their answers") \
    X(SYSTEM_TOPIC, -73, \
      "only the node itself writes to topics whose name begins with an underscore") \
    X(CLOSED, -74, "the partition is sealed: its topic is being deleted") \
    X(PARTITIONS_FEWER, -75, \
      "a topic's row names fewer partitions than it has: partitions are only ever added") \
    X(PRODUCERS_SHARE, -76, \
      "the organization holds its share of the shard's producers: go on with producers it knows, " \
      "or repeat later") \
    /* Groups. */ \
    X(FENCED, -80, \
      "a newer generation owns this partition: stop reading it and wait for a new assignment") \
    X(GROUP_PENDING, -81, \
      "the assignment is not yet in the partition's log: repeat after a short wait") \
    X(GROUP_CLOSED, -82, "this generation was closed: the next owner has taken over") \
    X(OFFSET_BEYOND_END, -83, "the committed offset lies beyond the end of the log") \
    X(STALE_INTENT, -84, "a later decision about the same object was already carried out") \
    X(TOO_MANY_GROUPS, -85, \
      "the partition's table of consumer groups is full: use a group that has read it") \
    /* Operations and checkpoints read back. */ \
    X(OP_UNKNOWN, -90, "an operation of the log is not known to this release") \
    X(OP_MALFORMED, -91, "an operation of the log has a body of the wrong shape") \
    X(CHECKPOINT_VERSION, -92, "a checkpoint has a format version this release does not know") \
    X(CHECKPOINT_DAMAGED, -93, "a checkpoint fails its checksum or contradicts itself") \
    X(FOOTER_DAMAGED, -94, "a segment's footer fails its checksum or contradicts its data") \
    X(SEGMENT_DAMAGED, -95, "a segment's bytes contradict its footer or its headers") \
    X(METER_FULL, -96, \
      "too many principals in one metering window: the window must be closed first") \
    X(METER_SEQUENCE, -97, "the close of a metering window is not the next one") \
    X(JOURNAL_FULL, -98, \
      "the journal's share of this partition is used up: repeat after a short wait") \
    X(JOURNAL_DAMAGED, -99, \
      "the journal is damaged below its last witnessed round: an operator must decide") \
    X(METER_EMPTY, -100, "nothing billable was appended since the last close") \
    X(SEGMENTS_FULL, -101, \
      "the partition has as many segments as it may: produce to another partition, and give " \
      "topics of this size larger segments") \
    X(SEGMENT_POOL_FULL, -102, \
      "the shard's memory for segments is used up: delete unused topics or raise " \
      "node.partitions_max") \
    X(PRODUCERS_FULL, -103, \
      "the shard remembers as many producers as it can: go on with producers it knows, or repeat " \
      "later") \
    X(PARTITIONS_FULL, -104, \
      "the shard holds as many partitions as it may: delete unused topics or raise " \
      "node.partitions_max") \
    /* Retention. */ \
    X(HELD, -105, \
      "the records are held: a trim may not go beyond where the hold begins until it is released") \
    X(TRIM_BELOW, -106, "the log begins there already, or later") \
    X(TRIMS_FULL, -107, \
      "earlier trims of the partition are not yet in _retention: nothing is removed until they " \
      "are") \
    /* Callers. */ \
    X(UNAUTHENTICATED, -110, "the key is missing, unknown, expired or revoked") \
    X(PERMISSION_DENIED, -111, \
      "the key may not do this here: ask an owner of the project for a role") \
    X(QUOTA_EXCEEDED, -112, "the quota is used up: repeat after the time stated") \
    X(METHOD_UNKNOWN, -113, "no such method") \
    X(PROTOCOL, -114, "the peer broke the transport's protocol") \
    /* Plain messages. */ \
    X(MESSAGES_COUNT, -130, \
      "a request publishes at least one message and at most 1000000: send them in several") \
    X(MESSAGES_SPAN_PARTITIONS, -131, \
      "the messages' keys belong to different partitions: send one request for each") \
    X(MESSAGE_HEADERS, -132, "a message has more than 256 headers") \
    X(MESSAGE_HEADER_NAME, -133, "the key of a message's header is not UTF-8") \
    X(MESSAGE_PRODUCER, -135, \
      "a producer id has 16 bytes, not all zero, and without one there is no epoch or sequence") \
    X(REPLY_TOO_LARGE, -134, \
      "the message is larger than a reply of plain messages may be: read it with the batch codec") \
    /* Replies. */ \
    X(REPLIES_FULL, -140, \
      "replies that readers have not taken yet use up the memory for them: take them, then repeat")
/* clang-format on */

enum status {
#define STATUS_ENUM(name, number, text) STATUS_##name = (number),
    STATUS_TABLE(STATUS_ENUM)
#undef STATUS_ENUM
};

/* The name as the wire shows it, "OUT_OF_SEQUENCE"; "UNKNOWN" for a number that is none of ours.
 * Static memory. */
const char *status_name(int status);

/* What went wrong and what next, in English. Static memory. */
const char *status_text(int status);

#endif
