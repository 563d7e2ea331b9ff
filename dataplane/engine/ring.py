"""The host's end of the ring: frames out of the engine to the handler of their kind, frames in
with back-pressure.

Owns the only reader of the engine and the only sender: everything here runs on the event loop.
Requests to a shard get a cookie and a deadline; their number in flight is bounded. Frames that do
not fit wait in order and go out when the engine has room. A frame that cannot cross is refused to
its sender, and a handler that fails does not affect the frames behind it: both would stop every
call. Refuses to interpret bodies.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Protocol

from dataplane.engine.frames import EngineResult, Kind
from native.engine import FRAME_SIZE_MAX, Frame

REQUESTS_MAX: Final = 256
CROSSINGS_MAX: Final = 16
FRAMES_SENT_AT_ONCE_MAX: Final = 256
SEND_RETRY_S: Final = 0.005
BODY_BYTES_MAX: Final = FRAME_SIZE_MAX - 32  # what fits behind a frame's header

log = logging.getLogger("dataplane.ring")


class Reply(NamedTuple):
    """What a shard answered."""

    result: EngineResult
    body: bytes


class HandlerFailed(Exception):
    """A handler of frames failed: what it should have done has not been done, so the node ends."""


class Crossing(Protocol):
    """What the ring needs of an engine; see `native.engine.Engine`."""

    def fileno(self) -> int:
        """Readable when frames may wait."""

    def receive(self) -> list[Frame]:
        """Frames that wait; none = all were taken."""

    def send(self, frames: Iterable[Frame]) -> int:
        """How many were taken, from the front."""

    def cancelled(self) -> list[tuple[int, int, int]]:
        """Calls whose client is gone, each once."""


class Ring:
    """Frames between one engine and one event loop."""

    def __init__(self, engine: Crossing) -> None:
        self._engine = engine
        self._handlers: dict[int, Callable[[Frame], None]] = {Kind.REPLY: self._on_reply}
        self._on_cancelled: Callable[[int, int, int], None] | None = None
        self._on_failure: Callable[[BaseException], None] | None = None
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._requests = asyncio.Semaphore(REQUESTS_MAX)
        self._cookie_next = 1
        self._outbox: deque[Frame] = deque()
        self._drain_next: asyncio.Handle | None = None
        self._flush_next: asyncio.Handle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self.frames_received = 0
        self.frames_sent = 0
        self.replies_late = 0

    def handle(self, kinds: Iterable[Kind], handler: Callable[[Frame], None]) -> None:
        """Frames of these kinds go to `handler`, on the loop, in order."""
        for kind in kinds:
            self._handlers[kind] = handler

    def handle_cancelled(self, handler: Callable[[int, int, int], None]) -> None:
        """Calls whose client is gone go to `handler` as (shard, slot, slot_tag)."""
        self._on_cancelled = handler

    def handle_failure(self, handler: Callable[[BaseException], None]) -> None:
        """`handler` learns that another handler failed: HandlerFailed, by the frame's name."""
        self._on_failure = handler

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to listen to the engine."""
        self._loop = loop
        loop.add_reader(self._engine.fileno(), self.drain)
        self.drain()

    def close(self) -> None:
        """Stop listening; requests in flight fail as STOPPING."""
        if self._loop is not None:
            self._loop.remove_reader(self._engine.fileno())
            self._loop = None
        for planned in (self._drain_next, self._flush_next):
            if planned is not None:
                planned.cancel()
        self._closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_result(Reply(EngineResult.STOPPING, b""))

    def drain(self) -> None:
        """Take what waits, hand it out, then send what could not be sent before.

        Bounded: after some crossings the loop gets its turn, and we go on after it. One such call
        is planned at most, however often the reader calls beside it.
        """
        if self._drain_next is not None:
            self._drain_next.cancel()
            self._drain_next = None
        for _ in range(CROSSINGS_MAX):
            frames = self._engine.receive()
            if not frames:
                break
            self.frames_received += len(frames)
            for frame in frames:
                self._deliver(frame)
        else:
            if self._loop is not None:
                self._drain_next = self._loop.call_soon(self.drain)
        if self._on_cancelled is not None:
            for shard, slot, slot_tag in self._engine.cancelled():
                self._guarded("CANCELLED", partial(self._on_cancelled, shard, slot, slot_tag))
        self._flush()

    def _deliver(self, frame: Frame) -> None:
        handler = self._handlers.get(frame.kind)
        if handler is None:
            log.error("a frame of unknown kind %d was dropped", frame.kind)
            return
        self._guarded(Kind(frame.kind).name, partial(handler, frame))

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        """Do it; a failure ends the node by name, after the others have got what is theirs."""
        try:
            work()
        except Exception as error:
            log.exception("the handler of %s failed", name)
            failure = HandlerFailed(f"the handler of {name} failed: {error!r}")
            failure.__cause__ = error
            if self._on_failure is not None:
                self._on_failure(failure)

    def post(self, frame: Frame) -> None:
        """Send a frame. Frames posted within one turn of the loop cross in one call.

        Raises ValueError for a body above BODY_BYTES_MAX.
        """
        if len(frame.body) > BODY_BYTES_MAX:
            raise ValueError(
                f"a body of {len(frame.body)} bytes for kind {frame.kind}; "
                f"{BODY_BYTES_MAX} fit into a frame"
            )
        self._outbox.append(frame)
        if self._flush_next is None and self._loop is not None:
            self._flush_next = self._loop.call_soon(self._flush)

    async def request(self, frame: Frame, *, timeout_s: float) -> Reply:
        """Send a request and wait for its REPLY; STOPPING at once when the ring is closed.

        The deadline covers the wait for a place among the requests in flight: behind a partition
        that does not answer, others fail in their time. Raises TimeoutError; the request may still
        be done.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout_s), self._requests:
            if self._closed:
                return Reply(EngineResult.STOPPING, b"")
            cookie = self._cookie_next
            self._cookie_next += 1
            future: asyncio.Future[Reply] = loop.create_future()
            self._waiting[cookie] = future
            try:
                self.post(frame._replace(arg0=cookie))
                return await future
            finally:
                del self._waiting[cookie]

    def _on_reply(self, frame: Frame) -> None:
        future = self._waiting.get(frame.arg0)
        if future is None or future.done():
            self.replies_late += 1
            return
        future.set_result(Reply(EngineResult(frame.arg1), frame.body))

    def _flush(self) -> None:
        """Send what waits and plan the next flush, the only one, for what is left."""
        if self._flush_next is not None:
            self._flush_next.cancel()
            self._flush_next = None
        is_full = self._send()
        if not self._outbox or self._loop is None:
            return
        if is_full:
            # The engine wakes us when it has drained; the timer covers a wake-up that came before.
            self._flush_next = self._loop.call_later(SEND_RETRY_S, self._flush)
        else:
            self._flush_next = self._loop.call_soon(self._flush)

    def _send(self) -> bool:
        """Send from the front of the outbox, some frames a crossing. True: the ring is full."""
        for _ in range(CROSSINGS_MAX):
            frames = tuple(islice(self._outbox, FRAMES_SENT_AT_ONCE_MAX))
            if not frames:
                return False
            taken = self._engine.send(frames)
            self.frames_sent += taken
            for _ in range(taken):
                self._outbox.popleft()
            if taken < len(frames):
                return True
        return False
