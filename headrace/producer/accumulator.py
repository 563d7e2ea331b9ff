"""Records gather into batches here, before the network. Thread-safe; owns the memory bound.

    send() ------> open batch of (topic, partition) -- due --> Batch --> Sender
    send_many() ---------------- whole batches ------------------^

A batch is due when it is full, when it has lingered, or when somebody awaits it and its partition
is idle. Callers append under one lock; the I/O thread takes what is due. A record without a key
goes to its topic's sticky partition, which changes with every batch. One Outcome per batch answers
all its records, so a record costs no future. It knows no transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field

from headrace.codec import Record
from headrace.errors import BufferFull, Closed, DeadlineExceeded, HeadraceError, RecordTooLarge
from headrace.messages import (
    RECORD_OVERHEAD_BYTES,
    Ack,
    BatchAck,
    Value,
    now_us,
    size_of,
    value_bytes,
)
from headrace.producer.partitioner import partition_of
from headrace.transport.connection import Route
from headrace.transport.waiter import Waiter

logger = logging.getLogger("headrace")

CLIENT_HEADER_BYTES = 72


class Outcome:
    """What became of one batch; resolved once, by the I/O thread; waited for from any thread or
    loop."""

    __slots__ = ("_ack", "_callbacks", "_error", "_lock", "observed")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ack: BatchAck | None = None
        self._error: HeadraceError | None = None
        self._callbacks: list[Callable[[], None]] = []
        self.observed = False
        """Somebody has seen the result; flush() then need not report a failure again."""

    @property
    def done(self) -> bool:
        """Whether it is known."""
        return self._ack is not None or self._error is not None

    @property
    def error(self) -> HeadraceError | None:
        """Why it failed, once it has."""
        return self._error

    def resolve(self, ack: BatchAck) -> None:
        """It is stored."""
        self._settle(ack, None)

    def fail(self, error: HeadraceError) -> None:
        """It is given up."""
        self._settle(None, error)

    def _settle(self, ack: BatchAck | None, error: HeadraceError | None) -> None:
        with self._lock:
            if self.done:
                return
            self._ack, self._error = ack, error
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception:
                # It is the program's own. The I/O thread has other outcomes to settle.
                logger.exception("a callback of a delivery raised")

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Call `callback` when it is known, at once if it is already; on the I/O thread
        otherwise."""
        with self._lock:
            if not self.done:
                self._callbacks.append(callback)
                return
        callback()

    def wait(self, timeout: float | None = None) -> BatchAck:
        """Block until it is known. Raises its error, or DeadlineExceeded after `timeout`
        seconds."""
        if not self.done:
            known = Waiter()
            self.add_callback(known.wake)
            if not known.wait(timeout):
                with self._lock:
                    if known.wake in self._callbacks:
                        self._callbacks.remove(known.wake)
                raise DeadlineExceeded(f"The batch was not acknowledged within {timeout} s")
        return self._result()

    async def wait_async(self) -> BatchAck:
        """Await it from any event loop."""
        if not self.done:
            loop = asyncio.get_running_loop()
            known = asyncio.Event()

            def wake() -> None:
                # The waiter's loop may be closed by now; then there is no waiter.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(known.set)

            self.add_callback(wake)
            await known.wait()
        return self._result()

    def result(self, timeout: float | None = None) -> BatchAck:
        """The name that a future has for `wait`."""
        return self.wait(timeout)

    def __await__(self) -> Generator[object, None, BatchAck]:
        return self.wait_async().__await__()

    def _result(self) -> BatchAck:
        self.observed = True
        if self._error is not None:
            raise self._error
        assert self._ack is not None
        return self._ack


