"""From names and keys to rows: which project a caller means, which topic a name means.

Owns the rules of names on the data plane: `stream/topic`, a bare `topic` in stream `default`, an id
(`tp_...`), and the system's `_usage` and `_retention`, which only the node key may name. A caller
sees its organization, and its project if its key has one: anything else does not exist for it.
"""

from collections.abc import Sequence
from typing import Final

from dataplane.engine.frames import NODE_KEY_PRINCIPAL, Caller
from dataplane.errors import Refused
from dataplane.metadata.state import (
    DEFAULT_PROJECT,
    DEFAULT_STREAM,
    Organization,
    Project,
    State,
    Topic,
)

NAMES_MAX: Final = 1000


def check_count(names: Sequence[str], most: int = NAMES_MAX) -> None:
    """Raises Refused unless a request names few topics: an answer is far longer than a name."""
    if len(names) > most:
        raise Refused(
            "INVALID_ARGUMENT",
            f"{len(names)} topics are named; a call takes at most {most}",
            hint="Name fewer in each call.",
        )


def organization_of(state: State, caller: Caller) -> Organization:
    """The caller's organization. Raises Refused for the node key, which has none."""
    organization = state.organization_numbered(caller.organization)
    if organization is None:
        raise Refused(
            "PERMISSION_DENIED",
            "This key belongs to no organization.",
            hint="Use a key of the organization that owns the topics",
        )
    return organization


def project_of(state: State, caller: Caller, name: str) -> Project:
    """The project a caller means: the one it names, its key's, or `default`. Raises Refused.

    The node key, which belongs to no organization, names one by its id.
    """
    if caller.principal == NODE_KEY_PRINCIPAL and name in state.projects:
        return state.projects[name]
    organization = organization_of(state, caller)
    own = state.project_numbered(caller.project) if caller.project else None
    if own is not None:
        if name in ("", own.name, own.id):
            return own
        raise _no_project(name)
    project = state.project_named(organization.id, name or DEFAULT_PROJECT)
    if project is None:
        raise _no_project(name or DEFAULT_PROJECT)
    return project


def visible_topics(state: State, caller: Caller, project: str) -> list[Topic]:
    """Every topic the caller may see, ascending by number; `project` narrows it."""
    if caller.principal == NODE_KEY_PRINCIPAL:
        return [
            topic
            for topic in state.topics_by_number()
            if project in ("", topic.spec.project, topic.spec.project_id)
        ]
    chosen = project_of(state, caller, project)
    return [topic for topic in state.topics_by_number() if topic.spec.project_id == chosen.id]


def topic_of(state: State, caller: Caller, project: str, name: str) -> Topic:
    """The topic a caller means by a name or an id. Raises Refused."""
    wanted = name if "/" in name or name.startswith("_") else f"{DEFAULT_STREAM}/{name}"
    # Clients that always write stream/topic say default/_usage.
    wanted = wanted.removeprefix(f"{DEFAULT_STREAM}/") if "/_" in wanted else wanted
    if caller.principal != NODE_KEY_PRINCIPAL:
        chosen = project_of(state, caller, project)
        topic = state.topics.get(name) or state.topic_named(chosen.id, wanted)
        if topic is None or topic.spec.project_id != chosen.id:
            raise no_topic(name)
        return topic
    found = [
        topic
        for topic in visible_topics(state, caller, project)
        if name == topic.spec.topic_id or wanted == topic.spec.name()
    ]
    if not found:
        raise no_topic(name)
    if len(found) > 1:
        raise Refused(
            "TOPIC_AMBIGUOUS",
            f"{len(found)} projects have a topic {name}.",
            hint="Name the project by its id, or the topic by its id.",
        )
    return found[0]


def no_topic(name: str) -> Refused:
    """There is none, or not for this caller: the answer is the same."""
    return Refused(
        "TOPIC_NOT_FOUND",
        f"The topic {name} does not exist in this project, or this key has no access to it.",
        hint="See `headrace topic list`; a topic just created needs a moment to be ready.",
    )


def _no_project(name: str) -> Refused:
    return Refused(
        "PROJECT_NOT_FOUND",
        f"The project {name} does not exist on this cluster, or this key has no access to it.",
        hint="Name a project with a topic on this cluster, or use a key of that project.",
    )
