"""Retention runs: fed with policies and holds, loaded whole, shown to whom they belong."""

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import event

from api.db.tables.reports import ReportRun
from api.retention.loader import COLUMNS
from tests.api.reports.test_reports import _taken_up, _told, loop_of
from tests.support.builders.control_plane import Body, Service

SIZES = {"now": "0", "1h": "5", "24h": "7", "7d": "9"}


def started(service: Service) -> tuple[Body, dict[str, str]]:
    """A retention run in the middle of its job, and the header of the job's token."""
    run = service.post("/v1/report-runs", {"kind": "retention"})
    return run, _taken_up(service, run)


def line(topic: Body, **cells: str) -> dict[str, str]:
    """A line that tells how a partition stands."""
    return {
        **dict.fromkeys(COLUMNS, ""),
        "topic": f"default/{topic['name']}",
        "topic_id": topic["id"],
        "partition": "0",
        "policy_source": "topic",
        "live_bytes": "0",
        "deleted_bytes": "0",
        "deleted_records": "0",
        "first_offset": "0",
        "last_offset": "9",
        **cells,
    }


def told(topic: Body, **members: object) -> dict[str, object]:
    """What a report says of a topic."""
    return {
        "topic": f"default/{topic['name']}",
        "topic_id": topic["id"],
        "live_bytes": "4096",
        "live_records": "10",
        "hold_blocked_bytes": "3",
        "deleted": [{"cause": "size", "trims": "1", "bytes": "1024", "records": "5"}],
        "upcoming": {name: {"bytes": size, "records": "1"} for name, size in SIZES.items()},
        "ages": [{"bucket": "<1h", "bytes": "4096", "records": "10"}],
        "schedule": [{"day": 1, "bytes": "7", "records": "1"}],
        "violations": [{"code": "UNBOUNDED", "partition": "0", "group": None, "detail": "all"}],
        **members,
    }


def publish(service: Service, topics: Sequence[Body]) -> Body:
    """Writes the files as a job does, a trim and a partition each; the manifest."""
    rows = []
    for topic in topics:
        went = {"deleted_bytes": "1024", "deleted_records": "5", "cause": "size"}
        when = {"deleted_at": "2026-03-01T11:00:00.5Z", "age_at_deletion_ms": "60000"}
        rows.append(line(topic, **went, **when))
        rows.append(line(topic, live_bytes="4096", violation="UNBOUNDED UNREAD_AT_RISK"))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    files = {
        "retention.csv": text.getvalue().encode(),
        "retention.json": json.dumps({"topics": [told(topic) for topic in topics]}).encode(),
    }
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()
    folder = Path(service.settings.reports.uri) / "retention" / digest
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for name, content in files.items():
        (folder / name).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        listed.append({"name": name, "bytes": len(content), "sha256": sha256})
    return {
        "kind": "retention",
        "input_sha256": digest,
        "as_of": "2026-03-01T12:00:00Z",
        "path": f"retention/{digest}",
        "files": listed,
        "totals": {
            "rows": str(len(rows)),
            "deleted_bytes": str(1024 * len(topics)),
            "deleted_records": str(5 * len(topics)),
            "live_bytes": str(4096 * len(topics)),
        },
    }


def loaded(service: Service, topics: Sequence[Body]) -> Body:
    """A run whose result was taken."""
    run, header = started(service)
    path = f"/v1/report-runs/{run['id']}/result"
    response = service.client.put(path, json=publish(service, topics), headers=header)
    assert (response.status_code, response.json()["state"]) == (200, "SUCCEEDED"), response.text
    return run


def test_a_worker_starts_the_job_of_the_kind_and_a_picture_of_every_partition_before(
    service: Service,
) -> None:
    for kind, inventories in (("usage", 0), ("retention", 1)):
        run = service.post("/v1/report-runs", {"kind": kind})
        assert loop_of(service, status=0).run_once() == 1
        assert _told(service, run)[2] == kind
        assert service.node.inventories == inventories


def test_inputs_hold_every_policy_that_ever_held_with_its_author_and_the_holds(
    service: Service,
) -> None:
    topic = service.topic("orders", retention_bytes="8388608", segment_bytes="1048576")
    service.settle()
    service.clock.advance(60)
    response = service.client.patch(
        f"/v1/topics/{topic['id']}",
        json={"spec": {"retention_ms": "unlimited"}},
        headers={**service.owner, "If-Match": '"r1"'},
    )
    assert response.status_code in (200, 202), response.text
    held = service.post(
        "/v1/legal-holds", {"topic_id": topic["id"], "case_id": "case-7", "reason": "an audit"}
    )
    run, header = started(service)
    inputs = service.get(f"/v1/report-runs/{run['id']}/inputs", header)
    assert inputs["as_of"] == "2026-03-01T12:01:00.000000Z"
    first, second = inputs["policies"]
    assert (first["generation"], first["retention_bytes"]) == (1, "8388608")
    assert first["retention_ms"] == "604800000"
    assert first["sources"] == {
        "retention_ms": "default",
        "retention_bytes": "topic",
        "min_retention_ms": "default",
    }
    assert (second["generation"], second["retention_ms"]) == (2, "-1")
    assert second["changed_at"] == "2026-03-01T12:01:00.000000Z"
    assert second["by"].startswith("key_")
    (hold,) = inputs["holds"]
    assert (hold["id"], hold["case_id"], hold["owner"]) == (held["id"], "case-7", second["by"])
    assert "secret" not in json.dumps(inputs)


