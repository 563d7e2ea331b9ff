"""The audit chain: every change is a link, and a link that was touched shows."""

from sqlalchemy import select

from api.audit.models import AuditEvent, OutboxEvent
from api.audit.service import hashed_members, link_hash
from tests.api.conftest import Service


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
