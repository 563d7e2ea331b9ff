"""Closing topics on their way out: the host's side of intent -> seal -> confirm (T3).

Owns one walk for each closing topic, from the DeleteTopic that is in the metadata to the
ConfirmDelete behind it:

    SEAL in the log of every partition: nothing is appended after it but the last metering window
    -> that window is in `_usage`, its last trim in `_retention`, both acknowledged
    -> ConfirmDelete in the metadata log: only then row, name and files go

Everything is read from the metadata, so a restart takes up every walk where it stands; each step is
repeatable. What fails is tried again, from 1 s up to 60 s apart, and counted by its reason. With a
reason for force, partitions whose log is damaged are given up and named in the confirmation;
nothing else is ever given up. Refuses to decide what is deleted.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dataplane.errors import Refused
from dataplane.frames import (
    EngineResult,
    Kind,
    PartitionId,
    Sealed,
    owner_of,
    pack_partition,
    pack_seal,
    unpack_sealed,
)
from dataplane.metadata.state import Topic, partitions_of
from dataplane.metering import Metering
from dataplane.replica import MetadataReplica
from dataplane.ring import Ring
from dataplane.wire import node_pb2 as wire
from native.engine import Frame

SEAL_TIMEOUT_S: Final = 10.0
USAGE_TIMEOUT_S: Final = 30.0
ACK_RETRY_S: Final = 0.02
RETRY_S_MIN: Final = 1.0
RETRY_S_MAX: Final = 60.0
# The ring takes 256 requests; a topic with many partitions leaves room for the others.
SEALS_MAX: Final = 32

log = logging.getLogger("dataplane.deletion")


class NotSealed(Exception):
    """A partition's log is not sealed and metered yet; `reason` is one word for operators."""

    def __init__(self, partition: PartitionId, reason: str) -> None:
        super().__init__(f"partition {partition.partition}: {reason}")
        self.partition = partition
        self.reason = reason


@dataclass(slots=True)
class _Walk:
    """One topic's way out. `again` is set when a newer intent asks not to wait."""

    topic: int
    again: asyncio.Event
    reason: str = ""


class Deletion:
    """Walks every closing topic to its end. Runs on the event loop."""

    def __init__(
        self,
        ring: Ring,
        replica: MetadataReplica,
        metering: Metering,
        tasks: asyncio.TaskGroup,
        *,
        retention: Metering,
        shards_count: int,
        retry_s_min: float = RETRY_S_MIN,
    ) -> None:
        self._ring = ring
        self._replica = replica
        self._metering = metering
        self._retention = retention
        self._tasks = tasks
        self._shards_count = shards_count
        self._retry_s_min = retry_s_min
        self._walks: dict[int, tuple[_Walk, asyncio.Task[None]]] = {}
        self._seals = asyncio.Semaphore(SEALS_MAX)
        self._started = False
        self.failures_by_reason: Counter[str] = Counter()

    def closing_count(self) -> int:
        """Topics being deleted."""
        return len(self._walks)

    def start(self) -> None:
        """The metadata has recovered: every deletion that was under way goes on."""
        self._started = True
        with self._replica.reading() as state:
            closing = [topic.number for topic in state.topics_by_number() if topic.is_closing()]
        for number in closing:
            self.topic_closing(number)

    def stop(self) -> None:
        """Leave off every walk: the next start takes them up again."""
        self._started = False
        for _, task in self._walks.values():
            task.cancel()

    def topic_closing(self, number: int) -> None:
        """An op holds that this topic shall go, or shall go by force."""
        if not self._started:
            return  # Recovery replays old intents; `start` looks at what they led to.
        known = self._walks.get(number)
        if known is not None:
            known[0].again.set()
            return
        walk = _Walk(number, asyncio.Event())
        task = self._tasks.create_task(self._carry_out(walk), name=f"delete topic {number}")
        self._walks[number] = (walk, task)

    async def _carry_out(self, walk: _Walk) -> None:
        delay_s = self._retry_s_min
        try:
            while (topic := self._closing(walk.topic)) is not None:
                walk.again.clear()
                reason = await self._attempt(topic)
                if not reason:
                    continue  # Gone, or overtaken by a newer intent: the state says which.
                self._failed(walk, topic, reason)
                try:
                    async with asyncio.timeout(delay_s):
                        await walk.again.wait()
                    delay_s = self._retry_s_min
                except TimeoutError:
                    delay_s = min(delay_s * 2, RETRY_S_MAX)
        finally:
            del self._walks[walk.topic]

    def _closing(self, number: int) -> Topic | None:
        with self._replica.reading() as state:
            topic = state.topic_numbered(number)
        return topic if topic is not None and topic.is_closing() else None

    def _failed(self, walk: _Walk, topic: Topic, reason: str) -> None:
        """Count it; log it once, until it fails for another reason."""
        self.failures_by_reason[reason] += 1
        if reason != walk.reason:
            log.warning(
                "topic %s (number %d) is not deleted yet: %s; trying again",
                topic.spec.topic_id,
                topic.number,
                reason,
            )
        walk.reason = reason

    async def _attempt(self, topic: Topic) -> str:
        """Seal everything, then confirm. Returns why not, empty if the metadata log took it."""
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
            self._metering.forget(partitions)
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
                    await self._metering.wait_published(partition, sealed.meter_sequence)
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
        frame = Frame(
            Kind.SEAL,
            shard=owner_of(partition, self._shards_count),
            body=pack_partition(partition) + pack_seal(intent_op),
        )
        try:
            reply = await self._ring.request(frame, timeout_s=SEAL_TIMEOUT_S)
        except TimeoutError as error:
            raise NotSealed(partition, "timeout") from error
        if reply.result != EngineResult.OK:
            raise NotSealed(partition, reply.result.name.lower())
        return unpack_sealed(reply.body)
