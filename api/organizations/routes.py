"""HTTP for organizations."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from sqlalchemy import select

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.organizations import Organization
from api.http.idempotency import RequestFacts
from api.http.pagination import Page, PageRequest, page_of
from api.http.reply import created
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    NameFilter,
    PageSize,
    PageToken,
    Route,
)
from api.organizations.schemas import OrganizationBody, OrganizationCreate
from api.organizations.service import create_organization, organization_owner

router = APIRouter(prefix="/v1/orgs", route_class=Route, tags=["organizations"])

Lister = Annotated[Caller, Depends(Guard("orgs:read"))]
Reader = Annotated[Caller, Depends(Guard("orgs:read", organization_owner))]
Creator = Annotated[Caller, Depends(Guard("orgs:create"))]


@router.get("", operation_id="listOrganizations", responses=READ_PROBLEMS)
def list_organizations(
    caller: Lister,
    database: DatabaseOf,
    name: NameFilter = "",
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[OrganizationBody]:
    """The caller's organization; for the operator, all of them."""
    with database.read() as session:
        query = visible_to(select(Organization), Organization, caller)
        if name:
            query = query.where(Organization.name == name)
        items, token = page_of(
            session,
            query,
            Organization.id,
            PageRequest(
                caller.org_id,
                (("list", "organizations"), ("name", name)),
                page_size,
                page_token,
                database.now(session),
            ),
            render=lambda rows: [OrganizationBody.of(row) for row in rows],
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


@router.get("/{object_id}", operation_id="getOrganization", responses=READ_PROBLEMS)
def get_organization(object_id: str, caller: Reader, database: DatabaseOf) -> OrganizationBody:
    """One organization."""
    with database.read() as session:
        return OrganizationBody.of(session.get_one(Organization, object_id))


@router.post(
    "",
    operation_id="createOrganization",
    status_code=201,
    response_model=OrganizationBody,
    responses=WRITE_PROBLEMS,
)
def post_organization(
    body: OrganizationCreate, caller: Creator, facts: RequestFacts
) -> JSONResponse:
    """Creates a tenant with a project and a stream `default`. Only the operator may. Give it a
    first key next: POST /v1/api-keys with its organization_id."""
    return change(
        facts,
        caller,
        lambda session, actor: created(create_organization(session, actor, body), "/v1/orgs"),
    )
