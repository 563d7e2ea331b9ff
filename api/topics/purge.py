"""The rules of purges: records before an offset go, because somebody who looked at them says so.

A purge is a request that is carried out once: it names absolute offsets, so that carrying it out
twice takes nothing more, and it is dropped when the cluster has answered, so that nothing is taken
long after it was asked for. Refuses what is held, and to choose offsets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.db.locks import locked
from api.db.tables.holds import LegalHold
from api.db.tables.topics import Topic, TopicPurge
from api.deletion.mark import refuse_deleting
from api.http.errors import ConflictError, InvalidRequestError, PreconditionRequiredError, Violation
from api.http.reply import Changed
from api.http.resource import body_json, etag, revision_wanted
from api.reconcile.operations import PURGE, Target, start_operation
from api.reconcile.queue import enqueue
from api.topics.management import refuse_unreconciled
from api.topics.retention_plan import UNREAD
from api.topics.schemas import PartitionBody, PurgePlace, TopicBody
from api.topics.service import topic_bodies
from api.topics.spec import effective

OLD: Final = (
    "The node does not answer: these figures are from the last observation, so more records may be "
    "deleted. The node refuses offsets that it does not have."
)


@dataclass(frozen=True, slots=True)
class PendingPurge:
    """What shall go and was not said to the cluster yet: by partition the first offset that is
    kept; nothing at all by default. ``generation``: of the topic, when it was requested last."""

    generation: int = 0
    before: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the partitions of a topic hold. ``current``: now; else as they were observed last, since
    when a log may have become longer."""

    partitions: Sequence[PartitionBody]
    current: bool


def purge_topic(
    session: Session,
    actor: Actor,
    *,
    topic_id: str,
    places: Sequence[PurgePlace],
    if_match: str | None,
    figures: Figures,
) -> Changed[TopicBody]:
    """Stores that records shall be deleted.

    :param figures: of the partitions, as new as could be had.
    :raises PreconditionRequiredError: no If-Match was sent.
    :raises ConflictError: TOPIC_HELD names the first hold that keeps some of them; TOPIC_PAUSED,
        TOPIC_UNMANAGED: no worker would carry it out.
    """
    row = locked(session, Topic, topic_id)
    refuse_deleting(row, "topic")
    refuse_unreconciled([row], "purged")
    if if_match is None:
        raise PreconditionRequiredError(
            "A purge deletes records permanently, so it requires If-Match.",
            hint=f'Read the topic, then send If-Match: "{etag(row.revision)}".',
        )
    revision_wanted(if_match, row.revision)
    seen = {each.index: each for each in figures.partitions}
    _check_places(row, places, seen if figures.current else {})
    _check_free(session, row, places)
    before = topic_bodies(session, [row])[0]
    row.revision += 1
    row.generation += 1
    row.updated_at = actor.now
    _store(session, actor, row, {each.index: each.before_offset for each in places})
    enqueue(
        session,
        kind="topic",
        object_id=row.id,
        org_id=row.org_id,
        generation=row.generation,
        now=actor.now,
    )
    target = Target("topic", row.id, row.org_id, row.project_id, row.generation)
    operation = start_operation(session, actor, PURGE, target)
    body = topic_bodies(session, [row])[0]
    asked: dict[str, Json] = {
        "purge": [{"index": p.index, "before_offset": str(p.before_offset)} for p in places]
    }
    after = {**body_json(body), **asked}
    change = Change(row.org_id, "topics.purge_records", "topic", row.id, body_json(before), after)
    record_change(session, actor, change)
    return Changed(body, operation.id, _loss(places, seen, current=figures.current))


def pending_purge(session: Session, topic_id: str) -> PendingPurge:
    """What shall go of a topic."""
    row = session.get(TopicPurge, topic_id)
    if row is None:
        return PendingPurge()
    return PendingPurge(row.generation, {int(key): int(end) for key, end in row.before.items()})


def _store(session: Session, actor: Actor, row: Topic, before: dict[int, int]) -> None:
    """One row a topic: what an earlier request asked for and the cluster has not answered stays."""
    asked = dict(pending_purge(session, row.id).before)
    for index, offset in before.items():
        asked[index] = max(offset, asked.get(index, 0))
    stored = session.get(TopicPurge, row.id)
    if stored is None:
        stored = TopicPurge(topic_id=row.id, org_id=row.org_id, before={})
        session.add(stored)
    stored.before = {str(index): str(offset) for index, offset in sorted(asked.items())}
    stored.generation = row.generation
    stored.created_at = actor.now
    stored.created_by = actor.caller.principal_id
    session.flush()


def _check_places(
    row: Topic, places: Sequence[PurgePlace], seen: Mapping[int, PartitionBody]
) -> None:
    partitions = effective(row.spec).partitions
    violations = []
    for number, place in enumerate(places):
        at = f"#/partitions/{number}"
        end = seen[place.index].end_offset if place.index in seen else None
        if place.index >= partitions:
            limit = str(partitions - 1)
            violations.append(Violation(f"{at}/index", "NO_SUCH_PARTITION", "too high", limit))
        elif place.index in {each.index for each in places[:number]}:
            violations.append(Violation(f"{at}/index", "REPEATED", "each partition once"))
        elif end is not None and place.before_offset > end:
            why = "beyond the end of the log"
            violations.append(
                Violation(f"{at}/before_offset", "OFFSET_BEYOND_END", why, limit=str(end))
            )
    if violations:
        raise InvalidRequestError(
            f"The purge names partitions or offsets that {row.name} does not have.",
            hint="Read the topic with live=true: before_offset can be at most end_offset.",
            violations=violations,
        )


def _check_free(session: Session, row: Topic, places: Sequence[PurgePlace]) -> None:
    beyond = [
        or_(LegalHold.partition.is_(None), LegalHold.partition == place.index)
        & or_(LegalHold.from_offset.is_(None), LegalHold.from_offset < place.before_offset)
        for place in places
    ]
    query = select(LegalHold).where(
        LegalHold.topic_id == row.id, LegalHold.state != "RELEASED", or_(*beyond)
    )
    held = session.scalars(query.order_by(LegalHold.id).limit(1)).first()
    if held is not None:
        raise ConflictError(
            f"The purge would delete records of {row.name} that are under the legal hold "
            f"{held.id} (case {held.case_id}).",
            code="TOPIC_HELD",
            hint="Purge only records before the start of the hold, or release the hold first.",
            holds=[held.id],
        )


def _loss(
    places: Sequence[PurgePlace], seen: Mapping[int, PartitionBody], *, current: bool
) -> dict[str, Json]:
    """The plan: how many records go. Their bytes are an estimate, by the mean of the partition."""
    records = size = 0
    for place in places:
        found = seen.get(place.index)
        if found is not None and place.before_offset > found.start_offset:
            stored = found.end_offset - found.start_offset
            going = min(place.before_offset, found.end_offset) - found.start_offset
            records += going
            size += found.bytes * going // max(1, stored)
    return {
        "data_loss": {"records": str(records), "bytes_estimate": str(size)},
        "warnings": [*([UNREAD] if records else []), *([] if current else [OLD])],
    }
