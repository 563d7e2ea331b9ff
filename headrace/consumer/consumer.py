"""Consumers, sync and async: iterate, and the offsets follow. Each drives one Subscription.

    for m in topic.consume(group="billing", start="earliest", until="end"): ...

When a row counts as handled is one word:

    ack="after"    (default) when the loop body returned, that is, when the next row is asked for
    ack="manual"   when you call commit(): everything handed out so far
    ack="before"   before the rows of a batch are handed out: at most once

Offsets are committed every second, when a partition moves away, and at the end. With "after" a row
whose body raised, or that was left by `break`, is not handled and comes again; inside `with`,
leaving without an exception handles it. A group needs no poll: heartbeats run on the I/O thread, a
handler may take as long as it wants.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from types import TracebackType
from typing import Self

from headrace.consumer.fetcher import Chunk, OnExpired, Slot
from headrace.consumer.session import member_name
from headrace.consumer.subscription import AckMode, Start, Subscription, Wanted
from headrace.errors import Closed, CorruptPartition
from headrace.messages import Batch, Message, TopicPartition, instant_of
from headrace.transport.connection import Connection
from headrace.transport.io_thread import IoThread, OwnerProcess
from headrace.transport.retry import Deadline, Duration, seconds

PREFETCH_BYTES = 32 << 20
SESSION_TIMEOUT = "10s"


def wanted_of(
    topics: tuple[str, ...],
    *,
    partition: int | tuple[int, ...] | None,
    group: str | None,
    start: Start | None,
    until: str | None,
    ack: AckMode,
    on_expired: OnExpired,
    member: str | None,
    prefetch_bytes: int,
    session_timeout: Duration,
) -> Wanted:
    """The checked wish of a consume() call."""
    return Wanted(
        topics=topics,
        partitions=(partition,) if isinstance(partition, int) else partition,
        group=group,
        member=member or member_name(),
        # One moment for all partitions, however long opening them takes.
        start=instant_of(start) if isinstance(start, timedelta) else start,
        until_end=until == "end",
        ack=ack,
        on_expired=on_expired,
        prefetch_bytes=prefetch_bytes,
        session_timeout=seconds(session_timeout),
    )


class ConsumerState:
    """What both consumers share: rows out of chunks, and which of them are done. Touched by the
    reading thread only."""

    def __init__(self, connection: Connection, io: IoThread, wanted: Wanted) -> None:
        self._opened = False
        self._closed = False
        # Read to the end that was wanted: after that, closed is no fault of anybody.
        self._finished = False
        self._io = io
        self._wanted = wanted
        self._subscription = Subscription(connection, wanted)
        self._process = OwnerProcess()
        self._slot: Slot | None = None
        self._rows: list[Message] = []
        self._row = 0
        self._end = 0

    def _check(self) -> None:
        self._process.check("consumer")
        if self._closed:
            raise Closed("The consumer is closed")

    def _check_open(self) -> None:
        """Raise Closed unless the consumer is open or came to its end by itself: closing it,
        or its client, must not make unread records look like the end."""
        if self._closed and not self._finished:
            self._check()

    def __del__(self) -> None:
        # After a `break` outside `with` no other code leaves the group.
        if self._opened and not self._closed and not self._process.foreign:
            self._io.abandon(self._subscription.close(commit=self._wanted.ack != "manual"))

    @property
    def subscription(self) -> Subscription:
        """The I/O side, which outlives this object unless it is closed."""
        return self._subscription

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Next offset to be handled, per partition."""
        return self._subscription.positions()

    @property
    def rows_in_hand(self) -> int:
        """Rows that can be handed out without waiting."""
        return len(self._rows) - self._row

    def _finish(self) -> None:
        """The loop body returned: what was in hand is done."""
        slot = self._slot
        if slot is None or not slot.in_hand:
            return
        slot.done = slot.handed
        if self._wanted.ack == "after":
            slot.to_commit = slot.handed
        slot.in_hand = False
        if slot.revoking:
            self._io.loop.call_soon_threadsafe(slot.idle.set)

    def _next_row(self) -> Message | None:
        """The next row of the chunk in hand."""
        self._check_open()
        slot = self._slot
        if slot is None or self._row >= len(self._rows):
            return None
        if not slot.active:
            self._rows = []
            return None
        message = self._rows[self._row]
        self._row += 1
        # Behind the last row stands the batch's end, which is further when rows were compacted
        # away.
        slot.handed = message.offset + 1 if self._row < len(self._rows) else self._end
        slot.in_hand = True
        return message

    def _take_up(self, chunk: Chunk) -> None:
        self._slot = chunk.slot
        self._end = chunk.end
        self._rows = []
        self._row = 0
        try:
            self._rows = chunk.columns().messages()
        except CorruptPartition:
            # The error is handed out in its place: who asks for the next row has done with it.
            chunk.slot.handed = chunk.end
            chunk.slot.in_hand = True
            raise

    def _hand_out(self, chunk: Chunk) -> Batch:
        self._slot = chunk.slot
        self._rows = []
        chunk.slot.handed = chunk.end
        chunk.slot.in_hand = True
        return chunk.columns()

    def _taken(self, chunk: Chunk) -> bool:
        """Make room for the next fetch; False for a chunk of a partition that has moved away."""
        self._io.loop.call_soon_threadsafe(self._subscription.taken, chunk)
        return chunk.slot.active

    def _before(self, chunk: Chunk) -> None:
        chunk.slot.to_commit = chunk.end

    def _nothing_left(self) -> None:
        if self._wanted.until_end:
            self._io.loop.call_soon_threadsafe(self._subscription.check_end)


