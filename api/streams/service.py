"""The rules of streams; the only writer of their table."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.auth.change import first_columns
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.identifiers import new_id
from api.db.locks import locked
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.deletion.mark import refuse_deleting
from api.http.errors import NameTakenError
from api.http.pagination import Page, Paging, page_of
from api.http.resource import body_json
from api.reconcile.status import statuses
from api.streams.schemas import StreamBody, StreamCreate, StreamFilter


def create_stream_row(
    session: Session, actor: Actor, command: StreamCreate, *, project: Project, cluster_id: str
) -> Stream:
    """A stream of a project on a cluster, recorded."""
    project = locked(session, Project, project.id, shared=True)
    refuse_deleting(project, "project")
    taken = session.scalars(
        select(Stream).where(
            Stream.project_id == project.id,
            Stream.name == command.name,
            Stream.purged_at.is_(None),
        )
    ).first()
    if taken is not None:
        refuse_deleting(taken, "stream")
        raise NameTakenError(
            f"The project has a stream {command.name} already.", existing_id=taken.id
        )
    row = Stream(
        id=new_id("st"),
        org_id=project.org_id,
        project_id=project.id,
        cluster_id=cluster_id,
        name=command.name,
        finalizers=["topics"],
        **first_columns(actor, command),
    )
    session.add(row)
    session.flush()
    record_change(
        session,
        actor,
        Change(row.org_id, "streams.create", "stream", row.id, after=body_json(StreamBody.of(row))),
    )
    return row


def stream_bodies(session: Session, rows: Sequence[Stream]) -> list[StreamBody]:
    """The bodies of rows, in their order."""
    found = statuses(session, [row.id for row in rows])
    return [StreamBody.of(row, found.get(row.id)) for row in rows]


def stream_page(
    session: Session, caller: Caller, which: StreamFilter, page: Paging
) -> Page[StreamBody]:
    """The streams that a caller sees, oldest first."""
    query = visible_to(select(Stream), Stream, caller).where(Stream.purged_at.is_(None))
    request = page.of(session, caller.org_id, "streams", which.members())
    return page_of(session, query.filter_by(**which.given()), Stream.id, request, stream_bodies)


def read_stream(session: Session, stream_id: str) -> StreamBody:
    """Returns a stream."""
    return stream_bodies(session, [session.get_one(Stream, stream_id)])[0]


def stream_owner(session: Session, object_id: str) -> Owner | None:
    """Whose a stream is."""
    row = session.get(Stream, object_id)
    return Owner(row.org_id, row.project_id) if row and row.purged_at is None else None
