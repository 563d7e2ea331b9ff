"""Purges that were requested: sent to the cluster once, and then dropped, whatever it answers.

A refused purge stays refused: the operation says why, and the user requests it again if it is still
wanted. Only a partition that cannot answer now is asked again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue as Json

from api.db.database import Database
from api.db.locks import locked
from api.db.tables.topics import Topic, TopicPurge
from api.node.client import NodeClient
from api.node.failure import FailureKind, NodeFailure
from api.node.fence import Fence
from api.reconcile.operations import PURGE, fail_operations, settle_operations
from api.reconcile.outcome import CommandRecord
from api.reconcile.queue import Claim, holds
from api.topics.purge import PendingPurge
from dataplane.wire import node_pb2


@dataclass(frozen=True, slots=True)
class Purge:
    """What shall go of a topic. It is known by the generation that requested it: the topic's may be
    a later one by now."""

    topic_id: str
    addresses: tuple[str, ...]
    fence: Fence
    pending: PendingPurge


def carry_out(
    database: Database, nodes: NodeClient, item: Claim, purge: Purge
) -> tuple[CommandRecord, ...]:
    """Sends it, and drops the request.

    :raises NodeFailure: a partition could not answer; all are asked again, which takes no more.
    """
    request = node_pb2.PurgeRequest(
        topic_id=purge.topic_id,
        version=purge.pending.generation,
        partitions=[
            node_pb2.PurgePartition(index=index, before_offset=offset)
            for index, offset in purge.pending.before.items()
        ],
    )
    answers = nodes.purge(purge.addresses, request).partitions
    refused = [each.refused for each in answers if each.HasField("refused")]
    for each in refused:
        if each.code == "PARTITION_UNAVAILABLE":
            raise NodeFailure(FailureKind.TRANSIENT, each.code, each.message)
    error: dict[str, Json] | None = None
    if refused:
        error = {"code": refused[0].code, "detail": "; ".join(each.message for each in refused)}
    _drop(database, item, purge, error)
    return (_sent(purge, answers),)


def _drop(database: Database, item: Claim, purge: Purge, error: dict[str, Json] | None) -> None:
    with database.write() as session:
        locked(session, Topic, purge.topic_id)
        if not holds(session, item, database.now(session)):
            raise NodeFailure(FailureKind.CONFLICT, "LEASE_LOST", "Another worker sends the purge.")
        stored = session.get(TopicPurge, purge.topic_id)
        if stored is None or stored.generation != purge.pending.generation:
            return  # More was requested meanwhile: all of it is sent again, and completed then.
        session.delete(stored)
        now = database.now(session)
        if error is not None:
            fail_operations(session, purge.topic_id, error, now, kind=PURGE)
        else:
            settle_operations(session, purge.topic_id, stored.generation, now, kind=PURGE)


def _sent(purge: Purge, answers: Sequence[node_pb2.PurgedPartition]) -> CommandRecord:
    asked = ", ".join(f"{index} before {offset}" for index, offset in purge.pending.before.items())
    said = ", ".join(
        f"{each.index}: {each.refused.code}"
        if each.HasField("refused")
        else f"{each.index} begins at {each.log_start}"
        for each in answers
    )
    fence = purge.fence
    return CommandRecord(
        what="Purge",
        why=f"purge of partition {asked} requested",
        generation=purge.pending.generation,
        fence=f"{fence.db_epoch}.{fence.generation}.{fence.lease_token}",
        outcome=said,
        answer=said,
    )
