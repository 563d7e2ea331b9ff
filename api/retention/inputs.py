"""What a retention run needs besides names: every policy that ever held, the holds, and the time.

The history of policies is read from the audit chain, which has every change with its author; the
topic's own row stands for a change that the chain does not know. Writes nothing.
"""

from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from api.db.tables.audit import AuditEvent
from api.db.tables.holds import LegalHold
from api.db.tables.topics import Topic
from api.jobs.inputs import ReportInputs
from api.retention.schemas import HeldBody, PolicyBody, RetentionInputs
from api.topics.spec import effective

UNLIMITED = -1
TOPICS_AT_ONCE = 500


def retention_inputs(session: Session, names: ReportInputs, now: datetime) -> RetentionInputs:
    """The names, and what is kept by which policy and hold as of now."""
    shared = {name: getattr(names, name) for name in ReportInputs.model_fields}
    shared |= {"as_of": now, "policies": _policies(session), "holds": _holds(session)}
    return RetentionInputs(**shared)


def _policies(session: Session) -> list[PolicyBody]:
    """By topic and generation; the last of a topic is in force."""
    found: dict[tuple[str, int], PolicyBody] = {}
    topics = session.scalars(select(Topic).order_by(Topic.id)).all()
    # Topic by topic, for the chain is of everything else too, and only grows.
    for begin in range(0, len(topics), TOPICS_AT_ONCE):
        some = [row.id for row in topics[begin : begin + TOPICS_AT_ONCE]]
        for topic_id, after, moment, by in session.execute(_changes(some)):
            spec, generation = (after or {}).get("spec"), (after or {}).get("generation")
            if isinstance(spec, dict) and isinstance(generation, int):
                place = (topic_id, generation)
                found.setdefault(place, _policy(*place, spec, moment, by))
    for topic in topics:
        place = (topic.id, topic.generation)
        found.setdefault(place, _policy(*place, topic.spec, topic.updated_at, topic.created_by))
    return [found[place] for place in sorted(found)]


def _changes(topic_ids: list[str]) -> Select[str, dict[str, Json] | None, datetime, str]:
    """What was done to some topics, in order; never in memory as a whole."""
    columns = (
        AuditEvent.target_id,
        AuditEvent.after,
        AuditEvent.occurred_at,
        AuditEvent.principal_id,
    )
    events = select(*columns).where(AuditEvent.target_id.in_(topic_ids))
    events = events.where(AuditEvent.target_kind == "topic", AuditEvent.outcome == "DONE")
    order = events.order_by(AuditEvent.target_id, AuditEvent.sequence)
    return order.execution_options(yield_per=1000)


def _policy(
    topic_id: str, generation: int, spec: Mapping[str, Json], moment: datetime, by: str
) -> PolicyBody:
    chosen = effective(spec)
    limits = ("retention_ms", "retention_bytes", "min_retention_ms")
    return PolicyBody(
        topic_id=topic_id,
        generation=generation,
        changed_at=moment,
        by=by,
        retention_ms=UNLIMITED if chosen.retention_ms is None else chosen.retention_ms,
        retention_bytes=UNLIMITED if chosen.retention_bytes is None else chosen.retention_bytes,
        min_retention_ms=chosen.min_retention_ms,
        segment_bytes=chosen.segment_bytes,
        sources={name: "topic" if spec.get(name) is not None else "default" for name in limits},
    )


def _holds(session: Session) -> list[HeldBody]:
    return [
        HeldBody(
            id=row.id,
            topic_id=row.topic_id,
            partition=row.partition,
            from_offset=row.from_offset,
            case_id=row.case_id,
            owner=row.created_by,
            reason=row.reason,
            state=row.state,
            created_at=row.created_at,
            activated_at=row.activated_at,
            released_at=row.released_at,
            released_by=row.released_by,
        )
        for row in session.scalars(select(LegalHold).order_by(LegalHold.id))
    ]
