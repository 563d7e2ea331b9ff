"""A small HTTP/1.1 server over asyncio streams, for the port of the node that operators read.

Owns connections: GET and HEAD, one request a connection, every size, time and number bounded. When
too many are open it closes the oldest, so that a health check always gets through. Refuses to know
what is served.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

REQUEST_BYTES_MAX: Final = 8192
REQUEST_TIMEOUT_S: Final = 5.0
CONNECTIONS_MAX: Final = 64

_REASONS: Final = {
    200: "OK",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


class Response(NamedTuple):
    """A status and a plain text."""

    status: int
    text: str

    def encode(self, *, head_only: bool) -> bytes:
        """As it crosses the wire."""
        body = self.text.encode()
        head = (
            f"HTTP/1.1 {self.status} {_REASONS[self.status]}\r\n"
            "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + (b"" if head_only else body)


class HttpServer:
    """One listening port. `get`: the response for a path."""

    def __init__(self, get: Callable[[bytes], Response]) -> None:
        self._get = get
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        self.evicted = 0

    async def start(self, host: str, port: int) -> int:
        """Listen. Returns the port."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening, and close every connection."""
        if self._server is None:
            return
        self._server.close()
        serving = [task for task in self._open.values() if task is not None]
        for writer in self._open:
            writer.transport.abort()
        await asyncio.gather(*serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = asyncio.current_task()
        if len(self._open) > CONNECTIONS_MAX:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
            self.evicted += 1
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # A client that does not speak or listen gets nothing.
        finally:
            self._open.pop(writer, None)
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            return Response(405, "only GET is served here\n").encode(head_only=False)
        path = words[1].split(b"?", 1)[0]
        return self._get(path).encode(head_only=words[0] == b"HEAD")
