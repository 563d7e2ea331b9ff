"""What the sync and the async client share: settings, a connection, and what was opened over it.

Nothing here does I/O: that is what client.py and async_client.py differ in. One lock guards what
was opened, since any number of threads open and close at the same time.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from headrace.consumer.consumer import PREFETCH_BYTES, SESSION_TIMEOUT, ConsumerState, wanted_of
from headrace.consumer.fetcher import OnExpired
from headrace.consumer.subscription import AckMode, Start, Subscription, names_of
from headrace.errors import Closed
from headrace.producer.producer import (
    BATCH_BYTES,
    BUFFER_BYTES,
    DELIVERY_TIMEOUT,
    LINGER,
    OnFull,
    ProducerState,
)
from headrace.settings import Settings
from headrace.transport.connection import Connection
from headrace.transport.io_thread import IoThread, OwnerProcess, io_thread
from headrace.transport.retry import Duration

ProducerT = TypeVar("ProducerT", bound=ProducerState)
ConsumerT = TypeVar("ConsumerT", bound=ConsumerState)
AdminT = TypeVar("AdminT")


@dataclass(frozen=True, slots=True)
class Opened(Generic[ProducerT, ConsumerT, AdminT]):
    """What was open over a client at one moment."""

    producers: list[ProducerT]
    consumers: list[ConsumerT]
    subscriptions: list[Subscription]
    admin: AdminT | None


class ClientState(Generic[ProducerT, ConsumerT, AdminT]):
    """A connection, with its producers, consumers and admin."""

    _producer_type: type[ProducerT]
    _consumer_type: type[ConsumerT]
    _admin_type: Callable[[Settings, IoThread], AdminT]

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._process = OwnerProcess()
        self._io: IoThread = io_thread()
        self._connection = Connection(settings)
        # One thread may take it twice: a signal handler or a destructor may use the client.
        self._lock = threading.RLock()
        self._producers: list[ProducerT] = []
        self._consumers: weakref.WeakSet[ConsumerT] = weakref.WeakSet()
        self._subscriptions: set[Subscription] = set()
        self._shared: ProducerT | None = None
        self._admin: AdminT | None = None
        self._closed = False

    def producer(
        self,
        *,
        linger: Duration = LINGER,
        batch_bytes: int = BATCH_BYTES,
        buffer_bytes: int = BUFFER_BYTES,
        delivery_timeout: Duration = DELIVERY_TIMEOUT,
        idempotent: bool = True,
        on_full: OnFull = "wait",
    ) -> ProducerT:
        """A producer of its own; `topic.send` shares one with the defaults."""
        made = self._producer_type(
            self._connection,
            self._io,
            linger=linger,
            batch_bytes=batch_bytes,
            buffer_bytes=buffer_bytes,
            delivery_timeout=delivery_timeout,
            idempotent=idempotent,
            on_full=on_full,
        )
        self._process.check("client")
        with self._lock:
            self._check_open()
            self._producers = [p for p in self._producers if not p.closed]
            self._producers.append(made)
        return made

    def consume(
        self,
        topics: str | Iterable[str],
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
    ) -> ConsumerT:
        """Read topics: with a group, whose members share the partitions; or by partition (all by
        default).

        `start` is "earliest", "latest", an offset, a datetime, or a timedelta (so long ago): by the
        time at which records were stored. A group uses it only where it has no committed
        offset, and must be given it then; without a group it defaults to "earliest". `until="end"`
        ends at what is there now.
        """
        wanted = wanted_of(
            names_of(topics),
            partition=partition,
            group=group,
            start=start,
            until=until,
            ack=ack,
            on_expired=on_expired,
            member=member,
            prefetch_bytes=prefetch_bytes,
            session_timeout=session_timeout,
        )
        made = self._consumer_type(self._connection, self._io, wanted)
        self._process.check("client")
        with self._lock:
            self._check_open()
            self._consumers.add(made)
            self._subscriptions = {s for s in self._subscriptions if not s.closed}
            self._subscriptions.add(made.subscription)
        return made

    @property
    def shared_producer(self) -> ProducerT:
        """The producer behind `topic.send`."""
        if self._shared is None:
            self._process.check("client")
            with self._lock:
                if self._shared is None:
                    self._shared = self.producer()
        return self._shared

    @property
    def admin(self) -> AdminT:
        """The REST API: topics, streams, projects, keys, usage, reports."""
        if self._admin is None:
            self._process.check("client")
            with self._lock:
                self._check_open()
                if self._admin is None:
                    self._admin = self._admin_type(self.settings, self._io)
        return self._admin

    def _check_open(self) -> None:
        """Under the lock: what is opened after `_begin_close` would never be closed."""
        if self._closed:
            raise Closed("The client is closed")

    def _open_producers(self) -> list[ProducerT]:
        self._process.check("client")
        with self._lock:
            self._check_open()
            return [p for p in self._producers if not p.closed]

    def _begin_close(self) -> Opened[ProducerT, ConsumerT, AdminT] | None:
        """What has to be closed; None when the client is closed already, and in a forked child,
        where another thread's lock would never be free."""
        if self._process.foreign:
            return None
        with self._lock:
            if self._closed:
                return None
            self._closed = True
            return Opened(
                producers=[p for p in self._producers if not p.closed],
                consumers=list(self._consumers),
                subscriptions=list(self._subscriptions),
                admin=self._admin,
            )
