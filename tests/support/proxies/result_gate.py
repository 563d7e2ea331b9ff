"""The control plane's address for report jobs: it passes everything on, and holds what a run puts.

Owns a real HTTP server before an application of this process. A result that arrives waits until
the test lets it pass or drops it, so that a test can do something between the files of a report
and their publication. Refuses to look inside.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

from fastapi.testclient import TestClient

PATIENCE_SECONDS = 600.0


@dataclass
class Held:
    """A result that waits. `status` of the answer that its job got, once there was one."""

    path: str
    passes: bool = False
    status: int = 0
    told: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)

    def let_pass(self) -> int:
        """Pass it on; the status of the answer."""
        self.passes = True
        self.told.set()
        assert self.answered.wait(PATIENCE_SECONDS)
        return self.status

    def drop(self) -> None:
        """Drops the result."""
        self.told.set()


@dataclass
class Gate:
    """Where it listens, and what arrived."""

    url: str
    arrived: "Queue[Held]" = field(default_factory=Queue)

    def result(self) -> Held:
        """The next result, as soon as it is there."""
        return self.arrived.get(timeout=PATIENCE_SECONDS)


@contextmanager
def gate_before(client: TestClient) -> Iterator[Gate]:
    """A gate on a free port; what it holds at the end is dropped."""
    gate, ended = Gate(""), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on(b"")

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            held = Held(self.path)
            gate.arrived.put(held)
            while not held.told.wait(0.05):
                if ended.is_set():
                    return
            if held.passes:
                held.status = self._pass_on(body)
                held.answered.set()

        def _pass_on(self, body: bytes) -> int:
            answer = client.request(
                self.command, self.path, content=body, headers=_forwarded(self.headers)
            )
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)
            return answer.status_code

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    gate.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield gate
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _forwarded(headers: Message) -> dict[str, str]:
    wanted = ("Authorization", "Content-Type", "Accept")
    return {name: str(headers[name]) for name in wanted if name in headers}
