"""What a failed pass means for an object's conditions. Pure.

A pass that failed has looked, so the generation counts as observed; but a generation that was never
Ready does not become it by an older one's word.
"""

from collections.abc import Iterable
from datetime import datetime

from pydantic import JsonValue as Json

from api.node.failure import FailureKind
from api.reconcile.conditions import Condition, is_true, unreachable
from api.reconcile.outcome import Failed


def failure_conditions(
    previous: Iterable[Json], outcome: Failed, now: datetime
) -> tuple[Condition, ...]:
    """The conditions that a failure changes."""
    known = list(previous)
    if not known:
        return ()
    kinds = {str(item["type"]) for item in known if isinstance(item, dict)}
    reason = "".join(part.capitalize() for part in outcome.code.split("_"))
    message = outcome.message
    if any(_is_going(item) for item in known):
        return _going(known, outcome, reason, now)
    match outcome.kind:
        case FailureKind.UNREACHABLE:
            found = [
                unreachable(known, message, now),
                Condition("Ready", "Unknown", "NodeUnreachable", message),
                Condition("Synced", "Unknown", "NodeUnreachable", message),
            ]
        case FailureKind.INVALID:
            found = [
                Condition("Ready", "False", reason, message),
                Condition("Synced", "False", reason, message),
                Condition("Reachable", "True", "NodeAnswered"),
                Condition("Stalled", "True", reason, message),
            ]
        case _:
            found = [Condition("Synced", "False", reason, message)]
            if not is_true(known, "Ready", outcome.observed_generation):
                found.append(Condition("Ready", "False", reason, message))
    return tuple(condition for condition in found if condition.type in kinds)


def _is_going(item: Json) -> bool:
    return isinstance(item, dict) and item["type"] == "Deleting" and item["status"] == "True"


def _going(known: list[Json], outcome: Failed, reason: str, now: datetime) -> tuple[Condition, ...]:
    """An object that shall go stays so, whatever a pass met; the reason says what keeps it."""
    message = outcome.message
    away = outcome.kind is FailureKind.UNREACHABLE
    stalled = outcome.kind is FailureKind.INVALID
    return (
        Condition("Deleting", "True", "NodeUnreachable" if away else reason, message),
        Condition("Ready", "False", "Deleting", message),
        unreachable(known, message, now)
        if away
        else Condition("Reachable", "True", "NodeAnswered"),
        Condition("Stalled", "True" if stalled else "False", reason if stalled else "Progressing"),
    )
