"""HTTP for projects."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy import select

from api.auth.change import change
from api.auth.guard import Guard, demand
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.projects import Project
from api.deletion.mark import DeletionWish
from api.http.idempotency import RequestFacts
from api.http.pagination import Page, PageRequest, page_of
from api.http.reply import changed, created
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    NameFilter,
    PageSize,
    PageToken,
    Route,
)
from api.projects.deletion import delete_project
from api.projects.schemas import ProjectBody, ProjectCreate
from api.projects.service import create_project, project_bodies, project_owner

router = APIRouter(prefix="/v1/projects", route_class=Route, tags=["projects"])

Lister = Annotated[Caller, Depends(Guard("projects:read"))]
Reader = Annotated[Caller, Depends(Guard("projects:read", project_owner))]
Creator = Annotated[Caller, Depends(Guard("projects:create"))]
Deleter = Annotated[Caller, Depends(Guard("projects:delete", project_owner))]


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
        query = visible_to(select(Project), Project, caller).where(Project.purged_at.is_(None))
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
            render=lambda rows: project_bodies(session, rows),
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


@router.get("/{object_id}", operation_id="getProject", responses=READ_PROBLEMS)
def get_project(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> ProjectBody:
    """One project."""
    with database.read() as session:
        body = project_bodies(session, [session.get_one(Project, object_id)])[0]
    response.headers["ETag"] = f'"{body.etag}"'
    return body


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


@router.delete(
    "/{object_id}",
    operation_id="deleteProject",
    status_code=202,
    response_model=ProjectBody,
    responses=WRITE_PROBLEMS,
)
def remove_project(
    object_id: str, request: Request, caller: Deleter, facts: RequestFacts, deletion: DeletionWish
) -> JSONResponse:
    """Deletes a project that is empty; with ``cascade`` its streams and topics go too, with all
    their data. Its keys are revoked at once in any case. Demands If-Match. Nothing can be made in
    it from here on; it is gone, and its name free, once everything in it is."""
    if deletion.force_reason is not None:
        demand(request, caller, "objects:force", object_id)
    return change(
        facts,
        caller,
        lambda session, actor: changed(
            delete_project(session, actor, project_id=object_id, deletion=deletion), "/v1/projects"
        ),
    )
