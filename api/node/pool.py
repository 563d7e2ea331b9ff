"""The connections to nodes: one pool a process, made when it starts and closed when it ends.

Every call to a node leases a connection here for as long as it lasts, so a request finds the
channel that earlier ones have opened, and learns from the circuit breaker what they have found out.
A call that holds a thread of the API counts towards the limit of its node (call_limit.py).
A connection has two channels: calls that wait for messages have their own, so that many readers
never take the streams of the connection from everyone else.

    lease     -> the connection to an address, opened if there is none
    refresh   -> at most every REFRESH_SECONDS, and before one is opened: reads which nodes are
                 registered; a connection to an address that belongs to no node any more, or to
                 another registration, is retired
    retired   -> gets no new leases, and is closed with its last one

So there are never more connections than registered nodes, but for those in use and the one that
is being opened. Refuses to decide what a node is asked.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, cast

import grpc
import structlog
from sqlalchemy.exc import SQLAlchemyError

from api.node.call_limit import CallLimit
from api.node.circuit_breaker import CircuitBreaker
from api.node.failure import FailureKind, NodeFailure

REFRESH_SECONDS: Final = 5.0
OPTIONS: Final = (
    ("grpc.max_receive_message_length", 32 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A proxy of the environment is meant for the world outside, never for a node.
    ("grpc.enable_http_proxy", 0),
)
# Channels of the same address and options share a connection unless they say otherwise.
OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1),)

log = structlog.get_logger()


class CircuitOpenError(Exception):
    """The node did not answer lately, and it is not yet time to try it again."""


@dataclass(slots=True)
class Connection:
    """The channels to one address: for calls that are answered at once, and for those that wait.
    ``registration``: the node that was registered there when it was opened."""

    calls: grpc.Channel
    waits: grpc.Channel
    registration: str | None
    leases: int = field(default=0)
    retired: bool = field(default=False)

    def close(self) -> None:
        """Ends every call on it."""
        self.calls.close()
        self.waits.close()


class NodePool:
    """The connections of a process.

    :param key_file: where the node key is; read at every call, so that it may be replaced.
    :param registered: the addresses of all registered nodes, each with a text that is another one
        after every new registration; None keeps each connection until the pool is closed.
    """

    def __init__(
        self,
        key_file: Path,
        registered: Callable[[], Mapping[str, str]] | None = None,
        *,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.breaker = breaker or CircuitBreaker()
        self.limit = CallLimit()
        self.circuit_refusals = 0
        self._key_file = key_file
        self._registered = registered
        self._lock = threading.Lock()
        self._open: dict[str, Connection] = {}
        self._registrations: Mapping[str, str] = {}
        self._refresh_at = float("-inf")
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """Retires every connection, and gives out no more."""
        with self._lock:
            self._is_closed = True
            closing = [each for address in list(self._open) for each in self._retire(address)]
        for connection in closing:
            connection.close()

    def node_key(self) -> str:
        """The token that the nodes of the cluster accept from the control plane."""
        try:
            return self._key_file.read_text(encoding="ascii").strip()
        except OSError as error:
            raise NodeFailure(
                FailureKind.TRANSIENT,
                "NODE_KEY_UNREADABLE",
                f"The node key file cannot be read: {error.strerror}.",
            ) from error
        except UnicodeDecodeError as error:
            raise NodeFailure(
                FailureKind.TRANSIENT,
                "NODE_KEY_UNREADABLE",
                "The node key file holds no node key (hr_node_...).",
            ) from error

    @contextmanager
    def calling(
        self, address: str, seconds: float, *, counts: bool = True, limited: bool = True
    ) -> Iterator[Connection]:
        """A connection for one call with a deadline. Whether the node answers is remembered for
        the calls that follow, unless ``counts`` says that the call waits for work.

        :param limited: as for :meth:`lease`.
        :raises CircuitOpenError: the node did not answer lately.
        :raises NodeBusyError: as many calls to it are under way as may be.
        """
        # The place first: a call that is refused for want of one must not be the probe.
        with self._place(address, limited=limited):
            if not self.breaker.allows(address, seconds):
                self.circuit_refusals += 1
                raise CircuitOpenError(address)
            remembering = self._remembering(address, seconds, counts=counts)
            with remembering, self._leased(address) as connection:
                yield connection

    @contextmanager
    def _remembering(self, address: str, seconds: float, *, counts: bool) -> Iterator[None]:
        """Tells the circuit breaker how a call ends."""
        began = self.breaker.clock()
        try:
            yield
        except grpc.RpcError as error:
            if cast("grpc.Call", error).code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                self.breaker.answered(address)
            elif counts:
                self.breaker.timed_out(address, began, seconds)
            raise
        self.breaker.answered(address)

    def _place(self, address: str, *, limited: bool) -> AbstractContextManager[None]:
        return self.limit.call(address) if limited else nullcontext()

    @contextmanager
    def lease(self, address: str, *, limited: bool = True) -> Iterator[Connection]:
        """A connection, which stays open until the end of the block.

        :param limited: whether it counts towards the limit of calls to its node. It does not if it
            holds no thread of requests: a worker has its own, a reader that waits in the event loop
            has none, and both are bounded in number already.
        :raises NodeBusyError: as many calls to the node are under way as may be.
        """
        with self._place(address, limited=limited), self._leased(address) as connection:
            yield connection

    @contextmanager
    def _leased(self, address: str) -> Iterator[Connection]:
        with self._lock:
            assert not self._is_closed, "the pool is closed when its process ends"
            connection = self._open.get(address) or self._opened(address)
            connection.leases += 1
        try:
            yield connection
        finally:
            with self._lock:
                connection.leases -= 1
                is_over = connection.retired and connection.leases == 0
            if is_over:
                connection.close()

    def refresh(self, address: str) -> None:
        """Reads which nodes are registered, if that was long ago or the address is a new one. It
        may ask the database: the event loop must not call it."""
        if self._registered is None:
            return
        now = self.breaker.clock()
        with self._lock:
            if now < self._refresh_at and address in self._open:
                return
            self._refresh_at = now + REFRESH_SECONDS
        try:
            registrations = self._registered()
        except SQLAlchemyError as error:
            # What is open stays open: the next refresh finds out.
            log.warning("node_registrations_unknown", error=type(error).__name__)
            return
        for connection in self._compare(registrations, address):
            connection.close()

    def _compare(self, registrations: Mapping[str, str], asked: str) -> list[Connection]:
        """Retires the connections of nodes that have gone or come anew; those to close now."""
        closing = []
        with self._lock:
            self._registrations = registrations
            for address, connection in list(self._open.items()):
                found = registrations.get(address)
                if found is None and address == asked:
                    continue
                if found is not None and connection.registration in (None, found):
                    connection.registration = found
                    continue
                self.breaker.forget(address)
                closing += self._retire(address)
        return closing

    def _retire(self, address: str) -> list[Connection]:
        """Takes out a connection; the last lease closes it. A channel that is closed under a
        caller who is about to use it ends the process: gRPC does not check."""
        connection = self._open.pop(address)
        connection.retired = True
        return [] if connection.leases else [connection]

    def _opened(self, address: str) -> Connection:
        connection = Connection(
            calls=grpc.insecure_channel(address, options=OPTIONS),
            waits=grpc.insecure_channel(address, options=(*OPTIONS, *OWN_CONNECTION)),
            registration=self._registrations.get(address),
        )
        self._open[address] = connection
        return connection
