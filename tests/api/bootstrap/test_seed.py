"""The first run: everything a newcomer needs, made once."""

from sqlalchemy import select

from api.auth.guard import authenticate
from api.bootstrap.seed import bootstrap
from api.db.tables.nodes import Node
from tests.support.builders.control_plane import Service


def test_a_fresh_installation_has_what_a_newcomer_needs(service: Service) -> None:
    assert [each["name"] for each in service.get("/v1/orgs")["items"]] == ["_system", "default"]
    assert [each["name"] for each in service.get("/v1/projects")["items"]] == ["default"]
    assert [each["name"] for each in service.get("/v1/streams")["items"]] == ["default"]
    (cluster,) = service.get("/v1/clusters")["items"]
    assert (cluster["name"], cluster["id"]) == ("local", service.first.identity.cluster_id)
    (node,) = service.get(f"/v1/clusters/{cluster['id']}/nodes")["items"]
    assert node["spec"]["address"] == service.node.address
    (key,) = service.get("/v1/api-keys")["items"]
    assert (key["name"], key["spec"], key["operator"]) == ("owner", {"role": "owner"}, True)


def test_a_second_bootstrap_changes_nothing(service: Service) -> None:
    before = service.get("/v1/audit-events?page_size=1000")
    assert bootstrap(service.database, node_address="127.0.0.1:1") is None
    assert service.get("/v1/audit-events?page_size=1000") == before
    with service.database.read() as session:
        assert session.scalars(select(Node)).one().address == service.node.address


def test_the_owner_is_the_operator(service: Service) -> None:
    with service.database.read() as session:
        caller = authenticate(session, service.owner["Authorization"], service.database)
    assert caller.operator
    assert caller.role == "owner"


def test_reserved_names_stay_reserved(service: Service) -> None:
    response = service.client.post("/v1/orgs", json={"name": "_other"}, headers=service.owner)
    assert response.status_code == 400
