"""One partition of the storage core, and the pools it lives from, for tests over _engine_sim."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace import codec
from native._engine_sim import ffi, lib

if TYPE_CHECKING:
    from native._engine_sim import CData

BATCH, COMMIT, IN_FLIGHT, FREEZE, CLOSE, METER_CLOSE, SEAL, EXPIRE, TRIM, SET_HOLD = range(1, 11)
TIME, SIZE, PURGE = range(1, 4)

SEED = 0x5EED
"""Of every partition made here (J10)."""
FOOTER_SEED = 0xF007


def name(status: int) -> str:
    """The name of a status."""
    text: bytes = ffi.string(lib.status_name(status))
    return text.decode()


class Arena:
    """Memory of the engine, released with the object."""

    def __init__(self, size: int) -> None:
        self.arena = ffi.new("struct arena *")
        assert lib.arena_open(self.arena, size) == 0

    def __del__(self) -> None:
        lib.arena_close(self.arena)


class Pools:
    """What partitions of one shard share."""

    def __init__(self, *, producers: int = 1024, segments: int = 1024, blocks: int = 64) -> None:
        limits = ffi.new(
            "struct partition_limits *",
            {"producers_max": producers, "segments_max": segments, "index_blocks_max": blocks},
        )
        self._arena = Arena(lib.partition_pools_bytes(limits))
        self.pools = ffi.new("struct partition_pools *")
        assert lib.partition_pools_init(self.pools, self._arena.arena, limits) == 0


@dataclass
class Applied:
    """What partition_apply answered; ``body`` as it was left behind."""

    status: str
    duplicate: bool
    base_offset: int
    expected: int
    append: bool
    segment: int
    position: int
    opened: bool
    sealed: bool
    sealed_base: int
    sealed_bytes: int
    footer: bytes
    committed: int | None
    generation: int
    closed: bool
    meter_closed: bool
    trimmed: bool
    body: bytes


@dataclass
class Log:
    """The files that a caller of partition_apply would have written."""

    files: dict[int, bytearray] = field(default_factory=dict)

    def take(self, applied: Applied) -> None:
        """Write what was applied to the requested place."""
        if applied.sealed:
            assert len(self.files[applied.sealed_base]) == applied.sealed_bytes
            self.files[applied.sealed_base] += applied.footer
        if applied.append:
            file = self.files.setdefault(applied.segment, bytearray())
            assert len(file) == applied.position
            file += applied.body


class Partition:
    """A partition and its next operation."""

    def __init__(
        self,
        pools: Pools | None = None,
        *,
        segment_bytes: int = 1 << 30,
        segment_us: int = 0,
        metered: bool = True,
    ) -> None:
        self.pools = pools or Pools()
        self.config = ffi.new(
            "struct partition_config *",
            {
                "seeds": {"batch": SEED, "footer": FOOTER_SEED},
                "limits": {
                    "segment_bytes": segment_bytes,
                    "segment_us": segment_us,
                    "producers_max": lib.PARTITION_PRODUCERS_MAX,
                    "groups_max": lib.PARTITION_GROUPS_MAX,
                    "metered": metered,
                },
            },
        )
        self.struct = ffi.new("struct partition *")
        lib.partition_init(self.struct, self.pools.pools, self.config)
        self.log = Log()
        self.now_us = 1_700_000_000_000_000

    @property
    def op(self) -> int:
        """The last operation."""
        return int(self.struct.applied_op)

    def deinit(self) -> None:
        """Return everything to the pools."""
        lib.partition_deinit(self.struct)

    def apply(self, kind: int, body: bytes, *, append_us: int | None = None) -> Applied:
        """Apply one operation, by default a microsecond after the previous one."""
        self.now_us = self.now_us + 1 if append_us is None else append_us
        buffer = ffi.new("uint8_t[]", body)
        result = ffi.new("struct partition_result *")
        status = lib.partition_apply(
            self.struct, self.op + 1, kind, self.now_us, buffer, len(body), result
        )
        assert status == 0, name(status)
        place = result.place
        applied = Applied(
            status=name(result.status),
            duplicate=bool(result.duplicate),
            base_offset=result.base_offset,
            expected=result.expected,
            append=bool(result.append),
            segment=place.base_offset,
            position=place.position,
            opened=bool(place.opened),
            sealed=bool(place.sealed),
            sealed_base=place.sealed_base_offset,
            sealed_bytes=place.sealed_data_bytes,
            footer=bytes(place.footer),
            committed=result.group.committed if result.group.has_committed else None,
            generation=result.group.generation,
            closed=bool(result.group.closed),
            meter_closed=bool(result.meter_closed),
            trimmed=bool(result.trimmed),
            body=bytes(ffi.buffer(buffer, len(body))),
        )
        self.log.take(applied)
        return applied

    def append(self, part: bytes, *, principal: int = 16, append_us: int | None = None) -> Applied:
        """Prepare and apply a client part."""
        at = self.now_us + 1 if append_us is None else append_us
        stored = stored_batch(part, op=self.op + 1, append_us=at, principal=principal)
        return self.apply(BATCH, stored, append_us=at)

    def commit(self, group: int, generation: int, offset: int) -> Applied:
        """COMMIT_OFFSET."""
        return self.apply(COMMIT, words(group, generation, offset))

    def in_flight(self, group: int, generation: int) -> Applied:
        """IN_FLIGHT."""
        return self.apply(IN_FLIGHT, words(group, generation))

    def fence(self, kind: int, group: int, generation: int, intent_op: int) -> Applied:
        """FREEZE or CLOSE."""
        return self.apply(kind, words(group, generation, intent_op))

    def trim(
        self, log_start: int, *, cause: int = PURGE, policy: int = 3, acked: int = 0
    ) -> Applied:
        """TRIM."""
        return self.apply(TRIM, words(log_start, cause, policy, acked))

    def hold(self, intent_op: int, *, held: bool = True, from_offset: int = 0) -> Applied:
        """SET_HOLD."""
        return self.apply(SET_HOLD, words(intent_op, held, from_offset))

    def events(self) -> list[CData]:
        """struct retention_event of every trim that is not acknowledged, copied."""
        found: list[CData] = []
        while event := lib.partition_trim_next(self.struct, found[-1].sequence if found else 0):
            found.append(ffi.new("struct retention_event *", event[0]))
        return found

    def segments(self) -> list[tuple[int, int]]:
        """(base offset, end offset) of each segment."""
        found: list[tuple[int, int]] = []
        while segment := lib.partition_segment(self.struct, len(found)):
            found.append((segment.base_offset, segment.end_offset))
        return found

    def checkpoint(self) -> bytes:
        """The replicated state as bytes."""
        size = lib.partition_checkpoint_bytes(self.struct)
        target = ffi.new("uint8_t[]", size)
        lib.partition_checkpoint_encode(self.struct, target, size)
        return bytes(ffi.buffer(target, size))

    def restored(self, blob: bytes | None = None) -> Partition:
        """Another partition with this one's checkpoint, its active segment walked."""
        other = Partition(
            self.pools,
            segment_bytes=self.config.limits.segment_bytes,
            segment_us=self.config.limits.segment_us,
            metered=bool(self.config.limits.metered),
        )
        blob = self.checkpoint() if blob is None else blob
        assert lib.partition_checkpoint_decode(other.struct, blob, len(blob)) == 0
        other.now_us = self.now_us
        other.log = Log({base: bytearray(data) for base, data in self.log.files.items()})
        other.walk()
        return other

    def walk(self, piece_bytes: int = 1 << 20) -> None:
        """Rebuild indexes and digest from the files."""
        position = 0
        while segment := lib.partition_segment(self.struct, position):
            position += 1
            data = bytes(self.log.files[segment.base_offset][: segment.data_bytes])
            lib.segment_walk_begin(ffi.addressof(self.struct, "segments"), segment)
            walk(self.struct, segment, data, piece_bytes)


