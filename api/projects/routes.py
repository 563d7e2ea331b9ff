"""HTTP for projects."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.deletion.deletable import answer_delete
from api.deletion.mark import DeletionOf
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import created, tagged
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    PageOf,
    Route,
)
from api.projects.deletion import delete_project
from api.projects.schemas import ProjectBody, ProjectCreate, ProjectFilter
from api.projects.service import create_project, project_owner, project_page, read_project

router = APIRouter(prefix="/v1/projects", route_class=Route, tags=["projects"])

Lister = Annotated[Caller, Depends(Guard("projects:read"))]
Reader = Annotated[Caller, Depends(Guard("projects:read", project_owner))]
Creator = Annotated[Caller, Depends(Guard("projects:create"))]
Deleter = Annotated[Caller, Depends(Guard("projects:delete", project_owner))]
Which = Annotated[ProjectFilter, Depends()]


@router.get("", operation_id="listProjects", responses=READ_PROBLEMS)
def list_projects(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[ProjectBody]:
    """Lists the projects that the key can access, oldest first."""
    with database.read() as session:
        return project_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getProject", responses=READ_PROBLEMS)
def get_project(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> ProjectBody:
    """Returns a project."""
    with database.read() as session:
        return tagged(response, read_project(session, object_id))


@router.post(
    "",
    operation_id="createProject",
    status_code=201,
    response_model=ProjectBody,
    responses=WRITE_PROBLEMS,
)
def post_project(body: ProjectCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Creates a project with a stream named `default`."""
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
    object_id: str, request: Request, caller: Deleter, facts: RequestFacts, deletion: DeletionOf
) -> JSONResponse:
    """Deletes an empty project, or with ``cascade`` also its streams and topics with all their
    data. Its keys are revoked immediately. Requires If-Match. No objects can be created in it from
    now on. Once everything in it is deleted, the project is removed and its name can be reused.
    """
    return answer_delete(
        request,
        caller,
        facts,
        deletion,
        lambda session, actor: delete_project(
            session, actor, project_id=object_id, deletion=deletion
        ),
        "/v1/projects",
    )
