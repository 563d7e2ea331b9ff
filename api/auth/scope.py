"""The scope of a caller: the rows that it sees, and the project or stream that a command means.

`visible_to` is the only tenant filter. It agrees with `api.auth.guard.visible`, which decides about
one object at a time:

    caller                 sees
    a key                  the rows of its organization
    a key of a project     of those, the rows of its project, and what belongs to no project
    an operator's key      besides, reports, invoices and names of every organization
    the token of a run     its run

A table that this module does not know is out of sight of a key of a project. Refuses to decide what
a role may do.
"""

from typing import Final, TypeVar

from sqlalchemy import ColumnElement, Select, false, or_, select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.db.database import Base
from api.db.tables.api_keys import ApiKey
from api.db.tables.audit import AuditEvent
from api.db.tables.clusters import Cluster
from api.db.tables.holds import LegalHold
from api.db.tables.invoices import Invoice
from api.db.tables.nodes import Node
from api.db.tables.operations import Operation
from api.db.tables.organizations import Organization
from api.db.tables.projects import Project
from api.db.tables.reports import ReportRun
from api.db.tables.retention import RetentionRow, RetentionTopic
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.db.tables.usage import UsageRow
from api.http.errors import NotFoundError

Query = TypeVar("Query", bound=Select[*tuple[object, ...]])

# Every organization reads them.
SHARED: Final = (Cluster,)
# The operator reads them of every organization.
OPERATED: Final = (Organization, Invoice, UsageRow, RetentionRow, RetentionTopic)
# Each row is of one project, or of none and then out of sight of a key of a project.
IN_PROJECTS: Final = (
    ApiKey,
    LegalHold,
    Operation,
    RetentionRow,
    RetentionTopic,
    Stream,
    Topic,
    UsageRow,
)
# In no project, and nothing that a key of a project may not see.
IN_NO_PROJECT: Final = (Node, Organization, ReportRun)


def visible_to(query: Query, model: type[Base], caller: Caller) -> Query:
    """Of the rows of a table that a query asks for, those that a caller sees."""
    columns = model.__table__.c
    if caller.run_id is not None:
        return query.where(ReportRun.id == caller.run_id if model is ReportRun else false())
    if model in SHARED:
        return query
    if not (caller.operator and model in OPERATED):
        query = query.where(columns["org_id"] == caller.org_id)
    if caller.project_id is None or model in IN_NO_PROJECT:
        return query
    return query.where(_in_project(model, caller, caller.project_id))


def of_organization(query: Query, model: type[Base], org_id: str) -> Query:
    """Of the rows of a table that a query asks for, those of an organization, for any caller: for
    rules about all of them, such as a name that only one may have."""
    return query.where(model.__table__.c["org_id"] == org_id)


def _in_project(model: type[Base], caller: Caller, project_id: str) -> ColumnElement[bool]:
    if model in IN_PROJECTS:
        return model.__table__.c["project_id"] == project_id
    if model is Project:
        return Project.id == project_id
    if model is AuditEvent:
        return _event_in_project(caller, project_id)
    return false()


def _event_in_project(caller: Caller, project_id: str) -> ColumnElement[bool]:
    """An event names its object and no project: those of the project, of what is or was in it, and
    of what its keys did or were refused. The rows of objects that are gone stay, so their events
    are found as well; objects of the organization as a whole are in no project."""
    keys, *inside = (
        visible_to(select(model.id), model, caller) for model in (ApiKey, Stream, Topic, LegalHold)
    )
    return or_(
        AuditEvent.target_id == project_id,
        AuditEvent.principal_id.in_(keys),
        *(AuditEvent.target_id.in_(ids) for ids in (keys, *inside)),
    )


def project_for(
    session: Session, caller: Caller, project_id: str | None, *, hint: str = ""
) -> Project:
    """The project a command means: the named one, the key's own, or `default`.

    :raises NotFoundError: there is no such project that the caller can see.
    """
    wanted = project_id or caller.project_id
    query = visible_to(select(Project), Project, caller).where(Project.purged_at.is_(None))
    query = query.where(Project.id == wanted if wanted else Project.name == "default")
    row = session.scalars(query).first()
    if row is None:
        raise NotFoundError(
            f"The project {wanted or 'default'} does not exist, or this key has no access to it.",
            hint=hint,
        )
    return row


def stream_for(
    session: Session, caller: Caller, *, project_id: str, stream_id: str | None, name: str | None
) -> Stream:
    """The stream a command means: by id, by name in the project, or `default`.

    :raises NotFoundError: there is no such stream that the caller can see.
    """
    query = visible_to(select(Stream), Stream, caller).where(Stream.purged_at.is_(None))
    if stream_id is not None:
        query = query.where(Stream.id == stream_id)
    else:
        query = query.where(Stream.project_id == project_id, Stream.name == (name or "default"))
    row = session.scalars(query).first()
    if row is None:
        raise NotFoundError(
            f"The stream {stream_id or name or 'default'} does not exist, or this key has no "
            "access to it.",
            code="STREAM_NOT_FOUND",
            hint="Create it with POST /v1/streams, or omit it to use the stream `default`.",
        )
    return row
