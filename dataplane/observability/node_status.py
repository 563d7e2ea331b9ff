"""The status of this node: conditions in its log and on /readyz, and its row for the control plane.

Owns the lines in the log for states that the shards only count. It reads the engine's own metrics,
so that a line and its metric never disagree. Each change is one line, however often the metrics are
read; a disk counts as full until several readings say that it is not, because a shard tries again
in between. Refuses to act: what is refused and served is decided in the shards.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from dataplane.wire import node_pb2 as wire
from headrace.version import VERSION

READ_S: Final = 1.0
# A shard takes the disk for full until its next try, one second later.
READINGS_UNTIL_FREE: Final = 5

DAMAGED_METRIC: Final = "headrace_groups_damaged"
FULL_METRIC: Final = "headrace_storage_full"
FETCHED_METRIC: Final = "headrace_fetch_bytes_total"

log = logging.getLogger("dataplane.conditions")


class Conditions:
    """Damage and a full disk, from the metrics of the engine; one task, `run`."""

    def __init__(self, total: Callable[[str], int]) -> None:
        """`total`: of a metric of the engine, over all shards."""
        self._total = total
        self._damaged = 0
        self._full = False
        self._readings_free = 0

    async def run(self) -> None:
        """Read the metrics until cancelled."""
        while True:
            self.update()
            await asyncio.sleep(READ_S)

    def update(self) -> None:
        """Read the metrics; log what has changed since the last reading."""
        self._update_damaged(self._total(DAMAGED_METRIC))
        self._update_full(self._total(FULL_METRIC) > 0)

    def warning(self) -> str:
        """What holds now, for /readyz; empty if nothing."""
        found = []
        if self._full:
            found.append("STORAGE_FULL: writes are refused until there is space; reads go on")
        if self._damaged:
            found.append(f"DAMAGED: {self._damaged} partitions are stopped; see the runbook")
        return "; ".join(found)

    def _update_damaged(self, damaged: int) -> None:
        if damaged > self._damaged:
            log.error(
                "%d partitions are isolated after damage, all others are available; Admin.Describe "
                "lists them, see the runbook",
                damaged,
            )
        elif damaged < self._damaged:
            log.warning("%d partitions are damaged; there were %d", damaged, self._damaged)
        self._damaged = damaged

    def _update_full(self, full: bool) -> None:
        self._readings_free = 0 if full else self._readings_free + 1
        if full and not self._full:
            log.error("the disk is full: writes are refused, reads go on; free space or add disk")
            self._full = True
        elif self._full and self._readings_free >= READINGS_UNTIL_FREE:
            log.warning("the disk has space again: writes are taken")
            self._full = False


class NodeStatus:
    """The status of one node for the control plane."""

    def __init__(
        self, shards: int, *, total: Callable[[str], int], warning: Callable[[], str]
    ) -> None:
        """`total`: of a metric of the engine, over all shards."""
        self._shards = shards
        self._total = total
        self._warning = warning
        self._started_us = time.time_ns() // 1000

    def message(self) -> wire.NodeStatus:
        """The status now."""
        return wire.NodeStatus(
            version=VERSION,
            shards=self._shards,
            started_us=self._started_us,
            warning=self._warning(),
            fetched_bytes=self._total(FETCHED_METRIC),
        )
