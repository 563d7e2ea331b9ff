"""Connections of the REST API: how long and how large a request's head may be, and who goes first
when there are too many.

The parser, the queue and the answers are uvicorn's; this class bounds them. A head comes within a
time and within 32 KiB; a body within its time, and a reader who takes no answer is cut off. A
slow client delays no other: beyond the maximum of connections the one that was idle longest is
closed. What is not HTTP gets an error in problem+json, then the connection is closed. This module
refuses to know what is asked.

    silent --first byte--> head --its end--> body --its end--> silent
       |                     |                 |
       '----- too slow, too large, no HTTP: answer, half close, drain, gone
"""

import asyncio
import json
import resource
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

import structlog
from starlette.requests import HTTPConnection
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.http.errors import (
    PROBLEM_MEDIA_TYPE,
    DomainError,
    HeadersTooLargeError,
    InvalidRequestError,
    RequestTimeoutError,
    UnavailableError,
    problem,
    status_of,
)
from api.http.json_body import BODY_BYTES_MAX

HEAD_BYTES_MAX: Final = 32 << 10
# Of a body as it is sent: a chunk of one byte is six on the wire. What is no body (extensions of
# chunks, trailers) is as little as a head: the parser would gather it, at quadratic cost.
BODY_WIRE_BYTES_MAX: Final = 8 * BODY_BYTES_MAX
# Fed to the parser at once: what it makes of so much is bounded.
SLICE_BYTES: Final = 8 << 10
# Requests that wait in one connection for the answers before them.
PIPELINED_MAX: Final = 64
# The middleware answers a late request; this long later the connection is closed in any case.
GRACE_SECONDS: Final = 2.0
DRAIN_SECONDS: Final = 1.0
# Files, databases and calls to nodes need descriptors as well.
DESCRIPTORS_KEPT: Final = 128

Phase: TypeAlias = Literal["silent", "head", "body", "ending"]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a connection may take. ``connections``: of the whole process."""

    head_seconds: float
    body_seconds: float
    connections: int


def descriptors(wanted: int) -> int:
    """Raises the limit of open files as far as it goes; how many connections it leaves room for."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    room = wanted if most == resource.RLIM_INFINITY else most - DESCRIPTORS_KEPT
    return max(16, min(wanted, room))


def endless(request: HTTPConnection) -> None:
    """Says of an answer that it goes on until its reader or the process ends."""
    request.state.endless = True


def is_endless(scope: Mapping[str, object]) -> bool:
    """Whether that was said of the answer to a request."""
    state = scope.get("state")
    return isinstance(state, dict) and bool(state.get("endless"))


def listening(given: Bounds) -> type[HttpToolsProtocol]:
    """The protocol of a server with these bounds."""

    class Bounded(Listener):
        bounds = given

    return Bounded


