"""The two REST calls of a run against a real HTTP server.

Repeated while it is away, typed when it refuses.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reports.control import RunClient, run_client
from reports.errors import ArgumentError, ControlError


@dataclass
class Control:
    """Answers in turn, and what was asked."""

    answers: list[tuple[int, dict[str, object]]] = field(default_factory=list)
    asked: list[tuple[str, str, str, bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> RunClient:
        """A client of this server, with a short patience."""
        client = run_client(self.url, "run_1", "hr_run_secret")
        return replace(client, deadline_seconds=5.0)


def handler_of(control: Control) -> type[BaseHTTPRequestHandler]:
    """Gives the answers of `control`, one each."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers["Authorization"]
            control.asked.append((self.command, self.path, token, body))
            status, document = control.answers.pop(0)
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_PUT(self) -> None:
            self.do_GET()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Quiet."""

    return Handler


@contextmanager
def served_control() -> Iterator[Control]:
    """A server on a free port."""
    told = Control()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(told))
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def control() -> Iterator[Control]:
    """A server for one test."""
    with served_control() as served:
        yield served


def test_inputs_are_asked_with_the_token_of_the_run(control: Control) -> None:
    control.answers = [(200, {"topics": []})]
    assert control.client().inputs() == {"topics": []}
    assert control.asked == [("GET", "/v1/report-runs/run_1/inputs", "Bearer hr_run_secret", b"")]


def test_a_result_is_sent_again_while_the_control_plane_is_away(control: Control) -> None:
    control.answers = [(503, {"code": "UNAVAILABLE"}), (502, {}), (200, {})]
    control.client().put_result({"kind": "usage"})
    assert [asked[0] for asked in control.asked] == ["PUT", "PUT", "PUT"]
    assert json.loads(control.asked[2][3]) == {"kind": "usage"}


def test_a_refusal_is_not_repeated_and_keeps_its_code(control: Control) -> None:
    control.answers = [(400, {"code": "RESULT_REJECTED", "detail": "usage.csv has another hash"})]
    with pytest.raises(ControlError, match=r"RESULT_REJECTED: usage\.csv has another hash"):
        control.client().put_result({})
    assert len(control.asked) == 1


def test_a_server_that_is_not_there_is_named_when_the_deadline_has_passed() -> None:
    client = replace(run_client("http://127.0.0.1:1", "run_1", "hr_run_secret"), deadline_seconds=0)
    with pytest.raises(ControlError, match="API_UNREACHABLE") as raised:
        client.inputs()
    assert "hr_run_secret" not in f"{raised.value} {client!r}"


def test_a_run_without_a_token_says_how_to_go_on() -> None:
    with pytest.raises(ArgumentError, match=r"RUN_TOKEN_MISSING.*--export"):
        run_client("http://127.0.0.1:1", "run_1", None)
