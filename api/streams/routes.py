"""HTTP for streams."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.auth.scope import project_for
from api.clusters.service import cluster_for
from api.deletion.deletable import answer_delete
from api.deletion.mark import DeletionOf
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import Reply, created, tagged
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    PageOf,
    Route,
)
from api.streams.deletion import delete_stream
from api.streams.schemas import StreamBody, StreamCreate, StreamFilter
from api.streams.service import create_stream_row, read_stream, stream_owner, stream_page

router = APIRouter(prefix="/v1/streams", route_class=Route, tags=["streams"])

Lister = Annotated[Caller, Depends(Guard("streams:read"))]
Reader = Annotated[Caller, Depends(Guard("streams:read", stream_owner))]
Creator = Annotated[Caller, Depends(Guard("streams:create"))]
Deleter = Annotated[Caller, Depends(Guard("streams:delete", stream_owner))]
Which = Annotated[StreamFilter, Depends()]


@router.get("", operation_id="listStreams", responses=READ_PROBLEMS)
def list_streams(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[StreamBody]:
    """Lists the streams that the key can access, oldest first."""
    with database.read() as session:
        return stream_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getStream", responses=READ_PROBLEMS)
def get_stream(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> StreamBody:
    """Returns a stream."""
    with database.read() as session:
        return tagged(response, read_stream(session, object_id))


@router.post(
    "",
    operation_id="createStream",
    status_code=201,
    response_model=StreamBody,
    responses=WRITE_PROBLEMS,
)
def post_stream(body: StreamCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Creates a stream in a project, on a cluster."""

    def create(session: Session, actor: Actor) -> Reply:
        row = create_stream_row(
            session,
            actor,
            body,
            project=project_for(session, caller, body.project_id),
            cluster_id=cluster_for(session, body.cluster_id).id,
        )
        return created(StreamBody.of(row), "/v1/streams")

    return change(facts, caller, create)


@router.delete(
    "/{object_id}",
    operation_id="deleteStream",
    status_code=202,
    response_model=StreamBody,
    responses=WRITE_PROBLEMS,
)
def remove_stream(
    object_id: str, request: Request, caller: Deleter, facts: RequestFacts, deletion: DeletionOf
) -> JSONResponse:
    """Deletes an empty stream, or with ``cascade`` also its topics with all their data. Requires
    If-Match. No topics can be created in it from now on. Once everything in it is deleted, the
    stream is removed and its name can be reused.
    """
    return answer_delete(
        request,
        caller,
        facts,
        deletion,
        lambda session, actor: delete_stream(
            session, actor, stream_id=object_id, deletion=deletion
        ),
        "/v1/streams",
    )
