"""The audit chain: every change is a link, and a link that was touched shows."""

from sqlalchemy import select

from api.auth.audit_chain import hashed_members, link_hash
from api.db.tables.audit import AuditEvent, OutboxEvent
from tests.support.builders.control_plane import Body, Service


def test_every_change_is_a_link_of_its_organizations_chain(service: Service) -> None:
    topic = service.topic("orders")
    service.client.patch(
        f"/v1/topics/{topic['id']}", json={"display_name": "Orders"}, headers=service.owner
    )
    events = service.get(f"/v1/audit-events?target_id={topic['id']}")["items"]
    assert [each["action"] for each in events] == ["topics.create", "topics.update"]
    assert events[1]["before"]["display_name"] == ""
    assert events[1]["after"]["display_name"] == "Orders"
    assert events[0]["principal_id"] == service.first.owner_key_id
    assert events[1]["request_id"].startswith("req_")


def test_a_key_of_a_project_reads_the_audit_of_that_project_only(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})["id"]
    service.topic("secret")
    header = service.key("owner", project_id=project)
    (key_id,) = service.keys.values()
    topic = service.post("/v1/topics", {"name": "orders"}, header)
    hold = service.post(
        "/v1/legal-holds", {"topic_id": topic["id"], "case_id": "C-1", "reason": "a suit"}, header
    )
    refused = service.client.post("/v1/orgs", json={"name": "hooli"}, headers=header)
    assert refused.status_code == 403
    stream = service.get("/v1/streams", header)["items"][0]["id"]

    events = service.get("/v1/audit-events?page_size=1000", header)["items"]
    assert [(each["action"], each["target_id"]) for each in events] == [
        ("projects.create", project),
        ("streams.create", stream),
        ("keys.create", key_id),
        ("topics.create", topic["id"]),
        ("holds.create", hold["id"]),
        ("orgs.create", ""),
    ]
    assert [each["outcome"] for each in events][-2:] == ["DONE", "DENIED"]
    mine = service.get(f"/v1/audit-events?principal_id={key_id}", header)["items"]
    assert mine == events[3:]
    others = service.get(f"/v1/audit-events?principal_id={service.first.owner_key_id}", header)[
        "items"
    ]
    assert others == events[:3]


def test_a_key_of_a_project_pages_through_its_own_events(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})["id"]
    header = service.key("owner", project_id=project)
    for name in "abc":
        service.topic(f"other-{name}")
        service.post("/v1/topics", {"name": name}, header)
    seen: list[str] = []
    token: Body = ""
    while token is not None:
        page = service.get(f"/v1/audit-events?page_size=2&page_token={token}", header)
        seen += [each["id"] for each in page["items"]]
        token = page.get("next_page_token")
    whole = service.get("/v1/audit-events?page_size=1000", header)["items"]
    assert seen == [each["id"] for each in whole]
    assert len(seen) == 6


def test_the_audit_of_a_project_keeps_what_is_gone(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})["id"]
    header = service.key("owner", project_id=project)
    topic = service.post("/v1/topics", {"name": "orders"}, header)
    service.settle()
    path = f"/v1/topics/{topic['id']}"
    etag = service.client.get(path, headers=header).headers["ETag"]
    answer = service.client.delete(path, headers={**header, "If-Match": etag})
    assert answer.status_code == 202, answer.text
    service.settle()
    events = service.get(f"/v1/audit-events?target_id={topic['id']}", header)["items"]
    assert [each["action"] for each in events] == ["topics.create", "topics.delete", "topics.purge"]


def test_the_chain_holds_from_the_first_link_and_breaks_where_it_is_touched(
    service: Service,
) -> None:
    for name in ("a", "b", "c"):
        service.topic(name)
    with service.database.read() as session:
        organization_id = service.get("/v1/orgs?name=default")["items"][0]["id"]
        rows = session.scalars(
            select(AuditEvent)
            .where(AuditEvent.org_id == organization_id)
            .order_by(AuditEvent.sequence)
        ).all()
    previous = ""
    for number, row in enumerate(rows, start=1):
        assert (row.sequence, row.previous_hash) == (number, previous)
        assert row.hash == link_hash(previous, hashed_members(row))
        previous = row.hash
    touched = rows[1]
    touched.principal_id = "key_somebody_else"
    assert touched.hash != link_hash(touched.previous_hash, hashed_members(touched))


def test_the_outbox_tells_every_change_in_order_and_no_secret(service: Service) -> None:
    secret = service.post("/v1/api-keys", {"name": "k", "spec": {"role": "viewer"}})["secret"]
    service.topic("orders")
    with service.database.read() as session:
        rows = session.scalars(select(OutboxEvent).order_by(OutboxEvent.sequence)).all()
    assert [row.kind for row in rows[-2:]] == ["keys.create", "topics.create"]
    assert all(secret not in str(row.payload) for row in rows)
