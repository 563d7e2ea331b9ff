"""One sentence about the state of an object. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from api.http.resource import ConditionBody, format_instant


@dataclass(frozen=True, slots=True)
class State:
    """The input of a sentence. ``due_at``: the next attempt of a worker, if one is planned."""

    subject: str
    generation: int
    observed_generation: int
    conditions: Sequence[ConditionBody]
    deleted_at: datetime | None
    purged_at: datetime | None
    due_at: datetime | None


def sentence(state: State) -> str:
    """The state of a reconciled object in one sentence."""
    found = {each.type: each for each in state.conditions}
    if state.purged_at is not None:
        return f"The {state.subject} was removed at {format_instant(state.purged_at)}."
    if state.deleted_at is not None:
        return _going(state, found)
    active = found.get("Active")
    if active is not None and active.status == "False":
        return f"The {state.subject} is revoked on every cluster."
    if state.observed_generation < state.generation and found:
        return (
            f"Generation {state.generation} of the {state.subject} waits for a worker; the last "
            f"reconciled generation is {state.observed_generation}."
        )
    ready = found.get("Ready")
    if ready is None:
        return f"The {state.subject} exists and needs no reconciliation."
    if ready.status == "True":
        return f"The {state.subject} is ready: generation {state.generation} is in effect."
    return f"The {state.subject} is not ready: {_because(ready)}.{_next(state)}"


def _going(state: State, found: Mapping[str, ConditionBody]) -> str:
    assert state.deleted_at is not None
    since = format_instant(state.deleted_at)
    deleting = found.get("Deleting")
    why = f": {_because(deleting)}" if deleting is not None else ""
    return f"The {state.subject} has been in deletion since {since}{why}.{_next(state)}"


def _because(condition: ConditionBody) -> str:
    message = condition.message.rstrip(".")
    return f"{condition.reason} ({message})" if message else condition.reason


def _next(state: State) -> str:
    return f" The next attempt is at {format_instant(state.due_at)}." if state.due_at else ""
