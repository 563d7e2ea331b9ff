"""Keeps the processes of an embedded service running, and ends them together.

A child that dies is started again after a back-off; all of them end on SIGTERM, and with this
process if it is killed. `up.json` says at any time what runs and where. This module refuses to
know what the children do.
"""

import argparse
import contextlib
import ctypes
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import select

from api.db.database import Database
from api.db.tables.api_keys import ApiKey
from api.db.tables.work import ResourceStatus
from api.embedded.directory import Directory
from api.embedded.installation import Installation, owner_public_id
from api.embedded.ports import HOST, Ports
from api.embedded.processes import start_time
from api.embedded.shutdown import Stop
from api.reconcile.conditions import is_true
from headrace.toml_file import write_whole

TICK_SECONDS: Final = 0.05
STOP_SECONDS: Final = 20.0
BACKOFF_FIRST_SECONDS: Final = 0.1
BACKOFF_MAX_SECONDS: Final = 2.0
# A process that ran so long had started well: its end is not one more failed start.
HEALTHY_SECONDS: Final = 2.0
# What a child ends with when its configuration or its folder cannot be used: it says why.
REFUSED_STATUS: Final = 2
# Longer than a node drains: the one before may still hold the folder.
REFUSED_SECONDS: Final = 12.0
LINE_CHARACTERS: Final = 400
PROBE_SECONDS: Final = 1.0
PR_SET_PDEATHSIG: Final = 1


@dataclass(slots=True)
class Child:
    """A process that shall run: its command, its log, and how its last starts went."""

    name: str
    arguments: Sequence[str]
    log_path: Path
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    started_at: float = 0.0
    start_after: float = 0.0
    failures: int = field(default=0)
    refused_since: float | None = None

    def tend(self, now: float) -> bool:
        """Starts the process if it is due; answers whether anything changed."""
        if self.process is not None:
            if self.process.poll() is None:
                return False
            healthy = now - self.started_at >= HEALTHY_SECONDS
            if self.process.returncode != REFUSED_STATUS:
                self.refused_since = None
            elif self.refused_since is None:
                self.refused_since = now
            self.failures = 0 if healthy else self.failures + 1
            wait = BACKOFF_FIRST_SECONDS * (1 << min(self.failures, 10))
            self.start_after = now + min(BACKOFF_MAX_SECONDS, wait)
            self.restarts += 1
            self.process = None
            return True
        if now < self.start_after:
            return False
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,
            )
        self.started_at = now
        return True

    def refusal(self, now: float) -> str | None:
        """Why the process does not start, once it has said so for long enough to be believed."""
        if self.process is not None or self.refused_since is None:
            return None
        if now - self.refused_since < REFUSED_SECONDS:
            return None
        return f"The {self.name} does not start: {last_line(self.log_path)}"

    def end(self, deadline: float) -> None:
        """Waits until a process that was asked to stop has ended, at most until `deadline`."""
        if self.process is None:
            return
        try:
            self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Supervisor:
    """The children of one folder.

    :param on_ready: called once, when everything answers and the owner key works everywhere.
    :param demo: from then on also run what replays the flights.
    """

    def __init__(
        self, installation: Installation, on_ready: Callable[[], None], *, demo: bool = False
    ) -> None:
        self._installation = installation
        self._on_ready = on_ready
        self._stop = Stop()
        self._ready = False
        self.refusal: str | None = None
        self._told: int | None = None
        directory = installation.directory
        config = ["--config", str(directory.config)]
        self._node = Child(
            "node", [sys.executable, "-m", "dataplane", *config], directory.logs / "node.log"
        )
        self._api = Child(
            "api", [sys.executable, "-m", "api", "serve", *config], directory.logs / "api.log"
        )
        places = [installation.api_url, installation.bootstrap]
        replay = [sys.executable, "-m", "api.embedded.demo", str(directory.profile), *places]
        self._demo = Child("demo", replay, directory.logs / "demo.log") if demo else None

    def run(self) -> int:
        """Runs until SIGTERM or SIGINT; the exit status, 1 with `refusal` when nothing started."""
        self._stop.on_signals()
        database = Database(self._installation.directory.database_url)
        unwritten = False
        try:
            while not self._stop.wait(TICK_SECONDS):
                unwritten = self._tend() or unwritten
                if not self._ready and self._refused():
                    break
                if not self._ready and self._answers(database):
                    self._ready = unwritten = True
                    unwritten = not self.write_state()
                    self._on_ready()
                if unwritten:
                    unwritten = not self.write_state()
        finally:
            database.close()
            self._end_all()
            self._installation.directory.state.unlink(missing_ok=True)
        return 0 if self.refusal is None else 1

    def _tend(self) -> bool:
        now = time.monotonic()
        changed = [child.tend(now) for child in (self._node, self._api)]
        if self._demo is not None and self._ready:
            changed.append(self._demo.tend(now))
        return True in changed

    def _refused(self) -> bool:
        """Whether a child says that it cannot start here: once ready, it is only tried again."""
        now = time.monotonic()
        said = (child.refusal(now) for child in (self._node, self._api))
        self.refusal = next((each for each in said if each is not None), None)
        return self.refusal is not None

    def _answers(self, database: Database) -> bool:
        """Whether a client that starts now would find everything working."""
        ports = self._installation.ports
        if not (probe(ports.node_http) and probe(ports.api)):
            return False
        public_id = owner_public_id(self._installation.directory)
        with database.read() as session:
            key = session.scalars(select(ApiKey).where(ApiKey.public_id == public_id)).first()
            status = session.get(ResourceStatus, key.id) if key is not None else None
            return status is not None and is_true(status.conditions, "Active", 1)

    def _end_all(self) -> None:
        """Clients first; then the API: a node that goes away under it would be reported as
        unreachable."""
        deadline = time.monotonic() + STOP_SECONDS
        for child in (self._demo, self._api, self._node):
            if child is None:
                continue
            if child.process is not None:
                child.process.terminate()
            child.end(deadline)

    def write_state(self) -> bool:
        """Write up.json. False: it could not be, as on a full disk, and is to be tried again."""
        installation, ports = self._installation, self._installation.ports
        state = {
            "layout": 1,
            "state": "ready" if self._ready else "starting",
            "api_url": installation.api_url,
            "bootstrap": installation.bootstrap,
            "supervisor": {"pid": os.getpid(), "start_time": start_time(os.getpid())},
            "api": {**_facts(self._api), "port": ports.api},
            "node": {**_facts(self._node), "port": ports.node, "http_port": ports.node_http},
            **({"demo": _facts(self._demo)} if self._demo is not None else {}),
        }
        try:
            write_whole(installation.directory.state, json.dumps(state, indent=2) + "\n")
        except OSError as error:
            # What runs goes on: the children are worth more than the file that tells of them.
            if self._told != error.errno:
                with contextlib.suppress(OSError):
                    sys.stderr.write(f"up.json cannot be written: {error.strerror}\n")
            self._told = error.errno
            return False
        self._told = None
        return True


