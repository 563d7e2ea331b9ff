"""The rules of deleting projects: empty, or with everything in it in one transaction.

The keys of a project go with it in any case: they are revoked, and the project is gone only when
every cluster has forgotten them.
"""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.api_keys.service import revoke_key
from api.auth.audit_chain import Actor, Change, purger, record_change
from api.db.tables.api_keys import ApiKey
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.deletion.mark import (
    Deletion,
    child,
    demand_if_match,
    locked,
    mark,
    refuse_children,
    running_delete,
    take_off,
)
from api.http.reply import Changed
from api.http.resource import body_json
from api.projects.schemas import ProjectBody
from api.projects.service import project_bodies
from api.reconcile.conditions import has_status
from api.reconcile.operations import Target, settle_operations, start_operation
from api.reconcile.status import ensure_status, statuses
from api.streams.deletion import mark_stream, topics_of
from api.topics.change_plan import loss_of
from api.topics.deletion import check_topics

FINALIZERS: Final = ("streams", "keys")
DELETE: Final = "delete_project"


def delete_project(
    session: Session, actor: Actor, *, project_id: str, deletion: Deletion
) -> Changed[ProjectBody]:
    """Marks a project, with ``cascade`` what is in it, and revokes its keys."""
    row = locked(session, Project, project_id)
    if row.deleted_at is not None and deletion.force_reason in (None, row.force_reason):
        return Changed(_body(session, row), running_delete(session, row.id, DELETE))
    if row.deleted_at is None:
        demand_if_match(row, deletion.if_match)
    streams = streams_of(session, row)
    staying = [each for each in streams if each.deleted_at is None]
    if not deletion.cascade:
        refuse_children(row, "project", [child("stream", each) for each in staying])
    # Held before their topics are counted: nothing can be made in them from here on.
    streams = [locked(session, Stream, each.id) for each in streams]
    topics = [
        each
        for stream in streams
        for each in topics_of(session, stream, held=True)
        if each.deleted_at is None
    ]
    check_topics(session, row.org_id, topics, deletion)
    done = _mark_project(session, actor, row, streams, deletion)
    return replace(done, plan=loss_of(session, topics))


def streams_of(session: Session, row: Project) -> list[Stream]:
    """The streams that are not gone, in order of creation."""
    query = select(Stream).where(Stream.project_id == row.id, Stream.purged_at.is_(None))
    return list(session.scalars(query.order_by(Stream.id)))


def keys_known(session: Session, row: Project) -> list[ApiKey]:
    """The keys of the project that some cluster may still know."""
    query = select(ApiKey).where(ApiKey.project_id == row.id).order_by(ApiKey.id)
    keys = list(session.scalars(query))
    found = statuses(session, [key.id for key in keys])
    return [
        key
        for key in keys
        if key.id not in found
        or not has_status(found[key.id].conditions, "Active", "False", key.generation)
    ]


def bury_project(session: Session, project_id: str, now: datetime) -> None:
    """Nothing is in the project any more: the row becomes its tombstone."""
    row = locked(session, Project, project_id)
    if row.purged_at is not None or streams_of(session, row) or keys_known(session, row):
        return
    for finalizer in FINALIZERS:
        take_off(row, finalizer, now)
    settle_operations(session, row.id, row.generation, now)
    last = body_json(_body(session, row))
    record_change(
        session,
        purger(row.org_id, now),
        Change(row.org_id, "projects.purge", "project", row.id, before=last),
    )


def _mark_project(
    session: Session, actor: Actor, row: Project, streams: list[Stream], deletion: Deletion
) -> Changed[ProjectBody]:
    before = _body(session, row)
    ensure_status(session, object_id=row.id, org_id=row.org_id, now=actor.now)
    mark(session, actor, row, deletion, "project")
    for stream in streams:
        if stream.deleted_at is None or deletion.force_reason not in (None, stream.force_reason):
            mark_stream(session, actor, stream, deletion)
    live = select(ApiKey.id).where(ApiKey.project_id == row.id, ApiKey.revoked_at.is_(None))
    for key_id in session.scalars(live.order_by(ApiKey.id)).all():
        revoke_key(session, actor, key_id=key_id, if_match=None)
    target = Target("project", row.id, row.org_id, row.id, row.generation)
    operation = start_operation(session, actor, DELETE, target)
    body = _body(session, row)
    record_change(
        session,
        actor,
        Change(
            row.org_id, "projects.delete", "project", row.id, body_json(before), body_json(body)
        ),
    )
    return Changed(body, operation.id)


def _body(session: Session, row: Project) -> ProjectBody:
    return project_bodies(session, [row])[0]
