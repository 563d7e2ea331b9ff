"""Cold gRPC calls: frames from the shards -> async handlers, and back.

Owns every call that crossed the ring: its inbox, its send window, its deadline and its one terminal
status. Whatever a handler does, the client gets exactly one status: OK, the refusal it raised,
DEADLINE_EXCEEDED, CANCELLED, or INTERNAL with a request id whose story is in the log, once. Refuses
callers that may not call a method before its handler sees them.

    OPEN -> Call -> handler task -- SEND_MESSAGE* --> SEND_STATUS (once)
    MESSAGE, HALF_CLOSE -> inbox -- consumed --> SEND_CREDIT
    CREDIT -> send window        CANCELLED -> task.cancel()
"""

import asyncio
import logging
import math
import secrets
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from dataplane.engine.frames import NODE_KEY_PRINCIPAL, Caller, Kind, Verb, unpack_open
from dataplane.engine.ring import Ring
from dataplane.errors import RETRY_SAME_NODE, GrpcCode, Refused
from native.engine import Frame

CALLS_MAX: Final = 4096
OWN_SHARE: Final = 0.75
INBOX_BYTES_MAX: Final = 16 * 1024 * 1024
SEND_WINDOW_BYTES: Final = 256 * 1024

log = logging.getLogger("dataplane.rpc")

Request = TypeVar("Request", bound=Message)


class Access(Enum):
    """Who may call a method."""

    NODE_KEY = "the node key of the cluster"
    CONSUME = "a key that may consume"
    ANY_KEY = "any key"
    ANYONE = "anyone"


class Call:
    """One call: bytes in, bytes out, one status."""

    def __init__(self, ring: Ring, frame: Frame, caller: Caller, path: str) -> None:
        self._ring = ring
        self.key = (frame.shard, frame.slot, frame.slot_tag)
        self.caller = caller
        self.path = path
        self.deadline_s = frame.arg0 / 1e9 if frame.arg0 else None
        self.finished = False
        self.task: asyncio.Task[None] | None = None
        self._inbox: deque[bytes] = deque()
        self._inbox_bytes = 0
        self._half_closed = False
        self._readable = asyncio.Event()
        self._window = SEND_WINDOW_BYTES
        self._sendable = asyncio.Event()

    def remaining_s(self, *, most: float) -> float:
        """Seconds until the deadline, at most `most`, at least 0."""
        if self.deadline_s is None:
            return most
        return max(0.0, min(most, self.deadline_s - time.monotonic()))

    async def receive(self) -> bytes | None:
        """The client's next message; None once it has sent its last."""
        while not self._inbox:
            if self._half_closed:
                return None
            self._readable.clear()
            await self._readable.wait()
        body = self._inbox.popleft()
        self._inbox_bytes -= len(body)
        self._post(Kind.SEND_CREDIT, arg0=len(body))
        return body

    async def send(self, body: bytes) -> None:
        """Send one message; waits while the client reads too slowly."""
        while self._window <= 0:
            self._sendable.clear()
            await self._sendable.wait()
        self._window -= len(body)
        self._post(Kind.SEND_MESSAGE, body=body)

    def finish(self, code: GrpcCode, status: bytes = b"") -> None:
        """The terminal status; only the first one counts."""
        if not self.finished:
            self.finished = True
            self._post(Kind.SEND_STATUS, arg0=int(code), body=status)

    def refuse(self, refusal: Refused) -> None:
        """End with a typed refusal."""
        self.finish(refusal.grpc_code(), refusal.status())

    def accept_message(self, body: bytes) -> bool:
        """A message has come. False if the client sends beyond its credit."""
        self._inbox.append(body)
        self._inbox_bytes += len(body)
        self._readable.set()
        return self._inbox_bytes <= INBOX_BYTES_MAX

    def accept_half_close(self) -> None:
        """The client sends no more."""
        self._half_closed = True
        self._readable.set()

    def accept_credit(self, size_bytes: int) -> None:
        """So many bytes have left for the client."""
        self._window = min(self._window + size_bytes, SEND_WINDOW_BYTES)
        if self._window > 0:
            self._sendable.set()

    def _post(self, kind: Kind, *, arg0: int = 0, body: bytes = b"") -> None:
        shard, slot, slot_tag = self.key
        self._ring.post(Frame(kind, shard, slot, slot_tag, arg0=arg0, body=body))


