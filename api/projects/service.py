"""The rules of projects; the only writer of their table."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.auth.change import first_columns
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import of_organization, visible_to
from api.clusters.service import only_cluster
from api.db.identifiers import new_id
from api.db.tables.projects import Project
from api.deletion.mark import refuse_deleting
from api.http.errors import ForbiddenError, NameTakenError
from api.http.pagination import Page, Paging, page_of
from api.http.resource import body_json
from api.projects.schemas import ProjectBody, ProjectCreate, ProjectFilter
from api.reconcile.status import statuses
from api.streams.schemas import StreamCreate
from api.streams.service import create_stream_row


def create_project(session: Session, actor: Actor, command: ProjectCreate) -> ProjectBody:
    """A project with a stream `default`. A key that is confined to a project makes no others."""
    if actor.caller.project_id is not None:
        raise ForbiddenError(
            "The key is confined to one project.", hint="Use an organization-wide key."
        )
    row = create_project_row(session, actor, actor.caller.org_id, command)
    cluster = only_cluster(session)
    if cluster is not None:
        create_stream_row(
            session, actor, StreamCreate(name="default"), project=row, cluster_id=cluster.id
        )
    return ProjectBody.of(row)


def create_project_row(
    session: Session, actor: Actor, org_id: str, command: ProjectCreate
) -> Project:
    """The row alone, recorded."""
    same = of_organization(select(Project), Project, org_id).where(
        Project.name == command.name, Project.purged_at.is_(None)
    )
    taken = session.scalars(same).first()
    if taken is not None:
        refuse_deleting(taken, "project")
        raise NameTakenError(f"There is a project {command.name} already.", existing_id=taken.id)
    row = Project(
        id=new_id("prj"),
        org_id=org_id,
        name=command.name,
        finalizers=["streams", "keys"],
        **first_columns(actor, command),
    )
    session.add(row)
    session.flush()
    record_change(
        session,
        actor,
        Change(org_id, "projects.create", "project", row.id, after=body_json(ProjectBody.of(row))),
    )
    return row


def project_bodies(session: Session, rows: Sequence[Project]) -> list[ProjectBody]:
    """The bodies of rows, in their order."""
    found = statuses(session, [row.id for row in rows])
    return [ProjectBody.of(row, found.get(row.id)) for row in rows]


def project_page(
    session: Session, caller: Caller, which: ProjectFilter, page: Paging
) -> Page[ProjectBody]:
    """The projects that a caller sees, oldest first."""
    query = visible_to(select(Project), Project, caller).where(Project.purged_at.is_(None))
    request = page.of(session, caller.org_id, "projects", which.members())
    return page_of(session, query.filter_by(**which.given()), Project.id, request, project_bodies)


def read_project(session: Session, project_id: str) -> ProjectBody:
    """Returns a project."""
    return project_bodies(session, [session.get_one(Project, project_id)])[0]


def project_owner(session: Session, object_id: str) -> Owner | None:
    """Whose a project is."""
    row = session.get(Project, object_id)
    return Owner(row.org_id, row.id) if row and row.purged_at is None else None
