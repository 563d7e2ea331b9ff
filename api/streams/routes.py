"""HTTP for streams."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.auth.change import change
from api.auth.guard import Guard, demand
from api.auth.permissions import Caller
from api.auth.scope import project_for, visible_to
from api.clusters.service import cluster_for
from api.db.tables.streams import Stream
from api.deletion.mark import DeletionWish
from api.http.idempotency import RequestFacts
from api.http.pagination import Page, PageRequest, page_of
from api.http.reply import Reply, changed, created
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    IdFilter,
    NameFilter,
    PageSize,
    PageToken,
    Route,
)
from api.streams.deletion import delete_stream
from api.streams.schemas import StreamBody, StreamCreate
from api.streams.service import create_stream_row, stream_bodies, stream_owner

router = APIRouter(prefix="/v1/streams", route_class=Route, tags=["streams"])

Lister = Annotated[Caller, Depends(Guard("streams:read"))]
Reader = Annotated[Caller, Depends(Guard("streams:read", stream_owner))]
Creator = Annotated[Caller, Depends(Guard("streams:create"))]
Deleter = Annotated[Caller, Depends(Guard("streams:delete", stream_owner))]


@router.get("", operation_id="listStreams", responses=READ_PROBLEMS)
def list_streams(
    caller: Lister,
    database: DatabaseOf,
    name: NameFilter = "",
    project_id: IdFilter = "",
    cluster_id: IdFilter = "",
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[StreamBody]:
    """The streams the key can see, oldest first."""
    with database.read() as session:
        query = visible_to(select(Stream), Stream, caller).where(Stream.purged_at.is_(None))
        filters = {"name": name, "project_id": project_id, "cluster_id": cluster_id}
        query = query.filter_by(**{member: value for member, value in filters.items() if value})
        items, token = page_of(
            session,
            query,
            Stream.id,
            PageRequest(
                caller.org_id,
                (("list", "streams"), *filters.items()),
                page_size,
                page_token,
                database.now(session),
            ),
            render=lambda rows: stream_bodies(session, rows),
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


@router.get("/{object_id}", operation_id="getStream", responses=READ_PROBLEMS)
def get_stream(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> StreamBody:
    """One stream."""
    with database.read() as session:
        body = stream_bodies(session, [session.get_one(Stream, object_id)])[0]
    response.headers["ETag"] = f'"{body.etag}"'
    return body


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
            project=project_for(session, caller, body.project_id),
            cluster_id=cluster_for(session, body.cluster_id).id,
            name=body.name,
            command=body,
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
    object_id: str, request: Request, caller: Deleter, facts: RequestFacts, deletion: DeletionWish
) -> JSONResponse:
    """Deletes a stream that is empty; with ``cascade`` its topics go too, with all their data.
    Demands If-Match. Nothing can be made in it from here on; it is gone, and its name free, once
    everything in it is."""
    if deletion.force_reason is not None:
        demand(request, caller, "objects:force", object_id)
    return change(
        facts,
        caller,
        lambda session, actor: changed(
            delete_stream(session, actor, stream_id=object_id, deletion=deletion), "/v1/streams"
        ),
    )
