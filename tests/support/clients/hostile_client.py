"""An HTTP/2 client that says what it likes: whole frames, half frames, no frames at all.

Frames are made with what the library h2 is built on (hyperframe, hpack): h2 itself would refuse to
send most of what is sent here. Owns one socket; refuses to be polite.
"""

import base64
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from hpack import Decoder
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    RstStreamFrame,
    SettingsFrame,
)

from headrace.wire import stream_pb2 as wire
from tests.support.clients.grpc_client import EDITOR, PRODUCE, SECRET, WAIT_S
from tests.support.processes.engine_host import Host, token

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CHUNK_FRAMES = 500


@dataclass(slots=True)
class Answer:
    """What came back for one stream."""

    headers: dict[str, str] = field(default_factory=dict)
    data: bytes = b""
    ended: bool = False
    reset: int | None = None

    @property
    def error(self) -> wire.Error:
        """The Error in the status details."""
        details = self.headers["grpc-status-details-bin"]
        status = wire.Status.FromString(decoded(details))
        found = wire.Error()
        assert status.details[0].Unpack(found)
        return found


def decoded(text: str) -> bytes:
    """Base64 as gRPC writes it: without padding."""
    return base64.b64decode(text + "=" * (-len(text) % 4))


def prefixed(message: bytes, *, flag: int = 0, size: int | None = None) -> bytes:
    """A gRPC message; ``size`` is what its prefix claims."""
    return struct.pack(">BI", flag, len(message) if size is None else size) + message


class HostileClient:
    """One connection; reads only when asked to."""

    def __init__(
        self, host: Host, *, greet: bool = True, window: int = 1 << 20, buffer: int = 0
    ) -> None:
        self._socket = socket.socket()
        if buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self._socket.settimeout(WAIT_S)
        self._socket.connect(("127.0.0.1", host.port))
        self._received = b""
        self._decoder = Decoder(max_header_list_size=1 << 20)
        self.goaways: list[tuple[int, bytes]] = []
        self.answers: dict[int, Answer] = {}
        self.acks = 0
        self.open = True
        if greet:
            settings = SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: window})
            self.send(PREFACE + settings.serialize())

    def __enter__(self) -> "HostileClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    # ---- sending ----

    def send(self, data: bytes) -> bool:
        """False once the node has closed the connection."""
        try:
            self._socket.sendall(data)
        except (ConnectionError, TimeoutError):
            self.open = False
        return self.open

    def flood(self, frame: bytes, count: int) -> None:
        """The same frame again and again, until the node has enough or ``count`` were sent."""
        for _ in range(count // CHUNK_FRAMES):
            if not self.send(frame * CHUNK_FRAMES):
                return

    def fields(self, path: str = PRODUCE, **more: str) -> list[tuple[str, str]]:
        """The headers of a call with a good key; underlines stand for dashes."""
        return [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "node"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("authorization", f"Bearer {token(EDITOR, SECRET)}"),
            *((name.replace("_", "-"), value) for name, value in more.items()),
        ]

    def headers(self, stream: int, path: str = PRODUCE, *, end: bool = False, **more: str) -> bytes:
        """A HEADERS frame. Fields are not remembered, so frames may be repeated in any order."""
        block = b"".join(literal(name, value) for name, value in self.fields(path, **more))
        return self.block(stream, block, end=end)

    @staticmethod
    def block(stream: int, block: bytes, *, end: bool = False, whole: bool = True) -> bytes:
        """A HEADERS frame with this header block."""
        flags = [name for name, on in (("END_STREAM", end), ("END_HEADERS", whole)) if on]
        return HeadersFrame(stream, block, flags=flags).serialize()

    @staticmethod
    def data(stream: int, data: bytes, *, end: bool = False) -> bytes:
        """A DATA frame."""
        return DataFrame(stream, data, flags=["END_STREAM"] if end else []).serialize()

    # ---- receiving ----

    def frames(self, within_s: float = WAIT_S) -> Iterator[Frame]:
        """Reads until the node closes the connection or the time is over; collects the answers."""
        deadline = time.monotonic() + within_s
        while True:
            while (frame := self._next()) is not None:
                self._remember(frame)
                yield frame
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._socket.settimeout(left)
            try:
                more = self._socket.recv(1 << 16)
            except TimeoutError:
                return
            except ConnectionError:
                more = b""
            finally:
                self._socket.settimeout(WAIT_S)
            if not more:
                self.open = False
                return
            self._received += more

    def closed(self) -> int | None:
        """Read until the node closes; the code of its last GOAWAY, None if it said none."""
        for _ in self.frames():
            pass
        assert not self.open, "the node keeps the connection"
        return self.goaways[-1][0] if self.goaways else None

    def answer(self, stream: int) -> Answer:
        """Read until the stream is over."""
        for _ in self.frames():
            found = self.answers.get(stream)
            if found is not None and (found.ended or found.reset is not None):
                return found
        raise AssertionError(f"stream {stream} is not answered")

    def _next(self) -> Frame | None:
        if len(self._received) < 9:
            return None
        frame, size = Frame.parse_frame_header(memoryview(self._received[:9]))
        if len(self._received) < 9 + size:
            return None
        frame.parse_body(memoryview(self._received[9 : 9 + size]))
        self._received = self._received[9 + size :]
        return frame

    def _remember(self, frame: Frame) -> None:
        if isinstance(frame, GoAwayFrame):
            self.goaways.append((frame.error_code, frame.additional_data))
        elif isinstance(frame, SettingsFrame):
            self.acks += "ACK" in frame.flags
        if frame.stream_id == 0:
            return
        answer = self.answers.setdefault(frame.stream_id, Answer())
        if isinstance(frame, HeadersFrame):
            answer.headers.update(
                (str(name), str(value)) for name, value in self._decoder.decode(frame.data)
            )
        elif isinstance(frame, DataFrame):
            answer.data += frame.data
        elif isinstance(frame, RstStreamFrame):
            answer.reset = frame.error_code
        answer.ended |= "END_STREAM" in frame.flags


def literal(name: str, value: str) -> bytes:
    """A header as HPACK's literal without indexing; both parts are shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
