"""Topics that shall go: ask the cluster until it says that nothing is left, look, and bury.

DeleteTopic is sent even if the cluster shows no such topic: a PutTopic whose answer was lost may
still be on its way, and the cluster remembers what was deleted. Only its own word counts, and then
a look at every node; an empty answer alone is "unknown" and never "gone". A cluster that is away
is waited for: a topic is not buried while its files may live.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from pydantic import JsonValue as Json
from sqlalchemy.orm import Session

from api.db.database import Database, meta_value
from api.db.locks import locked
from api.db.tables.topics import Topic
from api.db.tables.work import ResourceStatus
from api.deletion.mark import breaker_limit
from api.node.addresses import addresses
from api.node.client import NodeClient
from api.node.failure import FailureKind, NodeFailure
from api.node.fence import Fence
from api.reconcile.backoff import poll_after
from api.reconcile.commands import command_record
from api.reconcile.conditions import Condition
from api.reconcile.outcome import CommandRecord, Converged, Observation, Outcome, RequeueAfter
from api.reconcile.queue import Claim, holds
from api.topics.deletion import bury_topic, deletion_counts
from api.topics.partition_status import partition_details
from dataplane.wire import node_pb2

BREAKER_POLL: Final = timedelta(seconds=60)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Removal:
    """A topic that shall go. ``stopped`` says why the breaker keeps it, if it does."""

    topic_id: str
    generation: int
    addresses: tuple[str, ...]
    fence: Fence
    force_reason: str
    age: timedelta
    stopped: str


def removal_of(session: Session, row: Topic, item: Claim, now: datetime) -> Removal:
    """What a pass needs to know of a marked topic."""
    assert row.deleted_at is not None
    return Removal(
        topic_id=row.id,
        generation=row.generation,
        addresses=tuple(addresses(session, row.cluster_id)),
        fence=Fence(int(meta_value(session, "db_epoch")), row.generation, item.lease_token),
        force_reason=row.force_reason or "",
        age=now - row.deleted_at,
        stopped="" if row.deletion_confirmed else _breaker(session, row.org_id),
    )


def remove_topic(database: Database, nodes: NodeClient, item: Claim, removal: Removal) -> Outcome:
    """One pass over a topic that shall go."""
    if removal.stopped:
        log.error("deletion_breaker_open", kind=item.kind, reason=removal.stopped)
        return _requeue(removal, "DeletionBreakerOpen", removal.stopped, None, BREAKER_POLL)
    observed = _observed(nodes, removal.addresses, removal.topic_id)
    try:
        reply = nodes.delete_topic(
            removal.addresses, removal.fence, removal.topic_id, removal.force_reason
        )
    except NodeFailure as failure:
        if failure.code != "TOPIC_HELD":
            raise
        # The cluster has not applied the release of its holds yet.
        return _requeue(removal, "TopicHeld", failure.message, observed, poll_after(removal.age))
    why = f"by force: {removal.force_reason}" if removal.force_reason else "deletion was requested"
    command = command_record("DeleteTopic", why, removal.fence, reply)
    poll = poll_after(removal.age)
    if not reply.deleted:
        return _requeue(removal, "Closing", _holding_up(observed), observed, poll, command)
    for address in removal.addresses:
        # Each node is looked at: one that lags behind the others still has the files.
        if _observed(nodes, [address], removal.topic_id) is not None:
            message = f"the cluster has deleted it, the node at {address} has not yet"
            return _requeue(removal, "NodeBehind", message, observed, poll, command)
    with database.write() as session:
        locked(session, Topic, removal.topic_id)
        if not holds(session, item, database.now(session)):
            raise NodeFailure(FailureKind.CONFLICT, "LEASE_LOST", "Another worker removes it.")
        _keep_figures(session, removal, observed)
        bury_topic(session, removal.topic_id, database.now(session))
    conditions = (
        Condition("Deleting", "False", "Deleted", "nothing of it is left on the cluster"),
        Condition("Ready", "False", "Deleted"),
        Condition("Reachable", "True", "NodeAnswered"),
        Condition("Stalled", "False", "Progressing"),
    )
    found = _observation(removal, conditions, observed, command)
    return Converged(replace(found, ready=True), final=True)


def _breaker(session: Session, org_id: str) -> str:
    """Why no topic of the organization is deleted now; "" if nothing speaks against it. Requests
    are held to the same limit, so an open breaker means that the marks came from elsewhere."""
    going, objects = deletion_counts(session, org_id, unconfirmed_only=True)
    limit = breaker_limit(objects)
    if going <= limit:
        return ""
    return (
        f"{going} of {objects} topics of the organization are marked without a confirmation, and "
        f"{limit} may be: none is deleted until an operator has looked at it"
    )


def _observed(
    nodes: NodeClient, places: Sequence[str], topic_id: str
) -> node_pb2.TopicStatus | None:
    reply = nodes.describe(places, topic_ids=[topic_id])
    return next((each for each in reply.topics if each.topic_id == topic_id), None)


def _holding_up(observed: node_pb2.TopicStatus | None) -> str:
    """What the cluster still does, and which partitions cannot."""
    stopped = [
        each for each in (observed.partitions if observed else ()) if each.state == "DAMAGED"
    ]
    if not stopped:
        return "partitions are sealed and their last metering windows published"
    names = ", ".join(f"{each.index} ({each.reason or each.state})" for each in stopped)
    return (
        f"partitions that cannot seal: {names}; repair them, or give them up with "
        "force=true and a reason"
    )


def _requeue(
    removal: Removal,
    reason: str,
    message: str,
    observed: node_pb2.TopicStatus | None,
    after: timedelta,
    command: CommandRecord | None = None,
) -> RequeueAfter:
    conditions = (
        Condition("Deleting", "True", reason, message),
        Condition("Ready", "False", "Deleting", message),
        Condition("Reachable", "True", "NodeAnswered"),
        Condition("Stalled", "False", "Progressing"),
    )
    return RequeueAfter(_observation(removal, conditions, observed, command), after, message)


def _keep_figures(
    session: Session, removal: Removal, observed: node_pb2.TopicStatus | None
) -> None:
    """What was seen last is what the tombstone and its record keep."""
    status = session.get_one(ResourceStatus, removal.topic_id)
    status.detail = {**status.detail, **_detail(observed)}


def _detail(observed: node_pb2.TopicStatus | None) -> dict[str, Json]:
    return {} if observed is None else {"partitions": partition_details(observed.partitions)}


def _observation(
    removal: Removal,
    conditions: tuple[Condition, ...],
    observed: node_pb2.TopicStatus | None,
    command: CommandRecord | None,
) -> Observation:
    commands = () if command is None else (command,)
    return Observation(removal.generation, conditions, _detail(observed), commands=commands)
