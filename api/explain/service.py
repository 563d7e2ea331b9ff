"""Puts an explanation together from what the control plane wrote down as it went: nothing is
guessed, and only for a node is anybody asked."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.columns import DeletableColumns, ResourceColumns
from api.db.tables.clusters import Cluster
from api.db.tables.holds import LegalHold
from api.db.tables.nodes import Node
from api.db.tables.operations import Operation
from api.db.tables.reports import ReportRun
from api.db.tables.work import ResourceStatus, Work
from api.explain.schemas import ExplainedObject, ExplanationBody, Step
from api.explain.steps import commands, holding, in_order, outlook, requests, turns
from api.explain.subjects import Subject
from api.explain.summary import State, sentence
from api.http.resource import format_instant
from api.operations.schemas import OperationBody
from api.operations.service import operation_bodies
from api.reconcile.status import condition_bodies

OPERATIONS_MAX: Final = 20


def explain(
    session: Session, caller: Caller, subject: Subject, now: datetime, extra: Sequence[Step]
) -> ExplanationBody:
    """Why an object is as it is.

    :param extra: what was asked of the world for this answer.
    """
    row, kind = subject.row, subject.kind
    if row.org_id != caller.org_id:
        return _of_a_stranger(subject)
    status = session.get(ResourceStatus, row.id)
    work = session.get(Work, (kind.work, row.id)) if kind.work else None
    conditions = condition_bodies(status)
    steps = [
        *requests(session, row.id),
        *holding(session, row.id),
        *commands(status),
        *turns(conditions),
        *extra,
        *outlook(session, work, now),
    ]
    return ExplanationBody(
        object=ExplainedObject(kind=kind.word, id=row.id, name=subject.name),
        summary=_summary(session, caller, subject, status, work, now),
        steps=in_order(steps),
        conditions=conditions,
        operations=_operations(session, caller, row, now),
    )


def _of_a_stranger(subject: Subject) -> ExplanationBody:
    """A cluster serves everybody; what is done to it is its operator's business only."""
    named = ExplainedObject(kind=subject.kind.word, id=subject.row.id, name=subject.name)
    summary = f"The {subject.kind.word} {subject.name} is run by the operator of the service."
    return ExplanationBody(object=named, summary=summary, steps=[], conditions=[], operations=[])


def _summary(
    session: Session,
    caller: Caller,
    subject: Subject,
    status: ResourceStatus | None,
    work: Work | None,
    now: datetime,
) -> str:
    row, title = subject.row, f"{subject.kind.word} {subject.name}"
    if isinstance(row, Operation):
        return _of_operation(session, row, now)
    if isinstance(row, ReportRun):
        ended = f" since {format_instant(row.finished_at)}" if row.finished_at else ""
        why = f": {_plain(row.error)}" if row.error else ""
        return f"The {subject.name} report run is {row.state}{ended}{why}."
    if isinstance(row, LegalHold):
        return _of_hold(row, status)
    if isinstance(row, Node):
        return f"The {title} is registered at {row.address}."
    if isinstance(row, Cluster):
        nodes = visible_to(select(Node.name), Node, caller).where(Node.cluster_id == row.id)
        names = session.scalars(nodes.order_by(Node.id))
        return f"The {title} is made of: {', '.join(names) or 'no node yet'}."
    assert isinstance(row, ResourceColumns)
    deletable = row if isinstance(row, DeletableColumns) else None
    return sentence(
        State(
            subject=title,
            generation=row.generation,
            observed_generation=status.observed_generation if status else 0,
            conditions=condition_bodies(status),
            deleted_at=deletable.deleted_at if deletable else None,
            purged_at=deletable.purged_at if deletable else None,
            due_at=max(work.run_after, now) if work is not None else None,
        )
    )


def _of_operation(session: Session, row: Operation, now: datetime) -> str:
    body = operation_bodies(session, [row], now)[0]
    why = f": {_plain(body.error)}" if body.error else ""
    return (
        f"{row.kind} of {row.target_kind} {row.target_id} at generation "
        f"{row.target_generation} is {body.state}{why}. Explain {row.target_id} for the rest."
    )


def _of_hold(row: LegalHold, status: ResourceStatus | None) -> str:
    ready = next((each for each in condition_bodies(status) if each.type == "Ready"), None)
    why = f": {ready.message}" if ready is not None and ready.message else ""
    return f"The hold {row.id} of case {row.case_id} on {row.topic_id} is {row.state}{why}."


def _plain(error: Mapping[str, Json]) -> str:
    """What went wrong, to stand inside a sentence."""
    return str(error["detail"]).rstrip(".")


def _operations(
    session: Session, caller: Caller, row: object, now: datetime
) -> list[OperationBody]:
    """The latest operations of an object, or of an operation itself alone, oldest first."""
    if isinstance(row, Operation):
        return operation_bodies(session, [row], now)
    assert isinstance(row, ResourceColumns | ReportRun | LegalHold)
    query = visible_to(select(Operation), Operation, caller).where(Operation.target_id == row.id)
    rows = session.scalars(query.order_by(Operation.id.desc()).limit(OPERATIONS_MAX)).all()
    return operation_bodies(session, list(reversed(rows)), now)