class Delivery:
    """The future ack of one record: `result()`, or `await` it."""

    __slots__ = ("_index", "_outcome")

    def __init__(self, outcome: Outcome, index: int) -> None:
        self._outcome = outcome
        self._index = index

    def done(self) -> bool:
        """Whether the result is known."""
        return self._outcome.done

    def result(self, timeout: float | None = None) -> Ack:
        """Block for the ack. Raises what prevented it."""
        return self._outcome.wait(timeout).of(self._index)

    def exception(self) -> HeadraceError | None:
        """Why it failed; None while unknown or when stored."""
        self._outcome.observed = True
        return self._outcome.error

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Call `callback(self)` when the result is known; it must not block. What it raises is
        logged."""
        self._outcome.add_callback(lambda: void(callback(self)))

    def __await__(self) -> Generator[object, None, Ack]:
        ack = yield from self._outcome.wait_async().__await__()
        return ack.of(self._index)


def void(_: object) -> None:
    """Drop a result."""


class Batch:
    """Records that travel together. After `closed` only the I/O thread touches it."""

    __slots__ = (
        "born",
        "encoded",
        "outcome",
        "partition",
        "records",
        "sequence",
        "size_bytes",
        "state",
        "topic",
        "unknown",
        "urgent",
    )

    def __init__(self, topic: str, partition: int, born: float) -> None:
        self.topic = topic
        self.partition = partition
        self.born = born
        self.records: list[Record] = []
        self.size_bytes = 0
        self.outcome = Outcome()
        self.urgent = False
        """A caller waits for it."""
        self.sequence: int | None = None
        self.encoded: bytes | None = None
        self.unknown = False
        """Sent once without an answer: it may be in the log."""
        self.state = 0


class Memory:
    """The bytes a producer may hold. Taken by callers, given back by the I/O thread."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.used = 0
        self._lock = threading.Lock()
        self._wakers: list[Callable[[], None]] = []
        self._closed = False

    def try_take(self, size: int) -> bool:
        """Take `size` bytes if they are free; one item larger than the bound is let in when nothing
        else is."""
        with self._lock:
            if self._closed:
                raise Closed("The producer is closed")
            if self.used and self.used + size > self._bytes_max:
                return False
            self.used += size
            return True

    def _listen(self, size: int, waker: Callable[[], None]) -> bool:
        """Have `waker` called when bytes are freed; False if there is no need to wait."""
        with self._lock:
            if self._closed or not self.used or self.used + size <= self._bytes_max:
                return False
            self._wakers.append(waker)
            return True

    def take(self, size: int, timeout: float | None) -> None:
        """Block until `size` bytes are free. Raises BufferFull after `timeout` seconds."""
        limit = None if timeout is None else time.monotonic() + timeout
        while not self.try_take(size):
            left = None if limit is None else limit - time.monotonic()
            if left is not None and left <= 0:
                raise self.full()
            freed = Waiter()
            if self._listen(size, freed.wake):
                freed.wait(left)

    async def take_async(self, size: int) -> None:
        """Await `size` free bytes."""
        loop = asyncio.get_running_loop()
        while not self.try_take(size):
            freed = asyncio.Event()

            def wake(freed: asyncio.Event = freed) -> None:
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(freed.set)

            if self._listen(size, wake):
                await freed.wait()

    def give_back(self, size: int) -> None:
        """Free `size` bytes."""
        with self._lock:
            self.used -= size
            self._wake()

    def close(self) -> None:
        """Gives out no more memory; waiting callers get Closed."""
        with self._lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    def full(self) -> BufferFull:
        """The error for a caller that will not wait."""
        return BufferFull(f"{self.used} of {self._bytes_max} bytes are waiting to be sent")


@dataclass(slots=True)
class _Lane:
    """The open batches of one topic."""

    open: dict[int, Batch] = field(default_factory=dict)
    sticky: int = -1


