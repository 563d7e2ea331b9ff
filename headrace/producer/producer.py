"""Producers, sync and async: the same names, and `await` before what waits; each drives one Sender.

    producer.send("orders", {"id": 7}, key="c42")   waits until it is synced on a quorum: Ack
    producer.send_nowait("orders", b"..")           a future, Delivery; waits only for memory
    producer.send_many("orders", lines)             the fast way: one ack per batch

Idempotent by default: a record that was acknowledged is in the log exactly once, whatever died
meanwhile. Records of one key keep their order. Memory is bounded: when `buffer_bytes` are waiting,
callers wait, or get BufferFull if asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterable, Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import Literal, Self

from headrace.codec import Record
from headrace.errors import Closed, DeadlineExceeded, HeadraceError, Invalid, RecordTooLarge
from headrace.messages import Ack, BatchAck, Headers, Key, Value, record_of, size_of
from headrace.producer.accumulator import Delivery, Outcome, chunked, void
from headrace.producer.sender import Sender, SendingOptions
from headrace.transport.connection import Connection, Route
from headrace.transport.io_thread import IoThread, OwnerProcess, seen
from headrace.transport.retry import Duration, seconds

logger = logging.getLogger("headrace")

OnFull = Literal["wait", "raise"]

LINGER = "5ms"
BATCH_BYTES = 1 << 20
BUFFER_BYTES = 32 << 20
DELIVERY_TIMEOUT = "120s"
CLOSE_TIMEOUT = "120s"
ASYNC_CHUNK = 2048


class ProducerState:
    """What both producers share: options, routes, and the way into the accumulator."""

    def __init__(
        self,
        connection: Connection,
        io: IoThread,
        *,
        linger: Duration = LINGER,
        batch_bytes: int = BATCH_BYTES,
        buffer_bytes: int = BUFFER_BYTES,
        delivery_timeout: Duration = DELIVERY_TIMEOUT,
        idempotent: bool = True,
        on_full: OnFull = "wait",
    ) -> None:
        if on_full not in ("wait", "raise"):
            raise Invalid(f"on_full={on_full!r} is not valid", hint="Use 'wait' or 'raise'.")
        self._io = io
        self._connection = connection
        self._on_full = on_full
        self._routes: dict[str, Route] = {}
        self._asking: dict[str, asyncio.Future[Route]] = {}
        self._process = OwnerProcess()
        self._closed = False
        self.closed = False
        """Closing has ended: every record is stored or given up."""
        options = SendingOptions(
            linger=seconds(linger),
            batch_bytes=batch_bytes,
            buffer_bytes=buffer_bytes,
            delivery_timeout=seconds(delivery_timeout),
            idempotent=idempotent,
        )
        self._sender = Sender(connection, options, self._wake)

    def _wake(self) -> None:
        self._io.loop.call_soon_threadsafe(self._sender.pump)

    @property
    def pending_bytes(self) -> int:
        """Bytes that wait to be sent or acknowledged."""
        return self._sender.memory.used

    def _check(self) -> None:
        self._process.check("producer")
        if self._closed:
            raise Closed("The producer is closed")

    def _route(self, topic: str) -> Route | None:
        # A route that is being read again still tells how many partitions there are.
        found = self._connection.metadata.known(topic) or self._routes.get(topic)
        if found is not None:
            self._routes[topic] = found
        return found

    async def _resolve(self, topic: str) -> Route:
        return await self._connection.metadata.resolve(topic)

    def _checked(self, route: Route, record: Record, partition: int | None) -> int:
        size = size_of(record)
        self._sender.accumulator.check(route, record, size)
        check_partition(route, partition)
        return size

    def _chunks(
        self, route: Route, items: Iterable[Value | Record], partition: int | None
    ) -> Iterator[tuple[int | None, list[Record], int]]:
        check_partition(route, partition)
        accumulator = self._sender.accumulator
        for target, records, size in chunked(items, route, accumulator.room(route), partition):
            if len(records) == 1:
                accumulator.check(route, records[0], size)
            yield target, records, size

    def _single(
        self, route: Route, items: Iterable[Value | Record], partition: int | None
    ) -> tuple[int | None, list[Record], int]:
        chunks = list(self._chunks(route, items, partition))
        if len(chunks) != 1:
            raise RecordTooLarge(
                f"The records make {len(chunks)} batches; send_batch sends exactly one",
                hint="Use send_many, or pass a partition and fewer records.",
            )
        return chunks[0]

    def close_in_exit(self, timeout: float) -> None:
        """Called when the interpreter ends and the producer was not closed."""
        if not self._closed:
            self._closed = True
            with self._settling():
                _report_lost(self._io.run(self._close(timeout)), timeout)

    async def flush_sender(self) -> None:
        """On the I/O loop: `flush`, also of a producer that another thread is closing."""
        await self._sender.flush()

    async def _close(self, timeout: float) -> int:
        failure: HeadraceError | None = None
        try:
            await asyncio.wait_for(self._sender.flush(), timeout)
        except TimeoutError:
            logger.debug("flush did not complete within %.1f s", timeout)
        except HeadraceError as error:
            failure = error
        lost = await self._end()
        if failure is not None:
            raise failure
        return lost

    async def _end(self) -> int:
        try:
            return await self._sender.close()
        finally:
            self.closed = True

    @contextlib.contextmanager
    def _settling(self) -> Iterator[None]:
        """Around closing: if it is cancelled or interrupted, sends that wait are settled all the
        same, since nothing else would do it."""
        try:
            yield
        finally:
            if not self.closed:
                self._io.abandon(self._end())


def check_partition(route: Route, partition: int | None) -> None:
    """Raises Invalid for a partition that the topic does not have."""
    if partition is not None and not 0 <= partition < route.partitions_count:
        raise Invalid(
            f"{route.name} has no partition {partition}",
            hint=f"Its partitions are 0 to {route.partitions_count - 1}.",
        )


def _report_lost(lost: int, timeout: float) -> None:
    if lost:
        logger.error("closed after %.1f s with %d records not acknowledged", timeout, lost)


class Producer(ProducerState):
    """Sends from any thread. Use as a context manager: leaving it flushes."""

    def send(
        self,
        topic: str,
        value: Value,
        *,
        key: Key = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
        timeout: Duration | None = None,
    ) -> Ack:
        """Send one record and wait until it is stored. The batch leaves at once when nothing else
        is on its way."""
        delivery = self._append(topic, record_of(value, key, headers, timestamp), partition, True)
        return delivery.result(None if timeout is None else seconds(timeout))

    def send_nowait(
        self,
        topic: str,
        value: Value,
        *,
        key: Key = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> Delivery:
        """Send one record; the Delivery tells later. Waits only for the first use of a topic and
        for memory."""
        return self._append(topic, record_of(value, key, headers, timestamp), partition, False)

    def send_record(self, topic: str, record: Record, *, partition: int | None = None) -> Delivery:
        """`send_nowait` of a record made beforehand."""
        return self._append(topic, record, partition, False)

    def _append(self, topic: str, record: Record, partition: int | None, urgent: bool) -> Delivery:
        self._check()
        route = self._route(topic)
        if route is None:
            route = self._io.run(self._resolve(topic))
        size = self._checked(route, record, partition)
        self._take(size)
        return self._sender.accumulator.append(route, record, partition, size, urgent=urgent)

    def _take(self, size: int) -> None:
        if self._on_full == "raise":
            if not self._sender.memory.try_take(size):
                raise self._sender.memory.full()
        elif not self._sender.memory.try_take(size):
            # What fills the memory may still be lingering.
            self._wake()
            self._sender.memory.take(size, None)

    def send_batch(
        self, topic: str, items: Iterable[Value | Record], *, partition: int | None = None
    ) -> Outcome:
        """Send records as exactly one batch; `.result()` is its BatchAck."""
        self._check()
        route = self._route(topic)
        if route is None:
            route = self._io.run(self._resolve(topic))
        target, records, size = self._single(route, items, partition)
        self._take(size)
        return self._sender.accumulator.append_batch(route, records, target, size)

    def send_many(
        self, topic: str, items: Iterable[Value | Record], *, partition: int | None = None
    ) -> list[BatchAck]:
        """Send all items and wait until all are stored. One ack per batch, in the order they were
        filled."""
        self._check()
        route = self._route(topic)
        if route is None:
            route = self._io.run(self._resolve(topic))
        outcomes: list[Outcome] = []
        for target, records, size in self._chunks(route, items, partition):
            self._take(size)
            outcomes.append(self._sender.accumulator.append_batch(route, records, target, size))
        return [outcome.wait() for outcome in outcomes]

    def flush(self, timeout: Duration | None = None) -> None:
        """Wait until all that was sent is stored. Raises the first failure that was not raised
        yet."""
        self._check()
        self._io.run(self._sender.flush(), None if timeout is None else seconds(timeout))

    def close(self, timeout: Duration = CLOSE_TIMEOUT) -> None:
        """Flush within `timeout`, then end. Records that could not be sent are counted in one log
        line."""
        if self._closed:
            return
        self._closed = True
        limit = seconds(timeout)
        with self._settling():
            _report_lost(self._io.run(self._close(limit)), limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncProducer(ProducerState):
    """Sends from an event loop. Use as an async context manager: leaving it flushes."""

    async def _find(self, topic: str) -> Route:
        """The route. Callers that came while it was asked for go on in the order they came."""
        asking = self._asking.get(topic)
        if asking is None:
            route = self._route(topic)
            if route is not None:
                return route
            asking = asyncio.ensure_future(self._io.call(self._resolve(topic)))
            self._asking[topic] = asking
            asking.add_done_callback(lambda _: void(self._asking.pop(topic)))
            asking.add_done_callback(seen)
        return await asyncio.shield(asking)

    async def send(
        self,
        topic: str,
        value: Value,
        *,
        key: Key = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
        timeout: Duration | None = None,
    ) -> Ack:
        """Send one record and await that it is stored."""
        record = record_of(value, key, headers, timestamp)
        delivery = await self._append(topic, record, partition, True)
        if timeout is None:
            return await delivery
        limit = seconds(timeout)
        try:
            return await asyncio.wait_for(_ack(delivery), limit)
        except TimeoutError:
            raise DeadlineExceeded(f"The record was not acknowledged within {limit:g} s") from None

    async def send_nowait(
        self,
        topic: str,
        value: Value,
        *,
        key: Key = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> Delivery:
        """Send one record; awaits only the first use of a topic and memory. Await the Delivery for
        the Ack."""
        record = record_of(value, key, headers, timestamp)
        return await self._append(topic, record, partition, False)

    async def send_record(
        self, topic: str, record: Record, *, partition: int | None = None
    ) -> Delivery:
        """`send_nowait` of a record made beforehand."""
        return await self._append(topic, record, partition, False)

    async def _append(
        self, topic: str, record: Record, partition: int | None, urgent: bool
    ) -> Delivery:
        self._check()
        route = await self._find(topic)
        size = self._checked(route, record, partition)
        await self._take(size)
        return self._sender.accumulator.append(route, record, partition, size, urgent=urgent)

    async def _take(self, size: int) -> None:
        if self._sender.memory.try_take(size):
            return
        if self._on_full == "raise":
            raise self._sender.memory.full()
        self._wake()
        await self._sender.memory.take_async(size)

    async def send_batch(
        self, topic: str, items: Iterable[Value | Record], *, partition: int | None = None
    ) -> Outcome:
        """Send records as exactly one batch; await the result for its BatchAck."""
        self._check()
        route = await self._find(topic)
        target, records, size = self._single(route, items, partition)
        await self._take(size)
        return self._sender.accumulator.append_batch(route, records, target, size)

    async def send_many(
        self,
        topic: str,
        items: Iterable[Value | Record] | AsyncIterable[Value | Record],
        *,
        partition: int | None = None,
    ) -> list[BatchAck]:
        """Send all items of an iterable, plain or async, and await that all are stored."""
        self._check()
        route = await self._find(topic)
        outcomes: list[Outcome] = []
        async for some in _in_chunks(items):
            for target, records, size in self._chunks(route, some, partition):
                await self._take(size)
                outcomes.append(self._sender.accumulator.append_batch(route, records, target, size))
                # A chunk is some milliseconds of work: let the caller's loop breathe.
                await asyncio.sleep(0)
        return [await outcome for outcome in outcomes]

    async def flush(self, timeout: Duration | None = None) -> None:
        """Await that all that was sent is stored."""
        self._check()
        limit = None if timeout is None else seconds(timeout)
        await self._io.call(self._sender.flush(), limit)

    async def close(self, timeout: Duration = CLOSE_TIMEOUT) -> None:
        """Flush within `timeout`, then end."""
        if self._closed:
            return
        self._closed = True
        limit = seconds(timeout)
        with self._settling():
            _report_lost(await self._io.call(self._close(limit)), limit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def _ack(delivery: Delivery) -> Ack:
    return await delivery


async def _in_chunks(
    items: Iterable[Value | Record] | AsyncIterable[Value | Record],
) -> AsyncIterable[Iterable[Value | Record]]:
    """Plain iterables as they are; async ones in lists, so that an await is paid once per list."""
    if not isinstance(items, AsyncIterable):
        yield items
        return
    gathered: list[Value | Record] = []
    async for item in items:
        gathered.append(item)
        if len(gathered) >= ASYNC_CHUNK:
            yield gathered
            gathered = []
    if gathered:
        yield gathered
