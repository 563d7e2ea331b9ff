"""The rules of organizations; the only writer of their table."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.auth.change import first_columns
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.clusters.service import only_cluster
from api.db.identifiers import new_id
from api.db.tables.organizations import Organization
from api.http.errors import NameTakenError
from api.http.pagination import Page, Paging, page_of
from api.http.resource import body_json
from api.organizations.schemas import OrganizationBody, OrganizationCreate, OrganizationFilter
from api.projects.schemas import ProjectCreate
from api.projects.service import create_project_row
from api.streams.schemas import StreamCreate
from api.streams.service import create_stream_row


def create_organization(
    session: Session, actor: Actor, command: OrganizationCreate
) -> OrganizationBody:
    """A tenant with a project and a stream `default`, ready to hold topics once it has a key."""
    taken = session.scalars(select(Organization).where(Organization.name == command.name)).first()
    if taken is not None:
        raise NameTakenError(
            f"There is an organization {command.name} already.", existing_id=taken.id
        )
    row = new_organization(session, actor, command)
    project = create_project_row(session, actor, row.id, ProjectCreate(name="default"))
    cluster = only_cluster(session)
    if cluster is not None:
        create_stream_row(
            session, actor, StreamCreate(name="default"), project=project, cluster_id=cluster.id
        )
    return OrganizationBody.of(row)


def new_organization(
    session: Session, actor: Actor, command: OrganizationCreate, *, system: bool = False
) -> Organization:
    """The row alone, recorded."""
    organization_id = new_id("org")
    row = Organization(
        id=organization_id,
        org_id=organization_id,
        name=command.name,
        **first_columns(actor, command),
        system=system,
    )
    session.add(row)
    session.flush()
    record_change(
        session,
        actor,
        Change(
            row.id,
            "organizations.create",
            "organization",
            row.id,
            after=body_json(OrganizationBody.of(row)),
        ),
    )
    return row


def organization_bodies(_session: Session, rows: Sequence[Organization]) -> list[OrganizationBody]:
    """The bodies of rows, in their order."""
    return [OrganizationBody.of(row) for row in rows]


def organization_page(
    session: Session, caller: Caller, which: OrganizationFilter, page: Paging
) -> Page[OrganizationBody]:
    """The organizations that a caller sees, oldest first."""
    query = visible_to(select(Organization), Organization, caller)
    request = page.of(session, caller.org_id, "organizations", which.members())
    return page_of(
        session, query.filter_by(**which.given()), Organization.id, request, organization_bodies
    )


def read_organization(session: Session, organization_id: str) -> OrganizationBody:
    """Returns an organization."""
    return OrganizationBody.of(session.get_one(Organization, organization_id))


def organization_owner(session: Session, object_id: str) -> Owner | None:
    """An organization belongs to itself."""
    row = session.get(Organization, object_id)
    return Owner(row.id) if row else None
