"""The scope of a caller: which project or stream of its own a command means."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.http.errors import NotFoundError


def project_for(session: Session, caller: Caller, project_id: str | None) -> Project:
    """The project a command means: the named one, the key's own, or `default`."""
    wanted = project_id or caller.project_id
    if wanted is None:
        named = session.scalars(
            select(Project).where(
                Project.org_id == caller.org_id,
                Project.name == "default",
                Project.purged_at.is_(None),
            )
        ).first()
    else:
        named = session.get(Project, wanted)
    foreign = named is not None and (
        named.org_id != caller.org_id or caller.project_id not in (None, named.id)
    )
    if named is None or named.purged_at is not None or foreign:
        raise NotFoundError(f"There is no project {wanted or 'default'} that this key can see.")
    return named


def stream_for(
    session: Session, caller: Caller, *, project_id: str, stream_id: str | None, name: str | None
) -> Stream:
    """The stream a command means: by id, by name in the project, or `default`."""
    if stream_id is not None:
        row = session.get(Stream, stream_id)
    else:
        row = session.scalars(
            select(Stream).where(
                Stream.project_id == project_id,
                Stream.name == (name or "default"),
                Stream.purged_at.is_(None),
            )
        ).first()
    foreign = row is not None and (
        row.org_id != caller.org_id or caller.project_id not in (None, row.project_id)
    )
    if row is None or row.purged_at is not None or foreign:
        raise NotFoundError(
            f"There is no stream {stream_id or name or 'default'} that this key can see.",
            code="STREAM_NOT_FOUND",
            hint="Create it with POST /v1/streams, or leave it out to use the stream default.",
        )
    return row
