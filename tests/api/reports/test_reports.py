"""Report runs: started by a worker, fed by the API, shown only if every byte is as declared."""

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import func, select

from api.db.tables.reports import ReportRun
from api.db.tables.usage import PriceBook, UsageRow
from api.node.client import NodeClient
from api.reconcile.loop import Loop
from api.reconcile.queue import claim
from api.reports.reconciler import LOG_TAIL_BYTES, ReportReconciler, Start, _tail
from api.usage.loader import COLUMNS
from tests.support.builders.control_plane import Body, Service, bearer

# 0.05 for 2^30 bytes, of one byte: exact in the 32 places of a row.
BYTE_PRICE = "0.00000000004656612873077392578125"
# Stands for `python -m reports`: says what it was told, and ends as it is told.
JOB = """
printf '%s\\n' "$HEADRACE_RUN_TOKEN" "$HEADRACE_NODE_KEY" "$@"
exit STATUS
"""


def test_a_run_is_queued_started_with_its_token_and_fails_if_it_published_nothing(
    service: Service,
) -> None:
    response = service.client.post("/v1/report-runs", json={"kind": "usage"}, headers=service.owner)
    assert response.status_code == 202
    run = response.json()
    assert run["state"] == "QUEUED"
    assert loop_of(service, status=0).run_once() == 1
    assert service.node.flushes == 1
    token, node_key, *arguments = _told(service, run)
    assert arguments == [
        "usage", "--run", run["id"], "--api", "http://api.test",
        "--bootstrap", service.node.address, "--uri", service.settings.reports.uri,
        "--master", "local[*]",
    ]  # fmt: skip
    assert token.startswith("hr_run_")
    assert node_key == service.settings.node.admin_key_file.read_text()
    found = service.get(f"/v1/report-runs/{run['id']}")
    assert (found["state"], found["error"]["code"]) == ("FAILED", "RESULT_MISSING")
    assert token not in json.dumps(found)
    operation = service.get(f"/v1/operations/{response.headers['Operation-Id']}")
    assert operation["state"] == "FAILED"


def test_a_job_that_fails_is_not_started_again(service: Service) -> None:
    run = service.post("/v1/report-runs", {"kind": "usage"})
    loop = loop_of(service, status=3)
    assert loop.run_once() == 1
    found = service.get(f"/v1/report-runs/{run['id']}")
    assert "status 3" in found["error"]["detail"]
    service.clock.advance(3600)
    assert loop.run_once() == 0


def test_a_job_that_fails_says_why_and_what_to_do_in_its_own_words(service: Service) -> None:
    run = service.post("/v1/report-runs", {"kind": "usage"})
    said = {"run": run["id"], "outcome": "failed", "code": "OUT_OF_REACH"}
    words = {"message": "The node was <away>.", "hint": "Start it."}
    lines = [json.dumps({**said, "run": "run_other", **words}), json.dumps({**said, **words})]
    script = f"printf '%s\\n' '{lines[0]}' '{lines[1]}'; exit 3"
    assert loop_of(service, script=script).run_once() == 1
    error = service.get(f"/v1/report-runs/{run['id']}")["error"]
    assert [error[name] for name in ("code", "detail", "hint")] == ["OUT_OF_REACH", *words.values()]
    again = service.post("/v1/report-runs", {"kind": "usage"})
    assert loop_of(service, script=script).run_once() == 1
    assert service.get(f"/v1/report-runs/{again['id']}")["error"]["code"] == "REPORT_FAILED"


def test_the_end_of_a_log_holds_no_secret_and_no_rest_of_one(tmp_path: Path) -> None:
    log, secret = tmp_path / "job.log", "S" * 43
    token = f"hr_run_abcdefghij_{secret}"
    log.write_text(f"{token} {token} failed")
    assert _tail(str(log)) == "hr_run_abcdefghij_[redacted] hr_run_abcdefghij_[redacted] failed"
    for rest in range(len(token) + 2):
        end = f" {token}".ljust(LOG_TAIL_BYTES - rest)
        log.write_text(f"{token}{end}")
        assert "SSS" not in _tail(str(log)), rest


