"""A shard's store on a simulated disk, driven turn by turn, for tests over _engine_sim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from native._engine_sim import ffi, lib
from tests.support.builders.storage import Arena, name

if TYPE_CHECKING:
    from native._engine_sim import CData

BEGIN_US = 1_767_225_600_000_000
TOPIC, REVISION = 16, 5
EXTENT_BYTES = 16 * 4096
FILE_HEADER_BYTES = 8192
FIXED = {
    "cluster_id": b"cl_test",
    "node_id": b"nd_test",
    "node_incarnation": 1,
    "partitions_max": 16,
    "metering_window_s": 1,
}


def folder_of(
    partition: int = 0, *, topic: int = TOPIC, revision: int = REVISION, tenure: int = 1
) -> str:
    """Where a replica's segments lie below the shard's folder."""
    return f"topics/{topic:016x}-{revision}-{partition}-{tenure}"


class Disk:
    """The simulated storage; outlives the stores opened on it."""

    def __init__(self, seed: int = 1) -> None:
        self._arena = Arena(lib.sim_storage_memory_bytes())
        self.storage = ffi.new("struct sim_storage *")
        lib.sim_storage_init(self.storage, self._arena.arena, seed)
        self.unlinks_fail = False

    def step(self) -> CData:
        """Carry out the oldest request, or let an unlink fail; NULL if none waits."""
        head = self.storage.queue_head
        if head == ffi.NULL or head.operation != lib.IO_UNLINK or not self.unlinks_fail:
            return lib.sim_storage_step(self.storage)
        self.storage.queue_head = head.next
        if head.next == ffi.NULL:
            self.storage.queue_tail = ffi.NULL
        head.next = ffi.NULL
        head.status = lib.STATUS_IO_FAILED
        return head

    def crash(self) -> None:
        """Cut the power: what was not synced is kept, torn or lost."""
        lib.sim_storage_crash(self.storage)

    def kill(self) -> None:
        """End the process alone: unsynced bytes stay readable, and stay unsynced."""
        self._end(lib.SIM_FATE_KILL)

    def power_cut(self) -> None:
        """Cut the power: everything that was not synced is lost."""
        self._end(lib.SIM_FATE_LOSE)

    def _end(self, fate: int) -> None:
        self.storage.fate = fate
        lib.sim_storage_crash(self.storage)
        self.storage.fate = lib.SIM_FATE_ANY

    def copied(self) -> Disk:
        """The same bytes on another disk."""
        other = Disk()
        lib.sim_storage_copy(other.storage, self.storage)
        return other

    def released(self) -> None:
        """Ends the process that had files open."""
        size = ffi.sizeof(self.storage.slots)
        ffi.memmove(self.storage.slots, bytes(size), size)
        self.storage.queue_head = self.storage.queue_tail = ffi.NULL

    def read(self, path: str) -> bytes:
        """A whole file."""
        size = lib.sim_storage_read(self.storage, path.encode(), 0, ffi.NULL, 0)
        assert size >= 0, path
        target = ffi.new("uint8_t[]", size)
        lib.sim_storage_read(self.storage, path.encode(), 0, target, size)
        return bytes(ffi.buffer(target, size))

    def listed(self, folder: str) -> list[str]:
        """Names in a folder, in order."""
        names = [
            bytes(ffi.string(self.storage.names[index].path)).decode()
            for index in range(self.storage.names_count)
            if self.storage.names[index].file
        ]
        return sorted(path.rpartition("/")[2] for path in names if path.startswith(folder + "/"))

    def exists(self, path: str) -> bool:
        """True if the path names a file."""
        return int(lib.sim_storage_read(self.storage, path.encode(), 0, ffi.NULL, 0)) >= 0

    def poke(self, path: str, offset: int, data: bytes) -> None:
        """Overwrite bytes, durably."""
        lib.sim_storage_poke(self.storage, path.encode(), offset, data, len(data))

    def digest(self) -> int:
        """Of all names and bytes."""
        return int(lib.sim_storage_digest(self.storage, b""))


@dataclass(frozen=True, slots=True)
class Retained:
    """struct engine_retained; ``held_from`` None = not held."""

    log_start: int
    log_end: int
    intent: int
    held_from: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What store_outcome_next gave."""

    token: int
    status: str
    base_offset: int
    expected: int
    record_count: int
    duplicate: bool
    append_time_us: int
    committed: int | None
    generation: int
    body: bytes
    sealed: tuple[int, int, int]
    retained: Retained


