"""headrace.node.v1.Admin: what the control plane says to the cluster.

Owns Apply (one metadata command, fenced inside the apply), Describe (what is here, as it is),
FlushUsage (everything measured so far is in `_usage` when it returns) and ConfirmClock (an operator
vouches for the wall clock). Only the node key reaches it. Refuses to judge commands: that is the
machine's.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from dataplane.engine.frames import (
    PARTITION_DAMAGED,
    PARTITION_OP_UNKNOWN,
    PARTITION_READY,
    PARTITION_SEALED,
    EngineResult,
    Kind,
    PartitionId,
    unpack_meter_flushed,
    unpack_partition_state,
)
from dataplane.engine.partition_client import PartitionClient
from dataplane.engine.ring import Ring
from dataplane.engine.rpc import Call
from dataplane.evidence.inventory import Inventory
from dataplane.evidence.publisher import EvidencePublisher
from dataplane.groups.membership import Group
from dataplane.metadata import rules
from dataplane.metadata.commands import fence_message, topic_message
from dataplane.metadata.replica import MetadataReplica
from dataplane.metadata.state import Hold, State, Topic, partitions_of
from dataplane.wire import node_pb2 as wire
from native.engine import Frame

DESCRIBE_TIMEOUT_S: Final = 5.0
FLUSH_TIMEOUT_S: Final = 30.0
FLUSH_RETRY_S: Final = 0.05
# What is left of the caller's deadline for the reply itself.
REPLY_MARGIN_S: Final = 0.25

log = logging.getLogger("dataplane.admin")

_STATE_NAMES: Final = {
    PARTITION_READY: "READY",
    PARTITION_DAMAGED: "DAMAGED",
    PARTITION_SEALED: "SEALED",
    PARTITION_OP_UNKNOWN: "OP_UNKNOWN",
}


class AdminService:
    """Commands and answers of this node."""

    def __init__(
        self,
        ring: Ring,
        partitions: PartitionClient,
        replica: MetadataReplica,
        usage: EvidencePublisher,
        inventory: Inventory,
        *,
        node_id: str,
        incarnation: int,
        status: Callable[[], wire.NodeStatus] = wire.NodeStatus,
    ) -> None:
        self._ring = ring
        self._partitions = partitions
        self._replica = replica
        self._usage = usage
        self._inventory = inventory
        self._node_id = node_id
        self._incarnation = incarnation
        self._status = status

    async def apply(self, call: Call, request: wire.ApplyRequest) -> wire.ApplyReply:
        """Put one command through the metadata log; repeatable. Raises Refused."""
        rules.check_submitted(request)
        command = wire.Command(control=wire.AppliedByControlPlane(request=request))
        result = await self._replica.submit(command)
        return result.applied

    async def describe(self, call: Call, request: wire.DescribeRequest) -> wire.DescribeReply:
        """Topics and keys as applied, partitions as they stand.

        Nothing named, or all: everything.
        """
        everything = request.all or not (request.topic_ids or request.key_ids)
        topic_ids, key_ids = frozenset(request.topic_ids), frozenset(request.key_ids)
        with self._replica.reading() as state:
            reply = wire.DescribeReply(
                cluster_id=state.cluster_id,
                node_id=self._node_id,
                incarnation=self._incarnation,
                metadata_op=state.op,
                node=self._status(),
            )
            if request.groups:
                reply.groups.extend(_group_status(state, each) for each in state.groups.values())
            topics = [
                topic
                for topic in state.topics_by_number()
                if everything or topic.spec.topic_id in topic_ids
            ]
            for topic in topics:
                reply.holds.extend(map(_hold_status, state.holds_of(topic.spec.topic_id)))
            for key_id in sorted(state.keys):
                if everything or key_id in key_ids:
                    key = state.keys[key_id]
                    reply.keys.add(key_id=key_id, active=key.active, fence=fence_message(key.fence))
        async with asyncio.TaskGroup() as tasks:
            rows = [tasks.create_task(self._topic(topic)) for topic in topics]
        reply.topics.extend(row.result() for row in rows)
        return reply

    async def flush_usage(
        self, call: Call, request: wire.FlushUsageRequest
    ) -> wire.FlushUsageReply:
        """Close every open window now; return once what they hold is in `_usage`, or at the
        deadline. The inventory comes last; if it fails, the hourly one remains.
        """
        wait_s = call.remaining_s(most=FLUSH_TIMEOUT_S + REPLY_MARGIN_S) - REPLY_MARGIN_S
        outstanding = await self.flush_everything(max(0.0, wait_s))
        if request.inventory and not await self._inventory.take(time.time_ns() // 1000):
            log.warning("an inventory was asked for and could not be taken")
        return wire.FlushUsageReply(closes=self._usage.published_count(), outstanding=outstanding)

    async def confirm_clock(
        self, call: Call, request: wire.ConfirmClockRequest
    ) -> wire.ConfirmClockReply:
        """The wall clock is right: every shard takes times from it again."""
        time_us = time.time_ns() // 1000
        log.warning("the wall clock was confirmed by key %s at %d us", call.caller.key_id, time_us)
        self._ring.post(Frame(Kind.CLOCK_CONFIRM))
        return wire.ConfirmClockReply(time_us=time_us)

    async def flush_everything(self, timeout_s: float) -> int:
        """Close and publish every open window, and what shards have counted. Returns how many
        partitions and shards are not done in time.
        """
        with self._replica.reading() as state:
            partitions = [
                partition
                for topic in state.topics_by_number()
                if not topic.is_system()
                for partition in partitions_of(topic)
            ]
        done: dict[PartitionId | int, bool] = dict.fromkeys(partitions, False)
        done.update(dict.fromkeys(self._partitions.shards(), False))
        try:
            async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as tasks:
                for partition in partitions:
                    tasks.create_task(self._flush(partition, done))
                for shard in self._partitions.shards():
                    tasks.create_task(self._flush_counters(shard, done))
        except TimeoutError:
            pass  # What is missing is counted below.
        return sum(not finished for finished in done.values())

    async def _flush_counters(self, shard: int, done: dict[PartitionId | int, bool]) -> None:
        reply = await self._partitions.request_shard(
            Kind.COUNTERS_FLUSH, shard, timeout_s=2 * FLUSH_TIMEOUT_S
        )
        if reply.result == EngineResult.OK:
            # What it counted came before its reply.
            await self._usage.wait_counted()
            done[shard] = True

    async def _flush(self, partition: PartitionId, done: dict[PartitionId | int, bool]) -> None:
        while True:
            # The caller's timeout ends this sooner; a TimeoutError of its own would end the others.
            reply = await self._partitions.request(
                Kind.METER_FLUSH, partition, timeout_s=2 * FLUSH_TIMEOUT_S
            )
            if reply.result == EngineResult.OK:
                break
            if reply.result in (EngineResult.NOT_FOUND, EngineResult.RECREATED):
                done[partition] = True  # Nothing was ever appended.
                return
            if reply.result == EngineResult.DAMAGED:
                return  # Stays outstanding: the content of its window is unknown.
            await asyncio.sleep(FLUSH_RETRY_S)
        last, acknowledged = unpack_meter_flushed(reply.body)
        if last > acknowledged:
            await self._usage.wait_published(partition, last)
        done[partition] = True

    async def _topic(self, topic: Topic) -> wire.TopicStatus:
        async with asyncio.TaskGroup() as tasks:
            rows = [
                tasks.create_task(self._partition(partition)) for partition in partitions_of(topic)
            ]
        return wire.TopicStatus(
            topic_id=topic.spec.topic_id,
            number=topic.number,
            created_revision=topic.created_revision,
            spec=topic_message(topic.spec),
            fence=fence_message(topic.fence),
            partitions=[row.result() for row in rows],
            closing=topic.is_closing(),
        )

    async def _partition(self, partition: PartitionId) -> wire.PartitionStatus:
        status = wire.PartitionStatus(
            index=partition.partition,
            primary=self._node_id,
            replicas=[self._node_id],
            state="RECOVERING",
        )
        try:
            reply = await self._partitions.request(
                Kind.DESCRIBE, partition, timeout_s=DESCRIBE_TIMEOUT_S
            )
        except TimeoutError:
            status.reason = "its shard did not answer in time"
            return status
        if reply.result == EngineResult.OK:
            found = unpack_partition_state(reply.body)
            status.log_start = found.log_start
            status.high_watermark = found.high_watermark
            status.log_end = found.log_end
            status.bytes = found.bytes
            status.cumulative_bytes = found.cumulative_bytes
            status.held = found.is_held
            status.held_from = found.held_from
            status.held_bytes = found.held_bytes
            status.oldest_us = found.oldest_us
            status.newest_us = found.newest_us
            status.expires_us = found.expires_us
            status.state = _STATE_NAMES.get(found.state, "RECOVERING")
            if found.state == PARTITION_OP_UNKNOWN:
                status.reason = "its log was written by a newer release: run that release"
        elif reply.result == EngineResult.DAMAGED:
            status.state = "DAMAGED"
            status.reason = "its log is isolated after damage: see the runbook"
        else:
            status.reason = f"its shard answered {reply.result.name}"
        return status


def _group_status(state: State, group: Group) -> wire.GroupStatus:
    read = sorted({number for member in group.members.values() for number in member.topics})
    topics = [topic for number in read if (topic := state.topic_numbered(number)) is not None]
    return wire.GroupStatus(
        group=group.number,
        organization_id=group.organization_id,
        project_id=group.project_id,
        name=group.name,
        state=group.state(),
        topic_ids=[topic.spec.topic_id for topic in topics],
    )


def _hold_status(row: Hold) -> wire.HoldStatus:
    return wire.HoldStatus(
        hold_id=row.hold_id,
        topic_id=row.topic_id,
        partitions=row.partitions,
        from_offset=row.from_offset,
        active=row.is_active,
        confirmed=row.is_confirmed,
        intent_op=row.intent_op,
        fence=fence_message(row.fence),
    )
