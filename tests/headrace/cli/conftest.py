"""The command line, run in this process against a scripted node and a scripted API."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.cli.main import run
from tests.headrace.scripted_api import ScriptedApi
from tests.headrace.scripted_node import ScriptedNode


@dataclass(frozen=True)
class Done:
    """What a command line did."""

    code: int
    out: str
    err: str


class Stdin(io.TextIOWrapper):
    """Bytes as standard input; a terminal where a test says so."""

    terminal = False

    def isatty(self) -> bool:
        return self.terminal


Run = Callable[..., Done]


@pytest.fixture
def headrace(
    node: ScriptedNode,
    api: ScriptedApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Run:
    for name in ("HEADRACE_URL", "HEADRACE_PROFILE", "HEADRACE_KEY", "NO_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", node.address)
    monkeypatch.setenv("HEADRACE_API_URL", api.url)

    def invoke(*arguments: str, stdin: bytes = b"", terminal: bool = False) -> Done:
        given = Stdin(io.BytesIO(stdin), encoding="utf-8")
        given.terminal = terminal
        monkeypatch.setattr(sys, "stdin", given)
        capfdbinary.readouterr()
        code = run(list(arguments))
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return Done(code, captured.out.decode(), captured.err.decode())

    return invoke
