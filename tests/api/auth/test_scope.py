"""What a list holds and what the guard lets pass are the same rows, for each kind of caller."""

from datetime import UTC, datetime
from typing import Final

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.guard import visible
from api.auth.permissions import Caller
from api.auth.scope import of_organization, visible_to
from api.db.tables import Invoice, Organization, ReportRun, RetentionTopic, Topic, Work
from api.explain.subjects import KINDS, Kind, Row, owner_of
from tests.support.builders.control_plane import Body, Service

CALLERS: Final = ("operator", "owner", "confined", "run")
NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def callers(service: Service, other: tuple[str, dict[str, str]]) -> dict[str, Caller]:
    """A caller of each sort, and in each organization and project an object of each kind."""
    org_id, header = other
    project = service.post("/v1/projects", {"name": "sales"}, header)
    for key, where in ((service.owner, {}), (header, {}), (header, {"project_id": project["id"]})):
        topic = service.post("/v1/topics", {"name": "orders", **where}, key)
        hold: Body = {"topic_id": topic["id"], "case_id": "C-1", "reason": "a suit"}
        service.post("/v1/legal-holds", hold, key)
        named = f"of-{topic['project_id'][-6:]}"
        service.post("/v1/api-keys", {"name": named, "spec": {"role": "viewer"}, **where}, key)
    runs = [service.post("/v1/report-runs", {"kind": "usage"})["id"] for _ in range(2)]
    own = service.get("/v1/projects")["items"][0]["organization_id"]
    return {
        "operator": Caller("key_1", own, "owner", operator=True),
        "owner": Caller("key_2", org_id, "owner"),
        "confined": Caller("key_3", org_id, "owner", project_id=project["id"]),
        "run": Caller(runs[0], own, role=None, run_id=runs[0]),
    }


def seen(session: Session, kind: Kind, caller: Caller) -> set[str]:
    """What a list of a kind holds for a caller."""
    rows = session.scalars(visible_to(select(kind.model), kind.model, caller))
    return {row.id for row in rows if isinstance(row, Row)}


@pytest.mark.parametrize("name", CALLERS)
def test_a_list_holds_what_the_guard_lets_pass(
    service: Service, callers: dict[str, Caller], name: str
) -> None:
    listed, passing = set[str](), set[str]()
    with service.database.read() as session:
        organizations = set(session.scalars(select(Organization.id)))
        for kind in KINDS.values():
            rows = [row for row in session.scalars(select(kind.model)) if isinstance(row, Row)]
            assert rows, kind.word
            listed |= seen(session, kind, callers[name])
            passing |= {row.id for row in rows if visible(callers[name], owner_of(session, row))}
    # The operator lists organizations that it does not open.
    assert listed - organizations == passing - organizations
    assert passing
    assert passing <= listed


def test_an_organization_is_listed_to_its_keys_and_to_the_operator(
    service: Service, callers: dict[str, Caller]
) -> None:
    with service.database.read() as session:
        listed = {name: seen(session, KINDS["org"], callers[name]) for name in CALLERS}
    own, theirs = callers["operator"].org_id, callers["owner"].org_id
    assert listed["operator"] > {own, theirs}
    assert listed["owner"] == listed["confined"] == {theirs}
    assert listed["run"] == set()


def test_a_report_shows_the_operator_all_and_a_key_of_a_project_its_own(
    service: Service, callers: dict[str, Caller]
) -> None:
    with service.database.write() as session:
        run_id = session.scalars(select(ReportRun.id).limit(1)).one()
        for topic in session.scalars(select(Topic)):
            session.add(
                RetentionTopic(
                    run_id=run_id,
                    topic_id=topic.id,
                    org_id=topic.org_id,
                    project_id=topic.project_id,
                    document={},
                )
            )
        session.flush()
        counts = [
            len(session.scalars(visible_to(select(RetentionTopic), RetentionTopic, caller)).all())
            for caller in callers.values()
        ]
    # A topic of the operator's, one of the other project's, and the system's own ones.
    assert counts[1:] == [2, 1, 0]
    assert counts[0] >= 3


def test_an_invoice_is_of_a_whole_organization(
    service: Service, callers: dict[str, Caller]
) -> None:
    with service.database.write() as session:
        run_id = session.scalars(select(ReportRun.id).limit(1)).one()
        for caller in (callers["operator"], callers["owner"]):
            session.add(_invoice(caller.org_id, run_id))
        session.flush()
        counts = [
            len(session.scalars(visible_to(select(Invoice), Invoice, caller)).all())
            for caller in callers.values()
        ]
    assert counts == [2, 1, 0, 0]


def test_a_table_that_the_scope_does_not_know_is_out_of_sight_of_a_key_of_a_project(
    service: Service, callers: dict[str, Caller]
) -> None:
    with service.database.read() as session:
        whole = session.scalars(visible_to(select(Work), Work, callers["owner"])).all()
        confined = session.scalars(visible_to(select(Work), Work, callers["confined"])).all()
    assert {row.org_id for row in whole} == {callers["owner"].org_id}
    assert not confined


def test_a_rule_of_an_organization_looks_at_every_project(
    service: Service, callers: dict[str, Caller]
) -> None:
    with service.database.read() as session:
        rows = session.scalars(of_organization(select(Topic), Topic, callers["owner"].org_id)).all()
    assert len({row.project_id for row in rows}) == 2
    assert {row.org_id for row in rows} == {callers["owner"].org_id}


def _invoice(org_id: str, run_id: str) -> Invoice:
    return Invoice(
        id=f"inv_{org_id}",
        org_id=org_id,
        run_id=run_id,
        period_start=NOW,
        period_end=NOW,
        state="DRAFT",
        blocked=False,
        as_of=NOW,
        currency="EUR",
        total="0",
        metered_exact="0",
        monthly_minimum="0",
        amount_per_month="",
        price_book_version="demo-1",
        files="x",
        checks=[],
    )
