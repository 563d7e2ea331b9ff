"""One partition changes hands: the host's side of intent -> fence -> confirm.

Owns the steps of one intent, from the moment it is committed until it is confirmed or overtaken:

    FREEZE in the partition's log (only if the old owner lives)
    -> the old owner releases, has left, or its time is up
    -> CLOSE in the partition's log: its commits are refused from here, the reply is where to go on
    -> ConfirmMove in the metadata log: only now the target is notified

A time-out leads to CLOSE, never past it. Without the partition's log nothing moves: the step is
repeated while the intent stands, and every other partition goes its own way. Only a partition that
can take no more groups ends the hand-over: waiting would not help. Refuses to decide anything: the
intent says who and from which op.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from dataplane.engine.frames import (
    EngineResult,
    FenceKind,
    GroupState,
    Kind,
    PartitionId,
    pack_group_fence,
    unpack_group_state,
)
from dataplane.engine.partition_client import PartitionClient
from dataplane.errors import Refused
from dataplane.groups.assignment import Slice
from dataplane.groups.membership import NO_OWNER, Owner
from dataplane.metadata.replica import MetadataReplica
from dataplane.metadata.state import State
from dataplane.wire import node_pb2 as wire

FENCE_TIMEOUT_S: Final = 10.0
RETRY_S_MIN: Final = 0.05
RETRY_S_MAX: Final = 2.0

log = logging.getLogger("dataplane.groups")


@dataclass(slots=True, kw_only=True)
class Intent:
    """A committed decision to move one partition of one group."""

    group: int
    place: Slice
    intent_op: int
    generation: int
    owner: Owner
    owner_generation: int
    target: Owner
    partition: PartitionId
    # Set when the old owner has released, or is no member any more.
    let_go: asyncio.Event = field(default_factory=asyncio.Event)


class Handover:
    """Carries intents out. Stateless between them."""

    def __init__(self, partitions: PartitionClient, replica: MetadataReplica) -> None:
        self._partitions = partitions
        self._replica = replica
        self.completed = 0
        self.timed_out = 0
        self.retries = 0

    async def carry_out(self, intent: Intent, *, release_timeout_s: float) -> None:
        """Carry one intent out. Returns when it is confirmed or overtaken.

        Raises Refused if the partition never takes this group.
        """
        if intent.owner != NO_OWNER and not intent.let_go.is_set():
            if await self._fence(intent, FenceKind.FREEZE) is None:
                return
            try:
                async with asyncio.timeout(release_timeout_s):
                    await intent.let_go.wait()
            except TimeoutError:
                self.timed_out += 1
                log.warning(
                    "group %d: %s did not release partition %d of topic %d in %.1f s; closing it",
                    intent.group,
                    intent.owner.member,
                    intent.place.partition,
                    intent.place.topic,
                    release_timeout_s,
                )
        closed = await self._fence(intent, FenceKind.CLOSE)
        if closed is not None:
            await self._confirm(intent, closed)

    async def _fence(self, intent: Intent, kind: FenceKind) -> GroupState | None:
        """Put a fence into the partition's log, as often as it takes.

        None: the intent was overtaken.
        """
        fence = pack_group_fence(
            group=intent.group,
            generation=intent.generation,
            intent_op=intent.intent_op,
            kind=kind,
        )
        delay_s = RETRY_S_MIN
        while still_stands(self._replica.reading, intent):
            try:
                reply = await self._partitions.request(
                    Kind.GROUP_FENCE, intent.partition, fence, timeout_s=FENCE_TIMEOUT_S
                )
                if reply.result == EngineResult.OK:
                    return unpack_group_state(reply.body)
                if reply.result == EngineResult.TOO_MANY_GROUPS:
                    raise _too_many_groups(intent)
                reason = reply.result.name
            except TimeoutError:
                reason = "no answer"
            if delay_s >= RETRY_S_MAX:
                log.warning("group %d: %s of %s: %s", intent.group, kind.name, intent.place, reason)
            self.retries += 1
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, RETRY_S_MAX)
        return None

    async def _confirm(self, intent: Intent, closed: GroupState) -> None:
        command = wire.Command(
            confirm_move=wire.ConfirmMove(
                group=intent.group,
                topic=intent.place.topic,
                partition=intent.place.partition,
                intent_op=intent.intent_op,
                has_committed=closed.has_committed,
                committed=closed.committed,
            )
        )
        delay_s = RETRY_S_MIN
        while still_stands(self._replica.reading, intent):
            try:
                await self._replica.submit(command)
            except (Refused, TimeoutError) as error:
                if isinstance(error, Refused) and error.code == "INTENT_STALE":
                    return
                self.retries += 1
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, RETRY_S_MAX)
                continue
            self.completed += 1
            return


def _too_many_groups(intent: Intent) -> Refused:
    return Refused(
        "TOO_MANY_GROUPS",
        f"partition {intent.place.partition} of topic {intent.place.topic} keeps the offsets of as "
        "many consumer groups as it can, and this group is none of them",
        hint="join under the name of a group that has read this topic, or read without a group",
    )


def still_stands(reading: Callable[[], AbstractContextManager[State]], intent: Intent) -> bool:
    """Is this still the partition's latest intent, and not confirmed?"""
    with reading() as state:
        group = state.groups.get(intent.group)
        slot = None if group is None else group.slots.get(intent.place)
        return slot is not None and slot.moving and slot.intent_op == intent.intent_op
