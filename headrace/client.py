"""The sync client: topics, producers, consumers, admin. async_client.py is its twin.

    with headrace.connect() as client:
        orders = client.topic("orders")
        orders.send({"id": 7}, key="cust-42")
        for m in orders.consume(group="billing", start="earliest", until="end"):
            print(m.offset, m.key, m.value)

Constructors do no I/O. Leaving `with` flushes producers and commits consumers; a program that
forgets gets five seconds at exit, and one log line that counts what was lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Literal, Self

from headrace.admin.admin import Admin
from headrace.client_state import ClientState
from headrace.codec import Record
from headrace.consumer.consumer import PREFETCH_BYTES, SESSION_TIMEOUT, Consumer
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
    Producer,
)
from headrace.settings import Settings
from headrace.transport.io_thread import close_at_exit
from headrace.transport.retry import Duration, seconds


class Client(ClientState[Producer, Consumer, Admin]):
    """A connection for any number of threads."""

    _producer_type = Producer
    _consumer_type = Consumer
    _admin_type = Admin

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        close_at_exit(self)

    def topic(self, name: str) -> Topic:
        """A handle of `topic` (stream default) or `stream/topic`. Sends nothing until used."""
        self._process.check("client")
        return Topic(self, name)

    def offsets_at(self, topic: str, when: datetime | timedelta) -> dict[int, int]:
        """See Topic.offsets_at."""
        return self._io.run(offsets_at(self._connection, topic, when))

    def describe_group(self, name: str) -> GroupDescription:
        """Members of a group and what each reads. Raises NotFound when it never had a member."""
        return self._io.run(describe_group(self._connection, name))

    def list_groups(self, *, lag: bool = False) -> list[GroupSummary]:
        """Every group of the project that ever had a member, by name. `lag`: how far behind each
        is, which costs one question for each partition that it reads."""
        return self._io.run(list_groups(self._connection, lag=lag))

    def group_lag(self, name: str, topics: Iterable[str] = ()) -> list[PartitionLag]:
        """How far a group has read each partition of `topics`; by default of every topic that it
        reads or has committed in."""
        return self._io.run(group_lag(self._connection, name, topics))

    def flush(self, timeout: Duration | None = None) -> None:
        """Wait until everything that was sent is stored."""
        limit = None if timeout is None else seconds(timeout)
        for producer in self._open_producers():
            self._io.run(producer.flush_sender(), limit)

    def close(self, timeout: Duration = "120s") -> None:
        """Flush producers, commit and leave with consumers, close the channels."""
        opened = self._begin_close()
        if opened is None:
            return
        with contextlib.ExitStack() as stack:
            # Each step runs even if an earlier one raises; the channels go last.
            stack.callback(self._io.run, self._connection.close())
            for subscription in opened.subscriptions:
                stack.callback(self._io.run, subscription.close(commit=False))
            if opened.admin is not None:
                stack.callback(opened.admin.close)
            for producer in opened.producers:
                stack.callback(producer.close, timeout)
            for consumer in opened.consumers:
                stack.callback(consumer.close)

    def close_in_exit(self, timeout: float) -> None:
        """Called when the interpreter ends and the client was not closed."""
        self.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Topic:
    """One topic of a client."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client

    def send(
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
        return self._client.shared_producer.send(
            self.name,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
            timeout=timeout,
        )

    def send_nowait(
        self,
        value: Value,
        *,
        key: Key = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> Delivery:
        """Send one record; the Delivery is a future of its Ack."""
        return self._client.shared_producer.send_nowait(
            self.name,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
        )

    def send_many(
        self, items: Iterable[Value | Record], *, partition: int | None = None
    ) -> list[BatchAck]:
        """Send all items, fast: one ack per batch."""
        return self._client.shared_producer.send_many(self.name, items, partition=partition)

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
    ) -> Consumer:
        """Read this topic: see Client.consume."""
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

    def offsets_at(self, when: datetime | timedelta) -> dict[int, int]:
        """By partition: the offset of the first record stored at or after `when` (a timedelta: so
        long ago); the end of the log where there is none yet."""
        return self._client.offsets_at(self.name, when)

    def flush(self, timeout: Duration | None = None) -> None:
        """Wait until everything that was sent through this client's topics is stored."""
        self._client.shared_producer.flush(timeout)

    def __repr__(self) -> str:
        return f"<Topic {self.name}>"
