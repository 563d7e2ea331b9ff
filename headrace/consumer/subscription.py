"""What one consumer reads, and where it is: assignments in, batches out, offsets back.

    Slot -- PartitionReader --> mailbox --> the consumer's iterator -- done, to_commit --> commit

By partition, slots are made at the start; by group, they come and go with assignments. A partition
that is revoked stops being read at once; its row in hand gets a moment to finish; then its position
is committed and the partition released. Commits carry the partition's generation: after a hand-over
they are refused by the log itself, which is routine and only logged at DEBUG. Runs on the I/O loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from headrace.consumer.fetcher import (
    FETCH_BYTES,
    Chunk,
    OnExpired,
    PartitionReader,
    Slot,
    fetch_offsets,
    offset_at,
)
from headrace.consumer.session import Membership
from headrace.errors import Fenced, HeadraceError, Invalid, NotFound, StartRequired
from headrace.messages import TopicPartition, instant_of
from headrace.transport.connection import ATTEMPT_TIMEOUT, CALL_TIMEOUT, COMMIT_OFFSETS, Connection
from headrace.transport.io_thread import Mailbox, watch
from headrace.wire import stream_pb2 as wire

logger = logging.getLogger("headrace")

Start = Literal["earliest", "latest"] | int | datetime | timedelta
AckMode = Literal["after", "before", "manual"]

COMMIT_SECONDS = 1.0
RELEASE_WAIT = 3.0
END_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a consumer was asked to read. Times in seconds."""

    topics: tuple[str, ...]
    partitions: tuple[int, ...] | None
    """None: all, or what the group assigns."""
    group: str | None
    member: str
    start: Literal["earliest", "latest"] | int | datetime | None
    until_end: bool
    ack: AckMode
    on_expired: OnExpired
    prefetch_bytes: int
    session_timeout: float

    def __post_init__(self) -> None:
        if not self.topics:
            raise Invalid("Pass at least one topic")
        if self.ack not in ("after", "before", "manual"):
            raise Invalid(
                f"ack={self.ack!r} is not valid", hint="Use 'after', 'before' or 'manual'."
            )
        if isinstance(self.start, str) and self.start not in ("earliest", "latest"):
            raise Invalid(
                f"start={self.start!r} is not valid",
                hint="Use 'earliest', 'latest', an offset, a datetime or a timedelta.",
            )
        if isinstance(self.start, int) and self.start < 0:
            raise Invalid(f"start={self.start} is not an offset")
        if isinstance(self.start, datetime):
            instant_of(self.start)
        if self.group is not None and self.partitions is not None:
            raise Invalid(
                "Group members get their partitions assigned: pass partition= or group=, not both"
            )


