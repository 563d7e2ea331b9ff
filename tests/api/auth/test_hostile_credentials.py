"""Credentials that do not hold, and ids of others, on every route there is: one answer for all of
them, and nothing of what exists in it.
"""

import re
from datetime import timedelta

import pytest
from fastapi.routing import APIRoute
from httpx2 import Response

from api.app import routes
from api.auth.guard import guard_of
from api.auth.tokens import new_token
from tests.support.builders.control_plane import Service, bearer

GUARDED = [route for route in routes() if guard_of(route) is not None]
OPEN = {"/healthz", "/readyz"}


@pytest.fixture
def wrong(service: Service) -> dict[str, dict[str, str]]:
    """Headers that open nothing, by what is wrong with them."""
    revoked = service.key("owner")
    service.client.delete(f"/v1/api-keys/{service.keys['owner-0']}", headers=service.owner)
    right = service.first.token
    other = new_token("user")
    swapped = type(right)(right.kind, right.public_id, other.secret)
    return {
        "missing": {},
        "empty": {"Authorization": ""},
        "without a scheme": {"Authorization": right.text},
        "of another scheme": {"Authorization": f"Basic {right.text}"},
        "malformed": bearer("hr_user_x"),
        "mistyped": bearer(right.text[:-1] + ("a" if right.text[-1] != "a" else "b")),
        "unknown": bearer(other.text),
        "with another secret": bearer(swapped.text),
        "of a node": bearer(service.settings.node.admin_key_file.read_text()),
        "of an unknown run": bearer(new_token("run").text),
        "revoked": revoked,
        "long": bearer("hr_user_" + "a" * 20_000),
    }


def asked(service: Service, route: APIRoute, header: dict[str, str], object_id: str) -> Response:
    (method,) = route.methods or {"GET"}
    names = dict.fromkeys(re.findall(r"{(\w+)}", route.path), "nobody")
    path = route.path.format(**names | {"object_id": object_id, "node_id": "nd_0"})
    body = None if method in ("GET", "DELETE") else {"nonsense": 1}
    return service.client.request(method, path, headers=header, json=body)


def test_only_health_asks_for_no_key() -> None:
    assert {route.path for route in routes() if guard_of(route) is None} == OPEN


def test_a_key_that_does_not_hold_opens_no_route(
    service: Service, wrong: dict[str, dict[str, str]]
) -> None:
    secret = service.first.token.secret
    for route in GUARDED:
        for what, header in wrong.items():
            response = asked(service, route, header, "tp_0")
            assert response.status_code == 401, (what, route.path, response.text)
            assert response.json()["code"] == "UNAUTHENTICATED"
            assert response.json()["hint"]
            assert response.headers["WWW-Authenticate"].startswith("Bearer")
            assert secret not in response.text


def test_an_expired_key_opens_no_route(service: Service) -> None:
    until = (service.clock() + timedelta(hours=1)).isoformat()
    answer = service.post(
        "/v1/api-keys", {"name": "short", "spec": {"role": "owner", "expires_at": until}}
    )
    header = bearer(answer["secret"])
    service.clock.advance(3600)
    for route in GUARDED:
        response = asked(service, route, header, "tp_0")
        assert (response.status_code, response.json()["code"]) == (401, "KEY_EXPIRED"), route.path


def test_a_stranger_learns_nothing_about_what_exists(service: Service) -> None:
    topic = service.topic()
    for header in ({}, bearer(new_token("user").text)):
        present, absent = (
            service.client.get(f"/v1/topics/{each}", headers=header)
            for each in (topic["id"], "tp_0")
        )
        differ = {"request_id", "instance"}
        left, right = (
            {name: value for name, value in each.json().items() if name not in differ}
            for each in (present, absent)
        )
        assert left == right


def test_filters_by_ids_of_another_organization_find_nothing(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    topic = service.topic()
    service.key("viewer", project_id=topic["project_id"])
    service.settle()
    parents = {
        name: topic[name] for name in ("project_id", "stream_id", "cluster_id", "organization_id")
    }
    paths = {
        "/v1/topics": ("project_id", "stream_id"),
        "/v1/streams": ("project_id",),
        "/v1/api-keys": ("project_id",),
    }
    for path, filters in paths.items():
        for name in filters:
            assert service.get(f"{path}?{name}={parents[name]}")["items"]
            assert service.get(f"{path}?{name}={parents[name]}", other[1])["items"] == []
    for path, name in (("/v1/operations", "target_id"), ("/v1/audit-events", "target_id")):
        assert service.get(f"{path}?{name}={topic['id']}")["items"]
        assert service.get(f"{path}?{name}={topic['id']}", other[1])["items"] == []
    principal = service.first.owner_key_id
    path = f"/v1/audit-events?principal_id={principal}"
    theirs = service.get(path, other[1])["items"]
    assert all(each["organization_id"] == other[0] for each in theirs)
    assert service.get(f"/v1/usage?topic_id={topic['id']}", other[1])["items"] == []


@pytest.mark.parametrize("by", ["id", "name"])
def test_nothing_of_another_organization_is_explained(
    service: Service, other: tuple[str, dict[str, str]], by: str
) -> None:
    topic = service.topic("secretplans")
    named = topic["id"] if by == "id" else "topic/secretplans"
    response = service.client.get(f"/v1/explain?object={named}", headers=other[1])
    absent = service.client.get(
        f"/v1/explain?object={'tp_0' if by == 'id' else 'topic/nothing'}", headers=other[1]
    )
    assert response.status_code == absent.status_code == 404
    assert response.json()["code"] == absent.json()["code"]


def test_a_page_token_says_nothing_to_who_holds_it(service: Service) -> None:
    for number in range(3):
        service.topic(f"t{number}")
    token = service.get("/v1/topics?page_size=1")["next_page_token"]
    viewer = service.key("viewer")
    assert service.get(f"/v1/topics?page_size=1&page_token={token}", viewer)["items"]
    assert service.client.get(f"/v1/topics?page_size=1&page_token={token}").status_code == 401
    assert service.first.owner_key_id not in token
