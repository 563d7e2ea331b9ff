"""A client that speaks HTTP/2 frames on a raw socket: for peers that are slow, silent or hostile.

Owns the frames and headers of one gRPC call. Reads and writes only when it is told to.
"""

import socket
import struct
from collections.abc import Iterator

from tests.support.clients.grpc_client import EDITOR, PRODUCE, SECRET, WAIT_S
from tests.support.processes.engine_host import Host, token

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
ACK, END_STREAM, END_HEADERS = 1, 1, 4


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def field(name: str, value: str) -> bytes:
    """A header as HPACK's literal without indexing; both parts are shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def call_headers(
    stream: int, timeout: str = "", *, path: str = PRODUCE, public_id: str = EDITOR
) -> bytes:
    """A call's request headers; the message may follow."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "node",
        "content-type": "application/grpc",
        "te": "trailers",
        "authorization": f"Bearer {token(public_id, SECRET)}",
    }
    if timeout:
        fields["grpc-timeout"] = timeout
    block = b"".join(field(name, value) for name, value in fields.items())
    return frame(HEADERS, END_HEADERS, stream, block)


class Peer:
    """A client that sends and reads frames only on request."""

    def __init__(self, host: Host, *, receive_bytes: int = 0) -> None:
        """`receive_bytes`: size of the receive buffer of the kernel; 0 = its default."""
        self._socket = socket.socket()
        if receive_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self._socket.settimeout(WAIT_S)
        self._socket.connect(("127.0.0.1", host.port))
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    @property
    def port(self) -> int:
        """Its own."""
        return int(self._socket.getsockname()[1])

    def send(self, data: bytes) -> None:
        """All of it."""
        self._socket.sendall(data)

    def take(self, size: int) -> bytes:
        """Read this number of bytes."""
        return self._stream.read(size)

    def greet(self) -> None:
        """Agree on settings: from then on frames and windows are as large as the node allows."""
        self.send(PREFACE + frame(SETTINGS, 0, 0))
        self.until(SETTINGS)
        self.send(frame(SETTINGS, ACK, 0))

    def frames(self) -> Iterator[tuple[int, int]]:
        """(kind, stream) of every frame until the node closes the connection."""
        while len(header := self._stream.read(9)) == 9:
            self._stream.read(int.from_bytes(header[:3], "big"))
            yield header[3], int.from_bytes(header[5:9], "big")

    def granted(self, stream: int) -> int:
        """Window of a stream that the node has granted by now, since the last look."""
        self.send(frame(PING, 0, 0, bytes(8)))
        window = 0
        while len(header := self._stream.read(9)) == 9 and header[3] != PING:
            body = self._stream.read(int.from_bytes(header[:3], "big"))
            if (header[3], int.from_bytes(header[5:9], "big")) == (WINDOW_UPDATE, stream):
                window += int.from_bytes(body, "big")
        self._stream.read(8)
        return window

    def until(self, kind: int) -> int:
        """The stream of the next frame of a kind."""
        return next(stream for found, stream in self.frames() if found == kind)

    def kinds(self) -> list[int]:
        """The kinds of all frames until the node closes the connection."""
        return [kind for kind, _ in self.frames()]
