"""Legal holds into the partitions' own logs: the host's side of intent -> fence -> confirm.

Owns one workflow for each topic whose holds are not confirmed: SET_HOLD into the log of every
partition that a hold concerns, then ConfirmHold into the metadata's. Everything is read from the
metadata and each step is repeatable; a partition refuses an intent that a later one overtook. What
fails is tried again (`runner.py`). Refuses to decide what is held.
"""

import asyncio
from typing import Final

from dataplane.engine.frames import (
    EngineResult,
    Kind,
    PartitionId,
    pack_hold,
)
from dataplane.engine.partition_client import PartitionClient
from dataplane.errors import Refused
from dataplane.metadata.holds import DesiredHold, desired_holds
from dataplane.metadata.replica import MetadataReplica
from dataplane.metadata.state import Topic
from dataplane.wire import node_pb2 as wire
from dataplane.workflows.runner import RETRY_S_MIN, WorkflowRunner

HOLD_TIMEOUT_S: Final = 10.0
HOLDS_MAX: Final = 32


class LegalHoldWorkflow:
    """Puts every legal hold into the logs of its partitions. Runs on the event loop."""

    def __init__(
        self,
        partitions: PartitionClient,
        replica: MetadataReplica,
        tasks: asyncio.TaskGroup,
        *,
        retry_s_min: float = RETRY_S_MIN,
    ) -> None:
        self._partitions = partitions
        self._replica = replica
        self._runner = WorkflowRunner(
            replica, tasks, self._attempt, outcome="held as requested", retry_s_min=retry_s_min
        )
        self._requests = asyncio.Semaphore(HOLDS_MAX)
        self.failures_by_reason = self._runner.failures_by_reason

    def pending_count(self) -> int:
        """Topics with a partition whose log does not have its holds yet."""
        return self._runner.count()

    def start(self) -> None:
        """The metadata has recovered: resume every intent that was under way."""
        with self._replica.reading() as state:
            open_ids = {row.topic_id for row in state.holds.values() if not row.is_confirmed}
            numbers = [state.topics[topic_id].number for topic_id in sorted(open_ids)]
        self._runner.start(numbers)

    def stop(self) -> None:
        """Cancel every workflow: the next start resumes them."""
        self._runner.stop()

    def topic_held(self, number: int) -> None:
        """An op changed what holds this topic."""
        self._runner.wake(number)

    def _intent(self, number: int) -> tuple[Topic, dict[int, DesiredHold]] | None:
        """What is not confirmed; None if all is."""
        with self._replica.reading() as state:
            topic = state.topic_numbered(number)
            if topic is None:
                return None
            rows = state.holds_of(topic.spec.topic_id)
            if all(row.is_confirmed for row in rows):
                return None
            return topic, desired_holds(state, topic)

    async def _attempt(self, number: int) -> str | None:
        """Write to every partition, then confirm. Returns why not; None if all is confirmed."""
        intent = self._intent(number)
        if intent is None:
            return None
        topic, desired = intent
        reasons = await asyncio.gather(
            *(
                self._hold(PartitionId(topic.number, topic.created_revision, index), hold)
                for index, hold in desired.items()
            )
        )
        missing = [reason for reason in reasons if reason]
        if missing:
            return missing[0]
        intent_op = max(hold.intent_op for hold in desired.values())
        command = wire.ConfirmHold(topic=topic.number, intent_op=intent_op)
        try:
            await self._replica.submit(wire.Command(confirm_hold=command))
        except Refused as refusal:
            # Overtaken by a newer intent, or the topic is gone: the state is looked at again.
            return "" if refusal.code in ("INTENT_STALE", "TOPIC_NOT_FOUND") else "metadata"
        except TimeoutError:
            return "metadata"
        return ""

    async def _hold(self, partition: PartitionId, hold: DesiredHold) -> str:
        """Empty once the partition's log has this intent, or a later one."""
        body = pack_hold(intent_op=hold.intent_op, held_from=hold.held_from)
        async with self._requests:
            try:
                reply = await self._partitions.request(
                    Kind.HOLD, partition, body, timeout_s=HOLD_TIMEOUT_S
                )
            except TimeoutError:
                return "timeout"
        # CLOSED: nothing was ever written there, and the topic goes, which nothing holds.
        known = (EngineResult.OK, EngineResult.FENCED, EngineResult.CLOSED)
        return "" if reply.result in known else reply.result.name.lower()
