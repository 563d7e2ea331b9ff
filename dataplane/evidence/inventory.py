"""Inventories: the state of every partition, once an hour, in `_retention`.

Owns the values of these records and when they are made. An inventory is published at once and never
spooled: the next one makes up for one that is lost. Trims use the other way into `_retention`
(`channel.py`). Refuses to decide what is trimmed: policies are applied in the shards, holds in the
partitions' own logs.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Final

from dataplane.engine.frames import (
    EngineResult,
    Kind,
    PartitionId,
    PartitionState,
    unpack_partition_state,
)
from dataplane.engine.partition_client import PartitionClient
from dataplane.evidence.channel import retention_value
from dataplane.metadata.state import RETENTION_TOPIC_NUMBER, State, Topic, partitions_of
from headrace import codec
from headrace.wire import usage_pb2 as usage

INVENTORY_EVERY_S: Final = 3600
INVENTORY_RETRY_S: Final = 5.0
INVENTORY_RECORDS_MAX: Final = 256
DESCRIBES_MAX: Final = 32
REQUEST_TIMEOUT_S: Final = 10.0

log = logging.getLogger("dataplane.retention")


def inventory_value(
    cluster_id: str, topic: Topic, partition: PartitionId, found: PartitionState, at_us: int
) -> bytes:
    """The value of `_retention` for how one partition stood at `at_us`."""
    spec = topic.spec
    message = usage.Inventory(
        topic=partition.topic,
        created_revision=partition.created_revision,
        partition=partition.partition,
        at_us=at_us,
        log_start=found.log_start,
        log_end=found.log_end,
        bytes=found.bytes,
        records=found.log_end - found.log_start,
        oldest_us=found.oldest_us,
        newest_us=found.newest_us,
        expires_us=found.expires_us,
        held=found.is_held,
        held_from=found.held_from,
        hold_intent_op=found.hold_intent_op,
        held_bytes=found.held_bytes,
        policy_version=topic.fence.generation,
        retention_ms=spec.retention_ms,
        retention_bytes=spec.retention_bytes,
        retention_ms_min=spec.retention_ms_min,
        cluster_id=cluster_id,
        topic_id=spec.topic_id,
        topic_name=spec.name(),
        organization_id=spec.organization_id,
        project_id=spec.project_id,
    )
    return retention_value(usage.RetentionRecord(inventory=message))


class Inventory:
    """Takes a snapshot of every partition of a customer, once an hour; one task, `run`."""

    def __init__(
        self,
        partitions: PartitionClient,
        *,
        reading: Callable[[], AbstractContextManager[State]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._partitions = partitions
        self._reading = reading
        self._sleep = sleep
        self._clock = clock
        self._describes = asyncio.Semaphore(DESCRIBES_MAX)
        self.taken = 0
        self.failures = 0

    async def run(self) -> None:
        """One snapshot now and one at every full hour, until cancelled."""
        while True:
            now_s = self._clock()
            if not await self.take(int(now_s * 1_000_000)):
                self.failures += 1
                await self._sleep(INVENTORY_RETRY_S)
                continue
            next_s = (int(now_s) // INVENTORY_EVERY_S + 1) * INVENTORY_EVERY_S
            await self._sleep(max(1.0, next_s - self._clock()))

    async def take(self, at_us: int) -> bool:
        """Publish the state of every partition, some at a time. False: `_retention` did not accept
        all of it; take another one."""
        with self._reading() as state:
            cluster_id = state.cluster_id
            target = state.topic_numbered(RETENTION_TOPIC_NUMBER)
            wanted = [
                (topic, partition)
                for topic in state.topics_by_number()
                if not topic.is_system()
                for partition in partitions_of(topic)
            ]
        if target is None:
            return False
        place = PartitionId(target.number, target.created_revision, 0)
        for begin in range(0, len(wanted), INVENTORY_RECORDS_MAX):
            some = wanted[begin : begin + INVENTORY_RECORDS_MAX]
            states = await asyncio.gather(*(self._describe(partition) for _, partition in some))
            values = [
                inventory_value(cluster_id, topic, partition, found, at_us)
                for (topic, partition), found in zip(some, states, strict=True)
                if found is not None
            ]
            if values and not await self._publish(place, values, at_us):
                return False
        self.taken += 1
        return True

    async def _describe(self, partition: PartitionId) -> PartitionState | None:
        """The partition's state; None without an answer: the next snapshot asks again."""
        async with self._describes:
            try:
                reply = await self._partitions.request(
                    Kind.DESCRIBE, partition, timeout_s=REQUEST_TIMEOUT_S
                )
            except TimeoutError:
                return None
        return unpack_partition_state(reply.body) if reply.result == EngineResult.OK else None

    async def _publish(self, target: PartitionId, values: list[bytes], at_us: int) -> bool:
        batch = codec.encode(
            [codec.Record(key=None, value=value, timestamp_us=at_us) for value in values]
        )
        try:
            reply = await self._partitions.request(
                Kind.PUBLISH, target, batch, timeout_s=REQUEST_TIMEOUT_S
            )
        except TimeoutError:
            return False
        if reply.result != EngineResult.OK:
            log.warning("the inventory was not published: `_retention` says %s", reply.result.name)
        return reply.result == EngineResult.OK