class Stream(Generic[Request]):
    """A bidirectional call, typed on the way in."""

    def __init__(self, call: Call, request: type[Request]) -> None:
        self.call = call
        self._request = request

    async def receive(self) -> Request | None:
        """The next message; None once the client has sent its last."""
        body = await self.call.receive()
        return None if body is None else _parsed(self._request, body)

    async def send(self, message: Message) -> None:
        """Send one message."""
        await self.call.send(message.SerializeToString())


@dataclass(frozen=True, slots=True)
class Method:
    """A registered method."""

    access: Access
    run: Callable[[Call], Awaitable[None]]


def unary(
    request: type[Request],
    handler: Callable[[Call, Request], Awaitable[Message]],
    *,
    access: Access,
) -> Method:
    """A method with one request and one reply."""

    async def run(call: Call) -> None:
        body = await call.receive()
        if body is None:
            raise Refused("INVALID_ARGUMENT", "the call ended without a request message")
        reply = await handler(call, _parsed(request, body))
        await call.send(reply.SerializeToString())

    return Method(access, run)


def bidirectional(
    request: type[Request],
    handler: Callable[[Stream[Request]], Awaitable[None]],
    *,
    access: Access,
) -> Method:
    """A method with a stream each way; the call ends when the handler returns."""

    async def run(call: Call) -> None:
        await handler(Stream(call, request))

    return Method(access, run)


