"""What a pass over one object ends in: a value, so that the loop alone decides what happens
next."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from pydantic import JsonValue as Json

from api.node.failure import FailureKind
from api.reconcile.conditions import Condition


@dataclass(frozen=True, slots=True)
class Sent:
    """A command of a pass that a cluster answered, for whoever asks why an object is as it is."""

    what: str
    why: str
    generation: int
    fence: str
    outcome: str
    answer: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a pass saw and did, for the status. ``ready`` settles the operations of this
    generation; ``ended`` is the error that they fail with, for nobody goes on with them."""

    observed_generation: int
    conditions: tuple[Condition, ...] = ()
    detail: Mapping[str, Json] = field(default_factory=dict)
    ready: bool = False
    sent: tuple[Sent, ...] = ()
    ended: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """Everything is as wished. ``final``: there is never anything more to do."""

    found: Found
    final: bool = False


@dataclass(frozen=True, slots=True)
class Again:
    """Not there yet, and no fault: look again after a while."""

    found: Found
    after: timedelta
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The pass did not get through. ``after`` is a hint from a node that throttles."""

    kind: FailureKind
    code: str
    message: str
    observed_generation: int
    after: timedelta | None = None


Outcome = Settled | Again | Failed
