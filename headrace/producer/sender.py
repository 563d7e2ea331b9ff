"""Batches on their way to nodes: one bidirectional ProduceStream per node. Everything here runs on
the I/O loop.

    Accumulator --due--> PartitionQueue --take--> ProduceStream --ProduceRequest--> node
                              ^ acked, refused, lost <---------ProduceReply------

The order of a partition is PartitionQueue's business, a stream's life ProduceStream's; this file
owns routes, pauses and deadlines.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from headrace.codec import CodecError, encode
from headrace.errors import (
    Closed,
    DeadlineExceeded,
    HeadraceError,
    Invalid,
    Kind,
    TopicRecreated,
)
from headrace.messages import BatchAck, TopicPartition
from headrace.producer.accumulator import Accumulator, Batch, Memory, Outcome
from headrace.producer.partition_queue import PartitionQueue, State
from headrace.producer.stream import ProduceStream
from headrace.transport.connection import Connection, Route
from headrace.transport.grpc_errors import error_of
from headrace.transport.retry import Backoff, changes_route, repeatable
from headrace.wire import stream_pb2 as wire

logger = logging.getLogger("headrace")

NO_PRODUCER = bytes(16)
STREAM_REFUSALS_MAX = 5
"""Streams in a row that may end with a TERMINAL status before a partition's batches are given up:
one bad request, of any partition, ends the stream of all."""
SWEEP_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class SendingOptions:
    """What a producer was asked to be. Times in seconds."""

    linger: float
    batch_bytes: int
    buffer_bytes: int
    delivery_timeout: float
    idempotent: bool


class Partition:
    """One partition's queue and when it may try again. The Sender's; a stream carries it along."""

    __slots__ = ("address", "backoff", "cause", "name", "not_before", "queue", "streams_refused")

    def __init__(self, name: TopicPartition, queue: PartitionQueue) -> None:
        self.name = name
        self.queue = queue
        self.backoff = Backoff()
        self.not_before = 0.0
        self.address = ""
        self.cause: HeadraceError | None = None
        self.streams_refused = 0


class Sender:
    """The I/O side of one producer."""

    def __init__(
        self, connection: Connection, options: SendingOptions, wake: Callable[[], None]
    ) -> None:
        self.memory = Memory(options.buffer_bytes)
        self.accumulator = Accumulator(
            self.memory, batch_bytes=options.batch_bytes, linger=options.linger, wake=wake
        )
        self._connection = connection
        self._options = options
        self._producer_id = self._fresh_id()
        self._partitions: dict[TopicPartition, Partition] = {}
        self._streams: dict[str, ProduceStream] = {}
        self._resolving: dict[str, asyncio.Task[None]] = {}
        self._linger_timer: asyncio.TimerHandle | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._pending: set[Batch] = set()
        # Failures that were not raised yet; bounded, since a program may never flush.
        self._failed: deque[tuple[Outcome, int]] = deque(maxlen=1024)
        self._closed = False

    def _fresh_id(self) -> bytes:
        return os.urandom(16) if self._options.idempotent else NO_PRODUCER

    # ---- from the accumulator to the streams ----

    def pump(self, *, everything: bool = False) -> None:
        """Send what is due."""
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None
        now = time.monotonic()
        batches, next_at = self.accumulator.due(now, self._idle, everything=everything)
        touched = {self._accept(batch).name: None for batch in batches}
        for name in touched:
            self._send(self._partitions[name])
        if next_at is not None:
            loop = asyncio.get_running_loop()
            self._linger_timer = loop.call_later(max(0.0, next_at - now), self.pump)
        if self._pending and self._sweep_timer is None:
            self._sweep_later()

    def _idle(self, topic: str, partition: int) -> bool:
        found = self._partitions.get(TopicPartition(topic, partition))
        return found is None or found.queue.idle

    def _accept(self, batch: Batch) -> Partition:
        name = TopicPartition(batch.topic, batch.partition)
        partition = self._partitions.get(name)
        if partition is None:
            queue = PartitionQueue(
                self._producer_id, self._fresh_id, idempotent=self._options.idempotent
            )
            partition = self._partitions[name] = Partition(name, queue)
        partition.queue.add(batch)
        self._pending.add(batch)
        return partition

    def _send(self, partition: Partition) -> None:
        for batch, error in partition.queue.casualties():
            self._fail(batch, error)
        if self._closed or partition.queue.idle or partition.not_before > time.monotonic():
            return
        route = self._connection.metadata.known(partition.name.topic)
        if route is None:
            self._resolve(partition.name.topic)
            return
        try:
            address = route.primary(partition.name.partition)
        except TopicRecreated as error:
            self._fail_all(partition, error)
            return
        if address != partition.address and partition.queue.in_flight:
            return
        partition.address = address
        while (taken := partition.queue.take()) is not None:
            if taken.encoded is None and not self._encode(partition, taken, route):
                continue
            self._stream(address).send(partition, taken, route)

    def _encode(self, partition: Partition, batch: Batch, route: Route) -> bool:
        """Encode a numbered batch; one that cannot be encoded fails, and the next take its
        place."""
        assert batch.sequence is not None
        codec = route.codec
        while True:
            try:
                batch.encoded = encode(
                    batch.records,
                    codec=codec,
                    producer_id=partition.queue.producer_id,
                    producer_epoch=0,
                    base_sequence=batch.sequence,
                )
                return True
            except CodecError as error:
                if error.code == "BATCH_CODEC" and codec != "none":
                    # No library here compresses like that; the topic's codec is a wish, not a rule.
                    codec = "none"
                    continue
                refusal = Invalid(
                    f"The records cannot be encoded as a batch: {error.message}", code=error.code
                )
                self._fail(batch, partition.queue.refused(batch, refusal) or refusal)
                return False

    def _stream(self, address: str) -> ProduceStream:
        found = self._streams.get(address)
        if found is None or not found.alive:
            found = self._streams[address] = ProduceStream(self._connection, address, self)
        return found

    def _resolve(self, topic: str) -> None:
        if topic not in self._resolving:
            task = asyncio.ensure_future(self._resolve_topic(topic))
            self._resolving[topic] = task
            task.add_done_callback(lambda _: self._resolving.pop(topic, None))

    async def _resolve_topic(self, topic: str) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._connection.metadata.resolve(topic)
                break
            except HeadraceError as error:
                mine = [p for p in self._partitions.values() if p.name.topic == topic]
                for partition in mine:
                    partition.cause = error
                if not repeatable(error, idempotent=True):
                    for partition in mine:
                        self._fail_all(partition, error)
                    return
            await asyncio.sleep(backoff.pause())
        # After this task is no longer listed, so that a new refusal may resolve again.
        asyncio.get_running_loop().call_soon(self._resume, topic)

    def _resume(self, topic: str) -> None:
        for partition in self._partitions.values():
            if partition.name.topic == topic:
                self._send(partition)

    # ---- answers ----

    def answered(self, partition: Partition, batch: Batch, reply: wire.ProduceReply) -> None:
        """One ProduceReply."""
        if not partition.queue.holds(batch):
            return
        partition.streams_refused = 0
        if not reply.HasField("error"):
            self._stored(partition, batch, reply, reply.base_offset)
        elif reply.error.code == "ALREADY_COMMITTED":
            self._stored(partition, batch, reply, -1)
        else:
            self._refused(partition, batch, error_of(reply.error))
        self._send(partition)
        if partition.queue.idle:
            # Records that came meanwhile, and that somebody awaits, need not linger.
            self.pump()

    def _stored(
        self, partition: Partition, batch: Batch, reply: wire.ProduceReply, base_offset: int
    ) -> None:
        partition.queue.acked(batch)
        partition.backoff.reset()
        partition.cause = None
        self._done(batch)
        batch.outcome.resolve(
            BatchAck(
                topic=batch.topic,
                partition=batch.partition,
                base_offset=base_offset,
                count=len(batch.records),
                append_time_us=reply.append_time_us,
                persisted=reply.persisted,
                replicas=reply.replicas,
                duplicate=reply.duplicate,
            )
        )

    def _refused(self, partition: Partition, batch: Batch, error: HeadraceError) -> None:
        if isinstance(error, TopicRecreated):
            # The new topic knows nothing of this producer: go on there as a new one.
            error.kind = Kind.SESSION_EXPIRED
            self._connection.metadata.forget(partition.name.topic)
        partition.cause = error
        given_up = partition.queue.refused(batch, error)
        if given_up is not None:
            self._fail(batch, given_up)
        elif repeatable(error, idempotent=True):
            if changes_route(error):
                self._connection.metadata.forget(partition.name.topic)
            self._pause(partition, error.retry_after)

    def stream_lost(
        self, address: str, unanswered: list[tuple[Partition, Batch, bool]], error: HeadraceError
    ) -> None:
        """A stream ended; its unanswered batches go again under their sequences, whose answer then
        tells their fate. A node that ends every stream for good makes the callers wait no
        longer."""
        logger.debug("stream to %s ended: %s", address, error.message)
        hurt: dict[TopicPartition, Partition] = {}
        for partition, batch, written in unanswered:
            if not partition.queue.holds(batch):
                continue
            hurt[partition.name] = partition
            partition.cause = error
            given_up = partition.queue.lost(batch, written=written)
            if given_up is not None:
                self._fail(batch, given_up)
        for partition in hurt.values():
            partition.streams_refused += error.kind is Kind.TERMINAL
            if partition.streams_refused >= STREAM_REFUSALS_MAX:
                partition.streams_refused = 0
                self._fail_all(partition, error)
            self._connection.metadata.forget(partition.name.topic)
            self._pause(partition, error.retry_after)

    def _pause(self, partition: Partition, retry_after: float | None) -> None:
        if partition.not_before > time.monotonic():
            return
        pause = partition.backoff.pause(retry_after)
        partition.not_before = time.monotonic() + pause
        # A timer may fire a hair early; the check in _send must not send it away for ever.
        asyncio.get_running_loop().call_later(pause + 0.001, self._send, partition)

    # ---- ends ----

    def _sweep_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep_timer = loop.call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._sweep_timer = None
        limit = time.monotonic() - self._options.delivery_timeout
        for partition in self._partitions.values():
            oldest = partition.queue.oldest
            while oldest is not None and oldest.born < limit:
                cause = DeadlineExceeded(
                    f"{oldest.topic}[{oldest.partition}]: {len(oldest.records)} records were not "
                    f"acknowledged within {self._options.delivery_timeout:g} s, after "
                    f"{partition.backoff.attempts} pauses"
                    + (f"; last: {partition.cause.message}" if partition.cause else ""),
                )
                self._fail(oldest, partition.queue.give_up(oldest, cause))
                oldest = partition.queue.oldest
            self._send(partition)
        if self._pending:
            self._sweep_later()

    def _fail_all(self, partition: Partition, error: HeadraceError) -> None:
        while (batch := partition.queue.oldest) is not None:
            self._fail(batch, partition.queue.give_up(batch, error))

    def _fail(self, batch: Batch, error: HeadraceError) -> None:
        self._done(batch)
        self._failed.append((batch.outcome, len(batch.records)))
        batch.outcome.fail(error)

    def _done(self, batch: Batch) -> None:
        self._pending.discard(batch)
        batch.encoded = None
        self.memory.give_back(batch.size_bytes)

    @property
    def pending_batches(self) -> int:
        """Batches not yet resolved."""
        return len(self._pending)

    async def flush(self) -> None:
        """Send everything and wait for it. Raises the first failure that was not raised yet."""
        self.pump(everything=True)
        waiting = list(self._pending)
        if waiting:
            left = len(waiting)
            finished = asyncio.Event()

            def one_less() -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    finished.set()

            for batch in waiting:
                batch.outcome.add_callback(one_less)
            await finished.wait()
        unseen = [(o.error, count) for o, count in self._failed if not o.observed]
        self._failed.clear()
        if unseen and unseen[0][0] is not None:
            error = unseen[0][0]
            error.context["records_lost"] = str(sum(count for _, count in unseen))
            raise error

    async def close(self) -> int:
        """Stop at once, and settle what is left. Returns how many records were given up; `flush`
        first to lose none. Another call settles what a cancelled one has left."""
        self.memory.close()
        self.accumulator.end()
        self._closed = True
        for timer in (self._linger_timer, self._sweep_timer):
            if timer is not None:
                timer.cancel()
        for task in list(self._resolving.values()):
            task.cancel()
        for late in self.accumulator.due(time.monotonic(), self._idle, everything=True)[0]:
            self._accept(late)
        lost = 0
        for partition in self._partitions.values():
            while (batch := partition.queue.oldest) is not None:
                lost += len(batch.records)
                state = "was not acknowledged" if batch.state == State.SENT else "was not sent"
                error = Closed(
                    f"The producer was closed while a batch for {partition.name} {state}"
                )
                self._fail(batch, partition.queue.give_up(batch, error))
        for stream in self._streams.values():
            await stream.close()
        return lost
