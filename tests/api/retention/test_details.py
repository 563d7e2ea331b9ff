"""The retention report by topic and by day: sums that are exact, shown to whom they concern."""

from datetime import timedelta

import pytest
from pydantic import JsonValue as Json

from api.db.tables.reports import CurrentRun, ReportRun
from api.db.tables.retention import RetentionRow, RetentionTopic
from api.retention import details
from tests.support.builders.control_plane import Body, Service

BIG = 1 << 53


def _shown(service: Service, topics: list[Body]) -> None:
    """A published run that tells of these topics: three trims on two days of each."""
    run = service.post("/v1/report-runs", {"kind": "retention"})
    now = service.clock()
    with service.database.write() as session:
        session.get_one(ReportRun, run["id"]).state = "SUCCEEDED"
        session.add(CurrentRun(kind="retention", run_id=run["id"], updated_at=now))
        for number, topic in enumerate(topics):
            owner = {
                "run_id": run["id"],
                "topic_id": topic["id"],
                "org_id": topic["organization_id"],
                "project_id": topic["project_id"],
            }
            broken: list[Json] = [{"code": "UNBOUNDED"}] if number % 2 else []
            document: dict[str, Json] = {"topic": topic["name"], "violations": broken}
            document["live_bytes"] = str(10 ** (number % 3))
            session.add(RetentionTopic(**owner, document=document))
            for step, (days, cause) in enumerate(((0, "size"), (1, "time"), (1, "time"), (0, ""))):
                session.add(
                    RetentionRow(
                        **owner,
                        line=f"{10 * number + step:012d}",
                        topic=topic["name"],
                        partition=0,
                        policy_source="topic",
                        live_bytes=0,
                        deleted_bytes=BIG + 1,
                        deleted_records=7,
                        first_offset=0,
                        last_offset=6,
                        cause=cause,
                        hold_id="",
                        violation="",
                        deleted_at=now - timedelta(days=days) if cause else None,
                    )
                )


def test_deletions_are_summed_by_day_and_cause_to_the_byte(service: Service) -> None:
    assert service.get("/v1/reports/retention/deletions") == {"days": []}
    topics = [service.topic("orders"), service.topic("returns")]
    _shown(service, topics)
    two = {"trims": "2", "bytes": str(2 * BIG + 2), "records": "14"}
    four = {"trims": "4", "bytes": str(4 * BIG + 4), "records": "28"}
    days = [
        {"day": "2026-02-28", "cause": "time", **four},
        {"day": "2026-03-01", "cause": "size", **two},
    ]
    assert service.get("/v1/reports/retention/deletions")["days"] == days
    one = service.get(f"/v1/reports/retention/deletions?topic_id={topics[0]['id']}")["days"]
    assert [each["trims"] for each in one] == ["2", "1"]


def test_topics_come_page_by_page_and_of_the_run_that_is_shown(service: Service) -> None:
    assert service.get("/v1/reports/retention/topics")["items"] == []
    topics = [service.topic(f"orders-{number}") for number in range(3)]
    _shown(service, topics)
    found: list[str] = []
    token = ""
    while True:
        path = f"/v1/reports/retention/topics?page_size=2&page_token={token}"
        page = service.get(path)
        found += [each["report"]["topic"] for each in page["items"]]
        token = page.get("next_page_token", "")
        if not token:
            break
    assert sorted(found) == ["orders-0", "orders-1", "orders-2"]


def test_topics_that_break_a_rule_come_page_by_page_without_the_others(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages then end in the middle, at the end, and beyond what is read at once.
    monkeypatch.setattr(details, "READ_AT_ONCE", 3)
    topics = [service.topic(f"orders-{number}") for number in range(6)]
    _shown(service, topics)
    path = "/v1/reports/retention/topics?broken=true&page_size=2"
    page = service.get(path)
    rest = service.get(f"{path}&page_token={page['next_page_token']}")
    assert "next_page_token" not in rest
    found = [each["report"]["topic"] for each in page["items"] + rest["items"]]
    assert sorted(found) == ["orders-1", "orders-3", "orders-5"]


def test_the_largest_topics_come_on_one_page(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "READ_AT_ONCE", 2)
    _shown(service, [service.topic(f"orders-{number}") for number in range(5)])
    page = service.get("/v1/reports/retention/topics?largest=3")
    found = [each["report"]["topic"] for each in page["items"]]
    assert (found, "next_page_token" in page) == (["orders-2", "orders-1", "orders-4"], False)


def test_an_organization_sees_its_own_topics_and_deletions_only(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    theirs = service.post("/v1/topics", {"name": "theirs"}, other[1])
    _shown(service, [service.topic("orders"), theirs])
    seen = service.get("/v1/reports/retention/topics", other[1])["items"]
    assert [each["topic_id"] for each in seen] == [theirs["id"]]
    days = service.get("/v1/reports/retention/deletions", other[1])["days"]
    assert [each["trims"] for each in days] == ["2", "1"]
    refused = service.client.get(
        "/v1/reports/retention/topics", headers=service.key("billing-viewer")
    )
    assert refused.status_code == 403
