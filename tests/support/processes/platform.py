"""The whole product as real processes: what `headrace up` starts, in a folder, on free ports.

Owns the supervisor it started and ends it by process id. Refuses to guess: everything it knows
comes from `up.json` and the client profile that `up` wrote.
"""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[3]
STOP_SECONDS_MAX = 120.0


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Return as soon as ``condition`` holds; TimeoutError naming ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process of this id runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@dataclass(frozen=True, slots=True)
class Profile:
    """How a client reaches the platform."""

    api_url: str
    bootstrap: str
    key: str


class Platform:
    """One embedded platform; a context manager that stops it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.data = folder / "data"
        self.environment = os.environ | {
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(ROOT / "build" / "cache")),
            "NO_COLOR": "1",
        }
        for name in [name for name in self.environment if name.startswith("HEADRACE_")]:
            del self.environment[name]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Run `headrace up --detach` and wait until everything serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cli("up", "--dir", str(self.data), "--port", "0", "--detach", *self.options)

    def stop(self) -> None:
        """`headrace down`, then make sure by process id."""
        if not (self.data / "up.json").exists():
            return
        pids = self.pids()
        self.cli("down", "--dir", str(self.data), check=False)
        try:
            wait_until(lambda: not any(map(alive, pids)), "the platform ends", STOP_SECONDS_MAX)
        finally:
            for pid in filter(alive, pids):
                os.kill(pid, signal.SIGKILL)

    def cli(
        self, *arguments: str, check: bool = True, stdin: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the `headrace` command as a person would; stdout and stderr are captured."""
        done = subprocess.run(
            [sys.executable, "-m", "headrace.cli", *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=self.environment,
            cwd=ROOT,
            timeout=600,
            check=False,
        )
        if check and done.returncode != 0:
            raise RuntimeError(
                f"headrace {' '.join(arguments)} ended with {done.returncode}:\n"
                f"{done.stdout.decode()}{done.stderr.decode()}"
            )
        return done

    def up_file(self) -> dict[str, object]:
        """The contents of `up.json`."""
        loaded: dict[str, object] = json.loads((self.data / "up.json").read_text())
        return loaded

    @property
    def node_http(self) -> str:
        """Where the node answers /metrics and /readyz, as host:port."""
        node = self.up_file()["node"]
        assert isinstance(node, dict)
        return f"127.0.0.1:{node['http_port']}"

    def pids(self) -> list[int]:
        """Every process of the platform, supervisor first."""
        names = ("supervisor", "api", "node", "demo")
        found = [self._pid_of(name) for name in names if name in self.up_file()]
        return [pid for pid in found if pid is not None]

    def _pid_of(self, name: str) -> int | None:
        """A process id from `up.json`; None while the supervisor is about to start another."""
        process = self.up_file()[name]
        assert isinstance(process, dict)
        return process["pid"] if process["pid"] is None else int(process["pid"])

    def kill_node(self) -> int:
        """kill -9. Returns the process id that is gone."""
        pid = self._pid_of("node")
        assert pid is not None, "the node is being started"
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_for_another_node(self, gone: int) -> None:
        """Return once the supervisor has replaced the node whose process was ``gone``."""
        wait_until(lambda: self._pid_of("node") not in (None, gone), "the node is started again")
        assert not alive(gone)

    def profile(self) -> Profile:
        """The client profile that `up` wrote."""
        path = Path(self.environment["XDG_CONFIG_HOME"]) / "headrace" / "config.toml"
        default = tomllib.loads(path.read_text())["profiles"]["default"]
        return Profile(default["api_url"], default["bootstrap"], default["key"])
