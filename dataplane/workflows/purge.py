"""Purges: the beginning of a topic's partitions moved up because somebody said so.

Owns Admin.Purge: one PURGE into the log of every partition that is named, and what each answered.
An offset is absolute, so repeating a purge, or a delayed one, takes nothing more (T1 needs no
intent here). What is held stays: the log decides where the operation is applied (T2), and a hold
that is on its way there counts already. Refuses to choose offsets.
"""

import asyncio
from typing import Final

from dataplane.engine.frames import (
    EngineResult,
    Kind,
    PartitionId,
    pack_purge,
    unpack_retained,
)
from dataplane.engine.partition_client import PartitionClient
from dataplane.engine.ring import Reply
from dataplane.engine.rpc import Call
from dataplane.errors import RETRY_SAME_NODE, Refused
from dataplane.metadata.holds import DesiredHold, desired_holds
from dataplane.metadata.replica import MetadataReplica
from dataplane.metadata.state import State, Topic
from dataplane.wire import node_pb2 as wire

PURGE_TIMEOUT_S: Final = 4.0
RETRY_AFTER_MS: Final = 500


class PurgeWorkflow:
    """Carries purges out. Stateless."""

    def __init__(self, partitions: PartitionClient, replica: MetadataReplica) -> None:
        self._partitions = partitions
        self._replica = replica

    async def purge(self, call: Call, request: wire.PurgeRequest) -> wire.PurgeReply:
        """Records before an offset go, in every partition that is named; each answers for itself.

        Raises Refused if the topic is not there, or the request names no place in it.
        """
        with self._replica.reading() as state:
            topic = _topic(state, request)
            held = desired_holds(state, topic)
        async with asyncio.TaskGroup() as tasks:
            rows = [
                tasks.create_task(self._partition(topic, part, request.version, held))
                for part in request.partitions
            ]
        return wire.PurgeReply(partitions=[row.result() for row in rows])

    async def _partition(
        self, topic: Topic, part: wire.PurgePartition, version: int, held: dict[int, DesiredHold]
    ) -> wire.PurgedPartition:
        answer = wire.PurgedPartition(index=part.index)
        try:
            _check_free(topic, part, held.get(part.index))
            reply = await self._ask(topic, part, version)
            if reply.result != EngineResult.OK:
                raise _refused(topic, part, EngineResult(reply.result))
            answer.log_start = unpack_retained(reply.body).log_start
        except Refused as refusal:
            answer.refused.CopyFrom(refusal.error())
        except TimeoutError:
            answer.refused.CopyFrom(_later(topic, part, "its shard did not answer").error())
        return answer

    async def _ask(self, topic: Topic, part: wire.PurgePartition, version: int) -> Reply:
        partition = PartitionId(topic.number, topic.created_revision, part.index)
        body = pack_purge(log_start=part.before_offset, version=version)
        return await self._partitions.request(
            Kind.PURGE, partition, body, timeout_s=PURGE_TIMEOUT_S
        )


def _topic(state: State, request: wire.PurgeRequest) -> Topic:
    topic = state.topics.get(request.topic_id)
    if topic is None:
        raise Refused("TOPIC_NOT_FOUND", f"there is no topic {request.topic_id} here")
    if topic.is_system():
        raise Refused("PERMISSION_DENIED", "topics of the system are never trimmed")
    if topic.is_closing():
        raise Refused("TOPIC_CLOSING", f"{request.topic_id} is being deleted, with all its records")
    indexes = [part.index for part in request.partitions]
    if len(set(indexes)) != len(indexes) or any(
        index >= topic.spec.partitions for index in indexes
    ):
        raise Refused(
            "INVALID_ARGUMENT",
            f"each of the {topic.spec.partitions} partitions of {request.topic_id} may be named "
            "once, and no other",
        )
    if any(part.before_offset == 0 for part in request.partitions):
        raise Refused("INVALID_ARGUMENT", "before_offset is at least 1: nothing lies before 0")
    return topic


def _check_free(topic: Topic, part: wire.PurgePartition, held: DesiredHold | None) -> None:
    if held is not None and held.held_from is not None and part.before_offset > held.held_from:
        raise _held(topic, part)


def _refused(topic: Topic, part: wire.PurgePartition, result: EngineResult) -> Refused:
    if result == EngineResult.HELD:
        return _held(topic, part)
    if result == EngineResult.OFFSET_BEYOND_END:
        return Refused(
            "OFFSET_BEYOND_END",
            f"partition {part.index} of {topic.spec.topic_id} ends before {part.before_offset}",
            hint="purge up to its end at most: Describe says where that is",
        )
    return _later(topic, part, f"its log answered {result.name}")


def _held(topic: Topic, part: wire.PurgePartition) -> Refused:
    return Refused(
        "TOPIC_HELD",
        f"partition {part.index} of {topic.spec.topic_id} is held, and {part.before_offset} lies "
        "beyond where the hold begins",
        hint="purge up to there, or release the holds first",
    )


def _later(topic: Topic, part: wire.PurgePartition, why: str) -> Refused:
    return Refused(
        "PARTITION_UNAVAILABLE",
        f"partition {part.index} of {topic.spec.topic_id} was not purged: {why}",
        hint="ask again: a purge may be repeated",
        kind=RETRY_SAME_NODE,
        retry_after_ms=RETRY_AFTER_MS,
    )
