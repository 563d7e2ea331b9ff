"""Frames between the engine and the host, and the structures inside them.

Owns the host's view of `native/include/engine.h`: kinds, results and the packing of each body. A
contract test compares every size and number with the compiled header. Refuses to know what a frame
is for.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple


class Kind(IntEnum):
    """enum engine_frame_kind."""

    OPEN = 1
    MESSAGE = 2
    HALF_CLOSE = 3
    CREDIT = 4
    CANCELLED = 5
    METADATA_RESTORE = 16
    METADATA_APPLY = 17
    METADATA_READY = 18
    METADATA_SNAPSHOT = 19
    REPLY = 32
    METER_CLOSE = 33
    STOPPED = 34
    TRIMMED = 35
    COUNTERS = 36
    SEND_MESSAGE = 64
    SEND_CREDIT = 65
    SEND_STATUS = 66
    METADATA_SUBMIT = 80
    METADATA_APPLIED = 81
    METADATA_RESTORED = 82
    METADATA_SNAPSHOT_IS = 83
    PUBLISH = 96
    GROUP_FENCE = 97
    METER_ACK = 98
    METER_FLUSH = 99
    DESCRIBE = 100
    SEAL = 101
    TRIM_ACK = 102
    PURGE = 103
    HOLD = 104
    COUNTERS_FLUSH = 105
    HOST_BEAT = 112
    CLOCK_CONFIRM = 113
    HOST_FAILED = 114


class EngineResult(IntEnum):
    """enum engine_result."""

    OK = 0
    NOT_FOUND = 1
    RECREATED = 2
    BUSY = 3
    FENCED = 4
    DAMAGED = 5
    STOPPING = 6
    INVALID = 7
    DUPLICATE = 8
    STORAGE_FULL = 9
    STORAGE_FAILED = 10
    CLOSED = 11
    HELD = 12
    TOO_MANY_GROUPS = 13
    OFFSET_BEYOND_END = 14
    PRODUCER_LOST = 15
    NEEDS_RELEASE = 16
    NOT_PRIMARY = 17


class TrimCause(IntEnum):
    """enum engine_trim_cause."""

    TIME = 1
    SIZE = 2
    PURGE = 3


class Meter(IntEnum):
    """enum engine_meter."""

    EGRESS_BYTES = 1
    REQUESTS = 2
    STORED_BYTE_SECONDS = 3


class FenceKind(IntEnum):
    """enum engine_fence_kind."""

    FREEZE = 1
    CLOSE = 2


class Verb(IntEnum):
    """enum engine_verb."""

    PRODUCE = 1
    CONSUME = 2
    ADMIN = 4


_CALLER: Final = struct.Struct("<IIII16s")
_PARTITION_ID: Final = struct.Struct("<QQII")
_GROUP_FENCE: Final = struct.Struct("<QQQII")
_GROUP_STATE: Final = struct.Struct("<QQBB6x")
_PARTITION_STATE: Final = struct.Struct("<QQQQQIIQQQqqq")
_METER_CLOSE: Final = struct.Struct("<QQIIQQQqqII")
_METER_SUM: Final = struct.Struct("<IIQQQ")
_COUNTERS: Final = struct.Struct("<qII")
_COUNTER: Final = struct.Struct("<QQQQqII")
_METER_FLUSHED: Final = struct.Struct("<QQ")
_SEAL: Final = struct.Struct("<Q")
_SEALED: Final = struct.Struct("<QQQQQ")
_PURGE: Final = struct.Struct("<QQ")
_HOLD: Final = struct.Struct("<QQII")
_RETAINED: Final = struct.Struct("<QQQQII")
_TRIMMED: Final = struct.Struct("<QQIIQQQQQQQqqqII")

PARTITION_READY: Final = 1
PARTITION_DAMAGED: Final = 3
PARTITION_SEALED: Final = 4
PARTITION_OP_UNKNOWN: Final = 5

# The principal of the control plane's own key: the shards give it this number.
NODE_KEY_PRINCIPAL: Final = 1


class Caller(NamedTuple):
    """Who calls, verified by the shard. Numbers; project 0 = every project of the organization."""

    principal: int
    organization: int
    project: int
    verbs: int
    key_id: str


class PartitionId(NamedTuple):
    """A partition of one revision of a topic."""

    topic: int
    created_revision: int
    partition: int


class GroupState(NamedTuple):
    """What a partition's log says about a group once a fence is in it."""

    generation: int
    committed: int
    has_committed: bool
    closed: bool