def test_a_job_that_takes_too_long_is_ended(service: Service) -> None:
    run = service.post("/v1/report-runs", {"kind": "usage"})
    settings = service.settings.reports.model_copy(update={"seconds_max": 0})
    reconciler = ReportReconciler(
        service.database,
        NodeClient(service.nodes),
        settings,
        "http://api.test",
        command=["/bin/sh", "-c", "exec tail -f /dev/null", "job"],
    )
    assert Loop(service.database, {"report": reconciler}).run_once() == 1
    found = service.get(f"/v1/report-runs/{run['id']}")
    assert "longer than 0 s" in found["error"]["detail"]


def test_a_job_whose_worker_stops_is_ended_and_its_run_taken_up_again(service: Service) -> None:
    run = service.post("/v1/report-runs", {"kind": "usage"})
    reconciler = ReportReconciler(
        service.database,
        NodeClient(service.nodes),
        service.settings.reports,
        "http://api.test",
        command=["/bin/sh", "-c", "exec tail -f /dev/null", "job"],
    )
    reconciler.stop()
    assert Loop(service.database, {"report": reconciler}).run_once() == 1
    assert service.get(f"/v1/report-runs/{run['id']}")["state"] == "RUNNING"
    assert loop_of(service, status=1).run_once() == 1
    assert service.get(f"/v1/report-runs/{run['id']}")["state"] == "FAILED"


def test_a_worker_that_slept_over_its_lease_before_the_job_starts_none(service: Service) -> None:
    run = service.post("/v1/report-runs", {"kind": "usage"})
    with service.database.write() as session:
        (sleeper,) = claim(session, kinds=["report"], owner="sleeper", now=service.clock())
    service.clock.advance(60)
    header = _taken_up(service, run)
    told = _told(service, run)
    assert not loop_of(service, status=0).run(sleeper)
    assert _told(service, run) == told
    assert service.get(f"/v1/report-runs/{run['id']}", header)["state"] == "RUNNING"


def test_a_worker_that_lost_its_lease_during_the_job_ends_nothing(service: Service) -> None:
    response = service.client.post("/v1/report-runs", json={"kind": "usage"}, headers=service.owner)
    run = response.json()
    headers: list[dict[str, str]] = []

    class Sleeper(ReportReconciler):
        def _run(self, start: Start) -> tuple[int, str]:
            service.clock.advance(60)
            headers.append(_taken_up(service, run))
            return 1, "slept"

    client = NodeClient(service.nodes)
    sleeper = Sleeper(service.database, client, service.settings.reports, "http://api.test")
    loop = Loop(service.database, {"report": sleeper})
    assert loop.run_once() == 1
    assert loop.counters.leases_lost == 1
    # The other worker's job goes on: its token opens the run, and nothing is called failed.
    assert service.get(f"/v1/report-runs/{run['id']}", headers[0])["state"] == "RUNNING"
    operation = service.get(f"/v1/operations/{response.headers['Operation-Id']}")
    assert operation["state"] != "FAILED"


def test_inputs_hold_every_name_and_the_prices_and_are_the_same_twice(service: Service) -> None:
    topic = service.topic("orders")
    run, header = started(service)
    inputs = service.get(f"/v1/report-runs/{run['id']}/inputs", header)
    assert {each["name"] for each in inputs["organizations"]} == {"_system", "default"}
    assert inputs["topics"] == [
        {
            "id": topic["id"],
            "name": "orders",
            "organization_id": topic["organization_id"],
            "project_id": topic["project_id"],
            "cluster_id": topic["cluster_id"],
            "stream_id": topic["stream_id"],
        }
    ]
    assert inputs["price_book"]["version"] == "demo-1"
    assert {
        "meter": "ingress_bytes",
        "unit": "GiB",
        "unit_quantity": "1073741824",
        "unit_price": "0.05",
    } in inputs["price_book"]["prices"]
    assert "secret" not in json.dumps(inputs)
    second, header = started(service)
    assert service.get(f"/v1/report-runs/{second['id']}/inputs", header) == inputs


def test_a_price_book_that_is_announced_for_later_rates_nothing_yet(service: Service) -> None:
    with service.database.write() as session:
        begins = service.clock() + timedelta(days=1)
        session.add(
            PriceBook(
                version="later", currency="EUR", effective_from=begins, monthly_minimum="0.00"
            )
        )
    run, header = started(service)
    inputs = service.get(f"/v1/report-runs/{run['id']}/inputs", header)
    assert inputs["price_book"]["version"] == "demo-1"
    assert [book["version"] for book in inputs["price_books"]] == ["demo-1"]


