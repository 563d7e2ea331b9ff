"""Fetching one partition ahead of its reader. Runs on the I/O loop; owns no offsets of groups and
no threads.

A PartitionReader keeps one long-poll Fetch open and puts whole batches, undecoded, into the mailbox
of its subscription; it pauses while its share of the prefetch budget is full. Rows are decoded by
the reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from headrace import codec
from headrace.errors import CorruptPartition, HeadraceError, NotHere, OffsetExpired, Retryable
from headrace.messages import Batch, TopicPartition, instant_of, timestamp_us
from headrace.transport.connection import (
    ATTEMPT_TIMEOUT,
    CALL_TIMEOUT,
    FETCH,
    FETCH_OFFSETS,
    LIST_OFFSETS,
    Connection,
    Route,
)
from headrace.transport.grpc_errors import error_of
from headrace.transport.io_thread import Mailbox, watch
from headrace.transport.retry import Backoff, changes_route, repeatable
from headrace.wire import stream_pb2 as wire

logger = logging.getLogger("headrace")

FETCH_BYTES = 1 << 20
FETCH_WAIT_MS = 2500
# Groups are numbered from 16 on: a question about this one is a question about the log alone.
NO_GROUP = 1
OnExpired = Literal["raise", "skip"]


class Slot:
    """One partition that is being read. The I/O thread starts and stops it; the reading thread
    moves `done`."""

    __slots__ = (
        "active",
        "buffered",
        "committed",
        "done",
        "end",
        "generation",
        "group",
        "handed",
        "high_watermark",
        "idle",
        "in_hand",
        "name",
        "revoking",
        "room",
        "seed",
        "to_commit",
        "topic",
    )

    def __init__(self, name: TopicPartition, route: Route, *, group: int, generation: int) -> None:
        self.name = name
        self.topic = (route.number, route.created_revision)
        self.seed = codec.partition_seed(route.cluster_id, *self.topic, name.partition)
        self.group = group
        self.generation = generation
        self.active = True
        self.done = 0
        """Next offset after the rows whose loop body has returned."""
        self.handed = 0
        """Next offset after the rows handed out."""
        self.to_commit = 0
        """Next offset that a commit should say."""
        self.committed = -1
        """What the last commit said; -1 when the group has none here."""
        self.high_watermark = 0
        self.end: int | None = None
        """Where `until="end"` ends."""
        self.in_hand = False
        """The loop body is busy with a row of this partition."""
        self.revoking = False
        self.idle = asyncio.Event()
        self.buffered = 0
        self.room = asyncio.Event()
        self.room.set()

    def begin_at(self, offset: int) -> None:
        """Set where reading begins."""
        self.done = self.handed = self.to_commit = offset


@dataclass(frozen=True, slots=True)
class Chunk:
    """One stored batch on its way to the reader."""

    slot: Slot
    batch: codec.Batch
    offset: int
    """Rows below it are not wanted."""

    @property
    def size_bytes(self) -> int:
        """Bytes held."""
        return self.batch.size_bytes

    @property
    def end(self) -> int:
        """The offset behind its last record."""
        return self.batch.base_offset + self.batch.last_offset_delta + 1

    def columns(self) -> Batch:
        """Decode it. Raises CorruptPartition for a batch that its producer made wrong."""
        try:
            columns = codec.decode(self.batch)
        except codec.CodecError as error:
            raise CorruptPartition(
                f"{self.slot.name}@{self.batch.base_offset} cannot be read: {error.message}",
                hint="Its producer wrote it this way. Continue with the same consumer to skip it, "
                f"or start at offset {self.end}.",
            ) from error
        first = max(0, self.offset - self.batch.base_offset)
        return Batch(
            self.slot.name.topic,
            self.slot.name.partition,
            self.batch.append_time_us,
            columns,
            first,
        )


async def fetch_offsets(
    connection: Connection, name: TopicPartition, group: int = 0
) -> wire.FetchOffsetsReply:
    """Committed offset of `group` and the bounds of the log, confirmed by the partition's
    primary."""

    async def once(_: object) -> wire.FetchOffsetsReply:
        route = await connection.metadata.resolve(name.topic)
        request = wire.FetchOffsetsRequest(
            topic=route.number,
            created_revision=route.created_revision,
            partition=name.partition,
            group=group or NO_GROUP,
        )
        address = route.primary(name.partition)
        return await connection.attempt(
            address, FETCH_OFFSETS, request, wire.FetchOffsetsReply.FromString, ATTEMPT_TIMEOUT
        )

    return await connection.repeat(once, CALL_TIMEOUT, topic=name.topic)


async def offset_at(connection: Connection, name: TopicPartition, when: datetime) -> int:
    """Of the first record stored at or after `when`; the log's end if there is none yet."""

    async def once(_: object) -> wire.ListOffsetsReply:
        route = await connection.metadata.resolve(name.topic)
        request = wire.ListOffsetsRequest(
            topic=route.number,
            created_revision=route.created_revision,
            partition=name.partition,
            time_us=timestamp_us(when),
        )
        address = route.primary(name.partition)
        return await connection.attempt(
            address, LIST_OFFSETS, request, wire.ListOffsetsReply.FromString, ATTEMPT_TIMEOUT
        )

    return (await connection.repeat(once, CALL_TIMEOUT, topic=name.topic)).offset