class Consumer(ConsumerState):
    """Iterate it from one thread; `with` leaves the group in the end."""

    def open(self) -> Self:
        """Connect now instead of at the first row."""
        self._check()
        if not self._opened:
            self._io.run(self._subscription.open())
            self._opened = True
        return self

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        self._finish()
        message = self._next_row()
        if message is not None:
            return message
        message = self._wait(None)
        if message is None:
            self._finished = True
            self.close()
            raise StopIteration
        return message

    def poll(self, timeout: Duration) -> Message | None:
        """The next row, or None when none came within `timeout`."""
        self._finish()
        message = self._next_row()
        return message if message is not None else self._wait(Deadline(seconds(timeout)))

    def _wait(self, deadline: Deadline | None) -> Message | None:
        while True:
            chunk = self._chunk(deadline)
            if chunk is None:
                return None
            self._take_up(chunk)
            message = self._next_row()
            if message is not None:
                return message

    def _chunk(self, deadline: Deadline | None) -> Chunk | None:
        """The next chunk that is still ours; None at the end or the deadline."""
        self._check_open()
        if self._finished:
            return None
        self.open()
        mailbox = self._subscription.mailbox
        while True:
            chunk = mailbox.take()
            if chunk is None:
                if mailbox.ended:
                    self._check_open()
                    return None
                self._nothing_left()
                chunk = mailbox.wait(None if deadline is None else deadline.remaining())
            if chunk is None:
                if deadline is not None and deadline.passed:
                    return None
            elif self._taken(chunk):
                if self._wanted.ack == "before":
                    self._before(chunk)
                    self._io.run(self._subscription.commit())
                return chunk

    def batches(self) -> Iterator[Batch]:
        """Whole batches as columns: the fast way. A batch is handled when the next one is asked
        for."""
        while True:
            self._finish()
            chunk = self._chunk(None)
            if chunk is None:
                self._finished = True
                self.close()
                return
            yield self._hand_out(chunk)

    def commit(self) -> None:
        """Commit now. With ack="manual" everything handed out so far, otherwise what is done."""
        self._check()
        if self._wanted.ack == "manual":
            self._subscription.commit_handed()
        self._io.run(self._subscription.commit())

    def lag(self) -> dict[TopicPartition, int]:
        """Records not yet handled, per partition, asked from the primaries now."""
        self._check()
        return self._io.run(self._subscription.lag())

    def close(self) -> None:
        """Commit what is done (not with ack="manual"), leave the group, stop."""
        if self._closed:
            return
        self._closed = True
        if self._opened:
            self._io.run(self._subscription.close(commit=self._wanted.ack != "manual"))

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._finish()
        self.close()


class AsyncConsumer(ConsumerState):
    """Iterate it with `async for`; `async with` leaves the group in the end."""

    async def open(self) -> Self:
        """Connect now instead of at the first row."""
        self._check()
        if not self._opened:
            await self._io.call(self._subscription.open())
            self._opened = True
        return self

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        self._finish()
        message = self._next_row()
        if message is not None:
            return message
        message = await self._wait(None)
        if message is None:
            self._finished = True
            await self.close()
            raise StopAsyncIteration
        return message

    async def poll(self, timeout: Duration) -> Message | None:
        """The next row, or None when none came within `timeout`."""
        self._finish()
        message = self._next_row()
        return message if message is not None else await self._wait(Deadline(seconds(timeout)))

    async def _wait(self, deadline: Deadline | None) -> Message | None:
        while True:
            chunk = await self._chunk(deadline)
            if chunk is None:
                return None
            self._take_up(chunk)
            message = self._next_row()
            if message is not None:
                return message

    async def _chunk(self, deadline: Deadline | None) -> Chunk | None:
        self._check_open()
        if self._finished:
            return None
        await self.open()
        mailbox = self._subscription.mailbox
        while True:
            chunk = mailbox.take()
            if chunk is None:
                if mailbox.ended:
                    self._check_open()
                    return None
                self._nothing_left()
                left = None if deadline is None else deadline.remaining()
                chunk = await mailbox.wait_async(left)
            if chunk is None:
                if deadline is not None and deadline.passed:
                    return None
            elif self._taken(chunk):
                if self._wanted.ack == "before":
                    self._before(chunk)
                    await self._io.call(self._subscription.commit())
                return chunk

    async def batches(self) -> AsyncIterator[Batch]:
        """Whole batches as columns: the fast way."""
        while True:
            self._finish()
            chunk = await self._chunk(None)
            if chunk is None:
                self._finished = True
                await self.close()
                return
            yield self._hand_out(chunk)

    async def commit(self) -> None:
        """Commit now. With ack="manual" everything handed out so far, otherwise what is done."""
        self._check()
        if self._wanted.ack == "manual":
            self._subscription.commit_handed()
        await self._io.call(self._subscription.commit())

    async def lag(self) -> dict[TopicPartition, int]:
        """Records not yet handled, per partition, asked from the primaries now."""
        self._check()
        return await self._io.call(self._subscription.lag())

    async def close(self) -> None:
        """Commit what is done (not with ack="manual"), leave the group, stop."""
        if self._closed:
            return
        self._closed = True
        if self._opened:
            await self._io.call(self._subscription.close(commit=self._wanted.ack != "manual"))

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._finish()
        await self.close()
