"""Keys: shown once, checked everywhere, and each role exactly what its row says."""

import pytest
from fastapi.routing import APIRoute
from httpx2 import Response
from sqlalchemy import select

from api.app import routes
from api.auth.guard import guard_of
from api.auth.permissions import BILLING_VIEWER, EDITOR, OPERATOR, OWNER, ROLES, RUN, VIEWER
from api.auth.tokens import new_token, parse_token
from api.db.identifiers import new_id
from api.db.tables import Base
from api.db.tables.invoices import Invoice
from tests.support.builders.control_plane import Service, bearer
from tests.support.processes.scripted_node import vanish

GUARDED = [route for route in routes() if route.path.startswith("/v1/")]
ROUTE_NAMES = [f"{'/'.join(sorted(route.methods or ()))} {route.path}" for route in GUARDED]


def test_a_token_is_parsed_back_and_any_changed_character_is_refused() -> None:
    token = new_token("user")
    parsed = parse_token(token.text)
    assert parsed is not None
    assert (parsed.kind, parsed.public_id, parsed.secret_sha256) == (
        "user",
        token.public_id,
        token.secret_sha256,
    )
    for index, character in enumerate(token.text):
        other = "A" if character != "A" else "B"
        assert parse_token(token.text[:index] + other + token.text[index + 1 :]) is None


def test_a_token_hides_its_secret_from_a_repr() -> None:
    token = new_token("user")
    assert token.secret not in repr(token)


@pytest.mark.parametrize("route", GUARDED, ids=ROUTE_NAMES)
def test_every_route_names_its_permission_and_every_id_its_owner(route: APIRoute) -> None:
    guard = guard_of(route)
    assert guard is not None
    assert guard.permission in OWNER | OPERATOR | RUN
    assert (guard.loader is not None) == ("{object_id}" in route.path)


def test_roles_grow_from_billing_viewer_to_owner() -> None:
    assert BILLING_VIEWER < VIEWER < EDITOR < OWNER
    assert not OPERATOR & OWNER


def test_every_role_reaches_every_route_that_its_permissions_name_and_no_other(
    service: Service,
) -> None:
    ids = _objects(service)
    for role, permissions in ROLES.items():
        header = service.key(role)
        for route in GUARDED:
            guard = guard_of(route)
            assert guard is not None
            for method in route.methods or ():
                path = route.path.format(**ids(route.path))
                response = _request(service, method, path, header, {"nonsense": 1})
                allowed = guard.permission in permissions
                assert (response.status_code != 403) == allowed, (role, method, route.path)
                if not allowed:
                    # An owner has not what is the operator's alone, and is not sent to himself.
                    operators = guard.permission in OPERATOR - OWNER
                    assert ("the operator" in response.json()["hint"]) == operators, route.path


