"""The kinds of objects of the control plane, and where REST keeps them. Knows names alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.errors import Invalid

Kind = Literal["org", "project", "stream", "topic", "key", "hold", "cluster", "node"]


@dataclass(frozen=True, slots=True)
class KindRow:
    """A kind: its word for people, its place in REST, the prefix of its ids."""

    word: str
    collection: str
    prefix: str
    in_project: bool


_KINDS: dict[str, KindRow] = {
    "org": KindRow("organization", "orgs", "org_", False),
    "project": KindRow("project", "projects", "prj_", False),
    "stream": KindRow("stream", "streams", "st_", True),
    "topic": KindRow("topic", "topics", "tp_", True),
    "key": KindRow("key", "api-keys", "key_", True),
    "hold": KindRow("legal hold", "legal-holds", "hold_", False),
    "cluster": KindRow("cluster", "clusters", "cl_", False),
    "node": KindRow("node", "nodes", "nd_", False),
}


def kind_of(kind: Kind) -> KindRow:
    """What is known of a kind."""
    return _KINDS[kind]


def path_of(object_id: str) -> str:
    """Where REST keeps an object. Raises Invalid for an id of none of these kinds."""
    for kind, row in _KINDS.items():
        if object_id.startswith(row.prefix) and kind != "node":
            return f"/{row.collection}/{object_id}"
    raise Invalid(
        f"{object_id!r} is not the id of an organization, project, stream, topic, key or hold"
    )
