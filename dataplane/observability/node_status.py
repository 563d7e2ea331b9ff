"""What the node says of itself to the control plane: who it is, since when, and what troubles it.

Owns no figure: it reads those of the engine and the warnings of the host when somebody asks.
"""

import time
from collections.abc import Callable
from typing import Final

from dataplane.wire import node_pb2 as wire
from headrace.version import VERSION

FETCHED_METRIC: Final = "headrace_fetch_bytes_total"


class Standing:
    """One node's; `total`: of a metric of the engine, over all shards."""

    def __init__(
        self, shards_count: int, *, total: Callable[[str], int], warning: Callable[[], str]
    ) -> None:
        self._shards_count = shards_count
        self._total = total
        self._warning = warning
        self._started_us = time.time_ns() // 1000

    def status(self) -> wire.NodeStatus:
        """As it is now."""
        return wire.NodeStatus(
            version=VERSION,
            shards=self._shards_count,
            started_us=self._started_us,
            warning=self._warning(),
            fetched_bytes=self._total(FETCHED_METRIC),
        )