class Subscription:
    """The I/O side of one consumer."""

    def __init__(self, connection: Connection, wanted: Wanted) -> None:
        self.mailbox: Mailbox[Chunk] = Mailbox()
        self.wanted = wanted
        self._connection = connection
        self._slots: dict[TopicPartition, Slot] = {}
        self._readers: dict[TopicPartition, PartitionReader] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._membership: Membership | None = None
        self._group = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._committing = asyncio.Lock()
        self._closing = False
        self.closed = False

    # ---- begin ----

    async def open(self) -> None:
        """Resolve the topics and begin: with the named partitions, or by joining the group."""
        wanted = self.wanted
        names: list[TopicPartition] = []
        topics: list[str] = []
        for topic in wanted.topics:
            route = await self._connection.metadata.resolve(topic)
            topics.append(route.name)
            count = route.partitions_count
            for partition in range(count) if wanted.partitions is None else wanted.partitions:
                if not 0 <= partition < count:
                    raise Invalid(
                        f"{topic} has no partition {partition}",
                        hint=f"Its partitions are 0 to {count - 1}.",
                    )
                names.append(TopicPartition(route.name, partition))
        if wanted.until_end:
            bounds = (fetch_offsets(self._connection, name) for name in names)
            replies = await asyncio.gather(*bounds)
            self._ends = {n: r.high_watermark for n, r in zip(names, replies, strict=True)}
        if wanted.group is None:
            begun = (self._begin(name, generation=0, committed=None) for name in names)
            await asyncio.gather(*begun)
        else:
            self._membership = Membership(
                self._connection,
                group=wanted.group,
                topics=topics,
                member=wanted.member,
                timeout=wanted.session_timeout,
                assigned=self._assigned,
                failed=self.mailbox.close,
            )
            self._tasks.append(asyncio.ensure_future(self._commit_regularly()))
        if wanted.until_end:
            self._tasks.append(asyncio.ensure_future(self._watch_end()))
        for task in self._tasks:
            watch(task, self.mailbox.close)

    async def _begin(self, name: TopicPartition, *, generation: int, committed: int | None) -> None:
        route = await self._connection.metadata.resolve(name.topic)
        slot = Slot(name, route, group=self._group, generation=generation)
        slot.end = self._ends.get(name)
        offset = committed if committed is not None else await self._start_of(name)
        if self._closing:
            return
        slot.begin_at(offset)
        slot.committed = -1 if committed is None else committed
        self._slots[name] = slot
        share = self.wanted.prefetch_bytes // max(1, len(self._slots))
        self._readers[name] = PartitionReader(
            self._connection,
            slot,
            self.mailbox,
            prefetch_bytes=max(FETCH_BYTES, share),
            on_expired=self.wanted.on_expired,
            failed=self._reader_failed,
        )
        logger.debug("reading %s from offset %d", name, offset)

    async def _start_of(self, name: TopicPartition) -> int:
        start = self.wanted.start
        if isinstance(start, int):
            return start
        if isinstance(start, datetime):
            return await offset_at(self._connection, name, start)
        if start is None:
            if self.wanted.group is not None and not await self._known_in(name.topic):
                raise StartRequired(
                    f'Group "{self.wanted.group}" has no committed offsets in {name.topic}'
                )
            # A group that has committed elsewhere in the topic has not read this partition yet.
            start = "earliest"
        bounds = await fetch_offsets(self._connection, name)
        return bounds.log_start if start == "earliest" else bounds.high_watermark

    async def _known_in(self, topic: str) -> bool:
        """Whether the group has committed anything in any partition of the topic."""
        route = await self._connection.metadata.resolve(topic)
        names = [TopicPartition(topic, i) for i in range(route.partitions_count)]
        asked = (fetch_offsets(self._connection, name, self._group) for name in names)
        return any(reply.found for reply in await asyncio.gather(*asked))

    # ---- the group ----

    async def _assigned(self, group: int, assignment: wire.Assignment) -> None:
        self._group = group
        kept = {_name(a): a for a in assignment.assigned}
        revoked = {_name(a): a for a in assignment.revoked}
        for name, slot in list(self._slots.items()):
            now = kept.get(name)
            if now is None or now.generation != slot.generation:
                # Lost without being asked for: somebody else may own it, so a commit would be
                # refused anyway.
                await self._stop(name, patient=name in revoked)
        if revoked and self._membership is not None:
            self._membership.release(list(assignment.revoked))
        gained = [(name, a) for name, a in kept.items() if name not in self._slots]
        await asyncio.gather(*(self._take_over(name, assigned) for name, assigned in gained))

    async def _take_over(self, name: TopicPartition, assigned: wire.Assigned) -> None:
        route = self._connection.metadata.known(name.topic)
        if route is not None and route.number != assigned.topic:
            self._connection.metadata.forget(name.topic)
        committed = assigned.committed if assigned.has_committed else None
        try:
            await self._begin(name, generation=assigned.generation, committed=committed)
        except HeadraceError as error:
            self.mailbox.close(error)

    async def _stop(self, name: TopicPartition, *, patient: bool) -> None:
        slot = self._slots[name]
        self._readers.pop(name).stop()
        slot.revoking = True
        try:
            if patient:
                await self._finish(slot)
        finally:
            # A slot without a reader would look like one that is read.
            del self._slots[name]
        logger.debug("stopped reading %s at offset %d", name, slot.done)

    async def _finish(self, slot: Slot) -> None:
        """Let the row in hand end, and commit. A commit that fails must not end the consumer: the
        next owner reads those rows again."""
        # The order matters: the consumer clears in_hand first and looks at revoking second.
        if slot.in_hand:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(slot.idle.wait(), RELEASE_WAIT)
        try:
            await self._commit_slot(slot)
        except HeadraceError as error:
            logger.warning(
                "%s is released without its last commit: rows from %d will be delivered again: %s",
                slot.name,
                max(slot.committed, 0),
                error.message,
            )

    def _reader_failed(self, slot: Slot, error: HeadraceError) -> None:
        if not slot.active:
            return
        if slot.group and isinstance(error, Fenced):
            logger.debug("%s was fenced: %s", slot.name, error.message)
            return
        if isinstance(error, NotFound):
            self._connection.metadata.forget(slot.name.topic)
        self.mailbox.close(error)

    # ---- offsets ----

    async def _commit_regularly(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            with contextlib.suppress(HeadraceError):
                await self.commit()

    async def commit(self) -> None:
        """Commit every position that moved. Raises what prevented it, but not being fenced."""
        async with self._committing:
            for slot in list(self._slots.values()):
                await self._commit_slot(slot)

    async def _commit_slot(self, slot: Slot) -> None:
        offset = slot.to_commit
        if not slot.group or offset == slot.committed:
            return

        async def once(_: object) -> wire.CommitOffsetsReply:
            route = await self._connection.metadata.resolve(slot.name.topic)
            request = wire.CommitOffsetsRequest(
                topic=slot.topic[0],
                created_revision=slot.topic[1],
                partition=slot.name.partition,
                group=slot.group,
                generation=slot.generation,
                offset=offset,
            )
            return await self._connection.attempt(
                route.primary(slot.name.partition),
                COMMIT_OFFSETS,
                request,
                wire.CommitOffsetsReply.FromString,
                ATTEMPT_TIMEOUT,
            )

        try:
            await self._connection.repeat(once, CALL_TIMEOUT, topic=slot.name.topic)
        except HeadraceError as error:
            if not isinstance(error, Fenced):
                raise
            logger.debug("commit of %s refused: %s", slot.name, error.message)
        slot.committed = offset

    def commit_handed(self) -> None:
        """Let the next commit cover all that was handed out. The consumer calls it before
        `commit`."""
        for slot in list(self._slots.values()):
            slot.to_commit = slot.handed

    async def lag(self) -> dict[TopicPartition, int]:
        """Records between the position and the end of the log, per partition, read now."""
        found: dict[TopicPartition, int] = {}
        for name, slot in list(self._slots.items()):
            bounds = await fetch_offsets(self._connection, name, slot.group)
            slot.high_watermark = bounds.high_watermark
            found[name] = max(0, bounds.high_watermark - slot.done)
        return found

    def positions(self) -> dict[TopicPartition, int]:
        """Next offset to be handled, per partition."""
        return {name: slot.done for name, slot in list(self._slots.items())}

    # ---- end ----

    def taken(self, chunk: Chunk) -> None:
        """The consumer took a chunk out of the mailbox."""
        reader = self._readers.get(chunk.slot.name)
        if reader is not None and chunk.slot.active:
            reader.taken(chunk.size_bytes)

    async def _watch_end(self) -> None:
        while True:
            if await self._at_end():
                self.mailbox.close()
                return
            await asyncio.sleep(END_POLL_SECONDS)

    def check_end(self) -> None:
        """The consumer has nothing left to do: see whether all of it is done."""
        if self._ends and all(self._mine_done(name, end) for name, end in self._ends.items()):
            self.mailbox.close()

    def _mine_done(self, name: TopicPartition, end: int) -> bool:
        slot = self._slots.get(name)
        return slot is not None and slot.done >= end

    async def _at_end(self) -> bool:
        if self.wanted.group is not None and not self._group:
            return False
        for name, end in self._ends.items():
            slot = self._slots.get(name)
            if slot is not None:
                if slot.done < end:
                    return False
            elif end and not await self._committed_beyond(name, end):
                return False
        return True

    async def _committed_beyond(self, name: TopicPartition, end: int) -> bool:
        """Another member has read the partition to `end`."""
        try:
            reply = await fetch_offsets(self._connection, name, self._group)
        except HeadraceError:
            return False
        return reply.found and reply.offset >= end

    async def close(self, *, commit: bool) -> None:
        """Stop reading, commit what is done, leave the group. A second call does nothing."""
        if self._closing:
            return
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await _ended(self._tasks)
        for reader in self._readers.values():
            reader.stop()
        try:
            if commit:
                await self.commit()
        finally:
            if self._membership is not None:
                await self._membership.leave()
            self.mailbox.close()
            self.closed = True


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _name(assigned: wire.Assigned) -> TopicPartition:
    return TopicPartition(assigned.name, assigned.partition)


def names_of(topics: str | Iterable[str]) -> tuple[str, ...]:
    """One topic name or several."""
    return (topics,) if isinstance(topics, str) else tuple(topics)