def test_another_organization_finds_nothing_by_id_on_any_route(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    ids = _objects(service)
    shared = {"/v1/clusters/{object_id}"}
    for route in GUARDED:
        for method in route.methods or ():
            if "{object_id}" in route.path and route.path not in shared:
                path = route.path.format(**ids(route.path))
                response = _request(service, method, path, other[1], {})
                assert response.status_code == 404, (method, route.path, response.text)


def test_another_organization_lists_only_its_own(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    _objects(service)
    lists = "orgs projects streams topics api-keys operations audit-events invoices"
    for path in lists.split():
        items = service.get(f"/v1/{path}", other[1])["items"]
        assert {each.get("organization_id") for each in items} <= {other[0]}


def test_an_id_inside_a_body_of_another_organization_is_not_found(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    stream = service.get("/v1/streams")["items"][0]
    for member, value in (("stream_id", stream["id"]), ("project_id", stream["project_id"])):
        response = service.client.post(
            "/v1/topics", json={"name": "orders", member: value}, headers=other[1]
        )
        assert response.status_code == 404
    response = service.client.post(
        "/v1/api-keys",
        json={
            "name": "k",
            "organization_id": stream["organization_id"],
            "spec": {"role": "viewer"},
        },
        headers=other[1],
    )
    assert response.status_code == 404


def test_a_key_of_a_project_sees_that_project_only(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})
    header = service.key("owner", project_id=project["id"])
    theirs = service.topic("orders")
    mine = service.post("/v1/topics", {"name": "orders"}, header)
    assert mine["project_id"] == project["id"]
    assert [each["id"] for each in service.get("/v1/topics", header)["items"]] == [mine["id"]]
    assert service.client.get(f"/v1/topics/{theirs['id']}", headers=header).status_code == 404
    assert (
        service.client.get(f"/v1/api-keys/{service.first.owner_key_id}", headers=header).status_code
        == 404
    )
    outside = {"name": "k", "project_id": theirs["project_id"], "spec": {"role": "viewer"}}
    assert service.client.post("/v1/api-keys", json=outside, headers=header).status_code == 404


@pytest.mark.parametrize(
    "header", [{}, {"Authorization": "Bearer nonsense"}, bearer(new_token("user").text)]
)
def test_without_a_known_key_the_answer_is_401_and_says_how(
    service: Service, header: dict[str, str]
) -> None:
    response = service.client.get("/v1/topics", headers=header)
    assert (response.status_code, response.json()["code"]) == (401, "UNAUTHENTICATED")
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert response.json()["hint"]


def test_the_node_key_does_not_open_the_control_plane(service: Service) -> None:
    token = service.settings.node.admin_key_file.read_text()
    assert service.client.get("/v1/topics", headers=bearer(token)).status_code == 401


def test_the_secret_is_shown_once_and_stored_nowhere(service: Service) -> None:
    created = service.post("/v1/api-keys", {"name": "k", "spec": {"role": "viewer"}})
    secret = created.pop("secret")
    assert service.get(f"/v1/api-keys/{created['id']}") == created
    parsed = parse_token(secret)
    assert parsed is not None
    for table in Base.metadata.sorted_tables:
        with service.database.read() as session:
            assert parsed.secret not in str(session.execute(select(table)).all())


def test_a_new_key_becomes_active_on_the_node_with_its_digest(service: Service) -> None:
    created = service.post("/v1/api-keys", {"name": "k", "spec": {"role": "editor"}})
    service.settle()
    token = parse_token(created["secret"])
    assert token is not None
    pushed = service.node.secrets[created["id"]]
    assert (pushed.role, pushed.public_id) == ("editor", token.public_id)
    assert pushed.secret_sha256 == token.secret_sha256
    assert pushed.expires_at_us > 0
    assert _active(service, created["id"]) == ("True", "Propagated")


def test_a_revoked_key_is_refused_at_once_and_forgotten_by_the_node(service: Service) -> None:
    created = service.post("/v1/api-keys", {"name": "k", "spec": {"role": "viewer"}})
    service.settle()
    path = f"/v1/api-keys/{created['id']}"
    response = service.client.delete(path, headers=service.owner)
    assert response.status_code == 202
    assert service.client.get("/v1/topics", headers=bearer(created["secret"])).status_code == 401
    service.settle()
    assert not service.node.keys[created["id"]].active
    assert _active(service, created["id"]) == ("False", "Revoked")
    assert service.client.delete(path, headers=service.owner).status_code == 200
    assert service.post("/v1/api-keys", {"name": "k", "spec": {"role": "viewer"}})["id"]


def test_a_key_whose_put_is_still_on_its_way_is_revoked_before_it_arrives(
    service: Service,
) -> None:
    service.settle()
    created = service.post("/v1/api-keys", {"name": "k", "spec": {"role": "viewer"}})
    # The first PutKey times out, and the cluster has not applied it when the key is revoked.
    service.node.before.append(vanish)
    service.settle()
    service.client.delete(f"/v1/api-keys/{created['id']}", headers=service.owner)
    service.clock.advance(5)
    service.settle()
    assert service.node.applied[-1].revoke_key.key_id == created["id"]
    assert _active(service, created["id"]) == ("False", "Revoked")
    sent = len(service.node.applied)
    service.clock.advance(3600)
    service.settle()
    assert len(service.node.applied) == sent, "a revocation that the cluster holds is repeated"


def test_the_last_owner_cannot_be_revoked(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    last = {
        service.first.owner_key_id: service.owner,
        service.keys["owner-0"]: other[1],
    }
    for key_id, header in last.items():
        response = service.client.delete(f"/v1/api-keys/{key_id}", headers=header)
        assert (response.status_code, response.json()["code"]) == (409, "LAST_OWNER")
    second = service.key("owner", other[0])
    path = f"/v1/api-keys/{service.keys['owner-0']}"
    assert service.client.delete(path, headers=second).status_code == 202


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_an_owner_cannot_revoke_a_key_of_the_operator(service: Service, query: str) -> None:
    owner = service.key("owner")
    path = f"/v1/api-keys/{service.first.owner_key_id}"
    before = service.get(path)
    response = service.client.delete(path + query, headers=owner)
    assert (response.status_code, response.json()["code"]) == (403, "PERMISSION_DENIED")
    assert response.json()["permission"] == "operators:revoke"
    assert "the operator" in response.json()["hint"]
    assert service.get(path) == before
    event = service.get("/v1/audit-events?page_size=1000")["items"][-1]
    assert (event["action"], event["outcome"]) == ("operators.revoke", "DENIED")
    assert (event["principal_id"], event["target_id"]) == (service.keys["owner-0"], before["id"])


def test_an_operator_revokes_a_key_of_an_operator(service: Service) -> None:
    service.key("owner")
    path = f"/v1/api-keys/{service.first.owner_key_id}"
    assert service.client.delete(path, headers=service.owner).status_code == 202


def test_a_key_of_a_project_revokes_no_key_outside_of_it(service: Service) -> None:
    mine = service.post("/v1/projects", {"name": "mine"})["id"]
    theirs = service.post("/v1/projects", {"name": "theirs"})["id"]
    header = service.key("owner", project_id=mine)
    service.key("viewer", project_id=theirs)
    service.key("viewer")
    outside = [service.first.owner_key_id, service.keys["viewer-1"], service.keys["viewer-2"]]
    for key_id in outside:
        path = f"/v1/api-keys/{key_id}"
        assert service.client.delete(path, headers=header).status_code == 404
        assert "revoked_at" not in service.get(path)
    inside = service.post("/v1/api-keys", {"name": "in", "spec": {"role": "owner"}}, header)
    assert inside["project_id"] == mine
    path = f"/v1/api-keys/{inside['id']}"
    assert service.client.delete(path, headers=header).status_code == 202


def test_an_expired_key_says_that_it_expired(service: Service) -> None:
    header = service.key("viewer")
    service.clock.advance(91 * 24 * 3600)
    response = service.client.get("/v1/topics", headers=header)
    assert (response.status_code, response.json()["code"]) == (401, "KEY_EXPIRED")


def test_only_the_operator_makes_organizations_and_gives_them_their_first_key(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    response = service.client.post("/v1/orgs", json={"name": "hooli"}, headers=other[1])
    assert response.status_code == 403
    topic = service.post("/v1/topics", {"name": "orders"}, other[1])
    assert topic["organization_id"] == other[0]
    assert topic["stream"] == "default"


def test_a_refusal_is_audited(service: Service) -> None:
    viewer = service.key("viewer")
    service.client.post("/v1/topics", json={"name": "orders"}, headers=viewer)
    last = service.get("/v1/audit-events?page_size=1000")["items"][-1]
    assert (last["action"], last["outcome"]) == ("topics.create", "DENIED")


def _request(
    service: Service, method: str, path: str, header: dict[str, str], body: dict[str, int]
) -> Response:
    """A request with a body where the method takes one, and an end where the answer has none."""
    path = {"/v1/live": "/v1/live?looks=1"}.get(path, path)
    if method in ("GET", "DELETE"):
        return service.client.request(method, path, headers=header)
    return service.client.request(method, path, headers=header, json=body)


def _active(service: Service, key_id: str) -> tuple[str, str]:
    conditions = service.get(f"/v1/api-keys/{key_id}")["status"]["conditions"]
    found = next(each for each in conditions if each["type"] == "Active")
    return found["status"], found["reason"]


class _Ids:
    """Ids of live objects by the collection of a path."""

    def __init__(self, service: Service) -> None:
        topic = service.topic("objects")
        hold = service.hold(topic)
        key = service.post("/v1/api-keys", {"name": "object", "spec": {"role": "viewer"}})
        run = service.post("/v1/report-runs", {"kind": "usage"})
        operation = service.get("/v1/operations")["items"][0]
        node = service.get(f"/v1/clusters/{topic['cluster_id']}/nodes")["items"][0]
        self._node_id = node["id"]
        self._by_collection = {
            "orgs": topic["organization_id"],
            "projects": topic["project_id"],
            "clusters": topic["cluster_id"],
            "streams": topic["stream_id"],
            "topics": topic["id"],
            "legal-holds": hold["id"],
            "api-keys": key["id"],
            "report-runs": run["id"],
            "operations": operation["id"],
            "invoices": _invoice(service, topic["organization_id"], run["id"]),
        }

    def __call__(self, path: str) -> dict[str, str]:
        """The parameters of a path."""
        collection = path.split("/")[2]
        return {
            "object_id": self._by_collection.get(collection, ""),
            "node_id": self._node_id,
            "name": "usage.csv" if collection == "report-runs" else "billing",
        }


def _invoice(service: Service, organization_id: str, run_id: str) -> str:
    """A draft of an organization, as a report run leaves one."""
    now = service.clock()
    row = Invoice(
        id=new_id("inv"), org_id=organization_id, run_id=run_id, sequence=1, state="DRAFT",
        period_start=now, period_end=now, as_of=now, blocked=False, currency="EUR", total="0.00",
        metered_exact="0", monthly_minimum="0", amount_per_month="0", price_book_version="demo-1",
        files="invoice", checks=[],
    )  # fmt: skip
    with service.database.write() as session:
        session.add(row)
        session.flush()
        return row.id


def _objects(service: Service) -> _Ids:
    return _Ids(service)