def test_every_price_book_that_began_is_in_the_inputs_of_a_run(service: Service) -> None:
    with service.database.write() as session:
        begins = service.clock() - timedelta(seconds=1)
        session.add(
            PriceBook(version="new", currency="EUR", effective_from=begins, monthly_minimum="0.00")
        )
    run, header = started(service)
    inputs = service.get(f"/v1/report-runs/{run['id']}/inputs", header)
    assert [book["version"] for book in inputs["price_books"]] == ["demo-1", "new"]
    assert inputs["price_book"]["version"] == "new"
    assert "effective_from" not in inputs["price_book"]


def test_a_topic_that_is_gone_keeps_its_name_in_the_inputs(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    before, header = started(service)
    inputs = service.get(f"/v1/report-runs/{before['id']}/inputs", header)
    service.client.delete(
        f"/v1/topics/{topic['id']}", headers={**service.owner, "If-Match": '"r1"'}
    )
    service.settle()
    again = service.topic("orders")
    after, header = started(service)
    named = service.get(f"/v1/report-runs/{after['id']}/inputs", header)["topics"]
    assert [each["id"] for each in named] == [topic["id"], again["id"]]
    assert named[0] == inputs["topics"][0]


def test_the_token_of_a_run_opens_that_run_and_nothing_else(service: Service) -> None:
    run, header = started(service)
    other = service.post("/v1/report-runs", {"kind": "usage"})
    assert service.client.get(f"/v1/report-runs/{run['id']}", headers=header).status_code == 200
    assert service.client.get(f"/v1/report-runs/{other['id']}", headers=header).status_code == 404
    assert service.client.get("/v1/topics", headers=header).status_code == 403
    listed = service.get("/v1/report-runs", header)["items"]
    assert [each["id"] for each in listed] == [run["id"]]


def test_a_new_start_of_a_run_closes_the_token_of_the_last(service: Service) -> None:
    run, header = started(service)
    with service.database.write() as session:
        session.get_one(ReportRun, run["id"]).token_sha256 = bytes(32)
    response = service.client.get(f"/v1/report-runs/{run['id']}/inputs", headers=header)
    assert response.status_code == 401


def test_a_result_is_loaded_and_shown_and_the_same_result_again_is_a_replay(
    service: Service,
) -> None:
    topic = service.topic("orders")
    run, header = started(service)
    manifest = publish(service, [row_of(topic, "1073741824", "0.05")])
    path = f"/v1/report-runs/{run['id']}/result"
    first = service.client.put(path, json=manifest, headers=header)
    assert (first.status_code, first.json()["state"]) == (200, "SUCCEEDED")
    second = service.client.put(path, json=manifest, headers=header)
    assert second.json() == first.json()
    assert _count(service) == 1
    usage = service.get("/v1/usage?group_by=topic")
    assert usage["run_id"] == run["id"]
    assert usage["items"] == [
        {
            "group": "default/orders",
            "topic_id": topic["id"],
            "meter": "ingress_bytes",
            "unit": "B",
            "quantity": "1073741824",
            "cost": {"amount": "0.05", "currency": "EUR"},
        }
    ]


def test_a_later_run_takes_the_place_of_an_earlier_one(service: Service) -> None:
    topic = service.topic("orders")
    for quantity in ("1", "2"):
        run, header = started(service)
        manifest = publish(service, [row_of(topic, quantity, "0")])
        service.client.put(f"/v1/report-runs/{run['id']}/result", json=manifest, headers=header)
    usage = service.get("/v1/usage")
    assert (usage["run_id"], usage["totals"][0]["quantity"]) == (run["id"], "2")
    assert _count(service) == 1


def test_runs_are_listed_from_the_newest_page_by_page(service: Service) -> None:
    for kind in ("usage", "retention", "usage"):
        service.post("/v1/report-runs", {"kind": kind})
    oldest = [each["id"] for each in service.get("/v1/report-runs")["items"]]
    path = "/v1/report-runs?newest_first=true&page_size=2"
    page = service.get(path)
    rest = service.get(f"{path}&page_token={page['next_page_token']}")
    assert [each["id"] for each in page["items"] + rest["items"]] == oldest[::-1]


def test_a_result_that_does_not_hold_is_refused_whole(service: Service) -> None:
    topic = service.topic("orders")
    run, header = started(service)
    path = f"/v1/report-runs/{run['id']}/result"
    manifest = publish(service, [row_of(topic, "10", "0.5")])
    spoiled = [
        {**manifest, "path": "../elsewhere"},
        {**manifest, "path": "usage/none"},
        {**manifest, "files": [{**manifest["files"][0], "sha256": "0" * 64}]},
        {**manifest, "files": [{**manifest["files"][0], "bytes": 1}]},
        {**manifest, "totals": {**manifest["totals"], "bytes_billed": "11"}},
        {**manifest, "totals": {**manifest["totals"], "amount_exact": "0.50000000000000000001"}},
        {**manifest, "totals": {**manifest["totals"], "rows": "2"}},
    ]
    for each in spoiled:
        response = service.client.put(path, json=each, headers=header)
        assert (response.status_code, response.json()["code"]) == (400, "RESULT_REJECTED"), each
    assert service.get("/v1/usage")["items"] == []
    assert _count(service) == 0
    assert service.client.put(path, json=manifest, headers=header).status_code == 200


def test_a_topic_that_nobody_owns_is_refused(service: Service) -> None:
    topic = {**service.topic("orders"), "id": "tp_unknown"}
    row = {**row_of(topic, "1", "0"), "organization": "nobody"}
    run, header = started(service)
    response = service.client.put(
        f"/v1/report-runs/{run['id']}/result", json=publish(service, [row]), headers=header
    )
    assert (response.status_code, response.json()["code"]) == (400, "RESULT_REJECTED")


def test_what_is_unattributed_is_the_operators_alone_to_see(service: Service) -> None:
    nameless = dict.fromkeys(("organization", "project", "stream", "topic_id", "principal"), "")
    row = {**row_of(service.topic("orders"), "7", "0"), **nameless, "topic": "unattributed"}
    run, header = started(service)
    path = f"/v1/report-runs/{run['id']}/result"
    accepted = service.client.put(path, json=publish(service, [row]), headers=header)
    assert accepted.status_code == 200
    assert service.get("/v1/usage")["totals"][0]["quantity"] == "7"
    with service.database.read() as session:
        assert session.scalars(select(UsageRow.org_id)).all() == [""]


@pytest.mark.parametrize(
    ("group_by", "groups"),
    [
        ("hour", ["2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "2026-03-02T00:00:00Z"]),
        ("day", ["2026-03-01", "2026-03-02"]),
        ("topic", ["default/orders"]),
        ("principal", ["=evil", "owner"]),
        ("organization", ["default"]),
        ("hour_topic", ["2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "2026-03-02T00:00:00Z"]),
        ("day_topic", ["2026-03-01", "2026-03-02"]),
    ],
)
def test_usage_is_summed_exactly_by_every_grouping(
    service: Service, group_by: str, groups: Sequence[str]
) -> None:
    topic = service.topic("orders")
    rows = [
        row_of(topic, "9007199254740993", "0.100000000000000000001", hour="2026-03-01T10"),
        row_of(topic, "9007199254740993", "0.200000000000000000002", hour="2026-03-01T11"),
        {**row_of(topic, "1", "0", hour="2026-03-02T00"), "principal": "'=evil"},
    ]
    run, header = started(service)
    response = service.client.put(
        f"/v1/report-runs/{run['id']}/result", json=publish(service, rows), headers=header
    )
    assert response.status_code == 200, response.text
    usage = service.get(f"/v1/usage?group_by={group_by}")
    assert [each["group"] for each in usage["items"]] == list(groups)
    assert usage["totals"][0]["quantity"] == "18014398509481987"
    assert usage["cost"] == [{"amount": "0.300000000000000000003", "currency": "EUR"}]
    part = service.get("/v1/usage?from=2026-03-01T11:00:00Z&to=2026-03-02T00:00:00Z")
    assert part["totals"][0]["quantity"] == "9007199254740993"


def test_usage_by_day_tells_the_topics_apart_where_it_is_asked_to(service: Service) -> None:
    topics = [service.topic("orders"), service.topic("returns")]
    run, header = started(service)
    rows = [row_of(each, "5", "0.1") for each in topics]
    service.client.put(
        f"/v1/report-runs/{run['id']}/result", json=publish(service, rows), headers=header
    )
    found = service.get("/v1/usage?group_by=day_topic")["items"]
    assert sorted((each["group"], each["topic"], each["topic_id"]) for each in found) == [
        ("2026-03-01", "default/orders", topics[0]["id"]),
        ("2026-03-01", "default/returns", topics[1]["id"]),
    ]
    (day,) = service.get("/v1/usage?group_by=day")["items"]
    assert (day["quantity"], "topic" in day) == ("10", False)


def test_a_meter_that_is_none_is_answered_with_those_there_are(service: Service) -> None:
    response = service.client.get("/v1/usage?meter=foo", headers=service.owner)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
    assert response.json()["errors"][0]["pointer"] == "?meter"
    assert response.json()["detail"].startswith('meter: "foo" is not one of egress_bytes, ')
    assert service.get("/v1/usage?meter=ingress_bytes")["items"] == []


def test_usage_shows_an_organization_its_own_rows_only(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    mine = service.topic("orders")
    theirs = service.post("/v1/topics", {"name": "orders"}, other[1])
    run, header = started(service)
    rows = [row_of(mine, "1", "0"), {**row_of(theirs, "2", "0"), "organization": "globex"}]
    service.client.put(
        f"/v1/report-runs/{run['id']}/result", json=publish(service, rows), headers=header
    )
    seen = service.get("/v1/usage?group_by=organization", other[1])["items"]
    assert [(each["group"], each["quantity"]) for each in seen] == [("globex", "2")]
    everything = service.get("/v1/usage?group_by=organization")["items"]
    assert [each["group"] for each in everything] == ["default", "globex"]


def loop_of(service: Service, *, status: int = 0, script: str = JOB) -> Loop:
    reconciler = ReportReconciler(
        service.database,
        NodeClient(service.nodes),
        service.settings.reports,
        "http://api.test",
        command=["/bin/sh", "-c", script.replace("STATUS", str(status)), "job"],
    )
    return Loop(service.database, {"report": reconciler})


def started(service: Service) -> tuple[Body, dict[str, str]]:
    """A run in the middle of its job, and the header of the job's token."""
    run = service.post("/v1/report-runs", {"kind": "usage"})
    return run, _taken_up(service, run)


def _taken_up(service: Service, run: Body) -> dict[str, str]:
    """A worker takes the run up and stays in the middle of its job; the header of its token."""

    class Paused(ReportReconciler):
        def _end(self, *arguments: object) -> None:  # type: ignore[override]
            raise RuntimeError("the job still runs")

    reconciler = Paused(
        service.database,
        NodeClient(service.nodes),
        service.settings.reports,
        "http://api.test",
        command=["/bin/sh", "-c", JOB.replace("STATUS", "0"), "job"],
    )
    before = _told(service, run)
    Loop(service.database, {"report": reconciler}).run_once()
    return bearer(_told(service, run)[len(before)])


def _told(service: Service, run: Body) -> list[str]:
    """What the job was told: the token, the node key, and its arguments."""
    path = Path(service.settings.reports.logs) / f"report-{run['id']}.log"
    return path.read_text().splitlines() if path.exists() else []


def row_of(topic: Body, quantity: str, amount: str, hour: str = "2026-03-01T10") -> dict[str, str]:
    return {
        "organization": "default", "project": "default", "cluster": "local",
        "stream": "default", "topic": topic["name"], "topic_id": topic["id"],
        "principal": "owner", "meter": "ingress_bytes", "unit": "B",
        "window_start": f"{hour}:00:00Z", "window_end": f"{hour}:59:59Z",
        "quantity": quantity, "unit_price": BYTE_PRICE, "currency": "EUR", "amount": amount,
        "price_book_version": "demo-1", "estimated": "false",
    }  # fmt: skip


def publish(service: Service, rows: Sequence[dict[str, str]]) -> Body:
    """Writes usage.csv as a job does; the manifest."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    content = text.getvalue().encode()
    digest = hashlib.sha256(content).hexdigest()
    folder = Path(service.settings.reports.uri) / "usage" / digest
    folder.mkdir(parents=True)
    (folder / "usage.csv").write_bytes(content)
    quantity = sum(int(row["quantity"]) for row in rows)
    return {
        "kind": "usage",
        "input_sha256": digest,
        "path": f"usage/{digest}",
        "files": [{"name": "usage.csv", "bytes": len(content), "sha256": digest}],
        "totals": {
            "bytes_in_log": str(quantity),
            "bytes_billed": str(quantity),
            "records": "0",
            "rows": str(len(rows)),
            "currency": "EUR",
            "amount_exact": format(sum(Decimal(row["amount"]) for row in rows), "f"),
        },
    }


def _count(service: Service) -> int:
    with service.database.read() as session:
        return session.scalar(select(func.count()).select_from(UsageRow)) or 0
