"""What a pass over one object ends in: a value, so that the loop alone decides what happens
next."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from pydantic import JsonValue as Json

from api.node.failure import FailureKind
from api.reconcile.conditions import Condition


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A command of a pass and the answer of the cluster, as `explain` shows it."""

    what: str
    why: str
    generation: int
    fence: str
    outcome: str
    answer: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What a pass observed and did, for the status. ``ready`` completes the operations of this
    generation; ``ended`` is the error that they fail with, because they will not be continued."""

    observed_generation: int
    conditions: tuple[Condition, ...] = ()
    detail: Mapping[str, Json] = field(default_factory=dict)
    ready: bool = False
    commands: tuple[CommandRecord, ...] = ()
    ended: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Converged:
    """The status equals the spec. ``final``: nothing is ever left to do."""

    observation: Observation
    final: bool = False


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Not there yet, without an error: the object is due again after a while."""

    observation: Observation
    after: timedelta
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The pass failed. ``after`` is the delay that a throttling node asked for."""

    kind: FailureKind
    code: str
    message: str
    observed_generation: int
    after: timedelta | None = None


Outcome = Converged | RequeueAfter | Failed