async def offsets_at(
    connection: Connection, topic: str, when: datetime | timedelta
) -> dict[int, int]:
    """By partition: see offset_at."""
    instant = instant_of(when)
    route = await connection.metadata.resolve(topic)
    names = [TopicPartition(route.name, index) for index in range(route.partitions_count)]
    found = await asyncio.gather(*(offset_at(connection, name, instant) for name in names))
    return {name.partition: offset for name, offset in zip(names, found, strict=True)}


class PartitionReader:
    """Fetches one slot from `offset` on, until stopped."""

    def __init__(
        self,
        connection: Connection,
        slot: Slot,
        mailbox: Mailbox[Chunk],
        *,
        prefetch_bytes: int,
        on_expired: OnExpired,
        failed: Callable[[Slot, HeadraceError], None],
    ) -> None:
        self._connection = connection
        self._slot = slot
        self._mailbox = mailbox
        self._prefetch_bytes = prefetch_bytes
        self._on_expired = on_expired
        self._failed = failed
        self._offset = slot.handed
        self._task = asyncio.ensure_future(self._run())
        watch(self._task, mailbox.close)

    def stop(self) -> None:
        """Fetch no more; what is in the mailbox is skipped by its reader."""
        self._slot.active = False
        self._task.cancel()

    def taken(self, size_bytes: int) -> None:
        """The reader took a chunk: there is room again."""
        self._slot.buffered -= size_bytes
        if self._slot.buffered < self._prefetch_bytes:
            self._slot.room.set()

    async def _run(self) -> None:
        backoff = Backoff()
        slot = self._slot
        while slot.active and (slot.end is None or self._offset < slot.end):
            await slot.room.wait()
            try:
                self._accept(await self._fetch())
                backoff.reset()
            except HeadraceError as error:
                if not repeatable(error, idempotent=True):
                    self._failed(slot, error)
                    return
                if changes_route(error):
                    self._connection.metadata.forget(slot.name.topic)
                logger.debug("fetch %s: %s", slot.name, error.message)
                await asyncio.sleep(backoff.pause(error.retry_after))

    async def _fetch(self) -> wire.FetchReply:
        slot = self._slot
        route = await self._connection.metadata.resolve(slot.name.topic)
        request = wire.FetchRequest(
            topic=slot.topic[0],
            created_revision=slot.topic[1],
            partition=slot.name.partition,
            offset=self._offset,
            bytes_max=FETCH_BYTES,
            wait_ms_max=FETCH_WAIT_MS,
            group=slot.group,
            generation=slot.generation,
        )
        return await self._connection.attempt(
            route.primary(slot.name.partition),
            FETCH,
            request,
            wire.FetchReply.FromString,
            FETCH_WAIT_MS / 1000 + ATTEMPT_TIMEOUT,
        )

    def _accept(self, reply: wire.FetchReply) -> None:
        slot = self._slot
        if reply.status == wire.OK:
            slot.high_watermark = reply.high_watermark
            for batch in _checked(reply.batches, slot):
                chunk = Chunk(slot, batch, self._offset)
                if chunk.end <= self._offset:
                    continue
                self._offset = chunk.end
                slot.buffered += batch.size_bytes
                self._mailbox.put(chunk)
            if slot.buffered >= self._prefetch_bytes:
                slot.room.clear()
        elif reply.status == wire.EMPTY:
            slot.high_watermark = reply.high_watermark
        elif reply.status == wire.TRUNCATED:
            self._expired(reply.log_start)
        else:
            raise _of_status(reply.status, slot.name)

    def _expired(self, log_start: int) -> None:
        name, asked = self._slot.name, self._offset
        if self._on_expired == "raise":
            raise OffsetExpired(
                f"{name} starts at offset {log_start}; {log_start - asked} records "
                f"from offset {asked} were removed by retention",
                expected=log_start,
            )
        logger.warning("%s: skipped %d records removed by retention", name, log_start - asked)
        self._offset = log_start
        if not self._slot.in_hand:
            self._slot.begin_at(max(self._slot.done, log_start))


def _checked(stored: bytes, slot: Slot) -> Iterator[codec.Batch]:
    """The batches of a reply. Their checksums were made by the producer and the node: this is the
    last look, also that they are batches of the partition that was asked for."""
    try:
        yield from codec.batches(stored, slot.seed)
    except codec.CodecError as error:
        message = f"{slot.name}: received a damaged batch: {error.message}"
        raise CorruptPartition(message) from error


def _of_status(status: int, name: TopicPartition) -> HeadraceError:
    if status == wire.CORRUPT:
        return CorruptPartition(f"{name} is isolated: stored data failed its checksum")
    if status == wire.NOT_PRIMARY:
        return NotHere(f"The node is no longer the primary of {name}")
    if status == wire.REBUILDING:
        return Retryable(f"{name} is being rebuilt", code="REBUILDING")
    return error_of(wire.Error(code="UNKNOWN_STATUS", message=f"{name}: fetch status {status}"))
