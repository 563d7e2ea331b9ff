"""A loopback port before a real node, with faults on the road: answers that are late, lost or held,
and a silence that takes connections.

Owns its listener and its connections. Refuses to change what passes: it is carried, or the
connection is cut before an answer. Of HTTP/2 it knows where frames end and what begins an answer.
"""

import contextlib
import socket
import threading

from tests.support.proxies.database_proxy import CHUNK_BYTES, DatabaseProxy

HEAD_BYTES = 9
HEADERS = 1


class NodeProxy(DatabaseProxy):
    """Carries connections to a node's port. ``silent``: it takes all and says nothing; ``lost``:
    how many answers it kept; ``holding``: one is held; ``delay_seconds`` makes every answer late.
    """

    def __init__(self, port: int) -> None:
        self.silent = False
        self.lost = 0
        self.holding = threading.Event()
        self._until_chosen = 0
        self._let_go: threading.Event | None = None
        self._counting = threading.Lock()
        super().__init__(port)

    @property
    def address(self) -> str:
        """Where the node is to be found."""
        return f"127.0.0.1:{self.port}"

    def lose_answer(self, number: int) -> None:
        """The request is carried, and its answer, the ``number``-th from now on, is not."""
        with self._counting:
            self._until_chosen, self._let_go = number, None

    def hold_answer(self, number: int) -> None:
        """Holds the ``number``-th answer from now on, and everything after it on its connection,
        until ``let_go``.
        """
        self.holding.clear()
        with self._counting:
            self._until_chosen, self._let_go = number, threading.Event()

    def let_go(self) -> None:
        """Carries the answer that is held."""
        assert self._let_go is not None
        self._let_go.set()

    def _carry(self, source: socket.socket, target: socket.socket, *, delayed: bool) -> None:
        held, answered = b"", set[int]()
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if self.silent:
                    continue
                if not delayed:
                    target.sendall(data)
                    continue
                if self._ended.wait(self.delay_seconds):
                    break
                held += data
                while (frame := _frame(held)) and self._may_pass(frame, answered):
                    target.sendall(frame)
                    held = held[len(frame) :]
                if frame:
                    break
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _may_pass(self, frame: bytes, answered: set[int]) -> bool:
        """Whether a frame is carried, at last; False: it begins the answer that shall be lost."""
        stream = int.from_bytes(frame[5:HEAD_BYTES], "big")
        if frame[3] != HEADERS or stream in answered:
            return True
        answered.add(stream)
        with self._counting:
            self._until_chosen -= 1
            if self._until_chosen:
                return True
            let_go = self._let_go
            self.lost += let_go is None
        if let_go is None:
            return False
        self.holding.set()
        while not let_go.wait(0.05) and not self._ended.is_set():
            continue
        return True


def _frame(data: bytes) -> bytes:
    """The first frame, if it is there whole."""
    size = HEAD_BYTES + int.from_bytes(data[:3], "big")
    return data[:size] if HEAD_BYTES <= size <= len(data) else b""
