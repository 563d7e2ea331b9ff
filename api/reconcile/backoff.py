"""When to look again: soon at first, and ever later. Pure."""

import random
from datetime import timedelta
from typing import Final

BACKOFF_FIRST: Final = timedelta(milliseconds=500)
BACKOFF_MAX: Final = timedelta(seconds=300)
POLL_FIRST: Final = timedelta(milliseconds=50)
POLL_MAX: Final = timedelta(seconds=30)
POLL_SHARE: Final = 10


def backoff(attempts: int, dice: random.Random) -> timedelta:
    """Full jitter: anything up to the bound, which doubles with every failure."""
    bound = min(BACKOFF_MAX, BACKOFF_FIRST * (1 << min(attempts, 16)))
    return bound * dice.random()


def poll_after(age: timedelta) -> timedelta:
    """When to ask again: soon at first, and ever later the longer it takes. Pure."""
    return min(POLL_MAX, max(POLL_FIRST, age / POLL_SHARE))
