"""Report jobs and their workers are killed; what is shown stays what it was until a run publishes.

Real processes: the worker, and the job that it starts. A job's result passes a gate, so that
something can die between the files of a report and their publication.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from api.bootstrap.seed import readdress
from api.db.tables.reports import CurrentRun
from api.db.tables.work import Work
from headrace.evidence import verify
from tests.api.reports.test_reports import publish, row_of, started
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.node_process import NodeProcess
from tests.support.processes.platform import ROOT, wait_until
from tests.support.processes.postgres import POSTGRESQL
from tests.support.processes.worker_process import WorkerProcess, kill_job, kill_spark
from tests.support.proxies.result_gate import Gate, gate_before
from tests.support.stories.scripted_reports import JOBS

# Spark starts three times, beside whatever else the machine does.
pytestmark = [pytest.mark.check, pytest.mark.timeout(1800)]
PATIENCE_SECONDS = 600.0


@dataclass
class Bench:
    """A control plane that shows five bytes of one run, and a worker in a process of its own."""

    service: Service
    worker: WorkerProcess
    gate: Gate
    topic: Body
    shown: str

    @property
    def folder(self) -> Path:
        """Where reports are published."""
        return Path(self.service.settings.reports.uri)

    def begin(self) -> Body:
        """A run that the worker is to start, with the id of its operation."""
        response = self.service.client.post(
            "/v1/report-runs", json={"kind": "usage"}, headers=self.service.owner
        )
        assert response.status_code == 202
        return {**response.json(), "operation": response.headers["Operation-Id"]}

    def reading(self) -> int:
        """The job that runs, once it freezes its inputs."""
        self._wait_for("inputs/.pending-*")
        return self.worker.job()

    def computing(self) -> int:
        """The job that runs, once its inputs are frozen and it computes with them."""
        self._wait_for("inputs/[0-9a-f]*")
        return self.worker.job()

    def another_worker(self) -> None:
        """In place of one that was killed, and when its lease is over."""
        with self.service.database.write() as session:
            session.execute(update(Work).values(lease_until=datetime.now(UTC) - timedelta(1)))
        self.worker.start()

    def ended(self, run: Body) -> Body:
        """What is told of a run that has ended, and its operation with it."""
        path = f"/v1/report-runs/{run['id']}"
        wait_until(lambda: "finished_at" in self.service.get(path), "it ends", PATIENCE_SECONDS)
        found = self.service.get(path)
        path = f"/v1/operations/{run['operation']}"
        wait_until(lambda: self.service.get(path)["state"] == found["state"], "and its operation")
        return found

    def assert_shown(self, run_id: str, quantity: str) -> None:
        """This run is the current one, in the database and to readers, and whole."""
        with self.service.database.read() as session:
            current = session.scalars(select(CurrentRun)).all()
        assert [(row.kind, row.run_id) for row in current] == [("usage", run_id)]
        usage = self.service.get("/v1/usage?meter=ingress_bytes")
        assert (usage["run_id"], usage["totals"][0]["quantity"]) == (run_id, quantity)

    def assert_shows_nothing(self, run: Body, state: str) -> None:
        """Nothing of the run is shown, and what was shown before it still is."""
        found = self.service.get(f"/v1/report-runs/{run['id']}")
        assert (found["state"], found.get("result")) == (state, None)
        page = f"/v1/report-runs/{run['id']}/files/usage.html"
        assert self.service.client.get(page, headers=self.service.owner).status_code == 404
        self.assert_shown(self.shown, "5")

    def _wait_for(self, more: str) -> None:
        """Until there is a path of a job that was not there before."""
        before = set(self.folder.glob(more))
        wait_until(lambda: bool(set(self.folder.glob(more)) - before), more, PATIENCE_SECONDS)


@contextmanager
def benched(service: Service, folder: Path, **environment: str) -> Iterator[Bench]:
    """A worker beside a published run; `environment`: the worker's, and its jobs'."""
    with gate_before(service.client) as gate:
        topic = service.topic("orders")
        run, header = started(service)
        manifest = publish(service, [row_of(topic, "5", "0")])
        service.client.put(f"/v1/report-runs/{run['id']}/result", json=manifest, headers=header)
        with WorkerProcess(folder, service.settings, gate.url, **environment) as worker:
            yield Bench(service, worker, gate, topic, run["id"])


@pytest.mark.parametrize("installation", ["sqlite"], indirect=True)
def test_whatever_is_killed_before_a_result_is_taken_the_run_before_stays_current(
    service: Service, tmp_path: Path
) -> None:
    service.clock.moment = datetime.now(UTC)
    (tmp_path / "node").mkdir()
    with NodeProcess(tmp_path / "node") as node:
        service.settings.node.admin_key_file.write_text(node.node_key)
        address = f"127.0.0.1:{node.grpc_port}"
        readdress(service.database, node_id=service.first.identity.node_id, node_address=address)
        with benched(service, tmp_path) as bench:
            _produce(bench, node)
            _kill_spark_and_workers(bench)


def _produce(bench: Bench, node: NodeProcess) -> None:
    """Ten records, as soon as the worker has made the topic on the node."""

    def is_ready() -> bool:
        found = bench.service.get(f"/v1/topics/{bench.topic['id']}")["status"]["conditions"]
        return ("Ready", "True") in {(each["type"], each["status"]) for each in found}

    wait_until(is_ready, "the topic is Ready")
    client = node.client(bench.service.first.token.text)
    client.produce(client.topic("orders"), 0, [b"value"] * 10)


def _kill_spark_and_workers(bench: Bench) -> None:
    # Spark itself, while it reads: the run fails.
    first = bench.begin()
    kill_spark(bench.reading())
    assert bench.ended(first)["error"]["code"] == "SPARK_ENDED"
    bench.assert_shows_nothing(first, "FAILED")

    # The worker, while the job computes; then the job, whose files are there and not yet published.
    second = bench.begin()
    job = bench.computing()
    bench.worker.kill()
    held = bench.gate.result()
    bench.assert_shows_nothing(second, "RUNNING")
    (folder,) = (path.parent for path in bench.folder.glob("usage/*/manifest.json"))
    kill_job(job)
    held.drop()
    bench.assert_shows_nothing(second, "RUNNING")

    # Another worker takes the run up, and is killed before the job publishes.
    bench.another_worker()
    held = bench.gate.result()
    bench.worker.kill()
    bench.assert_shows_nothing(second, "RUNNING")

    # The job goes on without it, and what it publishes is shown.
    assert held.let_pass() == 200
    billed = bench.service.get(f"/v1/report-runs/{second['id']}")["result"]["totals"]
    bench.assert_shown(second["id"], billed["bytes_billed"])
    bench.another_worker()
    found = bench.ended(second)
    assert found["state"] == "SUCCEEDED"
    bench.assert_shown(second["id"], billed["bytes_billed"])
    for each in (folder, Path(found["result"]["path"])):
        assert [check.ok for check in verify(each)] == [True] * 5


@pytest.mark.parametrize("installation", [POSTGRESQL], indirect=True)
def test_a_killed_job_fails_and_a_killed_worker_leaves_its_run_to_the_next(
    service: Service, tmp_path: Path
) -> None:
    service.clock.moment = datetime.now(UTC)
    pipe = tmp_path / "orders"
    os.mkfifo(pipe)
    scripted = {
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join((str(JOBS), str(ROOT))),
        "SCRIPTED_ORDERS": str(pipe),
    }
    with benched(service, tmp_path, **scripted) as bench:
        first = bench.begin()
        kill_job(bench.worker.job())
        assert bench.ended(first)["error"]["detail"] == (
            "The job ended with status -9 and published nothing."
        )
        bench.assert_shows_nothing(first, "FAILED")

        second = bench.begin()
        job = bench.worker.job()
        bench.worker.kill()
        kill_job(job)
        bench.assert_shows_nothing(second, "RUNNING")
        bench.another_worker()
        bench.worker.job()
        manifest = publish(service, [row_of(bench.topic, "7", "0")])
        pipe.write_text(json.dumps({"manifest": manifest}) + "\n")
        held = bench.gate.result()
        bench.worker.kill()
        bench.assert_shows_nothing(second, "RUNNING")
        assert held.let_pass() == 200
        bench.assert_shown(second["id"], "7")
        bench.another_worker()
        assert bench.ended(second)["state"] == "SUCCEEDED"
        bench.assert_shown(second["id"], "7")
