"""Report runs: starts the job of a run, keeps its log, and says how it ended.

The job gets a token that is good for this run and this start only, by the environment, so that no
process list shows it. A start replaces the token of the start before: a job that outlived its
worker cannot publish. A worker that lost its lease writes nothing: the run is another's. A job
reads one cluster; with more than one, runs fail, for the usage of the others would be missing.
"""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import IO, Final

from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.tokens import Token, new_token
from api.db.database import Database
from api.db.tables.clusters import Cluster
from api.db.tables.reports import ReportRun
from api.jobs.files import folder_of
from api.node.addresses import addresses
from api.node.client import NodeClient
from api.node.failure import FailureKind, NodeFailure
from api.reconcile.operations import fail_operations
from api.reconcile.outcome import Converged, Observation, Outcome
from api.reconcile.queue import Claim, holds
from api.settings import ReportsSettings
from api.telemetry import redact

KIND: Final = "report"
LOG_TAIL_BYTES: Final = 2048
FIRST_WORD: Final = re.compile(r"^\w+")
POLL_SECONDS: Final = 0.05
GRACE_SECONDS: Final = 5.0
ENDED: Final = ("SUCCEEDED", "FAILED")
SEVERAL_CLUSTERS: Final[Mapping[str, Json]] = {
    "code": "SEVERAL_CLUSTERS",
    "detail": "There is more than one cluster, but a report reads only one: usage on the others "
    "would be missing and would not be billed.",
    "hint": "Run each cluster with a control plane of its own, which bills for it.",
}


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a job."""

    run_id: str
    kind: str
    token: Token
    log_path: Path
    bootstrap: str


class ReportReconciler:
    """Runs one job at a time.

    :param api_url: where the job finds this control plane.
    :param command: what runs a job, before its arguments.
    """

    def __init__(
        self,
        database: Database,
        nodes: NodeClient,
        settings: ReportsSettings,
        api_url: str,
        *,
        command: Sequence[str] = (sys.executable, "-m", "reports"),
    ) -> None:
        self._database = database
        self._nodes = nodes
        self._settings = settings
        self._api_url = api_url
        self._command = tuple(command)
        self._stop = Event()

    def stop(self) -> None:
        """Ends the job that runs now; its run is taken up again after the lease."""
        self._stop.set()

    def generation(self, object_id: str) -> int:
        """Runs have one generation."""
        return 1

    def reconcile(self, item: Claim) -> Outcome:
        """Starts the job of a run and stays with it until it ends."""
        with self._database.read() as session:
            run = session.get_one(ReportRun, item.object_id)
            if run.state in ENDED:
                # A worker that was killed after its job had published has not said so.
                return Converged(Observation(1, ready=run.state == "SUCCEEDED"), final=True)
            kind = run.kind
            clusters = list(session.scalars(select(Cluster).order_by(Cluster.id).limit(2)))
            nodes = addresses(session, clusters[0].id) if clusters else []
        if len(clusters) > 1:
            with self._database.write() as session:
                return self._refuse(session, _held(session, item, self._database.now(session)))
        if not nodes:
            raise NodeFailure(FailureKind.UNREACHABLE, "NO_NODES", "No node is registered.")
        for address in nodes:
            # A report is of everything up to now, so what was measured up to now is asked for. A
            # window that stays open is no loss: it is in the next report.
            self._nodes.flush_usage(address, inventory=kind == "retention")
        with self._database.write() as session:
            start = self._begin(session, item, ",".join(nodes))
        code, why = self._run(start)
        if self._stop.is_set() and code != 0:
            raise NodeFailure(FailureKind.CONFLICT, "STOPPED", "The worker stopped the job.")
        with self._database.write() as session:
            return self._end(session, item, code, why)

    def _begin(self, session: Session, item: Claim, bootstrap: str) -> Start:
        now = self._database.now(session)
        run = _held(session, item, now)
        token = new_token("run")
        log_path = Path(self._settings.logs).absolute() / f"report-{run.id}.log"
        run.state = "RUNNING"
        run.started_at = now
        run.token_public_id = token.public_id
        run.token_sha256 = token.secret_sha256
        run.log_path = str(log_path)
        return Start(run.id, run.kind, token, log_path, bootstrap)

    def _run(self, start: Start) -> tuple[int, str]:
        """The job's exit status, and why it was ended if it was."""
        start.log_path.parent.mkdir(parents=True, exist_ok=True)
        arguments = [
            *self._command, start.kind, "--run", start.run_id, "--api", self._api_url,
            "--bootstrap", start.bootstrap, "--uri", str(folder_of(self._settings.uri).absolute()),
            "--master", self._settings.spark_master,
        ]  # fmt: skip
        environment = {
            **os.environ,
            "HEADRACE_RUN_TOKEN": start.token.text,
            "HEADRACE_NODE_KEY": self._nodes.node_key(),
        }
        with start.log_path.open("ab") as log:
            job = _started(arguments, environment, log)
            if job is None:
                return 127, "The job cannot be started."
            try:
                return self._wait(job)
            finally:
                _end(job)

    def _wait(self, job: subprocess.Popen[bytes]) -> tuple[int, str]:
        waited = 0.0
        while job.poll() is None:
            if self._stop.wait(POLL_SECONDS):
                return 1, "The worker is stopping."
            waited += POLL_SECONDS
            if waited > self._settings.seconds_max:
                return 1, f"The job took longer than {self._settings.seconds_max} s."
        return job.returncode, ""

    def _end(self, session: Session, item: Claim, code: int, why: str) -> Outcome:
        now = self._database.now(session)
        run = _held(session, item, now)
        if run.state == "SUCCEEDED":
            return Converged(Observation(1, ready=True), final=True)
        log = _tail(run.log_path)
        error: dict[str, Json] = {
            "code": "REPORT_FAILED" if code else "RESULT_MISSING",
            "detail": why or f"The job ended with status {code} and published nothing.",
            **({} if why else _said(log, run.id)),
            "log": log,
        }
        return _fail(session, run, error, now)

    def _refuse(self, session: Session, run: ReportRun) -> Outcome:
        if run.state in ENDED:
            return Converged(Observation(1), final=True)
        return _fail(session, run, dict(SEVERAL_CLUSTERS), self._database.now(session))