def test_no_look_at_one_object_reads_the_whole_audit_chain(service: Service) -> None:
    topic = service.topic("orders")
    run, header = started(service)
    asked: list[tuple[str, tuple[object, ...]]] = []

    @event.listens_for(service.database.reader, "before_cursor_execute")
    def look(
        _connection: object, _cursor: object, statement: str, values: tuple[object, ...], *_: object
    ) -> None:
        if "FROM audit_events" in statement:
            asked.append((statement, values))

    service.get(f"/v1/report-runs/{run['id']}/inputs", header)
    service.get(f"/v1/explain?object={topic['id']}")
    event.remove(service.database.reader, "before_cursor_execute", look)
    assert len(asked) == 2
    with service.database.reader.connect() as connection:
        explain = "EXPLAIN QUERY PLAN"
        if connection.dialect.name == "postgresql":
            # A table of a few rows is read as a whole, unless that is forbidden.
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            explain = "EXPLAIN"
        for statement, values in asked:
            plan = connection.exec_driver_sql(f"{explain} {statement}", values).all()
            assert "ix_audit_events_target_id_org_id" in str(plan)


def test_a_result_is_loaded_shown_and_replaced_by_the_next(service: Service) -> None:
    topic = service.topic("orders")
    assert service.get("/v1/reports/retention")["summary"]["topics"] == 0
    for _ in range(2):
        run = loaded(service, [topic])
    found = service.get(f"/v1/reports/retention?topic_id={topic['id']}")
    assert (found["run_id"], found["as_of"]) == (run["id"], "2026-03-01T12:00:00.000000Z")
    trim, standing = found["items"]
    assert (trim["cause"], trim["deleted_at"]) == ("size", "2026-03-01T11:00:00.500000Z")
    assert (standing["live_bytes"], standing["violation"]) == ("4096", "UNBOUNDED UNREAD_AT_RISK")
    assert "deleted_at" not in standing
    assert found["summary"] == {
        "topics": 1,
        "live_bytes": "4096",
        "live_records": "10",
        "hold_blocked_bytes": "3",
        "deleted": [{"cause": "size", "trims": "1", "bytes": "1024", "records": "5"}],
        "upcoming": [
            {"within": name, "bytes": size, "records": "1"} for name, size in SIZES.items()
        ],
        "ages": [{"bucket": "<1h", "bytes": "4096", "records": "10"}],
        "schedule": [{"day": 1, "bytes": "7", "records": "1"}],
        "violations": {"UNBOUNDED": 1},
    }
    assert found["topic"]["schedule"] == [{"day": 1, "bytes": "7", "records": "1"}]


def test_lines_are_filtered_and_paged(service: Service) -> None:
    topics = [service.topic("orders"), service.topic("returns")]
    loaded(service, topics)
    causes = service.get("/v1/reports/retention?cause=size")["items"]
    assert [each["topic"] for each in causes] == ["default/orders", "default/returns"]
    broken = service.get("/v1/reports/retention?violation=UNREAD_AT_RISK")["items"]
    assert [each["cause"] for each in broken] == ["", ""]
    first = service.get("/v1/reports/retention?page_size=3")
    rest = service.get(f"/v1/reports/retention?page_token={first['next_page_token']}")
    assert (len(first["items"]), len(rest["items"])) == (3, 1)
    loaded(service, topics[1:])
    path = f"/v1/reports/retention?page_token={first['next_page_token']}"
    stale = service.client.get(path, headers=service.owner)
    # The line it would go on at is another one in the report that is shown now.
    assert (stale.status_code, stale.json()["code"]) == (400, "PAGE_TOKEN_INVALID")
    response = service.client.get("/v1/reports/retention?cause=age", headers=service.owner)
    assert response.status_code == 400


def test_an_organization_and_a_project_see_their_own_topics_only(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    mine = service.topic("orders")
    theirs = service.post("/v1/topics", {"name": "parcels"}, other[1])
    unknown = {"name": "lost", "id": "tp_unknown"}
    loaded(service, [mine, theirs, unknown])

    def seen(header: dict[str, str]) -> tuple[set[str], int]:
        found = service.get("/v1/reports/retention", header)
        return {each["topic"] for each in found["items"]}, found["summary"]["topics"]

    assert seen(other[1]) == ({"default/parcels"}, 1)
    assert seen(service.owner) == ({"default/orders", "default/parcels", "default/lost"}, 3)
    hidden = service.get(f"/v1/reports/retention?topic_id={mine['id']}", other[1])
    assert (hidden["items"], hidden["summary"]["topics"], "topic" in hidden) == ([], 0, False)
    billing = service.key("billing-viewer")
    assert service.client.get("/v1/reports/retention", headers=billing).status_code == 403


def test_a_result_that_does_not_hold_is_refused_whole(service: Service) -> None:
    run, header = started(service)
    manifest = publish(service, [service.topic("orders")])
    spoiled = [
        {**manifest, "path": "../elsewhere"},
        {**manifest, "files": manifest["files"][:1]},
        {**manifest, "totals": {**manifest["totals"], "deleted_bytes": "1"}},
        {**manifest, "files": [{**each, "sha256": "0" * 64} for each in manifest["files"]]},
    ]
    path = f"/v1/report-runs/{run['id']}/result"
    for each in spoiled:
        response = service.client.put(path, json=each, headers=header)
        assert (response.status_code, response.json()["code"]) == (400, "RESULT_REJECTED"), each
    assert service.get("/v1/reports/retention")["items"] == []
    bill = service.post("/v1/report-runs", {"kind": "usage"})
    token = _taken_up(service, bill)
    response = service.client.put(
        f"/v1/report-runs/{bill['id']}/result", json=manifest, headers=token
    )
    assert response.json()["code"] == "RESULT_REJECTED"
    with service.database.read() as session:
        assert session.get_one(ReportRun, run["id"]).state == "RUNNING"
