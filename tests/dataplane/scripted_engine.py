"""An engine of one shard by script: partitions that meter, and `_usage`, which takes batches.

Speaks the frames of engine.h as the ring crosses them; nothing of the node is imitated. Windows
come in order, and again from the first that is not acknowledged, as in usage_windows.c.
"""

import asyncio
import contextlib
import os
import struct
from collections import deque
from collections.abc import Callable, Iterable

from dataplane.engine.frames import CountedRow, EngineResult, Kind, PartitionId
from dataplane.evidence.counters import counters_of
from headrace import codec
from headrace.wire import usage_pb2 as usage
from native.engine import Frame

_CLOSE = struct.Struct("<QQIIQQQqqII")
_PARTITION = struct.Struct("<QQII")
_COUNTERS = struct.Struct("<qII")
_COUNTER = struct.Struct("<QQQQqII")
MINUTE_US = 60_000_000
PATIENCE_S = 120.0
LOOK_S = 0.01


class ScriptedEngine:
    """Frames wait until `receive`; what the host sends is answered at once."""

    def __init__(self) -> None:
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self.waiting: deque[Frame] = deque()
        self.sent: list[Frame] = []
        self.closed: dict[PartitionId, int] = {}
        self.acknowledged: dict[PartitionId, int] = {}
        self.batches: dict[tuple[bytes, int], list[tuple[PartitionId, int]]] = {}
        self.counters: dict[tuple[bytes, int], list[usage.Counter]] = {}
        self.refuse_publish: EngineResult | None = None
        self.appended: set[PartitionId] = set()
        self.foreign: set[tuple[bytes, int]] = set()
        self.refuse_seal: dict[PartitionId, EngineResult] = {}
        self.seals: list[tuple[PartitionId, int]] = []
        self._metadata_op = 0
        self._cookies: dict[int, int] = {}
        self._progress: asyncio.Event | None = None

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._wake)

    # ---- what a partition does ----

    def close_windows(self, partition: PartitionId, count: int = 1) -> None:
        """The next windows of a partition close and are handed to the host."""
        for _ in range(count):
            self.closed[partition] = self.closed.get(partition, 0) + 1
            self.hand_over(partition, self.closed[partition])

    def hand_over(self, partition: PartitionId, sequence: int) -> None:
        """One window, once."""
        start_us = sequence * MINUTE_US
        body = _CLOSE.pack(
            *partition, 0, sequence, sequence, sequence, start_us, start_us + MINUTE_US, 0, 0
        )
        self.post(Frame(Kind.METER_CLOSE, body=body))

    def count(
        self, *rows: CountedRow, end_us: int = MINUTE_US, shard: int = 0, final: bool = False
    ) -> None:
        """What a shard counted in a window, once."""
        body = _COUNTERS.pack(end_us, len(rows), final) + b"".join(
            _COUNTER.pack(*row) for row in rows
        )
        self.post(Frame(Kind.COUNTERS, shard=shard, body=body))

    def counted(self) -> list[usage.Counter]:
        """The counters in `_usage`."""
        return [counter for batch in self.counters.values() for counter in batch]

    def repeat(self) -> None:
        """Every window without an acknowledgement again, in order."""
        for partition, last in self.closed.items():
            for sequence in range(self.acknowledged.get(partition, 0) + 1, last + 1):
                self.hand_over(partition, sequence)

    # ---- the metadata log ----

    def recover(self, commands: Iterable[bytes]) -> None:
        """What shard 0 says at a start: no snapshot, then these commands."""
        self.post(Frame(Kind.METADATA_RESTORE))
        for command in commands:
            self._commit(command)
        self.post(Frame(Kind.METADATA_READY, arg0=self._metadata_op))

    def _commit(self, command: bytes) -> int:
        self._metadata_op += 1
        op = self._metadata_op
        self.post(Frame(Kind.METADATA_APPLY, arg0=op, arg1=op * 1000, body=command))
        return op

    # ---- what tests look at ----

    def usage(self) -> list[tuple[PartitionId, int]]:
        """The windows in `_usage`."""
        return [window for batch in self.batches.values() for window in batch]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what the frames under way lead to; looked at whenever the host sends, and
        again a little later, for what follows from a frame without another one."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._progress = asyncio.Event()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._progress.wait(), LOOK_S)

    # ---- the crossing ----

    def post(self, *frames: Frame) -> None:
        """Hand frames to the host."""
        self.waiting.extend(frames)
        os.eventfd_write(self._wake, 1)

    def fileno(self) -> int:
        """Readable when frames wait."""
        return self._wake

    def receive(self) -> list[Frame]:
        """Everything that waits."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        frames = list(self.waiting)
        self.waiting.clear()
        return frames

    def send(self, frames: Iterable[Frame]) -> int:
        """Take and answer all."""
        count = 0
        for frame in frames:
            count += 1
            self.sent.append(frame)
            if frame.kind == Kind.METER_ACK:
                topic, revision, index, _ = _PARTITION.unpack(frame.body)
                partition = PartitionId(topic, revision, index)
                before = self.acknowledged.get(partition, 0)
                self.acknowledged[partition] = max(before, frame.arg1)
            elif frame.kind == Kind.PUBLISH:
                self.post(Frame(Kind.REPLY, arg0=frame.arg0, arg1=self._publish(frame.body)))
            elif frame.kind == Kind.SEAL:
                self._seal(frame)
            elif frame.kind == Kind.METADATA_SUBMIT:
                self._cookies[self._commit(frame.body)] = frame.arg0
            elif frame.kind == Kind.METADATA_APPLIED and frame.arg0 in self._cookies:
                cookie = self._cookies.pop(frame.arg0)
                result = frame.body[: frame.arg1]
                self.post(Frame(Kind.REPLY, arg0=cookie, body=result))
        if self._progress is not None:
            self._progress.set()
        return count

    def cancelled(self) -> list[tuple[int, int, int]]:
        """No calls here."""
        return []

    def _seal(self, frame: Frame) -> None:
        topic, revision, index, _, intent_op = struct.unpack("<QQIIQ", frame.body)
        partition = PartitionId(topic, revision, index)
        self.seals.append((partition, intent_op))
        refusal = self.refuse_seal.get(partition)
        if refusal is not None:
            self.post(Frame(Kind.REPLY, arg0=frame.arg0, arg1=refusal))
            return
        if partition in self.appended:
            self.appended.remove(partition)
            self.close_windows(partition)
        sealed = (0, self.closed.get(partition, 0), self.acknowledged.get(partition, 0))
        self.post(Frame(Kind.REPLY, arg0=frame.arg0, body=struct.pack("<QQQQQ", *sealed, 0, 0)))

    def _publish(self, body: bytes) -> EngineResult:
        if self.refuse_publish is not None:
            return self.refuse_publish
        batch = codec.client_batch(body[_PARTITION.size :])
        name = (bytes(batch.producer_id), batch.base_sequence)
        values = [value for value in codec.decode(batch).values if value is not None]
        windows = [_window(value) for value in values]
        if name in self.foreign:
            return EngineResult.DUPLICATE
        if name in self.batches:
            assert self.batches[name] == windows
            return EngineResult.DUPLICATE
        self.batches[name] = windows
        records = [usage.UsageRecord.FromString(value[1:]) for value in values]
        self.counters[name] = [one.counter for one in records if one.HasField("counter")]
        return EngineResult.OK


def _window(value: bytes) -> tuple[PartitionId, int]:
    record = usage.UsageRecord.FromString(value[1:])
    if record.HasField("counter"):
        counter = record.counter
        return counters_of(counter.shard, counter.incarnation), counter.sequence
    close = record.close
    return PartitionId(close.topic, close.created_revision, close.partition), close.sequence
