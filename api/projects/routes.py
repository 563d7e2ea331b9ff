"""HTTP for projects."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from sqlalchemy import select

from api.access.guard import Guard
from api.access.permissions import Caller
from api.idempotency import RequestFacts, change, created
from api.pagination import Page, PageRequest, page_of
from api.projects.models import Project
from api.projects.schemas import ProjectBody, ProjectCreate
from api.projects.service import create_project, project_owner
from api.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    NameFilter,
    PageSize,
    PageToken,
    Route,
)

router = APIRouter(prefix="/v1/projects", route_class=Route, tags=["projects"])

Lister = Annotated[Caller, Depends(Guard("projects:read"))]
Reader = Annotated[Caller, Depends(Guard("projects:read", project_owner))]
Creator = Annotated[Caller, Depends(Guard("projects:create"))]


@router.get("", operation_id="listProjects", responses=READ_PROBLEMS)
def list_projects(
    caller: Lister,
    database: DatabaseOf,
    name: NameFilter = "",
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[ProjectBody]:
    """The projects the key can see, oldest first."""
    with database.read() as session:
        query = select(Project).where(Project.org_id == caller.org_id, Project.purged_at.is_(None))
        if caller.project_id is not None:
            query = query.where(Project.id == caller.project_id)
        if name:
            query = query.where(Project.name == name)
        items, token = page_of(
            session,
            query,
            Project.id,
            PageRequest(
                caller.org_id,
                (("list", "projects"), ("name", name)),
                page_size,
                page_token,
                database.now(session),
            ),
            render=lambda rows: [ProjectBody.of(row) for row in rows],
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


@router.get("/{object_id}", operation_id="getProject", responses=READ_PROBLEMS)
def get_project(object_id: str, caller: Reader, database: DatabaseOf) -> ProjectBody:
    """One project."""
    with database.read() as session:
        return ProjectBody.of(session.get_one(Project, object_id))


@router.post(
    "",
    operation_id="createProject",
    status_code=201,
    response_model=ProjectBody,
    responses=WRITE_PROBLEMS,
)
def post_project(body: ProjectCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Creates a project with a stream `default`."""
    return change(
        facts,
        caller,
        lambda session, actor: created(create_project(session, actor, body), "/v1/projects"),
    )
