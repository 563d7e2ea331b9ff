"""HTTP for organizations."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import created
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    PageOf,
    Route,
)
from api.organizations.schemas import OrganizationBody, OrganizationCreate, OrganizationFilter
from api.organizations.service import (
    create_organization,
    organization_owner,
    organization_page,
    read_organization,
)

router = APIRouter(prefix="/v1/orgs", route_class=Route, tags=["organizations"])

Lister = Annotated[Caller, Depends(Guard("orgs:read"))]
Reader = Annotated[Caller, Depends(Guard("orgs:read", organization_owner))]
Creator = Annotated[Caller, Depends(Guard("orgs:create"))]
Which = Annotated[OrganizationFilter, Depends()]


@router.get("", operation_id="listOrganizations", responses=READ_PROBLEMS)
def list_organizations(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[OrganizationBody]:
    """Lists the organization of the caller; operators see all organizations."""
    with database.read() as session:
        return organization_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getOrganization", responses=READ_PROBLEMS)
def get_organization(object_id: str, caller: Reader, database: DatabaseOf) -> OrganizationBody:
    """Returns an organization."""
    with database.read() as session:
        return read_organization(session, object_id)


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
    """Creates an organization with a project and a stream named `default`. Operators only. Next,
    create its first key: POST /v1/api-keys with its organization_id.
    """
    return change(
        facts,
        caller,
        lambda session, actor: created(create_organization(session, actor, body), "/v1/orgs"),
    )
