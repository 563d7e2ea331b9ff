"""A real control plane: `python -m api serve` in a folder of its own, on a free port, spoken to in
raw bytes.

Owns the process it started and ends it by its id. Refuses to be an HTTP client: what is sent is
sent as it is, and what comes back is parsed no further than its status, its fields and its body.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue as Json

from api.auth.tokens import new_token
from api.bootstrap.seed import Bootstrapped

ROOT = Path(__file__).resolve().parents[3]
ANSWER_SECONDS = 120.0

CONFIG = """
[api]
port = {port}
workers = 1
head_seconds = {head_seconds}
body_seconds = {body_seconds}
connections_max = {connections_max}
requests_per_second = 100000
request_burst = 1000000
[database]
url = "{url}"
[node]
admin_key_file = "node.key"
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, as it came."""

    status: int
    fields: Mapping[str, str]
    body: bytes

    def problem(self) -> dict[str, Json]:
        """The body of a refusal; it must be problem+json."""
        assert self.fields["content-type"] == "application/problem+json", self
        body: dict[str, Json] = json.loads(self.body)
        return body


class Peer:
    """One connection; says what it likes."""

    def __init__(self, port: int, buffer: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.settimeout(ANSWER_SECONDS)
        if buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        try:
            self._socket.connect(("127.0.0.1", port))
        except OSError:
            self._socket.close()
            raise
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """To wait for several at once."""
        return self._socket.fileno()

    def send(self, data: bytes) -> bool:
        """Send all of it; False if the server would not take it all."""
        try:
            self._socket.sendall(data)
        except ConnectionError:
            return False
        return True

    def answer(self) -> Answer | None:
        """The next answer; None if the server closed without one."""
        while b"\r\n\r\n" not in self._received:
            if not self._more():
                return None
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        wanted = int(fields.get("content-length", "0"))
        while len(self._received) < wanted and self._more():
            pass
        body, self._received = self._received[:wanted], self._received[wanted:]
        return Answer(int(status.split()[1]), fields, body)

    def closed(self) -> bool:
        """Whether the server closes, and says nothing more before."""
        return not self._received and not self._more()

    def _more(self) -> bool:
        try:
            data = self._socket.recv(1 << 16)
        except ConnectionError:
            data = b""
        self._received += data
        return bool(data)


class ApiProcess:
    """One control plane over a bootstrapped database of its own.

    ``first`` is what the first run left in it.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        first: Bootstrapped,
        *,
        head_seconds: float = 10.0,
        body_seconds: float = 30.0,
        connections_max: int = 4096,
    ) -> None:
        self.folder = folder
        self.first = first
        self._settings = {
            "url": url,
            "head_seconds": head_seconds,
            "body_seconds": body_seconds,
            "connections_max": connections_max,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        (folder / "node.key").write_text(new_token("node").text)

    def __enter__(self) -> Self:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        config = self.folder / "headrace.toml"
        config.write_text(CONFIG.format(port=self.port, **self._settings))
        with (self.folder / "api.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "api", "serve", "--config", str(config)],
                cwd=ROOT,
                env={k: v for k, v in os.environ.items() if not k.startswith("HEADRACE_")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait_until_it_serves()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def _wait_until_it_serves(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if self.ask(b"GET", b"/readyz").status == 200:
                    return
            except OSError:
                assert self._process.poll() is None, self.log()
            time.sleep(0.05)
        raise TimeoutError(f"the control plane does not serve:\n{self.log()}")

    def log(self) -> str:
        """What it has logged."""
        return (self.folder / "api.log").read_bytes().decode()

    def peer(self, buffer: int = 0) -> Peer:
        """A new connection; ``buffer``: how little it takes before it reads."""
        return Peer(self.port, buffer)

    def head(self, method: bytes, path: bytes, *fields: bytes, key: str | None = "") -> bytes:
        """The head of a request, without its final empty line. ``key``: the owner's, another one,
        or None for no key.
        """
        lines = [method + b" " + path + b" HTTP/1.1", b"Host: headrace"]
        if key is not None:
            lines.append(b"Authorization: Bearer " + (key or self.first.token.text).encode())
        return b"\r\n".join([*lines, *fields]) + b"\r\n"

    def request(
        self, method: bytes, path: bytes, body: bytes = b"", *fields: bytes, key: str | None = ""
    ) -> bytes:
        """A whole request as it should be, with a body of JSON if there is one."""
        if body:
            media = b"" if any(f.lower().startswith(b"content-type") for f in fields) else (
                b"Content-Type: application/json"
            )  # fmt: skip
            length = b"Content-Length: %d" % len(body)
            fields = (*fields, length, *([media] if media else []))
        return self.head(method, path, *fields, key=key) + b"\r\n" + body

    def ask(
        self, method: bytes, path: bytes, body: bytes = b"", *fields: bytes, key: str | None = ""
    ) -> Answer:
        """The answer to a whole request on a connection of its own."""
        return self.said(self.request(method, path, body, *fields, key=key))

    def said(self, data: bytes) -> Answer:
        """The answer to bytes on a connection of their own."""
        with self.peer() as peer:
            peer.send(data)
            answer = peer.answer()
        assert answer is not None, "closed without an answer"
        return answer

    @property
    def pid(self) -> int:
        """The running process."""
        assert self._process is not None
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Time its threads have spent on a processor so far."""
        tasks = Path(f"/proc/{self.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / (
            1e9
        )

    def resident_bytes(self) -> int:
        """Memory it holds."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