def _fail(session: Session, run: ReportRun, error: dict[str, Json], now: datetime) -> Outcome:
    run.state = "FAILED"
    run.finished_at = now
    run.error = error
    # The token of a failed run opens nothing.
    run.token_sha256 = secrets.token_bytes(32)
    fail_operations(session, run.id, error, now)
    return Converged(Observation(1), final=True)


def _held(session: Session, item: Claim, now: datetime) -> ReportRun:
    """The run, if the lease on it still is the caller's; held, since its job may be publishing."""
    if not holds(session, item, now):
        raise NodeFailure(FailureKind.CONFLICT, "LEASE_LOST", "Another worker runs the report.")
    return session.get_one(ReportRun, item.object_id, with_for_update=True)


def _started(
    arguments: Sequence[str], environment: dict[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        log.write(f"cannot start {arguments[0]}: {error}\n".encode())
        return None


def _end(job: subprocess.Popen[bytes]) -> None:
    """Ends the job and what it started, gently first."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if job.poll() is not None:
            return
        os.killpg(job.pid, sign)
        try:
            job.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def _said(log: str, run_id: str) -> dict[str, Json]:
    """What the job itself says it failed with: its last line, which is one of JSON."""
    lines = log.splitlines()
    try:
        outcome = json.loads(lines[-1]) if lines else None
    except ValueError:
        return {}
    if not isinstance(outcome, dict) or outcome.get("outcome") != "failed":
        return {}
    words = [outcome.get(name) for name in ("run", "code", "message", "hint")]
    if words[0] != run_id or not all(isinstance(word, str) for word in words):
        return {}
    return {"code": outcome["code"], "detail": outcome["message"], "hint": outcome["hint"]}


def _tail(path: str | None) -> str:
    """The end of a log, without secrets; also without the word it begins in, which may be the rest
    of one."""
    if path is None or not Path(path).exists():
        return ""
    with Path(path).open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES)
        file.seek(begin)
        text = file.read(LOG_TAIL_BYTES).decode("utf-8", "replace")
    return redact(FIRST_WORD.sub("", text) if begin else text)