def walk(partition: object, segment: object, data: bytes, piece_bytes: int) -> None:
    """Feed a segment's bytes in pieces until all are taken."""
    at = 0
    size = piece_bytes
    consumed = ffi.new("size_t *")
    while at < len(data):
        piece = data[at : at + size]
        segments = ffi.addressof(partition, "segments")
        status = lib.segment_walk(segments, segment, piece, len(piece), consumed)
        assert status == 0, name(status)
        at += consumed[0]
        size = size * 2 if consumed[0] == 0 else piece_bytes


def words(*values: int) -> bytes:
    """The body of an operation: its version, then u64s."""
    return b"".join(value.to_bytes(8, "little") for value in (1, *values))


def client_part(
    count: int = 1, *, producer: bytes = bytes(16), epoch: int = 0, sequence: int = 0, size: int = 8
) -> bytes:
    """A client part of ``count`` records with values of ``size`` bytes."""
    records = [codec.Record(None, bytes(size), 1_000_000 + index) for index in range(count)]
    return codec.encode(records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def stored_batch(
    part: bytes,
    *,
    op: int,
    append_us: int,
    principal: int = 16,
    view: int = 0,
    base_offset: int = 0,
    cumulative_bytes: int = 0,
    seed: int = SEED,
) -> bytes:
    """A client part behind its server header, as a primary prepares it."""
    digest = ffi.new("uint8_t[16]")
    lib.vsr_digest(part, len(part), digest)
    server = ffi.new(
        "struct batch_server *",
        {
            "size_bytes": len(part) + 96,
            "append_time_us": append_us,
            "op": op,
            "first_view": view,
            "principal": principal,
            "base_offset": base_offset,
            "cumulative_bytes": cumulative_bytes,
            "client_crc": int.from_bytes(part[4:8], "little"),
            "digest": digest,
        },
    )
    header = ffi.new("uint8_t[96]")
    lib.batch_encode_server(server, seed, header)
    return bytes(ffi.buffer(header)) + part
