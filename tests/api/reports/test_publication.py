"""What a result that is published holds up, when it is not taken or not shown, and which runs are
refused before they begin."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from httpx2 import Response
from sqlalchemy import select, text

from api.db.tables.reports import ReportRun
from api.db.tables.usage import UsageRow
from tests.api.reports.test_reports import loop_of, publish, row_of, started
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.platform import wait_until
from tests.support.processes.postgres import POSTGRESQL


@contextmanager
def half_read(service: Service, run: Body, header: dict[str, str]) -> Iterator[Future[Response]]:
    """A result whose file is being read: the rest of it comes when the block ends."""
    manifest = publish(service, [row_of(service.topic("orders"), "5", "0")])
    path = Path(service.settings.reports.uri) / manifest["path"] / "usage.csv"
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(
            service.client.put,
            f"/v1/report-runs/{run['id']}/result",
            json=manifest,
            headers=header,
        )
        with path.open("wb") as pipe:
            yield answer
            pipe.write(content)


def test_others_write_while_the_files_of_a_result_are_read(service: Service) -> None:
    run, header = started(service)
    with half_read(service, run, header) as answer:
        assert service.topic("returns")["name"] == "returns"
        assert not answer.done()
    assert answer.result().status_code == 200
    assert service.get("/v1/usage")["totals"][0]["quantity"] == "5"


def test_a_result_of_an_earlier_start_is_refused_though_its_files_were_checked(
    service: Service,
) -> None:
    run, header = started(service)
    with half_read(service, run, header) as answer, service.database.write() as session:
        session.get_one(ReportRun, run["id"]).started_at = service.clock() + timedelta(minutes=1)
    assert (answer.result().status_code, answer.result().json()["code"]) == (409, "CONFLICT")
    assert service.get("/v1/usage")["items"] == []


def test_no_file_is_read_for_a_run_that_takes_no_result(service: Service) -> None:
    run, header = started(service)
    manifest = publish(service, [row_of(service.topic("orders"), "5", "0")])
    path = f"/v1/report-runs/{run['id']}/result"
    assert service.client.put(path, json=manifest, headers=header).status_code == 200
    nowhere = {**manifest, "path": "usage/none"}
    assert service.client.put(path, json=nowhere, headers=header).status_code == 409


def test_a_file_that_is_longer_than_it_should_be_or_no_text_is_refused(service: Service) -> None:
    run, header = started(service)
    manifest = publish(service, [row_of(service.topic("orders"), "5", "0")])
    file = manifest["files"][0]
    path = f"/v1/report-runs/{run['id']}/result"
    content = Path(service.settings.reports.uri) / manifest["path"] / "usage.csv"
    content.write_bytes(content.read_bytes() + b"x")
    answers = [service.client.put(path, json=manifest, headers=header)]
    content.write_bytes(b"\xff")
    digest = "a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89"
    broken = {**manifest, "files": [{**file, "bytes": "1", "sha256": digest}]}
    answers.append(service.client.put(path, json=broken, headers=header))
    assert [each.json()["code"] for each in answers] == ["RESULT_REJECTED"] * 2
    assert "not UTF-8" in answers[1].json()["detail"]


def test_a_run_that_started_before_the_one_that_is_shown_is_kept_and_not_shown(
    service: Service,
) -> None:
    topic = service.topic("orders")
    older, its = started(service)
    service.clock.advance(60)
    newer, header = started(service)
    shown = publish(service, [row_of(topic, "2", "0")])
    service.client.put(f"/v1/report-runs/{newer['id']}/result", json=shown, headers=header)
    path = f"/v1/report-runs/{older['id']}/result"
    late = publish(service, [row_of(topic, "1", "0")])
    answers = [service.client.put(path, json=late, headers=its) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["state"] == "SUCCEEDED"
    assert answers[0].json()["result"]["superseded_by"] == newer["id"]
    usage = service.get("/v1/usage")
    assert (usage["run_id"], usage["totals"][0]["quantity"]) == (newer["id"], "2")
    events = service.get(f"/v1/audit-events?target_id={older['id']}")["items"]
    (event,) = [each for each in events if each["action"] == "reports.publish"]
    assert event["after"]["superseded_by"] == newer["id"]


@pytest.mark.parametrize("installation", [POSTGRESQL], indirect=True)
def test_of_two_runs_that_publish_first_at_once_both_succeed_and_the_later_one_is_shown(
    service: Service,
) -> None:
    topic = service.topic("orders")
    runs = []
    for quantity in ("1", "2"):
        run, header = started(service)
        runs.append((run, header, publish(service, [row_of(topic, quantity, "0")])))
        service.clock.advance(60)
    waiting = text(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'current_runs'::regclass"
    )

    def both_wait() -> bool:
        with service.database.read() as session:
            return bool(session.scalar(waiting) == len(runs))

    def put(one: tuple[Body, dict[str, str], Body]) -> Response:
        run, header, manifest = one
        path = f"/v1/report-runs/{run['id']}/result"
        return service.client.put(path, json=manifest, headers=header)

    with ThreadPoolExecutor(len(runs)) as pool, service.database.write() as session:
        # Both will have seen that nothing is shown, and none may say yet what is.
        session.execute(text("LOCK TABLE current_runs IN SHARE MODE"))
        answers = [pool.submit(put, one) for one in runs]
        wait_until(both_wait, "both are about to show their run")
    assert [(each.result().status_code, each.result().json()) for each in answers] == [
        (200, service.get(f"/v1/report-runs/{run['id']}")) for run, _, _ in runs
    ]
    usage = service.get("/v1/usage")
    assert (usage["run_id"], usage["totals"][0]["quantity"]) == (runs[1][0]["id"], "2")
    with service.database.read() as session:
        assert session.scalars(select(UsageRow.run_id)).all() == [runs[1][0]["id"]]


def test_a_run_over_more_than_one_cluster_is_refused_for_it_would_bill_the_first_only(
    service: Service,
) -> None:
    service.post("/v1/clusters", {"name": "second"})
    answer = service.client.post("/v1/report-runs", json={"kind": "usage"}, headers=service.owner)
    assert loop_of(service).run_once() == 1
    found = service.get(f"/v1/report-runs/{answer.json()['id']}")
    assert (found["state"], found["error"]["code"]) == ("FAILED", "SEVERAL_CLUSTERS")
    assert "more than one cluster" in found["error"]["detail"]
    assert "control plane of its own" in found["error"]["hint"]
    assert service.node.flushes == 0
    operation = service.get(f"/v1/operations/{answer.headers['Operation-Id']}")
    assert operation["state"] == "FAILED"
    service.clock.advance(3600)
    assert loop_of(service).run_once() == 0
