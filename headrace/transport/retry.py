"""Deadlines, back-off and durations. Pure: time and randomness come in as arguments or defaults of
the constructor.

One deadline bounds one call with all its repetitions. Pauses grow from 20 ms to 2 s with full
jitter, so that clients which lost the same node do not come back in step; a pause the server asks
for is never undercut.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from datetime import timedelta

from headrace.errors import HeadraceError, Invalid, Kind

Duration = float | int | str | timedelta
"""Seconds, `timedelta`, or text such as "200ms", "5s", "2m", "1h", "7d"."""

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)")

PAUSE_FIRST = 0.02
PAUSE_MAX = 2.0


def seconds(duration: Duration) -> float:
    """A duration in seconds; negative ones are refused."""
    if isinstance(duration, timedelta):
        value = duration.total_seconds()
    elif isinstance(duration, str):
        match = _DURATION.fullmatch(duration.strip())
        if match is None:
            raise Invalid(
                f"{duration!r} is not a duration", hint='Use "200ms", "5s", "2m", "1h" or "7d".'
            )
        value = float(match[1]) * _UNITS[match[2]]
    else:
        value = float(duration)
    if value < 0:
        raise Invalid(f"A duration cannot be negative: {duration!r}")
    return value


class Deadline:
    """A point in monotonic time that all attempts of one call share."""

    __slots__ = ("_at", "_clock")

    def __init__(self, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock() + timeout

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._at - self._clock())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining() <= 0.0


class Backoff:
    """The pauses between the attempts of one call."""

    __slots__ = ("_random", "attempts")

    def __init__(self, source: random.Random | None = None) -> None:
        self.attempts = 0
        self._random = source or random.Random()

    def pause(self, retry_after: float | None = None) -> float:
        """Seconds to wait before the next attempt."""
        ceiling = min(PAUSE_MAX, PAUSE_FIRST * (1 << min(self.attempts, 12)))
        self.attempts += 1
        jittered = ceiling * (0.5 + self._random.random() / 2)
        return max(jittered, retry_after or 0.0)

    def reset(self) -> None:
        """An attempt succeeded."""
        self.attempts = 0


def repeatable(error: HeadraceError, *, idempotent: bool) -> bool:
    """Whether the SDK may repeat the call by itself. COMMITTED_UNKNOWN only if doing it twice is
    doing it once."""
    if error.kind is Kind.COMMITTED_UNKNOWN:
        return idempotent
    return error.kind in (Kind.RETRY_SAME_NODE, Kind.RETRY_OTHER_NODE)


def changes_route(error: HeadraceError) -> bool:
    """Whether the routes must be read again first. RETRY_SAME_NODE never fails over."""
    return error.kind is Kind.RETRY_OTHER_NODE