class Bridge:
    """Every cold call of this node."""

    def __init__(
        self,
        ring: Ring,
        methods: dict[str, Method],
        tasks: asyncio.TaskGroup,
        *,
        calls_max: int = CALLS_MAX,
    ) -> None:
        self._ring = ring
        self._calls_max = calls_max
        self._calls_of: Counter[int] = Counter()
        self._methods = methods
        self._tasks = tasks
        self._calls: dict[tuple[int, int, int], Call] = {}
        # By (shard, slot): the newest call of each, and the tag whose end came before
        # its OPEN.
        self._newest: dict[tuple[int, int], Call] = {}
        self._ended_early: dict[tuple[int, int], int] = {}
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.finished_by_code: dict[str, int] = {}
        self.frames_late = 0
        ring.handle(
            (Kind.OPEN, Kind.MESSAGE, Kind.HALF_CLOSE, Kind.CREDIT, Kind.CANCELLED), self._on_frame
        )
        ring.handle_cancelled(self._on_cancelled)

    def calls_count(self) -> int:
        """Calls under way."""
        return len(self._calls)

    async def drain(self, timeout_s: float) -> bool:
        """Refuse new calls and wait for those under way; cancel what is left. True if none was."""
        self._draining = True
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            for call in tuple(self._calls.values()):
                if call.task is not None:
                    call.task.cancel()
            return False
        return True

    def _on_frame(self, frame: Frame) -> None:
        if frame.kind == Kind.OPEN:
            self._open(frame)
            return
        if frame.kind == Kind.CANCELLED:
            return  # Only a wake-up: the ring asks the engine which calls.
        call = self._calls.get((frame.shard, frame.slot, frame.slot_tag))
        if call is None:
            self.frames_late += 1
        elif frame.kind == Kind.CREDIT:
            call.accept_credit(frame.arg0)
        elif frame.kind == Kind.HALF_CLOSE:
            call.accept_half_close()
        elif not call.accept_message(frame.body) and call.task is not None:
            call.refuse(
                Refused("RESOURCE_EXHAUSTED", "messages came faster than they are read here")
            )
            call.task.cancel()

    def _check_room(self, caller: Caller) -> None:
        """Refuses a call beyond the key's share, so that one key cannot take every place."""
        own = self._calls_of[caller.principal]
        full = len(self._calls) >= self._calls_max
        if not full and own < self._calls_max * OWN_SHARE:
            return
        raise Refused(
            "RESOURCE_EXHAUSTED",
            f"{len(self._calls)} calls are under way here, {own} of them of this key",
            hint="try again in a moment, or end calls and sessions that are not needed",
            kind=RETRY_SAME_NODE,
            retry_after_ms=100,
        )

    def _on_cancelled(self, shard: int, slot: int, slot_tag: int) -> None:
        call = self._calls.get((shard, slot, slot_tag))
        if call is None:
            self._ended_early[shard, slot] = slot_tag
        elif call.task is not None:
            call.task.cancel()

    def _take_slot(self, frame: Frame) -> bool:
        """The slot's previous call is over: its CANCELLED flag may have been overwritten by a later
        one. False if this call is over as well."""
        place = (frame.shard, frame.slot)
        before = self._newest.pop(place, None)
        if before is not None and before.task is not None:
            before.task.cancel()
        return self._ended_early.pop(place, 0) != frame.slot_tag

    def _open(self, frame: Frame) -> None:
        if not self._take_slot(frame):
            return
        caller, path = unpack_open(frame.body)
        call = Call(self._ring, frame, caller, path)
        method = self._methods.get(path)
        try:
            if self._draining:
                raise Refused(
                    "STOPPING",
                    "this node is stopping",
                    hint="try again: it or another node will answer",
                    kind=RETRY_SAME_NODE,
                    retry_after_ms=1000,
                )
            self._check_room(caller)
            if method is None:
                raise Refused(
                    "METHOD_UNKNOWN",
                    f"there is no method {path[:200]}",
                    hint="compare the client's version with the node's",
                )
            _check_access(method.access, caller, path)
        except Refused as refusal:
            call.refuse(refusal)
            self._count(refusal.code)
            return
        self._calls[call.key] = self._newest[frame.shard, frame.slot] = call
        self._calls_of[caller.principal] += 1
        self._idle.clear()
        call.task = self._tasks.create_task(self._answer(call, method), name=f"call {path}")
        # Not a `finally` of the task: one that is cancelled before its first step has none.
        call.task.add_done_callback(lambda _: self._end(call))

    def _end(self, call: Call) -> None:
        call.finish(GrpcCode.CANCELLED, Refused("CANCELLED", "the call was cancelled").status())
        del self._calls[call.key]
        shard, slot, _ = call.key
        if self._newest.get((shard, slot)) is call:
            del self._newest[shard, slot]
        self._calls_of[call.caller.principal] -= 1
        if not self._calls_of[call.caller.principal]:
            del self._calls_of[call.caller.principal]
        if not self._calls:
            self._idle.set()

    async def _answer(self, call: Call, method: Method) -> None:
        # A call without a deadline is ended by the engine, which counts and cancels it.
        wait_s = call.remaining_s(most=math.inf)
        deadline = asyncio.timeout(None if wait_s == math.inf else wait_s)
        try:
            async with deadline:
                await method.run(call)
        except Refused as refusal:
            self._refuse(call, refusal)
        except asyncio.CancelledError:
            self._refuse(call, Refused("CANCELLED", "the call was cancelled"))
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                late = "the deadline passed first; what was asked may still be done"
                self._refuse(call, Refused("DEADLINE_EXCEEDED", late))
                return
            request_id = secrets.token_hex(8)
            log.exception("call %s failed: %s", request_id, call.path)
            defect = Refused(
                "INTERNAL",
                f"the node failed to answer (request {request_id})",
                hint="report this request id to the operator of the node",
            )
            self._refuse(call, defect)
        else:
            call.finish(GrpcCode.OK)
            self._count("OK")

    def _refuse(self, call: Call, refusal: Refused) -> None:
        call.refuse(refusal)
        self._count(refusal.code)

    def _count(self, code: str) -> None:
        self.finished_by_code[code] = self.finished_by_code.get(code, 0) + 1


def _check_access(access: Access, caller: Caller, path: str) -> None:
    if access is Access.ANYONE:
        return
    if caller.principal == 0:
        raise Refused(
            "UNAUTHENTICATED",
            f"{path} needs {access.value}",
            hint="send `authorization: Bearer hr_...`",
        )
    node_key = caller.principal == NODE_KEY_PRINCIPAL
    allowed = {
        Access.NODE_KEY: node_key,
        Access.CONSUME: node_key or bool(caller.verbs & Verb.CONSUME),
        Access.ANY_KEY: True,
    }[access]
    if not allowed:
        raise Refused(
            "PERMISSION_DENIED",
            f"{path} needs {access.value}; this key is none",
            hint="use a key with the right role",
        )


def _parsed(request: type[Request], body: bytes) -> Request:
    message = request()
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise Refused(
            "INVALID_ARGUMENT",
            f"the message is no {request.DESCRIPTOR.full_name}",
            hint="compare the client's version with the node's",
        ) from error
    return message
