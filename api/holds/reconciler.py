"""Legal holds: put or release on the cluster, and in force only when every partition's log says so.

What is so is the cluster's word: a hold that was put is not a hold in force, and one that is no
longer shown everywhere, as when its topic has more partitions now, is PROPAGATING again. ``plan``
and ``evaluate`` are pure; commands are repeatable, and carry the fence of the hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.database import Database, meta_value
from api.db.tables.holds import LegalHold
from api.db.tables.topics import Topic
from api.node.addresses import addresses
from api.node.client import NodeClient
from api.node.failure import FailureKind, NodeFailure
from api.node.fence import Fence
from api.reconcile.backoff import poll_after
from api.reconcile.commands import command_record
from api.reconcile.conditions import Condition
from api.reconcile.outcome import CommandRecord, Converged, Observation, Outcome, RequeueAfter
from api.reconcile.queue import Claim, enqueue, holds
from api.topics.management import management_mode
from api.topics.spec import effective
from dataplane.wire import node_pb2

KIND: Final = "hold"
# A release reaches one partition after the other.
HELD: Final = {"ACTIVE": "True", "RELEASING": "Unknown"}
# A hold protects, so it is put although its topic is not reconciled; a release, after which records
# may go, waits: what is kept too long can still go.
WAITS: Final = "the topic is {why.word}: set {why.unset}, and it is released"


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state of a hold. ``released``: no longer held; ``gone``: with its topic.
    ``age``: since this was requested. ``waits``: why a release does, if it does."""

    generation: int
    released: bool
    gone: bool
    age: timedelta
    addresses: tuple[str, ...]
    fence: Fence
    hold: node_pb2.PutHold
    waits: str = ""


@dataclass(frozen=True, slots=True)
class HoldObservation:
    """What the cluster shows: the topic, and the hold if it knows it."""

    topic: node_pb2.TopicStatus | None
    hold: node_pb2.HoldStatus | None


def plan(desired: Desired, observed: HoldObservation) -> str | None:
    """PUT, RELEASE, or nothing. Pure. Nothing can be said to a cluster that has not the topic, or
    not the partition, yet; a release is said even if the cluster shows no such hold: one that was
    put before may still be on its way, and the cluster remembers what was released."""
    if observed.topic is None or not _reaches(observed.topic, desired.hold):
        return None
    if desired.released:
        return None if observed.hold is not None and not observed.hold.active else "RELEASE"
    return None if observed.hold is not None and observed.hold.active else "PUT"


def evaluate(desired: Desired, observed: HoldObservation) -> tuple[str, str]:
    """The state of the hold, and what it waits for; "" once it is in that state. Pure.

    That the cluster once confirmed it is not enough to be ACTIVE: the log of every partition that
    it concerns says now that it is held.
    """
    waiting, done = ("RELEASING", "RELEASED") if desired.released else ("PROPAGATING", "ACTIVE")
    if observed.topic is None:
        return waiting, "the cluster has not the topic yet"
    if observed.hold is None or observed.hold.active == desired.released:
        return waiting, "the cluster has not applied it yet"
    if not desired.released and not _reaches(observed.topic, desired.hold):
        return waiting, "the cluster has not the partition yet"
    lacking = [] if desired.released else missing(desired.hold, observed)
    if lacking or not observed.hold.confirmed:
        names = ", ".join(str(index) for index in lacking)
        logs = f"the logs of partitions {names}" if names else "the last confirmation"
        return waiting, f"waits for {logs}"
    return done, ""


def missing(hold: node_pb2.PutHold, observed: HoldObservation) -> list[int]:
    """The partitions whose own log does not know that they are held, so far down. Pure."""
    rows = observed.topic.partitions if observed.topic is not None else ()
    return [
        each.index
        for each in rows
        if _concerns(hold, each.index) and not (each.held and each.held_from <= hold.from_offset)
    ]