def last_line(log_path: Path, begin: int = 0) -> str:
    """The last line that a log has behind a byte; empty when there is none."""
    try:
        written = log_path.read_bytes()[begin:].decode(errors="replace").strip()
    except OSError:
        return ""
    return written.rpartition("\n")[2][:LINE_CHARACTERS]


def _facts(child: Child) -> dict[str, int | str | None]:
    pid = child.process.pid if child.process is not None else None
    return {"pid": pid, "restarts": child.restarts, "log": str(child.log_path)}


def probe(port: int) -> bool:
    """Whether /readyz answers 200."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _die_with_parent() -> None:
    """Runs in the child before its program: the kernel ends it when the supervisor is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def main() -> int:
    """The detached form: what `headrace up --detach` starts, after it has filled the folder."""
    parser = argparse.ArgumentParser(prog="python -m api.embedded.supervisor")
    parser.add_argument("--dir", type=Path, required=True)
    for name in ("api", "node", "node-http"):
        parser.add_argument(f"--{name}-port", type=int, required=True)
    parser.add_argument("--demo", action="store_true")
    chosen = parser.parse_args()
    ports = Ports(chosen.api_port, chosen.node_port, chosen.node_http_port)
    installation = Installation(Directory(chosen.dir), ports)
    supervisor = Supervisor(installation, lambda: None, demo=chosen.demo)
    status = supervisor.run()
    if supervisor.refusal is not None:
        sys.stderr.write(f"{supervisor.refusal}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
