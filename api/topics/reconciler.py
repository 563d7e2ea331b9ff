"""Topics: observe what the cluster holds, plan what is missing, apply it, and look again.

``plan`` is pure, and planning again after its actions were carried out plans nothing. Commands are
repeatable: the topic goes by its id, so a create whose answer was lost is found and not repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.orm import Session

from api.db.database import Database, meta_value
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.db.tables.work import ResourceStatus
from api.node.addresses import addresses
from api.node.client import NodeClient
from api.node.fence import Fence
from api.reconcile.backoff import poll_after
from api.reconcile.commands import DETAIL, command_record, lately_sent
from api.reconcile.conditions import Condition, lasting
from api.reconcile.outcome import (
    CommandRecord,
    Converged,
    Failed,
    Observation,
    Outcome,
    RequeueAfter,
)
from api.reconcile.queue import Claim
from api.topics import purge_pass
from api.topics.deletion_pass import removal_of, remove_topic
from api.topics.holds import wake_holds
from api.topics.management import PAUSED, ManagementMode, management_mode
from api.topics.management_pass import forget_purge, leave_paused, leave_unmanaged
from api.topics.partition_status import partition_details
from api.topics.purge import PendingPurge, pending_purge
from api.topics.spec import effective
from dataplane.wire import node_pb2

KIND: Final = "topic"
UNLIMITED: Final = -1
PUT: Final = "PutTopic"
# A cluster that took a topic may answer from a node that has not heard of it yet. After this the
# topic is lost, and is put again.
SHOWN_WITHIN: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Stop:
    """A state of a partition that no waiting ends."""

    reason: str
    what: str
    remedy: str


STOPS: Final = {
    "DAMAGED": Stop("PartitionDamaged", "damaged", "an operator must decide"),
    "OP_UNKNOWN": Stop(
        "PartitionOpUnknown",
        "waiting",
        "the log was written by a newer release of the node: run that release",
    ),
}


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state of a topic. ``waiting``: for how long this spec is not Ready; ``purge``:
    the records to delete; ``management_mode``: why nothing is changed, if so; ``sent``: the cluster
    took this generation so lately that it may not show it yet."""

    generation: int
    waiting: timedelta
    addresses: tuple[str, ...]
    fence: Fence
    topic: node_pb2.PutTopic
    purge: PendingPurge = field(default_factory=PendingPurge)
    management_mode: ManagementMode | None = None
    sent: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """One command, and why it is needed."""

    topic: node_pb2.PutTopic
    reason: str


def plan(
    desired: node_pb2.PutTopic, observed: node_pb2.TopicStatus | None, *, sent: bool = False
) -> list[Action]:
    """What to do next and why. Pure. After a topic was ``sent`` to a cluster that does not show it
    yet, wait, and do not send it a second time."""
    if observed is None:
        return [] if sent else [Action(desired, "not on the cluster yet")]
    if observed.spec != desired:
        changed = ", ".join(_differing(desired, observed.spec))
        return [Action(desired, f"the cluster has another {changed}")]
    return []


def _differing(desired: node_pb2.PutTopic, found: node_pb2.PutTopic) -> list[str]:
    """The members that two specs do not share."""
    names = [field.name for field in node_pb2.PutTopic.DESCRIPTOR.fields]
    return [name for name in names if getattr(desired, name) != getattr(found, name)]


class TopicReconciler:
    """Makes one topic be as its row says."""

    def __init__(self, database: Database, nodes: NodeClient) -> None:
        self._database = database
        self._nodes = nodes

    def generation(self, object_id: str) -> int:
        """The generation a failed pass has looked at."""
        with self._database.read() as session:
            return session.get_one(Topic, object_id).generation

    def reconcile(self, item: Claim) -> Outcome:
        """One pass."""
        with self._database.read() as session:
            row = session.get_one(Topic, item.object_id)
            if row.purged_at is not None:
                return Converged(Observation(row.generation), final=True)
            if row.deleted_at is not None:
                removal = removal_of(session, row, item, self._database.now(session))
                desired = None
            else:
                desired = _desired(session, row, item, self._database.now(session))
        if desired is None:
            return remove_topic(self._database, self._nodes, item, removal)
        if desired.management_mode is PAUSED:
            return leave_paused(self._database, item, desired.generation)
        if desired.management_mode is not None:
            forget_purge(self._database, item, desired.management_mode)
            return self._watch(desired)
        return self._bring(item, desired)

    def _watch(self, desired: Desired) -> Outcome:
        observed = self._observe(desired)
        differences = "; ".join(action.reason for action in plan(desired.topic, observed))
        if differences:
            return leave_unmanaged(_observation(desired, observed, ()), differences)
        return evaluate(desired, observed)

    def _bring(self, item: Claim, desired: Desired) -> Outcome:
        observed = self._observe(desired)
        commands = tuple(
            command_record(
                PUT,
                action.reason,
                desired.fence,
                self._nodes.put_topic(desired.addresses, desired.fence, action.topic),
            )
            for action in plan(desired.topic, observed, sent=desired.sent)
        )
        if commands:
            wake_holds(self._database, desired.topic.topic_id)
            observed = self._observe(desired)
        if desired.purge.before and observed is not None and observed.spec == desired.topic:
            commands += purge_pass.carry_out(self._database, self._nodes, item, _purge(desired))
            observed = self._observe(desired)
        return _with(evaluate(desired, observed), commands)

    def _observe(self, desired: Desired) -> node_pb2.TopicStatus | None:
        reply = self._nodes.describe(desired.addresses, topic_ids=[desired.topic.topic_id])
        for status in reply.topics:
            if status.topic_id == desired.topic.topic_id:
                return status
        return None


