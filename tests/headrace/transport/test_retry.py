"""Durations, deadlines, pauses, and which errors are repeated."""

import random
from datetime import timedelta

import pytest

from headrace.errors import HeadraceError, Invalid, Kind
from headrace.transport.retry import (
    PAUSE_MAX,
    Backoff,
    Deadline,
    Duration,
    changes_route,
    repeatable,
    seconds,
)


@pytest.mark.parametrize(
    ("duration", "expected"),
    [("5s", 5.0), ("200ms", 0.2), ("1.5m", 90.0), ("7d", 604800.0), (2, 2.0), (0.25, 0.25)],
)
def test_durations_are_seconds_text_or_timedelta(duration: Duration, expected: float) -> None:
    assert seconds(duration) == expected
    assert seconds(timedelta(seconds=expected)) == expected


@pytest.mark.parametrize("duration", ["5", "s", "five", "1 s 2 ms", -1, "-3s"])
def test_a_duration_that_is_none_is_refused_with_an_example(duration: Duration) -> None:
    with pytest.raises(Invalid) as refused:
        seconds(duration)
    assert refused.value.code == "INVALID_ARGUMENT"


def test_a_deadline_is_shared_by_all_attempts() -> None:
    now = [100.0]
    deadline = Deadline(5, clock=lambda: now[0])
    now[0] = 103.0
    assert deadline.remaining() == 2.0
    now[0] = 106.0
    assert deadline.passed
    assert deadline.remaining() == 0.0


def test_pauses_grow_with_jitter_and_stay_below_their_bound() -> None:
    backoff = Backoff(random.Random(1))
    pauses = [backoff.pause() for _ in range(12)]
    assert pauses[0] < 0.05
    assert max(pauses) <= PAUSE_MAX
    assert pauses[-1] >= PAUSE_MAX / 2
    backoff.reset()
    assert backoff.pause() < 0.05


def test_a_pause_that_the_server_asks_for_is_never_undercut() -> None:
    assert Backoff().pause(retry_after=7.5) == 7.5


def test_only_retry_other_node_changes_the_route() -> None:
    changing = [kind for kind in Kind if changes_route(HeadraceError("x", kind=kind))]
    assert changing == [Kind.RETRY_OTHER_NODE]


def test_an_unknown_outcome_is_repeated_only_when_that_is_harmless() -> None:
    unknown = HeadraceError("x", kind=Kind.COMMITTED_UNKNOWN)
    assert repeatable(unknown, idempotent=True)
    assert not repeatable(unknown, idempotent=False)
    assert not repeatable(HeadraceError("x", kind=Kind.TERMINAL), idempotent=True)
    assert not repeatable(HeadraceError("x", kind=Kind.SESSION_EXPIRED), idempotent=True)
