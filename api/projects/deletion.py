"""The rules of deleting projects: empty, or with everything in it in one transaction.

The keys of a project go with it in any case: they are revoked, and the project is gone only when
every cluster has forgotten them.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.api_keys.service import revoke_key
from api.auth.audit_chain import Actor
from api.db.locks import locked
from api.db.tables.api_keys import ApiKey
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.deletion.deletable import Deletable, unmarked
from api.deletion.mark import Deletion, child, refuse_children, take_off
from api.http.reply import Changed
from api.projects.schemas import ProjectBody
from api.projects.service import project_bodies
from api.reconcile.conditions import has_status
from api.reconcile.status import statuses
from api.streams.deletion import mark_stream, topics_of
from api.topics.deletion import check_topics
from api.topics.retention_plan import loss_of

FINALIZERS: Final = ("streams", "keys")
PROJECT: Final[Deletable[Project, ProjectBody]] = Deletable(
    "project", project_bodies, lambda row: row.id
)


def delete_project(
    session: Session, actor: Actor, *, project_id: str, deletion: Deletion
) -> Changed[ProjectBody]:
    """Marks a project, with ``cascade`` what is in it, and revokes its keys."""
    row = locked(session, Project, project_id)
    running = PROJECT.running(session, row, deletion)
    if running is not None:
        return running
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

    def mark_inside() -> None:
        for stream in streams:
            if unmarked(stream, deletion):
                mark_stream(session, actor, stream, deletion)
        for key_id in _live_keys(session, row):
            revoke_key(session, actor, key_id=key_id, if_match=None)

    marked = PROJECT.mark(session, actor, row, deletion, mark_inside)
    return replace(marked, plan=loss_of(session, topics))


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
    PROJECT.bury(session, row, now, above=None)


def _live_keys(session: Session, row: Project) -> Sequence[str]:
    live = select(ApiKey.id).where(ApiKey.project_id == row.id, ApiKey.revoked_at.is_(None))
    return session.scalars(live.order_by(ApiKey.id)).all()