class Accumulator:
    """Open and full batches of one producer, whose records have taken their bytes from `memory`."""

    def __init__(
        self, memory: Memory, *, batch_bytes: int, linger: float, wake: Callable[[], None]
    ) -> None:
        self._memory = memory
        self._batch_bytes = batch_bytes
        self._linger = linger
        self._wake = wake
        self._lock = threading.Lock()
        self._lanes: dict[str, _Lane] = {}
        self._full: deque[Batch] = deque()
        self._ended = False
        self._random = random.Random()

    def room(self, route: Route) -> int:
        """Bytes of records that one batch of the topic may hold."""
        return min(self._batch_bytes, route.message_bytes_max - CLIENT_HEADER_BYTES)

    def check(self, route: Route, record: Record, size: int) -> None:
        """Raises RecordTooLarge for a record that no batch of the topic can hold."""
        if size > route.message_bytes_max - CLIENT_HEADER_BYTES:
            raise RecordTooLarge(
                f"A record of {size} bytes is too large for {route.name}: "
                f"max_message_bytes is {route.message_bytes_max}"
            )

    def append(
        self, route: Route, record: Record, partition: int | None, size: int, *, urgent: bool
    ) -> Delivery:
        """Put one record into the open batch it belongs to; `size` bytes were taken from Memory.
        Raises Closed, and gives them back, after `end`."""
        with self._lock:
            if self._ended:
                raise self._refusal(size)
            lane = self._lane(route)
            if partition is None:
                if record.key is None:
                    partition = lane.sticky
                else:
                    partition = partition_of(record.key, route.partitions_count)
            batch = lane.open.get(partition)
            due = False
            if batch is not None and batch.size_bytes + size > self.room(route):
                self._close(lane, route, batch)
                batch, due = None, True
            if batch is None:
                batch = Batch(route.name, partition, time.monotonic())
                lane.open[partition] = batch
                due = True
            index = len(batch.records)
            batch.records.append(record)
            batch.size_bytes += size
            if urgent and not batch.urgent:
                batch.urgent = due = True
            if batch.size_bytes >= self.room(route):
                self._close(lane, route, batch)
                due = True
            delivery = Delivery(batch.outcome, index)
        if due:
            self._wake()
        return delivery

    def append_batch(
        self, route: Route, records: list[Record], partition: int | None, size: int
    ) -> Outcome:
        """Put a whole batch behind what is open for its partition; `size` bytes were taken from
        Memory. Raises Closed, and gives them back, after `end`."""
        with self._lock:
            if self._ended:
                raise self._refusal(size)
            lane = self._lane(route)
            if partition is None:
                partition = lane.sticky
                self._move_on(lane, route)
            before = lane.open.get(partition)
            if before is not None:
                self._close(lane, route, before)
            batch = Batch(route.name, partition, time.monotonic())
            batch.records, batch.size_bytes = records, size
            self._full.append(batch)
        self._wake()
        return batch.outcome

    def end(self) -> None:
        """Refuse all that comes from now on. What came before is `due`: so a record is either among
        those that the closing producer settles, or its caller gets Closed."""
        with self._lock:
            self._ended = True

    def _refusal(self, size: int) -> Closed:
        self._memory.give_back(size)
        return Closed("The producer is closed")

    def _lane(self, route: Route) -> _Lane:
        lane = self._lanes.get(route.name)
        if lane is None:
            lane = self._lanes[route.name] = _Lane()
        if lane.sticky < 0 or lane.sticky >= route.partitions_count:
            self._move_on(lane, route)
        return lane

    def _move_on(self, lane: _Lane, route: Route) -> None:
        count = route.partitions_count
        if lane.sticky < 0 or count == 1:
            lane.sticky = self._random.randrange(count)
        else:
            lane.sticky = (lane.sticky + 1 + self._random.randrange(count - 1)) % count

    def _close(self, lane: _Lane, route: Route, batch: Batch) -> None:
        del lane.open[batch.partition]
        self._full.append(batch)
        if batch.partition == lane.sticky:
            self._move_on(lane, route)

    def due(
        self, now: float, idle: Callable[[str, int], bool], *, everything: bool = False
    ) -> tuple[list[Batch], float | None]:
        """Batches to send now, in order, and the time of the next one that lingers. I/O thread
        only.

        Due is what is full, has lingered, is awaited while its partition is idle, or `everything`.
        """
        with self._lock:
            batches = list(self._full)
            self._full.clear()
            next_at: float | None = None
            for lane in self._lanes.values():
                for partition, batch in list(lane.open.items()):
                    ready_at = batch.born + self._linger
                    awaited = batch.urgent and idle(batch.topic, partition)
                    if everything or awaited or ready_at <= now:
                        del lane.open[partition]
                        batches.append(batch)
                        if partition == lane.sticky:
                            lane.sticky = -1
                    else:
                        next_at = ready_at if next_at is None else min(next_at, ready_at)
            return batches, next_at


def chunked(
    items: Iterable[Value | Record], route: Route, room: int, partition: int | None
) -> Iterator[tuple[int | None, list[Record], int]]:
    """Cut `items` into whole batches: (partition or None for sticky, records, bytes). Lean: it runs
    once per record."""
    lists: dict[int | None, tuple[list[Record], list[int]]] = {}
    count = route.partitions_count
    now = now_us()
    for i, item in enumerate(items):
        if not i & 255:
            now = now_us()
        if type(item) is bytes:
            record = Record(None, item, now, ())
            size = RECORD_OVERHEAD_BYTES + len(item)
        else:
            record = item if isinstance(item, Record) else Record(None, value_bytes(item), now, ())
            size = size_of(record)
        target = partition
        if target is None and record.key is not None:
            target = partition_of(record.key, count)
        found = lists.get(target)
        if found is None:
            found = lists[target] = ([], [0])
        records, total = found
        if total[0] + size > room and records:
            yield target, records, total[0]
            records, total = lists[target] = ([], [0])
        records.append(record)
        total[0] += size
    for target, (records, total) in lists.items():
        if records:
            yield target, records, total[0]