class HoldReconciler:
    """Makes one hold be as its row says."""

    def __init__(self, database: Database, nodes: NodeClient) -> None:
        self._database = database
        self._nodes = nodes

    def generation(self, object_id: str) -> int:
        """The generation a failed pass has looked at."""
        with self._database.read() as session:
            return session.get_one(LegalHold, object_id).revision

    def reconcile(self, item: Claim) -> Outcome:
        """One pass."""
        with self._database.read() as session:
            desired = _desired(session, item, self._database.now(session))
        if desired.gone:
            # It was marked while this was being released, and what was held went with it.
            self._write(item, desired, "RELEASED", 0)
            return Converged(
                _observation(desired, HoldObservation(None, None), "RELEASED", ""), final=True
            )
        if desired.released and desired.waits:
            found = _observation(desired, HoldObservation(None, None), "RELEASING", desired.waits)
            return RequeueAfter(replace(found, detail={}), poll_after(desired.age), desired.waits)
        observed = self._observe(desired)
        commands = self._bring(desired, plan(desired, observed))
        if commands:
            observed = self._observe(desired)
        state, why = evaluate(desired, observed)
        self._write(
            item, desired, state, observed.hold.intent_op if observed.hold is not None else 0
        )
        found = replace(_observation(desired, observed, state, why), commands=commands)
        if why:
            return RequeueAfter(found, poll_after(desired.age), why)
        return Converged(found, final=desired.released)

    def _observe(self, desired: Desired) -> HoldObservation:
        reply = self._nodes.describe(desired.addresses, topic_ids=[desired.hold.topic_id])
        topics = [each for each in reply.topics if each.topic_id == desired.hold.topic_id]
        known = [each for each in reply.holds if each.hold_id == desired.hold.hold_id]
        return HoldObservation(topics[0] if topics else None, known[0] if known else None)

    def _bring(self, desired: Desired, command: str | None) -> tuple[CommandRecord, ...]:
        if command is None:
            return ()
        if command == "PUT":
            reply = self._nodes.put_hold(desired.addresses, desired.fence, desired.hold)
            return (command_record("PutHold", "not on the cluster yet", desired.fence, reply),)
        reply = self._nodes.release_hold(
            desired.addresses, desired.fence, desired.hold.hold_id, desired.hold.topic_id
        )
        return (command_record("ReleaseHold", "it was released", desired.fence, reply),)

    def _write(self, item: Claim, desired: Desired, state: str, intent_op: int) -> None:
        """Writes the hold's state into its row, which a delete of the topic reads."""
        with self._database.write() as session:
            row = session.get_one(LegalHold, item.object_id, with_for_update=True)
            if not holds(session, item, self._database.now(session)):
                raise NodeFailure(
                    FailureKind.CONFLICT, "LEASE_LOST", "Another worker sends the command."
                )
            if row.revision != desired.generation:
                return  # It changed meanwhile, and its next pass is due at once.
            now = self._database.now(session)
            row.intent_op = intent_op or row.intent_op
            if state == "ACTIVE":
                row.activated_at = row.activated_at or now
            if state == "RELEASED" and row.state != "RELEASED":
                row.released_at = now
                _wake_topic(session, row, now)
            row.state = state


def _wake_topic(session: Session, row: LegalHold, now: datetime) -> None:
    """A topic that shall go has waited for this."""
    topic = session.get_one(Topic, row.topic_id)
    if topic.deleted_at is not None and topic.purged_at is None:
        enqueue(
            session,
            kind="topic",
            object_id=topic.id,
            org_id=topic.org_id,
            generation=topic.generation,
            now=now,
        )


def _observation(desired: Desired, observed: HoldObservation, state: str, why: str) -> Observation:
    reasons = {"PROPAGATING": "Propagating", "RELEASING": "Releasing", "RELEASED": "Released"}
    reason = reasons.get(state, "Confirmed")
    conditions = (
        Condition("Held", HELD.get(state, "False"), reason, why),
        Condition("Ready", "False" if why else "True", reason, why),
        Condition("Reachable", "True", "NodeAnswered"),
        Condition("Stalled", "False", "Progressing"),
    )
    detail = {"partitions": _partitions(desired, observed)}
    return Observation(desired.generation, conditions, detail, ready=not why)


def _partitions(desired: Desired, observed: HoldObservation) -> list[Json]:
    """One object a partition that the hold concerns."""
    lacking = () if desired.released else missing(desired.hold, observed)
    rows: Sequence[node_pb2.PartitionStatus] = observed.topic.partitions if observed.topic else ()
    return [
        {
            "index": each.index,
            "missing": each.index in lacking,
            **({"held_from": str(each.held_from)} if each.held else {}),
            "held_bytes": str(each.held_bytes),
        }
        for each in rows
        if _concerns(desired.hold, each.index)
    ]


def _reaches(topic: node_pb2.TopicStatus, hold: node_pb2.PutHold) -> bool:
    """Whether the cluster has what is to be held."""
    return len(topic.partitions) > max(hold.partitions, default=0)


def _concerns(hold: node_pb2.PutHold, index: int) -> bool:
    return not hold.partitions or index in hold.partitions


def _desired(session: Session, item: Claim, now: datetime) -> Desired:
    row = session.get_one(LegalHold, item.object_id)
    topic = session.scalars(select(Topic).where(Topic.id == row.topic_id)).one()
    released = row.release_wished_at is not None
    why = management_mode(effective(topic.spec))
    assert topic.purged_at is None or released, "what is held is not buried"
    return Desired(
        generation=row.revision,
        released=released,
        gone=topic.purged_at is not None,
        age=now - (row.release_wished_at or row.created_at),
        addresses=tuple(addresses(session, topic.cluster_id)),
        fence=Fence(int(meta_value(session, "db_epoch")), row.revision, item.lease_token),
        hold=node_pb2.PutHold(
            hold_id=row.id,
            topic_id=row.topic_id,
            partitions=[] if row.partition is None else [row.partition],
            from_offset=row.from_offset or 0,
        ),
        waits=WAITS.format(why=why) if why is not None else "",
    )
