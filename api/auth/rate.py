"""How often a principal may ask: a token bucket each, in this process.

A bucket holds ``burst`` tokens and gains ``per_second``; a request takes what it costs, and one
that finds too few is refused with the time to wait. Buckets are of principals, never of addresses:
many customers may share one. The number of buckets is bounded; the one that was asked for longest
ago is forgotten, which is to say full. With several API processes each grants the whole rate.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from api.http.errors import RateLimitedError

PRINCIPALS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Policy:
    """What every principal may do. ``burst`` tokens at once, ``per_second`` in the long run."""

    burst: int
    per_second: int

    def header(self) -> str:
        """The policy as the field RateLimit-Policy: a quota and its window in seconds."""
        return f'"principal";q={self.burst};w={math.ceil(self.burst / self.per_second)}'


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Limits:
    """The buckets of one process.

    :param clock: seconds that never go back.
    """

    def __init__(self, policy: Policy, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.policy = policy
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, principal_id: str, cost: int) -> str:
        """Takes what a request costs; the answer is the field RateLimit.

        :raises RateLimitedError: too few tokens are left; says when there will be enough.
        """
        with self._lock:
            bucket = self._filled(principal_id)
            if bucket.tokens < cost:
                seconds = math.ceil((cost - bucket.tokens) / self.policy.per_second)
                raise RateLimitedError(
                    f"This key has asked too often: {self.policy.per_second} requests a second "
                    f"are granted, {self.policy.burst} at once.",
                    hint="Wait as long as Retry-After specifies. Request larger pages, less often.",
                    retry_after_seconds=seconds,
                )
            bucket.tokens -= cost
            missing = self.policy.burst - bucket.tokens
            full_in = math.ceil(missing / self.policy.per_second)
            return f'"principal";r={int(bucket.tokens)};t={full_in}'

    def _filled(self, principal_id: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(principal_id, _Bucket(self.policy.burst, now))
        self._buckets.move_to_end(principal_id)
        gained = (now - bucket.at) * self.policy.per_second
        bucket.tokens = min(self.policy.burst, bucket.tokens + gained)
        bucket.at = now
        if len(self._buckets) > PRINCIPALS_MAX:
            self._buckets.popitem(last=False)
        return bucket