def _with(outcome: Outcome, commands: tuple[CommandRecord, ...]) -> Outcome:
    """The outcome of a pass that sent commands."""
    if isinstance(outcome, Failed):
        return outcome
    return replace(outcome, observation=replace(outcome.observation, commands=commands))


def _purge(desired: Desired) -> purge_pass.Purge:
    return purge_pass.Purge(desired.topic.topic_id, desired.addresses, desired.fence, desired.purge)


def evaluate(desired: Desired, observed: node_pb2.TopicStatus | None) -> Outcome:
    """What the last look at the cluster means. Pure."""
    if observed is None or observed.spec != desired.topic:
        found = _observation(
            desired, observed, _waiting("NotAppliedYet", "the cluster has not applied it")
        )
        return RequeueAfter(found, poll_after(desired.waiting), "applied and not visible yet")
    for state, stop in STOPS.items():
        stopped = [str(each.index) for each in observed.partitions if each.state == state]
        if not stopped:
            continue
        conditions = (
            Condition(
                "Ready", "False", stop.reason, f"{stop.what} partitions: {', '.join(stopped)}"
            ),
            Condition("Synced", "True", "Applied"),
            Condition("Reachable", "True", "NodeAnswered"),
            Condition("Stalled", "True", stop.reason, stop.remedy),
        )
        return Converged(_observation(desired, observed, conditions))
    ready = [each for each in observed.partitions if each.state == "READY"]
    if len(ready) < desired.topic.partitions:
        message = f"{len(ready)} of {desired.topic.partitions} partitions are ready"
        found = _observation(desired, observed, _waiting("PartitionsStarting", message))
        return RequeueAfter(found, poll_after(desired.waiting), message)
    conditions = (
        Condition("Ready", "True", "PartitionsReady"),
        Condition("Synced", "True", "Applied"),
        Condition("Reachable", "True", "NodeAnswered"),
        Condition("Stalled", "False", "Progressing"),
    )
    return Converged(_observation(desired, observed, conditions, ready=True))


def _waiting(reason: str, message: str) -> Sequence[Condition]:
    return (
        Condition("Ready", "False", reason, message),
        Condition("Synced", "False", reason, message),
        Condition("Reachable", "True", "NodeAnswered"),
        Condition("Stalled", "False", "Progressing"),
    )


def _retention(topic: node_pb2.PutTopic) -> Condition:
    """The node trims by the spec it has: what `Synced` says is in force applies to its limits too.
    Reported here, and not in Ready, which is about partitions."""
    if topic.retention_ms == UNLIMITED and topic.retention_bytes == UNLIMITED:
        return Condition("RetentionEnforced", "True", "Unlimited")
    return Condition(
        "RetentionEnforced",
        "True",
        "Enforced",
        "A segment is deleted once its newest record has expired or the rest of the partition "
        "reaches the size limit; records under a legal hold are kept.",
    )


def _observation(
    desired: Desired,
    observed: node_pb2.TopicStatus | None,
    conditions: Sequence[Condition],
    *,
    ready: bool = False,
) -> Observation:
    conditions = (*conditions, _retention(desired.topic))
    partitions = partition_details(observed.partitions if observed is not None else ())
    return Observation(desired.generation, conditions, {"partitions": partitions}, ready)


def _desired(session: Session, row: Topic, item: Claim, now: datetime) -> Desired:
    spec = effective(row.spec)
    status = session.get(ResourceStatus, row.id)
    return Desired(
        generation=row.generation,
        # A topic that was paused for a day is polled as soon as any other once it is reconciled
        # again.
        waiting=min(
            lasting(status.conditions if status is not None else (), "Ready", now),
            now - row.updated_at,
        ),
        addresses=tuple(addresses(session, row.cluster_id)),
        fence=Fence(int(meta_value(session, "db_epoch")), row.generation, item.lease_token),
        topic=node_pb2.PutTopic(
            topic_id=row.id,
            organization_id=row.org_id,
            project_id=row.project_id,
            project=session.get_one(Project, row.project_id).name,
            stream=session.get_one(Stream, row.stream_id).name,
            topic=row.name,
            partitions=spec.partitions,
            replication_factor=spec.replication_factor,
            retention_ms=UNLIMITED if spec.retention_ms is None else spec.retention_ms,
            retention_bytes=UNLIMITED if spec.retention_bytes is None else spec.retention_bytes,
            segment_bytes=spec.segment_bytes,
            codec=spec.codec,
            message_bytes_max=spec.max_message_bytes,
            retention_ms_min=spec.min_retention_ms,
        ),
        purge=pending_purge(session, row.id),
        management_mode=management_mode(spec),
        sent=status is not None
        and lately_sent(status.detail.get(DETAIL), PUT, row.generation, now) < SHOWN_WITHIN,
    )
