"""Two organizations at every operation of the contract: what one has never shows in an answer to
the other, whatever parameter or member names it.

Made from the committed document: an operation, a parameter or a member that may name an object and
is not known here fails. (That no role and no stranger gets through a guard: test_permissions.py.)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pytest

from tests.support.builders.control_plane import Body, Service, bearer
from tests.support.source import ROOT

DOCUMENT: Final[Body] = json.loads((ROOT / "openapi" / "control-plane.json").read_text())
OPERATIONS: Final[dict[str, tuple[str, str, Body]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if path.startswith("/v1/")
}
COLLECTIONS: Final = [
    name for name, (method, path, _) in OPERATIONS.items() if method == "GET" and "{" not in path
]
# Parameters and members that say how, not which.
HARMLESS: Final = {
    "broken", "cascade", "case_id", "cause", "confirm_deletions", "dry_run", "force", "from",
    "group_by", "lag", "largest", "limit", "live", "looks", "meter", "newest_first", "offset",
    "page_size", "partition", "reason", "sessions", "state", "time", "to", "update_mask",
    "violation", "wait",
}  # fmt: skip
# Streams that end after so many events, and else in minutes.
ENDING: Final = {"looks": "1"}
# The scripted node does not serve them: they are 503 here, unless they are refused before.
OF_A_NODE: Final = {"listGroups", "listLive"}
OWN: Final = "their own topic"
# The least body of each operation that takes one; the members that name objects come on top.
BODIES: Final[Mapping[str, Body]] = {
    "createApiKey": {"name": "mine", "spec": {"role": "viewer"}},
    "createLegalHold": {"topic_id": OWN, "case_id": "case-1", "reason": "a test"},
    "createProject": {"name": "mine"},
    "createStream": {"name": "mine"},
    "createTopic": {"name": "mine"},
}
OPERATORS: Final = {"createCluster", "createOrganization", "createReportRun"}


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organization with an object of each kind that it may have."""

    header: dict[str, str]
    names: Mapping[str, str]
    page_token: str

    @property
    def secrets(self) -> set[str]:
        """What nobody else may read."""
        return set(self.names.values())


@pytest.fixture
def victim(service: Service) -> Tenant:
    """Theirs is what must not show."""
    organization = service.post("/v1/orgs", {"name": "victim-org"})
    owner = service.key("owner", organization["id"])
    project = service.post("/v1/projects", {"name": "victim-project"}, owner)
    topic = service.post("/v1/topics", {"name": "victim-topic"}, owner)
    stream = service.post("/v1/streams", {"name": "victim-stream"}, owner)
    key_body: Body = {"name": "victim-key", "spec": {"role": "viewer"}}
    key = service.post("/v1/api-keys", key_body, owner)
    operation = service.get("/v1/operations", owner)["items"][0]
    page = service.get("/v1/audit-events?page_size=1", owner)
    names = {
        "organization_id": organization["id"],
        "project_id": project["id"],
        "stream_id": stream["id"],
        "topic_id": topic["id"],
        "key_id": key["id"],
        "operation_id": operation["id"],
        "event_id": page["items"][0]["id"],
        "organization": "victim-org",
        "project": "victim-project",
        "stream": "victim-stream",
        "topic": "victim-topic",
        "key": "victim-key",
    }
    return Tenant(owner, names, page["next_page_token"])


def values_of(parameter: str, victim: Tenant) -> list[str]:
    """What of theirs somebody else may try as a parameter.

    :raises KeyError: a parameter that is not known here.
    """
    names = victim.names
    by_parameter = {
        "name": [names[each] for each in ("organization", "project", "stream", "topic", "key")],
        "target_id": [value for name, value in names.items() if name.endswith("_id")],
        "principal_id": [names["key_id"]],
        "cluster_id": [names["stream_id"]],
        "page_token": [victim.page_token],
        "object": [
            *(value for name, value in names.items() if name.endswith("_id")),
            *(f"{kind}/{names[kind]}" for kind in ("organization", "project", "stream", "topic")),
            f"key/{names['key']}",
        ],
    }
    return by_parameter[parameter] if parameter in by_parameter else [names[parameter]]


def parameters_of(operation: Body) -> list[str]:
    """The parameters of an operation that may name an object."""
    found = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
    return [name for name in found if name not in HARMLESS]


def queries(operation: Body, victim: Tenant) -> list[dict[str, str]]:
    """Every way to ask a collection for something of theirs, and once for all there is."""
    required = {each["name"] for each in operation.get("parameters", []) if each.get("required")}
    asked: list[dict[str, str]] = [{}]
    for parameter in parameters_of(operation):
        asked += [{parameter: value} for value in values_of(parameter, victim)]
    named = {each["name"] for each in operation.get("parameters", [])}
    ending = {name: value for name, value in ENDING.items() if name in named}
    return [{**query, **ending} for query in asked if required <= query.keys()]