class Store:
    """One life of a shard: opened on a disk, gone with a crash."""

    def __init__(
        self,
        disk: Disk,
        *,
        extents: int = 8,
        extent_bytes: int = EXTENT_BYTES,
        segment_bytes: int = 1 << 20,
        prepares_bytes: int = 1 << 20,
        snapshot_ops: int = 0,
        producers: int = 256,
        segments: int = 0,
        index_blocks: int = 0,
        fetch_way_bytes: int = 0,
        inline_bytes: int = 0,
        metered: bool = True,
        topic: bool = True,
        shard: int = 0,
    ) -> None:
        self.disk = disk
        config = ffi.new(
            "struct store_config *",
            {
                "shards_count": shard + 1,
                "shard": shard,
                "extent_bytes": extent_bytes,
                "journal_bytes": extents * extent_bytes + FILE_HEADER_BYTES,
                "prepares_bytes": prepares_bytes,
                "producers_max": producers,
                "segments_max": segments,
                "index_blocks_max": index_blocks,
                "fetch_way_bytes": fetch_way_bytes,
                "checkpoint_inline_bytes": inline_bytes,
                "snapshot_ops": snapshot_ops,
                **FIXED,
            },
        )
        self._arena = Arena(lib.store_memory_bytes(config) + 4096)
        self.store = lib.store_allocate(config, self._arena.arena)
        assert self.store != ffi.NULL
        self.now = ffi.new("struct store_now *", {"monotonic_ns": 10**9, "wall_us": BEGIN_US})
        detail = ffi.new("char[256]")
        disk.released()
        io = lib.sim_storage_io(disk.storage)
        self.status = name(lib.store_open(self.store, io, self.now[0], detail, 256))
        self.detail = bytes(ffi.string(detail)).decode()
        self.outcomes: dict[int, Outcome] = {}
        self.advanced: list[tuple[int, int]] = []
        self._token = 0
        if topic and self.status == "OK":
            self.tables(segment_bytes=segment_bytes, metered=metered)

    def tables(
        self,
        *,
        op: int = REVISION,
        topic: int = TOPIC,
        revision: int = REVISION,
        partitions: int = 4,
        segment_bytes: int = 1 << 20,
        metered: bool = True,
        organization: int = 1,
        closing: bool = False,
        gone: bool = False,
        recreated: bool = False,
        retention_ms: int = -1,
        retention_bytes: int = -1,
        retention_ms_min: int = 0,
        policy: int = 1,
    ) -> str:
        """Apply a delta with one topic, by default the topic of these tests."""
        row = ffi.new(
            "struct engine_row_topic *",
            {
                "row": {"kind": 2 if gone else 1, "size": ffi.sizeof("struct engine_row_topic")},
                "topic": topic,
                "created_revision": revision,
                "organization": organization,
                "partitions_count": partitions,
                "message_bytes_max": 1 << 20,
                "segment_bytes": segment_bytes,
                "flags": (0 if metered else 1) | (2 if closing else 0) | (4 if recreated else 0),
                "retention_ms": retention_ms,
                "retention_bytes": retention_bytes,
                "retention_ms_min": retention_ms_min,
                "policy_version": policy,
            },
        )
        data = bytes(ffi.buffer(row))
        return name(lib.store_tables_apply(self.store, op, data, len(data)))

    @staticmethod
    def id(partition: int = 0, *, revision: int = REVISION, topic: int = TOPIC) -> CData:
        """struct engine_partition_id."""
        return ffi.new(
            "struct engine_partition_id *",
            {"topic": topic, "created_revision": revision, "partition": partition},
        )

    def token(self) -> int:
        """A fresh token."""
        self._token += 1
        return self._token

    # ---- turns ----

    def pass_time(self, us: int) -> None:
        """Both clocks go on; a tick."""
        self.now.monotonic_ns += us * 1000
        self.now.wall_us += us
        lib.store_tick(self.store, self.now[0])

    def turn(self) -> bool:
        """One request completes; False if none was waiting."""
        lib.store_flush(self.store, self.now[0])
        request = self.disk.step()
        if request != ffi.NULL:
            lib.store_complete(self.store, request)
        self._drain()
        return bool(request != ffi.NULL)

    def run(self, *, until: Callable[[], bool] | None = None, turns: int = 100_000) -> None:
        """Turns until nothing moves any more, or ``until`` holds."""
        for _ in range(turns):
            if until is not None and until():
                return
            if not self.turn() and not lib.store_work(self.store):
                assert until is None or until(), "the store came to rest before it"
                return
        raise AssertionError("the store does not come to rest")

    def _drain(self) -> None:
        outcome = ffi.new("struct store_outcome *")
        while lib.store_outcome_next(self.store, outcome):
            assert outcome.token not in self.outcomes
            self.outcomes[outcome.token] = Outcome(
                token=outcome.token,
                status=name(outcome.status),
                base_offset=outcome.base_offset,
                expected=outcome.expected,
                record_count=outcome.record_count,
                duplicate=bool(outcome.duplicate),
                append_time_us=outcome.append_time_us,
                committed=outcome.group.committed if outcome.group.has_committed else None,
                generation=outcome.group.generation,
                body=bytes(ffi.buffer(outcome.body, outcome.body_size))
                if outcome.body_size
                else b"",
                sealed=(
                    outcome.sealed.log_end,
                    outcome.sealed.meter_sequence,
                    outcome.sealed.meter_acked,
                ),
                retained=Retained(
                    outcome.retained.log_start,
                    outcome.retained.log_end,
                    outcome.retained.hold_intent_op,
                    outcome.retained.held_from if outcome.retained.held else None,
                ),
            )
        id_ = ffi.new("struct engine_partition_id *")
        while lib.store_advance_next(self.store, id_):
            self.advanced.append((id_.topic, id_.partition))

    # ---- calls ----

    def produce(
        self,
        part: bytes,
        partition: int = 0,
        *,
        principal: int = 16,
        topic: int = TOPIC,
        revision: int = REVISION,
    ) -> int | str:
        """A token, or the name of the status that refused it at once."""
        token = self.token()
        batch = ffi.from_buffer(part)
        request = ffi.new(
            "struct store_produce *",
            {
                "id": self.id(partition, topic=topic, revision=revision)[0],
                "batch": batch,
                "batch_size": len(part),
                "principal": principal,
                "message_bytes_max": 1 << 20,
                "token": token,
            },
        )
        status = name(lib.store_produce(self.store, request))
        return token if status == "OK" else status

    def append(self, part: bytes, partition: int = 0, *, principal: int = 16) -> Outcome:
        """Produce and wait."""
        token = self.produce(part, partition, principal=principal)
        assert isinstance(token, int), token
        return self.wait(token)

    def wait(self, token: int) -> Outcome:
        """The outcome of an accepted call."""
        self.run(until=lambda: token in self.outcomes)
        return self.outcomes[token]

    def commit(self, group: int, generation: int, offset: int, partition: int = 0) -> Outcome:
        """Commit an offset and wait."""
        token = self.token()
        status = lib.store_commit_offset(
            self.store, self.id(partition), group, generation, offset, token
        )
        assert status == 0, name(status)
        return self.wait(token)

    def fence(
        self, kind: int, group: int, generation: int, intent: int, partition: int = 0
    ) -> Outcome:
        """FREEZE (1) or CLOSE (2) and wait."""
        fence = ffi.new(
            "struct engine_group_fence *",
            {"group": group, "generation": generation, "intent_op": intent, "kind": kind},
        )
        token = self.token()
        status = lib.store_group_fence(self.store, self.id(partition), fence, token)
        assert status == 0, name(status)
        return self.wait(token)

    def seal(self, intent: int, partition: int = 0) -> int | str:
        """A token, or the name of the status that refused it at once."""
        token = self.token()
        status = name(lib.store_seal(self.store, self.id(partition), intent, token))
        return token if status == "OK" else status

    def sealed(self, intent: int, partition: int = 0) -> Outcome:
        """Seal and wait."""
        token = self.seal(intent, partition)
        assert isinstance(token, int), token
        return self.wait(token)

    def purge(self, log_start: int, partition: int = 0, *, version: int = 0) -> Outcome:
        """Move the log's beginning (0 = to its end) and wait."""
        token = self.token()
        purge = ffi.new("struct engine_purge *", {"log_start": log_start, "version": version})
        status = lib.store_purge(self.store, self.id(partition), purge, token)
        assert status == 0, name(status)
        return self.wait(token)

    def hold(
        self, intent: int, partition: int = 0, *, held: bool = True, from_offset: int = 0
    ) -> Outcome:
        """Hold or release and wait."""
        token = self.token()
        hold = ffi.new(
            "struct engine_hold *",
            {"intent_op": intent, "held": held, "from_offset": from_offset},
        )
        status = lib.store_hold(self.store, self.id(partition), hold, token)
        assert status == 0, name(status)
        return self.wait(token)

    def trimmed(self) -> list[CData]:
        """struct engine_trimmed of all that is handed out now."""
        found: list[CData] = []
        event = ffi.new("struct engine_trimmed *")
        while lib.store_trimmed_next(self.store, event):
            found.append(ffi.new("struct engine_trimmed *", event[0]))
        return found

    def ack_trim(self, sequence: int, partition: int = 0) -> None:
        """Events up to this one are stored."""
        assert lib.store_trim_ack(self.store, self.id(partition), sequence) == 0

    def state(self, partition: int = 0) -> CData:
        """struct engine_partition_state."""
        found = ffi.new("struct engine_partition_state *")
        assert lib.store_describe(self.store, self.id(partition), found) == 0
        return found

    def state_of(self, topic: int, revision: int, partition: int = 0) -> CData:
        """struct engine_partition_state of another topic."""
        found = ffi.new("struct engine_partition_state *")
        id_ = self.id(partition, revision=revision, topic=topic)
        assert lib.store_describe(self.store, id_, found) == 0
        return found

    def described(self, partition: int = 0) -> int:
        """The state that store_describe shows."""
        found = ffi.new("struct engine_partition_state *")
        assert lib.store_describe(self.store, self.id(partition), found) == 0
        return int(found.state)

    def fetch(
        self, offset: int, partition: int = 0, *, group: int = 0, generation: int = 0
    ) -> CData:
        """struct store_fetch."""
        result = ffi.new("struct store_fetch *")
        lib.store_fetch(self.store, self.id(partition), offset, 1 << 16, group, generation, result)
        return result

    def read(self, offset: int, partition: int = 0) -> bytes | str:
        """Stored batches from an offset on, from memory or file; a status name if refused."""
        for _ in range(10_000):
            result = self.fetch(offset, partition)
            if result.status != 0:
                return name(result.status)
            if result.place == 0:
                return b""
            if result.place == 1:
                batches = result.batches[0 : result.batches_count]
                return b"".join(bytes(ffi.buffer(one.data, one.size)) for one in batches)
            data = self._read_file(result.file, result.file_offset, result.size)
            begin, end = ffi.new("size_t *"), ffi.new("size_t *")
            status = lib.store_fetch_trim(
                self.store, self.id(partition), offset, 1 << 16, data, len(data), begin, end
            )
            if status != 0:
                return name(status)
            if end[0] > begin[0]:
                return data[begin[0] : end[0]]
        raise AssertionError("fetch makes no progress")

    def _read_file(self, slot: int, offset: int, size: int) -> bytes:
        target = ffi.new("uint8_t[]", size)
        request = ffi.new(
            "struct io_request *",
            {"operation": 3, "file": slot, "offset": offset, "size": size, "buffer": target},
        )
        self.disk.storage.io.submit(self.disk.storage.io.context, request)
        while (done := lib.sim_storage_step(self.disk.storage)) != request:
            lib.store_complete(self.store, done)
        assert request.status == 0, name(request.status)
        assert request.result_bytes == size
        return bytes(ffi.buffer(target, size))

    def log(self, partition: int = 0) -> list[bytes]:
        """Every stored batch of a partition, in order."""
        batches: list[bytes] = []
        offset = 0
        while True:
            data = self.read(offset, partition)
            assert isinstance(data, bytes), data
            if not data:
                return batches
            while data:
                size = int.from_bytes(data[4:8], "little")
                batches.append(data[:size])
                offset = int.from_bytes(data[16:24], "little")
                offset += int.from_bytes(data[96 + 12 : 96 + 16], "little")
                data = data[size:]

    def statistics(self) -> CData:
        """struct store_statistics."""
        found = ffi.new("struct store_statistics *")
        lib.store_statistics(self.store, found)
        return found
