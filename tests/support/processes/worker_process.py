"""A real worker, `python -m api reconcile`, over a database that a test holds open too, and the
processes of the report job that it runs.

Owns what it started, the jobs included, and ends it by process id. Refuses to stop anything gently
before its end: what it is for is to be killed.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from api.settings import Settings
from tests.support.processes.platform import ROOT, alive, wait_until

CONFIG = """
[api]
workers = 1
[database]
url = "{url}"
[node]
admin_key_file = "{key_file}"
[reports]
uri = "{uri}"
logs = "{logs}"
api_url = "{api_url}"
spark_master = "local[1]"
"""


class WorkerProcess:
    """Workers, one after the other; `start` another when one was killed.

    :param api_url: where the jobs find the control plane.
    :param environment: for the worker and its jobs, beside this process's own.
    """

    def __init__(self, folder: Path, settings: Settings, api_url: str, **environment: str) -> None:
        self._config = folder / "worker.toml"
        self._config.write_text(
            CONFIG.format(
                url=settings.database.url,
                key_file=settings.node.admin_key_file,
                uri=settings.reports.uri,
                logs=settings.reports.logs,
                api_url=api_url,
            )
        )
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HEADRACE_")}
        self._environment = kept | environment
        self._log = folder / "worker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._jobs: set[int] = set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        for job in self._jobs:
            for pid in (job, *_below(job)):
                _kill(pid)
        wait_until(lambda: not any(map(alive, self._jobs)), "the jobs have ended")

    def start(self) -> None:
        """Start one."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "api", "reconcile", "--config", str(self._config)],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """kill -9; a job that it runs goes on."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def job(self) -> int:
        """The job that it runs, as soon as it runs one."""
        assert self._process is not None
        worker, found = self._process.pid, list[int]()

        def runs() -> bool:
            assert alive(worker), self.log()
            found[:] = [pid for pid in _below(worker) if _parent(pid) == worker]
            return bool(found)

        wait_until(runs, "the worker runs a job")
        self._jobs.update(found)
        return found[0]

    def log(self) -> str:
        """What the workers have logged."""
        return self._log.read_text(errors="replace")


def kill_job(pid: int) -> None:
    """kill -9 of the job itself, and returns when nothing of it is left: a JVM ends without it."""
    group = (pid, *_below(pid))
    _kill(pid)
    wait_until(lambda: not any(map(alive, group)), "the job's own processes end")


def kill_spark(job: int) -> None:
    """kill -9 of the job's JVM, as the kernel does when memory runs out."""
    (jvm,) = (pid for pid in _below(job) if "java" in Path(f"/proc/{pid}/comm").read_text())
    _kill(jvm)


def _kill(pid: int) -> None:
    if alive(pid):
        os.kill(pid, signal.SIGKILL)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _below(pid: int) -> list[int]:
    """Every process that descends from one."""
    parents = {int(path.name): 0 for path in Path("/proc").glob("[0-9]*")}
    for each in parents:
        parents[each] = _parent(each)
    found, newest = set[int](), {pid}
    while newest:
        newest = {each for each, parent in parents.items() if parent in newest} - found
        found |= newest
    return sorted(found)