def test_nothing_of_another_organization_shows_in_a_collection(
    service: Service, victim: Tenant, other: tuple[str, dict[str, str]]
) -> None:
    for name in COLLECTIONS:
        _, path, operation = OPERATIONS[name]
        for query in queries(operation, victim):
            answer = service.client.get(path, params=query, headers=other[1])
            allowed = {200, 400, 403, 404} | ({503} if name in OF_A_NODE else set())
            assert answer.status_code in allowed, (name, query, answer.text)
            told = victim.secrets - set(query.values())
            told -= {value.partition("/")[2] for value in query.values()}
            assert not {each for each in told if each in answer.text}, (name, query, answer.text)
            if answer.status_code == 200 and query.keys() - ENDING.keys():
                assert not answer.json().get("items"), (name, query, answer.text)


def test_the_same_collections_show_an_organization_its_own(
    service: Service, victim: Tenant
) -> None:
    seen = set[str]()
    for name in COLLECTIONS:
        _, path, operation = OPERATIONS[name]
        for query in queries(operation, victim):
            text = service.client.get(path, params=query, headers=victim.header).text
            seen |= {each for each in victim.secrets if each in text}
    assert seen == victim.secrets


@pytest.fixture
def confined(service: Service, victim: Tenant) -> dict[str, str]:
    """An owner's key of another project of the victim's organization."""
    project = service.post("/v1/projects", {"name": "mine"}, victim.header)
    body: Body = {"name": "own", "project_id": project["id"], "spec": {"role": "owner"}}
    return bearer(service.post("/v1/api-keys", body, victim.header)["secret"])


# Whose organization it is, a key of one of its projects may know.
OF_THE_ORGANIZATION: Final = ("organization_id", "organization")


def test_nothing_outside_its_project_shows_in_a_collection_to_a_key_of_a_project(
    service: Service, victim: Tenant, confined: dict[str, str]
) -> None:
    known = {victim.names[each] for each in OF_THE_ORGANIZATION}
    for name in COLLECTIONS:
        _, path, operation = OPERATIONS[name]
        for query in queries(operation, victim):
            answer = service.client.get(path, params=query, headers=confined)
            allowed = {200, 400, 403, 404} | ({503} if name in OF_A_NODE else set())
            assert answer.status_code in allowed, (name, query, answer.text)
            told = victim.secrets - known - set(query.values())
            told -= {value.partition("/")[2] for value in query.values()}
            assert not {each for each in told if each in answer.text}, (name, query, answer.text)


def test_nothing_outside_its_project_is_found_by_its_id_by_a_key_of_a_project(
    service: Service, victim: Tenant, confined: dict[str, str]
) -> None:
    by_id = {
        "project_id": "projects",
        "stream_id": "streams",
        "topic_id": "topics",
        "key_id": "api-keys",
        "operation_id": "operations",
    }
    for name, collection in by_id.items():
        path = f"/v1/{collection}/{victim.names[name]}"
        assert service.client.get(path, headers=victim.header).status_code == 200, name
        assert service.client.get(path, headers=confined).status_code == 404, name
        explained = f"/v1/explain?object={victim.names[name]}"
        assert service.client.get(explained, headers=victim.header).status_code == 200, name
        assert service.client.get(explained, headers=confined).status_code == 404, name


def references_of(operation: Body) -> list[str]:
    """The members of an operation's body that name other objects."""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    members = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
    named = [each for each in members if each.endswith("_id") or each in ("stream", "topic")]
    return [each for each in named if each not in HARMLESS]


WRITES: Final = [name for name, (_, _, found) in OPERATIONS.items() if "requestBody" in found]
FREE: Final = [
    name for name in WRITES if name not in OPERATORS and "{object_id}" not in OPERATIONS[name][1]
]


def test_a_body_that_names_an_object_of_another_organization_is_refused(
    service: Service, victim: Tenant, other: tuple[str, dict[str, str]]
) -> None:
    own = service.post("/v1/topics", {"name": "first"}, other[1])["id"]
    before = service.get("/v1/audit-events?page_size=1000", victim.header)
    for name in FREE:
        method, path, operation = OPERATIONS[name]
        least = {member: own if value == OWN else value for member, value in BODIES[name].items()}
        for member in references_of(operation):
            foreign = values_of(member, victim)[0]
            answer = service.client.request(
                method, path, json={**least, member: foreign}, headers=other[1]
            )
            assert answer.status_code in (400, 404), (name, member, answer.text)
            assert not {each for each in victim.secrets - {foreign} if each in answer.text}
        accepted = service.client.request(method, path, json=least, headers=other[1])
        assert accepted.status_code in (201, 202), (name, accepted.text)
    assert service.get("/v1/audit-events?page_size=1000", victim.header) == before


def test_what_a_guard_keeps_is_refused_whatever_the_body(
    service: Service, victim: Tenant, other: tuple[str, dict[str, str]]
) -> None:
    for name in set(WRITES) - set(FREE):
        method, path, _ = OPERATIONS[name]
        place = path.format(object_id=victim.names["topic_id"])
        answer = service.client.request(method, place, json={}, headers=other[1])
        assert answer.status_code in (403, 404), (name, answer.text)
