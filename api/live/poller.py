"""Observes the clusters every two seconds while there are readers, once for all of them.

Owns the one task that observes and the short history it leaves, summed by project: what it holds
does not grow with topics. The task begins with the first reader and ends with the last. A slow
reader skips observations, so nothing grows; a slow observation delays the next one.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy.exc import SQLAlchemyError

from api.db.database import Database
from api.live.observation import Observation, Point, Sums, observe, point_between
from api.node.client import NodeClient
from api.node.pool import NodePool

INTERVAL_SECONDS: Final = 2.0
# After an observation that took a second comes a pause of four.
REST_FACTOR: Final = 4.0
NODE_SECONDS: Final = 2.0
QUIET_SECONDS: Final = 10.0
HISTORY_POINTS: Final = 150

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The latest observation; ``point`` is None for the first one after a pause."""

    number: int
    observation: Observation
    point: Point | None


class Poller:
    """At most one task, shared by all readers."""

    def __init__(self) -> None:
        self.looks = 0
        self.readers = 0
        self._history: deque[Sums] = deque(maxlen=HISTORY_POINTS)
        self._seen: Snapshot | None = None
        self._task: asyncio.Task[None] | None = None
        self._fresh = asyncio.Event()

    def history(self) -> list[Sums]:
        """The points before the latest one, the oldest first."""
        return list(self._history)[:-1]

    def is_looking(self) -> bool:
        """Whether the task runs."""
        return self._task is not None

    async def follow(
        self, database: Database, nodes: NodePool
    ) -> AsyncGenerator[Snapshot | None, None]:
        """Each observation as it is made, or the newest of those since the last; None when it is
        quiet. Ends with the task."""
        self.readers += 1
        if self._task is None:
            self._seen, self._fresh = None, asyncio.Event()
            self._task = asyncio.ensure_future(self._run(database, nodes))
        try:
            number = 0
            while self._task is not None:
                seen = self._seen
                if seen is not None and seen.number > number:
                    number = seen.number
                    yield seen
                    continue
                try:
                    await asyncio.wait_for(self._fresh.wait(), QUIET_SECONDS)
                except TimeoutError:
                    yield None
        finally:
            self.readers -= 1
            if self.readers == 0 and self._task is not None:
                ended, self._task = self._task, None
                ended.cancel()
                await asyncio.gather(ended, return_exceptions=True)

    async def _run(self, database: Database, nodes: NodePool) -> None:
        # One thread at a time, which is none of those that serve requests.
        client = NodeClient(nodes, deadline_seconds=NODE_SECONDS, limited=False)
        before: Observation | None = None
        try:
            while True:
                began = time.monotonic()
                try:
                    now = await asyncio.to_thread(observe, database, client, before)
                except SQLAlchemyError as error:
                    log.warning("live_look_failed", error=type(error).__name__)
                else:
                    self._publish(before, now)
                    before = now
                took = time.monotonic() - began
                await asyncio.sleep(max(INTERVAL_SECONDS - took, REST_FACTOR * took, 0.0))
        finally:
            # Readers that follow the next task are not woken.
            if self._task is asyncio.current_task():
                self._task = None
                self._fresh.set()

    def _publish(self, before: Observation | None, now: Observation) -> None:
        self.looks += 1
        point = point_between(before, now) if before is not None else None
        if point is not None:
            self._history.append(point.sums)
        self._seen = Snapshot(self.looks, now, point)
        fresh, self._fresh = self._fresh, asyncio.Event()
        fresh.set()
