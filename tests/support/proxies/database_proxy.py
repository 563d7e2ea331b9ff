"""A loopback port before a database's Unix socket, or another port, whose answers can be held back.

Owns its listener and its connections. Refuses to understand what passes: it delays or breaks, and
changes nothing.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

CHUNK_BYTES = 1 << 16


class DatabaseProxy:
    """Carries connections to a socket or a port of the loopback. ``delay_seconds`` holds every
    answer back."""

    def __init__(self, target: Path | int) -> None:
        self.delay_seconds = 0.0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        # A thread that accepts is woken by this, and by nothing that closes the socket.
        self._listener.shutdown(socket.SHUT_RDWR)
        accepting, *carrying = self._threads
        accepting.join()
        self.break_all()
        for thread in carrying:
            thread.join()
        for each in (self._listener, *self._sockets):
            each.close()

    def break_all(self) -> None:
        """Ends every connection now, in both directions."""
        with self._lock:
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _start(self, work: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=work, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._connect()
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets += [client, server]
            self._start(partial(self._carry, client, server, delayed=False))
            self._start(partial(self._carry, server, client, delayed=True))

    def _connect(self) -> socket.socket:
        if isinstance(self._target, int):
            return socket.create_connection(("127.0.0.1", self._target))
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self._target))
        except OSError:
            server.close()
            raise
        return server

    def _carry(self, source: socket.socket, target: socket.socket, *, delayed: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if delayed and self._ended.wait(self.delay_seconds):
                    break
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