class Sealed(NamedTuple):
    """A partition's log after SEAL: its end; its last window and trim, and those acknowledged."""

    log_end: int
    meter_sequence: int
    meter_acked: int
    trim_sequence: int = 0
    trim_acked: int = 0

    def is_told(self) -> bool:
        """Is everything that was appended in `_usage`, and what was trimmed in `_retention`?"""
        return self.meter_acked == self.meter_sequence and self.trim_acked == self.trim_sequence


class PartitionState(NamedTuple):
    """How a partition stands.

    Offsets; bytes between log_start and the end; bytes since it began; append times in us, 0 =
    nothing is stored. `held_from` is 0 unless held; `held_bytes` would be gone but for the hold, as
    of the last look; `expires_us` is when the policy takes something, 0 = not foreseen.
    """

    log_start: int
    high_watermark: int
    log_end: int
    bytes: int
    cumulative_bytes: int
    state: int
    is_held: bool = False
    held_from: int = 0
    hold_intent_op: int = 0
    held_bytes: int = 0
    oldest_us: int = 0
    newest_us: int = 0
    expires_us: int = 0


class Retained(NamedTuple):
    """Where a log begins and what holds it, once a purge or a hold is in it."""

    log_start: int
    log_end: int
    hold_intent_op: int
    held_from: int
    is_held: bool


class Trimmed(NamedTuple):
    """What one trim took from a partition. Offsets [from, to); times in us, UTC.

    bytes, records and times are those of the segments that went whole.
    """

    id: PartitionId
    sequence: int
    trim_op: int
    policy_version: int
    from_offset: int
    to_offset: int
    bytes: int
    records: int
    min_time_us: int
    max_time_us: int
    trimmed_at_us: int
    cause: TrimCause
    segments: int


class MeterSum(NamedTuple):
    """What one principal did in a window."""

    principal: int
    ingress_bytes: int
    records: int
    batches: int


class MeterClose(NamedTuple):
    """One closed window of one partition. Times in us, UTC."""

    id: PartitionId
    sequence: int
    from_op: int
    to_op: int
    window_start_us: int
    window_end_us: int
    sums: tuple[MeterSum, ...]


class CountedRow(NamedTuple):
    """What was counted of one meter since its last report. Topic 0 = unattributed.

    `cumulative` is since the row began, modulo 2^63.
    """

    topic: int
    created_revision: int
    delta: int
    cumulative: int
    window_start_us: int
    principal: int
    meter: Meter


class Counted(NamedTuple):
    """A part of what a shard counted in a window, up to `window_end_us`, UTC."""

    window_end_us: int
    is_final: bool
    rows: tuple[CountedRow, ...]


def unpack_open(body: bytes) -> tuple[Caller, str]:
    """The caller and the method path of an OPEN."""
    principal, organization, project, verbs, key_id = _CALLER.unpack_from(body)
    caller = Caller(principal, organization, project, verbs, key_id.rstrip(b"\0").decode())
    return caller, body[_CALLER.size :].rstrip(b"\0").decode("utf-8", "replace")


def pack_partition(partition: PartitionId) -> bytes:
    """struct engine_partition_id."""
    return _PARTITION_ID.pack(partition.topic, partition.created_revision, partition.partition, 0)


def pack_group_fence(*, group: int, generation: int, intent_op: int, kind: FenceKind) -> bytes:
    """struct engine_group_fence. generation is the new owner's."""
    return _GROUP_FENCE.pack(group, generation, intent_op, kind, 0)


def unpack_group_state(body: bytes) -> GroupState:
    """struct engine_group_state."""
    generation, committed, has_committed, closed = _GROUP_STATE.unpack_from(body)
    return GroupState(generation, committed, bool(has_committed), bool(closed))


