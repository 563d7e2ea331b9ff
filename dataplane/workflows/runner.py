"""Workflows over several logs, one for each topic: repeated until the metadata says it is done.

Owns one task for each topic under way, when it is tried again (from 1 s up to 60 s apart, at once
for a newer intent), and the count and log of failures. An attempt is repeatable and reads all from
the metadata, so a restart resumes every workflow where it stands. Refuses to know the steps:
`delete_topic.py` and `legal_holds.py` do.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from dataplane.metadata.replica import MetadataReplica

RETRY_S_MIN: Final = 1.0
RETRY_S_MAX: Final = 60.0

log = logging.getLogger("dataplane.workflows")


class WorkflowRunner:
    """Runs at most one workflow a topic, by the topic's number. Runs on the event loop.

    :param attempt: one try, which reads the metadata before it waits for anything. None: there is
        nothing to do; "": the metadata has changed, try again at once; else why it did not end.
    :param outcome: what a topic is at the end of its workflow, for the log.
    """

    def __init__(
        self,
        replica: MetadataReplica,
        tasks: asyncio.TaskGroup,
        attempt: Callable[[int], Awaitable[str | None]],
        *,
        outcome: str,
        retry_s_min: float = RETRY_S_MIN,
    ) -> None:
        self._replica = replica
        self._tasks = tasks
        self._attempt = attempt
        self._outcome = outcome
        self._retry_s_min = retry_s_min
        self._under_way: dict[int, tuple[asyncio.Event, asyncio.Task[None]]] = {}
        self._started = False
        self.failures_by_reason: Counter[str] = Counter()

    def count(self) -> int:
        """Topics under way."""
        return len(self._under_way)

    def start(self, numbers: Iterable[int]) -> None:
        """The metadata has recovered: resume these topics."""
        self._started = True
        for number in numbers:
            self.wake(number)

    def stop(self) -> None:
        """Cancel every workflow: the next start resumes them."""
        self._started = False
        for _, task in self._under_way.values():
            task.cancel()

    def wake(self, number: int) -> None:
        """There is an intent for this topic, perhaps a newer one: try now."""
        if not self._started:
            return  # Recovery replays old intents; `start` gets those that are left.
        known = self._under_way.get(number)
        if known is not None:
            known[0].set()
            return
        again = asyncio.Event()
        task = self._tasks.create_task(self._run(number, again), name=f"{self._outcome}: {number}")
        self._under_way[number] = (again, task)

    async def _run(self, number: int, again: asyncio.Event) -> None:
        delay_s, before = self._retry_s_min, ""
        try:
            while True:
                again.clear()
                reason = await self._attempt(number)
                if reason is None:
                    return
                if not reason:
                    continue
                self._failed(number, reason, before)
                before = reason
                try:
                    async with asyncio.timeout(delay_s):
                        await again.wait()
                    delay_s = self._retry_s_min
                except TimeoutError:
                    delay_s = min(delay_s * 2, RETRY_S_MAX)
        finally:
            del self._under_way[number]

    def _failed(self, number: int, reason: str, before: str) -> None:
        """Count it; log it once, until it fails for another reason."""
        self.failures_by_reason[reason] += 1
        if reason == before:
            return
        with self._replica.reading() as state:
            topic = state.topic_numbered(number)
        log.warning(
            "topic %s (number %d) is not %s yet: %s; trying again",
            topic.spec.topic_id if topic is not None else "",
            number,
            self._outcome,
            reason,
        )
