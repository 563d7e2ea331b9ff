"""Waiters in this process for an object to change.

A waiter belongs to an event loop; a change is published by any thread. What it publishes is only
that something may have changed: a waiter reads the object again and decides. Refuses to keep
anything for later waiters: read first, and again when woken.
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    changed: asyncio.Event

    def wake(self) -> None:
        """Sets the event, from any thread."""
        # A closed loop has no waiters.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.changed.set)


class Changes:
    """The waiters of each object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[str, set[_Waiter]] = {}

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._waiters.values()))

    @contextmanager
    def watched(self, object_id: str) -> Iterator[asyncio.Event]:
        """An event that is set at every change of an object, until the end of the block."""
        waiter = _Waiter(asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiters.setdefault(object_id, set()).add(waiter)
        try:
            yield waiter.changed
        finally:
            with self._lock:
                of_object = self._waiters[object_id]
                of_object.discard(waiter)
                if not of_object:
                    del self._waiters[object_id]

    def publish(self, object_ids: Iterable[str]) -> None:
        """Wakes those who wait for these objects."""
        with self._lock:
            woken = [waiter for each in object_ids for waiter in self._waiters.get(each, ())]
        for waiter in woken:
            waiter.wake()

    def publish_all(self) -> None:
        """Wakes everyone: changes may have been missed."""
        with self._lock:
            object_ids = list(self._waiters)
        self.publish(object_ids)
