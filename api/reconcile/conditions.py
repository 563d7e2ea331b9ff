"""Conditions: the truth about an object, one aspect each, merged so that times mean something.
Pure.

    Ready      can be used as the spec of ``observed_generation`` says
    Synced     the last pass found or made everything equal to the spec
    Reachable  a node of the cluster answered
    Stalled    retrying will not help; the spec or the world must change
    Active     (keys) the nodes hold it
    Deleting   it shall go, and is not gone
    RetentionEnforced  (topics) what the spec does not keep is removed
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue as Json

from api.http.resource import format_instant

UNREACHABLE_IS_FALSE_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Condition:
    """One aspect. ``status`` is True, False or Unknown; ``reason`` is CamelCase and never empty."""

    type: str
    status: str
    reason: str
    message: str = ""


def unknown(types: Iterable[str], generation: int, now: datetime) -> list[Json]:
    """The conditions of an object that has not been observed yet."""
    return merge(
        [], [Condition(type_, "Unknown", "NotObservedYet") for type_ in types], generation, now
    )


def merge(
    previous: Iterable[Json], found: Iterable[Condition], generation: int, now: datetime
) -> list[Json]:
    """The conditions to store: one per type; the time moves only when the status flips."""
    known = {str(item["type"]): item for item in previous if isinstance(item, dict)}
    for condition in found:
        before = known.get(condition.type)
        flipped = before is None or before["status"] != condition.status
        known[condition.type] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "observed_generation": generation,
            "last_transition_at": format_instant(now)
            if flipped or before is None
            else before["last_transition_at"],
        }
    return [known[type_] for type_ in sorted(known)]


def unreachable(previous: Iterable[Json], why: str, now: datetime) -> Condition:
    """Reachable is Unknown at first and False once that has lasted: a slow start is no death."""
    status = "Unknown"
    for item in previous:
        if isinstance(item, dict) and item["type"] == "Reachable" and item["status"] != "True":
            since = datetime.fromisoformat(str(item["last_transition_at"]))
            if item["reason"] == "NodeUnreachable" and (
                item["status"] == "False" or now - since >= UNREACHABLE_IS_FALSE_AFTER
            ):
                status = "False"
    return Condition("Reachable", status, "NodeUnreachable", why)


def has_status(conditions: Iterable[Json], type_: str, status: str, generation: int) -> bool:
    """Whether a condition has a status for a generation or a later one."""
    for item in conditions:
        if isinstance(item, dict) and item["type"] == type_ and item["status"] == status:
            observed = item["observed_generation"]
            return isinstance(observed, int) and observed >= generation
    return False


def is_true(conditions: Iterable[Json], type_: str, generation: int) -> bool:
    """Whether a condition is True for a generation or a later one."""
    return has_status(conditions, type_, "True", generation)


def lasting(conditions: Iterable[Json], type_: str, now: datetime) -> timedelta:
    """How long a condition has been what it is; zero for one that is True or not there."""
    for item in conditions:
        if isinstance(item, dict) and item["type"] == type_ and item["status"] != "True":
            return now - datetime.fromisoformat(str(item["last_transition_at"]))
    return timedelta(0)


def differs(before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    """Whether a status is worth writing: times alone are not."""
    return _without_times(before) != _without_times(after)


def _without_times(value: Json | Mapping[str, Json]) -> Json:
    if isinstance(value, Mapping):
        return {
            name: _without_times(member)
            for name, member in value.items()
            if name != "last_transition_at"
        }
    if isinstance(value, list):
        return [_without_times(member) for member in value]
    return value