class Listener(HttpToolsProtocol):
    """One connection."""

    bounds: Bounds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there; if there are too many, one of the silent ones gives way."""
        super().connection_made(transport)
        self._phase: Phase = "silent"
        self._phase_bytes = 0
        self._quiet_bytes = 0
        self._stalled: asyncio.TimerHandle | None = None
        self.since = time.monotonic()
        self._timer = self.loop.call_later(self.bounds.head_seconds, self._late)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._timer.cancel()
        if self._stalled is not None:
            self._stalled.cancel()
        super().connection_lost(exc)

    @property
    def waits(self) -> bool:
        """Whether it owes us something and we owe it nothing."""
        return self._phase in ("silent", "head") and not self._answering()

    def drop(self, reason: str) -> None:
        """End it without a word."""
        log.info("connection_dropped", reason=reason)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of a client, to the parser in slices."""
        for at in range(0, len(data), SLICE_BYTES):
            if self._phase == "ending" or self.transport.is_closing():
                return
            if self._phase == "silent":
                self._enter("head", self.bounds.head_seconds)
            part = data[at : at + SLICE_BYTES]
            super().data_received(part)
            self._bound(len(part))

    def _bound(self, count: int) -> None:
        self._phase_bytes += count
        self._quiet_bytes += count
        if self._phase == "head" and self._phase_bytes > HEAD_BYTES_MAX:
            self._end(
                HeadersTooLargeError(
                    f"The head of the request is above {HEAD_BYTES_MAX} bytes.",
                    hint="Send shorter parameters and fewer header fields.",
                )
            )
        elif self._phase == "body" and (
            self._phase_bytes > BODY_WIRE_BYTES_MAX or self._quiet_bytes > HEAD_BYTES_MAX
        ):
            self.drop("endless")
        elif len(self.pipeline) > PIPELINED_MAX:
            self.drop("pipelined")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head. What stands behind a body is no part of it: the request was judged
        without, and a key is not brought in afterwards."""
        if self._phase != "body":
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Some of the body: unlike the extensions of a chunk, and unlike trailers."""
        self._quiet_bytes = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """The head is read: the body has its time from here on."""
        super().on_headers_complete()
        self._enter("body", self.bounds.body_seconds + GRACE_SECONDS)

    def on_message_complete(self) -> None:
        """The request is whole."""
        super().on_message_complete()
        self._phase = "silent"
        self.since = time.monotonic()
        self._timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """Uvicorn's word for what its parser refuses."""
        self._end(
            InvalidRequestError(
                "The request is not valid or unambiguous HTTP/1.1.",
                hint="Is this the port of the REST API, and does the client speak HTTP/1.1?",
            )
        )

    def _unsupported_upgrade_warning(self) -> None:
        """A request to change the protocol is answered in this one; nothing is worth a warning."""

    def shutdown(self) -> None:
        """The process ends. A request that is not whole has done nothing yet, and a stream of
        events has no end, but a reader that comes back: neither is waited for."""
        if self._answering() and is_endless(self.scope):
            self.transport.close()
        elif self._phase == "body" and not self.cycle.response_started:
            self._end(
                UnavailableError("The API is stopping.", hint="Try again.", retry_after_seconds=1)
            )
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        """The client does not take its answer."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.bounds.body_seconds, self.drop, "stalled")

    def resume_writing(self) -> None:
        """It does again."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def _enter(self, phase: Phase, seconds: float) -> None:
        self._phase = phase
        self._phase_bytes = self._quiet_bytes = 0
        self.since = time.monotonic()
        self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._late)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _late(self) -> None:
        if self._phase == "head" and self._answering():
            # The next request waits for this one's answer as much as we wait for it.
            self._timer = self.loop.call_later(self.bounds.head_seconds, self._late)
        elif self._phase == "body" and self.pipeline:
            # It is us who do not read: the answers before it are not out yet.
            self._timer = self.loop.call_later(self.bounds.body_seconds, self._late)
        elif self._phase == "head":
            self._end(
                RequestTimeoutError(
                    "The head of the request was not received within "
                    f"{self.bounds.head_seconds:g} s.",
                    hint="Send the request again without pauses.",
                )
            )
        elif self._phase == "ending":
            self.transport.abort()
        else:
            self.drop("late" if self._phase == "body" else "silent")

    def _end(self, refusal: DomainError) -> None:
        """Say why, close our half, and read on for a moment: who still sends would otherwise lose
        the answer to a reset."""
        log.info("connection_refused", code=refusal.specific_code, phase=self._phase)
        begun = self._answering() and (self._phase == "head" or self.cycle.response_started)
        if begun or self.pipeline:
            # These bytes would be taken for the answer to another request.
            self.drop("mixed")
            return
        self._unset_keepalive_if_required()
        self._enter("ending", DRAIN_SECONDS)
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(_answer(refusal))
        self.transport.write_eof()

    def _make_room(self) -> None:
        if len(self.connections) <= self.bounds.connections:
            return
        waiting = [
            each
            for each in self.connections
            if isinstance(each, Listener) and each is not self and each.waits
        ]
        if waiting:
            min(waiting, key=lambda each: each.since).drop("no_room")
        else:
            self._end(
                UnavailableError(
                    "All connections are busy.", hint="Try again.", retry_after_seconds=1
                )
            )


def _answer(refusal: DomainError) -> bytes:
    """A whole answer, after which nothing comes."""
    request_id = f"req_{secrets.token_hex(12)}"
    body = json.dumps(problem(refusal, request_id)).encode()
    status = status_of(refusal)
    fields = {
        "Content-Type": PROBLEM_MEDIA_TYPE,
        "Content-Length": str(len(body)),
        "Connection": "close",
        "X-Request-Id": request_id,
    }
    if refusal.retry_after_seconds is not None:
        fields["Retry-After"] = str(refusal.retry_after_seconds)
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
