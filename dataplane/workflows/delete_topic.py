"""The deletion of topics: the host's side of intent -> seal -> confirm (T3).

Owns one workflow for each closing topic, from the DeleteTopic that is in the metadata to the
ConfirmDelete behind it:

    SEAL in the log of every partition: nothing is appended after it but the last metering window
    -> that window is in `_usage`, its last trim in `_retention`, both acknowledged
    -> ConfirmDelete in the metadata log: only then row, name and files go

Everything is read from the metadata and each step is repeatable; what fails is tried again
(`runner.py`). With a reason for force, partitions whose log is damaged are given up and named in
the confirmation; nothing else is ever given up. Refuses to decide what is deleted.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from dataplane.engine.frames import (
    EngineResult,
    Kind,
    PartitionId,
    Sealed,
    pack_seal,
    unpack_sealed,
)
from dataplane.engine.partition_client import PartitionClient
from dataplane.errors import Refused
from dataplane.evidence.publisher import EvidencePublisher
from dataplane.metadata.replica import MetadataReplica
from dataplane.metadata.state import Topic, partitions_of
from dataplane.wire import node_pb2 as wire
from dataplane.workflows.runner import RETRY_S_MIN, WorkflowRunner

SEAL_TIMEOUT_S: Final = 10.0
USAGE_TIMEOUT_S: Final = 30.0
ACK_RETRY_S: Final = 0.02
# The ring takes 256 requests; a topic with many partitions leaves room for the others.
SEALS_MAX: Final = 32

log = logging.getLogger("dataplane.deletion")


class NotSealed(Exception):
    """A partition's log is not sealed and metered yet; `reason` is one word for operators."""

    def __init__(self, partition: PartitionId, reason: str) -> None:
        super().__init__(f"partition {partition.partition}: {reason}")
        self.partition = partition
        self.reason = reason


class DeleteTopicWorkflow:
    """Deletes every closing topic. Runs on the event loop."""

    def __init__(
        self,
        partitions: PartitionClient,
        replica: MetadataReplica,
        usage: EvidencePublisher,
        tasks: asyncio.TaskGroup,
        *,
        retention: EvidencePublisher,
        retry_s_min: float = RETRY_S_MIN,
    ) -> None:
        self._partitions = partitions
        self._replica = replica
        self._usage = usage
        self._retention = retention
        self._runner = WorkflowRunner(
            replica, tasks, self._attempt, outcome="deleted", retry_s_min=retry_s_min
        )
        self._seals = asyncio.Semaphore(SEALS_MAX)
        self.failures_by_reason = self._runner.failures_by_reason

    def closing_count(self) -> int:
        """Topics being deleted."""
        return self._runner.count()

    def start(self) -> None:
        """The metadata has recovered: resume every deletion that was under way."""
        with self._replica.reading() as state:
            closing = [topic.number for topic in state.topics_by_number() if topic.is_closing()]
        self._runner.start(closing)

    def stop(self) -> None:
        """Cancel every workflow: the next start resumes them."""
        self._runner.stop()

    def topic_closing(self, number: int) -> None:
        """An op has marked this topic for deletion, perhaps by force."""
        self._runner.wake(number)

    def _closing(self, number: int) -> Topic | None:
        with self._replica.reading() as state:
            topic = state.topic_numbered(number)
        return topic if topic is not None and topic.is_closing() else None

    async def _attempt(self, number: int) -> str | None:
        """Seal everything, then confirm. Returns why not, empty if the metadata log took it; None
        if the topic is gone."""
        topic = self._closing(number)
        if topic is None:
            return None
        partitions = partitions_of(topic)
        outcomes = await asyncio.gather(
            *(self._seal(partition, topic.closing_op) for partition in partitions)
        )
        missing = [outcome for outcome in outcomes if outcome is not None]
        damaged = [row.partition.partition for row in missing if row.reason == "damaged"]
        others = [row for row in missing if row.reason != "damaged"]
        if others:
            return others[0].reason
        if damaged and not topic.force_reason:
            return "damaged"
        reason = await self._confirm(topic, damaged)
        if not reason:
            self._usage.forget(partitions)
            self._retention.forget(partitions)
        return reason

    async def _confirm(self, topic: Topic, given_up: Sequence[int]) -> str:
        command = wire.ConfirmDelete(
            topic=topic.number, intent_op=topic.closing_op, given_up=given_up
        )
        try:
            result = await self._replica.submit(wire.Command(confirm_delete=command))
        except Refused as refusal:
            # Overtaken by a newer intent, or done already: the state is looked at again.
            return "" if refusal.code in ("INTENT_STALE", "TOPIC_NOT_FOUND") else "metadata"
        except TimeoutError:
            return "metadata"
        if given_up:
            log.warning(
                "topic %s was deleted by force (%s): the last windows of its partitions %s are "
                "missing from `_usage`",
                topic.spec.topic_id,
                topic.force_reason,
                list(given_up),
            )
        log.info("topic %s was deleted by metadata op %d", topic.spec.topic_id, result.op)
        return ""

    async def _seal(self, partition: PartitionId, intent_op: int) -> NotSealed | None:
        """One partition's log sealed and its last window in `_usage`, or what is missing."""
        async with self._seals:
            try:
                sealed = await self._request_seal(partition, intent_op)
                if sealed.is_told():
                    return None
                async with asyncio.timeout(USAGE_TIMEOUT_S):
                    await self._usage.wait_published(partition, sealed.meter_sequence)
                    if sealed.trim_acked < sealed.trim_sequence:
                        await self._retention.wait_published(partition, sealed.trim_sequence)
                    await self._acknowledged(partition, intent_op)
            except NotSealed as missing:
                return missing
            except TimeoutError:
                return NotSealed(partition, "usage")
        return None

    async def _acknowledged(self, partition: PartitionId, intent_op: int) -> None:
        """Return once the partition itself has taken the acknowledgement. Raises NotSealed."""
        while True:
            sealed = await self._request_seal(partition, intent_op)
            if sealed.is_told():
                return
            await asyncio.sleep(ACK_RETRY_S)

    async def _request_seal(self, partition: PartitionId, intent_op: int) -> Sealed:
        """Raises NotSealed."""
        try:
            reply = await self._partitions.request(
                Kind.SEAL, partition, pack_seal(intent_op), timeout_s=SEAL_TIMEOUT_S
            )
        except TimeoutError as error:
            raise NotSealed(partition, "timeout") from error
        if reply.result != EngineResult.OK:
            raise NotSealed(partition, reply.result.name.lower())
        return unpack_sealed(reply.body)
