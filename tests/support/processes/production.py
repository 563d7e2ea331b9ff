"""The layout of production as real processes: `python -m deploy.production` in a folder, on free
ports.

Owns what it started and ends it by process id. Refuses to guess: everything it knows comes from
`up.json` and the profile.
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue as Json

from tests.support.processes.platform import ROOT, Profile, alive, wait_until

NAMES = ("postgres", "node-1", "api-1", "api-2", "worker-1", "worker-2")
STOP_SECONDS_MAX = 120.0
ANSWER_SECONDS = 120.0


class Production:
    """One layout; a context manager that ends it."""

    def __init__(self) -> None:
        # pytest's folders are closed to the account that the database server runs as.
        self.root = Path(tempfile.mkdtemp(prefix="headrace-production-"))
        self.root.chmod(0o755)
        self.folder = self.root / "data"
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")
        } | {"XDG_CONFIG_HOME": str(self.root / "config"), "NO_COLOR": "1"}
        self.said = ""
        self._every: set[int] = set()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def start(self) -> None:
        """Starts everything and returns when it serves."""
        done = self.run("-m", "deploy.production", "--dir", str(self.folder), "--port", "0")
        self.said = done.stderr
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.logs()}"
        self.pids()

    def stop(self) -> None:
        """`headrace down`; every process that was ever seen is gone afterwards."""
        self.pids()
        done = self.run("-m", "headrace.cli", "down", "--dir", str(self.folder))
        assert done.returncode == 0, done.stderr
        wait_until(lambda: not any(map(alive, self._every)), "all ends", STOP_SECONDS_MAX)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A Python command as a person would run it."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def pids(self) -> dict[str, int]:
        """Every process by its name, as far as it runs now."""
        state = json.loads((self.folder / "up.json").read_text())
        found = {
            name: int(state[name]["pid"])
            for name in ("supervisor", *NAMES)
            if state[name]["pid"] is not None
        }
        self._every |= set(found.values())
        return found

    def kill(self, name: str) -> int:
        """kill -9; the process that is gone."""
        pid = self.pids()[name]
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_for_another(self, name: str, gone: int) -> None:
        """Returns once a process was replaced."""
        wait_until(lambda: self.pids().get(name, gone) != gone, f"{name} is started again")

    def profile(self) -> Profile:
        """The profile of a client."""
        path = Path(self.environment["XDG_CONFIG_HOME"]) / "headrace" / "config.toml"
        found = tomllib.loads(path.read_text())["profiles"]["production"]
        return Profile(found["api_url"], found["bootstrap"], found["key"])

    def api(self, number: int) -> int:
        """The port of an API."""
        return int(json.loads((self.folder / "ports.json").read_text())[f"api_{number}"])

    def ask(
        self, number: int, method: str, path: str, body: Json = None, **fields: str
    ) -> tuple[int, dict[str, str], dict[str, Json]]:
        """Status, fields and body of one request to an API, with the owner's key unless fields
        say who asks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api(number), ANSWER_SECONDS)
        sent = {name.replace("_", "-"): value for name, value in fields.items()}
        if "Cookie" not in sent:
            sent["Authorization"] = f"Bearer {self.profile().key}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        got = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, got, json.loads(text) if text else {}

    def logs(self) -> str:
        """The end of every log."""
        found = sorted((self.folder / "logs").glob("*.log"))
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')[-1000:]}" for path in found
        )

    def _remove(self) -> None:
        try:
            if (self.folder / "up.json").exists():
                self.stop()
        finally:
            for pid in filter(alive, self._every):
                os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.root)