def unpack_partition_state(body: bytes) -> PartitionState:
    """struct engine_partition_state."""
    found = PartitionState(*_PARTITION_STATE.unpack_from(body))
    return found._replace(is_held=bool(found.is_held))


def unpack_meter_close(body: bytes) -> MeterClose:
    """struct engine_meter_close and its sums."""
    topic, revision, partition, _, sequence, from_op, to_op, start, end, count, _ = (
        _METER_CLOSE.unpack_from(body)
    )
    sums = []
    for index in range(count):
        principal, _, ingress, records, batches = _METER_SUM.unpack_from(
            body, _METER_CLOSE.size + index * _METER_SUM.size
        )
        sums.append(MeterSum(principal, ingress, records, batches))
    return MeterClose(
        PartitionId(topic, revision, partition), sequence, from_op, to_op, start, end, tuple(sums)
    )


def unpack_counters(body: bytes) -> Counted:
    """struct engine_counters and its rows."""
    window_end_us, count, final = _COUNTERS.unpack_from(body)
    rows = []
    for index in range(count):
        topic, revision, delta, cumulative, start_us, principal, meter = _COUNTER.unpack_from(
            body, _COUNTERS.size + index * _COUNTER.size
        )
        rows.append(
            CountedRow(topic, revision, delta, cumulative, start_us, principal, Meter(meter))
        )
    return Counted(window_end_us, bool(final), tuple(rows))


def unpack_meter_flushed(body: bytes) -> tuple[int, int]:
    """(last sequence closed, last sequence acknowledged)."""
    last, acknowledged = _METER_FLUSHED.unpack_from(body)
    return last, acknowledged


def pack_seal(intent_op: int) -> bytes:
    """struct engine_seal."""
    return _SEAL.pack(intent_op)


def unpack_sealed(body: bytes) -> Sealed:
    """struct engine_sealed."""
    return Sealed(*_SEALED.unpack_from(body))


def pack_purge(*, log_start: int, version: int) -> bytes:
    """struct engine_purge. log_start 0 = everything goes."""
    return _PURGE.pack(log_start, version)


def pack_hold(*, intent_op: int, held_from: int | None) -> bytes:
    """struct engine_hold. None = nothing holds the partition any more."""
    return _HOLD.pack(intent_op, held_from or 0, held_from is not None, 0)


def unpack_retained(body: bytes) -> Retained:
    """struct engine_retained."""
    start, end, intent_op, held_from, held, _ = _RETAINED.unpack_from(body)
    return Retained(start, end, intent_op, held_from, bool(held))


def unpack_trimmed(body: bytes) -> Trimmed:
    """struct engine_trimmed."""
    topic, revision, partition, _, *found = _TRIMMED.unpack_from(body)
    sequence, trim_op, policy, start, end, size, records, *times, cause, segments = found
    return Trimmed(
        id=PartitionId(topic, revision, partition),
        sequence=sequence,
        trim_op=trim_op,
        policy_version=policy,
        from_offset=start,
        to_offset=end,
        bytes=size,
        records=records,
        min_time_us=times[0],
        max_time_us=times[1],
        trimmed_at_us=times[2],
        cause=TrimCause(cause),
        segments=segments,
    )


def sizes() -> dict[str, int]:
    """The size of each structure, by its name in engine.h; for the contract test."""
    return {
        "struct engine_caller": _CALLER.size,
        "struct engine_partition_id": _PARTITION_ID.size,
        "struct engine_group_fence": _GROUP_FENCE.size,
        "struct engine_group_state": _GROUP_STATE.size,
        "struct engine_partition_state": _PARTITION_STATE.size,
        "struct engine_meter_close": _METER_CLOSE.size,
        "struct engine_meter_sum": _METER_SUM.size,
        "struct engine_counters": _COUNTERS.size,
        "struct engine_counter": _COUNTER.size,
        "struct engine_seal": _SEAL.size,
        "struct engine_sealed": _SEALED.size,
        "struct engine_purge": _PURGE.size,
        "struct engine_hold": _HOLD.size,
        "struct engine_retained": _RETAINED.size,
        "struct engine_trimmed": _TRIMMED.size,
    }
