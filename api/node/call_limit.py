"""How many calls of requests may be under way to one node at the same time.

A request keeps its thread while it waits for a node. The circuit breaker closes a silent node off
only once a call has timed out: until then every request for that node would take one more thread,
and a node that answers slowly never opens its circuit at all. So a call beyond the limit is refused
at once. Refuses to queue: whoever waited here would hold the thread that this saves.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

# The API has 40 threads for requests (the default of anyio). One silent node holds 16 of them until
# its circuit opens, and 24 are left for requests of other nodes and of the database alone. A node
# that is well answers in milliseconds: 16 at a time are thousands of calls a second, more than a
# process of the API serves.
CALLS_MAX: Final = 16
RETRY_SECONDS: Final = 1

log = structlog.get_logger()


class NodeBusyError(Exception):
    """As many calls are under way to the node as may be; this one was not made."""

    def __init__(self, address: str) -> None:
        super().__init__(f"{CALLS_MAX} calls are under way to {address}")
        self.address = address


class CallLimit:
    """The calls of one process, by address."""

    def __init__(self) -> None:
        self.refused = 0
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self._refusing: set[str] = set()

    @property
    def under_way(self) -> int:
        """The calls to all nodes."""
        return self._calls.total()

    @contextmanager
    def call(self, address: str) -> Iterator[None]:
        """One call, until the end of the block.

        :raises NodeBusyError: the node has as many as it may have.
        """
        with self._lock:
            is_refused = self._calls[address] >= CALLS_MAX
            is_first = is_refused and address not in self._refusing
            if is_refused:
                self.refused += 1
                self._refusing.add(address)
            else:
                self._calls[address] += 1
        if is_first:
            # One line for all refusals until the node has no call under way: requests have theirs.
            log.warning("node_busy", address=address, calls=CALLS_MAX)
        if is_refused:
            raise NodeBusyError(address)
        try:
            yield
        finally:
            with self._lock:
                self._calls[address] -= 1
                if not self._calls[address]:
                    del self._calls[address]
                    self._refusing.discard(address)
