"""The async client: the names of client.py, with `await` before what waits.

    async with headrace.aconnect() as client:
        orders = client.topic("orders")
        ack = await orders.send({"id": 7}, key="cust-42")
        async for m in orders.consume(group="billing", start="earliest", until="end"):
            print(ack.partition, m.offset, m.value)

Constructors do no I/O and need no running loop. Leaving `async with` flushes producers and commits
consumers; a program that forgets gets five seconds at exit, and one log line that counts the lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, Generator, Iterable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Literal, Self

from headrace.admin.admin import AsyncAdmin
from headrace.client_state import ClientState
from headrace.codec import Record
from headrace.consumer.consumer import PREFETCH_BYTES, SESSION_TIMEOUT, AsyncConsumer
from headrace.consumer.fetcher import OnExpired, offsets_at
from headrace.consumer.groups import (
    GroupDescription,
    GroupSummary,
    PartitionLag,
    describe_group,
    group_lag,
    list_groups,
)
from headrace.consumer.subscription import AckMode, Start
from headrace.messages import Ack, BatchAck, Headers, Key, Value
from headrace.producer.accumulator import Delivery
from headrace.producer.producer import (
    AsyncProducer,
)
from headrace.settings import Settings
from headrace.transport.io_thread import close_at_exit
from headrace.transport.retry import Duration, seconds


class AsyncClient(ClientState[AsyncProducer, AsyncConsumer, AsyncAdmin]):
    """A connection for any number of threads."""

    _producer_type = AsyncProducer
    _consumer_type = AsyncConsumer
    _admin_type = AsyncAdmin

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        close_at_exit(self)

    def topic(self, name: str) -> AsyncTopic:
        """A handle of `topic` (stream default) or `stream/topic`. Sends nothing until used."""
        self._process.check("client")
        return AsyncTopic(self, name)

    async def offsets_at(self, topic: str, when: datetime | timedelta) -> dict[int, int]:
        """See AsyncTopic.offsets_at."""
        return await self._io.call(offsets_at(self._connection, topic, when))

    async def describe_group(self, name: str) -> GroupDescription:
        """Members of a group and what each reads. Raises NotFound when it never had a member."""
        return await self._io.call(describe_group(self._connection, name))

    async def list_groups(self, *, lag: bool = False) -> list[GroupSummary]:
        """Every group of the project that ever had a member, by name. `lag`: how far behind each
        is, which costs one question for each partition that it reads."""
        return await self._io.call(list_groups(self._connection, lag=lag))

    async def group_lag(self, name: str, topics: Iterable[str] = ()) -> list[PartitionLag]:
        """How far a group has read each partition of `topics`; by default of every topic that it
        reads or has committed in."""
        return await self._io.call(group_lag(self._connection, name, topics))

    async def flush(self, timeout: Duration | None = None) -> None:
        """Wait until everything that was sent is stored."""
        limit = None if timeout is None else seconds(timeout)
        for producer in self._open_producers():
            await self._io.call(producer.flush_sender(), limit)

    async def close(self, timeout: Duration = "120s") -> None:
        """Flush producers, commit and leave with consumers, close the channels."""
        opened = self._begin_close()
        if opened is None:
            return
        async with contextlib.AsyncExitStack() as stack:
            # Each step runs even if an earlier one raises; the channels go last.
            stack.push_async_callback(self._io.call, self._connection.close())
            for subscription in opened.subscriptions:
                stack.push_async_callback(self._io.call, subscription.close(commit=False))
            if opened.admin is not None:
                stack.push_async_callback(opened.admin.close)
            for producer in opened.producers:
                stack.push_async_callback(producer.close, timeout)
            for consumer in opened.consumers:
                stack.push_async_callback(consumer.close)

    def close_in_exit(self, timeout: float) -> None:
        """Called when the interpreter ends and the client was not closed; its loop is gone by
        then."""
        opened = self._begin_close()
        if opened is None:
            return
        for producer in opened.producers:
            producer.close_in_exit(timeout)
        self._io.run(self._connection.close())

    def __await__(self) -> Generator[None, None, Self]:
        """Itself, so that `await headrace.aconnect()` works like other libraries' connect."""
        yield from ()
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncTopic:
    """One topic of a client."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self._client = client

    async def send(
        self,
        value: Value,
        *,
        key: Key = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
        timeout: Duration | None = None,
    ) -> Ack:
        """Send one record and wait until it is stored on a quorum."""
        return await self._client.shared_producer.send(
            self.name,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
            timeout=timeout,
        )

    async def send_nowait(
        self,
        value: Value,
        *,
        key: Key = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> Delivery:
        """Send one record; the Delivery is a future of its Ack."""
        return await self._client.shared_producer.send_nowait(
            self.name,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
        )

    async def send_many(
        self,
        items: Iterable[Value | Record] | AsyncIterable[Value | Record],
        *,
        partition: int | None = None,
    ) -> list[BatchAck]:
        """Send all items, fast: one ack per batch."""
        return await self._client.shared_producer.send_many(self.name, items, partition=partition)

    def consume(
        self,
        *,
        group: str | None = None,
        partition: int | tuple[int, ...] | None = None,
        start: Start | None = None,
        until: Literal["end"] | None = None,
        ack: AckMode = "after",
        on_expired: OnExpired = "raise",
        member: str | None = None,
        prefetch_bytes: int = PREFETCH_BYTES,
        session_timeout: Duration = SESSION_TIMEOUT,
    ) -> AsyncConsumer:
        """Read this topic: see AsyncClient.consume."""
        return self._client.consume(
            self.name,
            group=group,
            partition=partition,
            start=start,
            until=until,
            ack=ack,
            on_expired=on_expired,
            member=member,
            prefetch_bytes=prefetch_bytes,
            session_timeout=session_timeout,
        )

    async def offsets_at(self, when: datetime | timedelta) -> dict[int, int]:
        """By partition: the offset of the first record stored at or after `when` (a timedelta: so
        long ago); the end of the log where there is none yet."""
        return await self._client.offsets_at(self.name, when)

    async def flush(self, timeout: Duration | None = None) -> None:
        """Wait until everything that was sent through this client's topics is stored."""
        await self._client.shared_producer.flush(timeout)

    def __repr__(self) -> str:
        return f"<AsyncTopic {self.name}>"
