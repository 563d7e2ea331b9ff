"""HTTP for the messages of a topic: look at some, follow what comes, publish one.

For people and for programs without a client: read large amounts at the node. Requests are
bounded, and the node checks the caller's own key.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from api.auth.cookies import credential
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.listener import endless
from api.http.resource import INT64_MAX, Moment
from api.http.routing import READ_PROBLEMS, WRITE_PROBLEMS, DatabaseOf, Route
from api.messages.place import place_of
from api.messages.schemas import From, MessagePage, MessagePublish, PublishedBody
from api.messages.service import View, publish, read_page, wanted_partitions
from api.messages.tail import TailResponse, Tails, follow, positions, refuse_beyond
from api.node.dependency import NodesOf
from api.node.messages import NodeReader, Place
from api.topics.service import topic_owner

router = APIRouter(prefix="/v1/topics", route_class=Route, tags=["messages"])

Reader = Annotated[Caller, Depends(Guard("messages:read", topic_owner, cost=5))]
Publisher = Annotated[Caller, Depends(Guard("messages:publish", topic_owner))]
Partition = Annotated[int | None, Query(ge=0, le=1023, description="Default: all partitions.")]


def _place(object_id: str, request: Request, database: DatabaseOf) -> Place:
    with database.read() as session:
        return place_of(session, object_id, credential(request) or "")


@router.get("/{object_id}/messages", operation_id="listMessages", responses=READ_PROBLEMS)
def list_messages(
    object_id: str,
    request: Request,
    _caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    start: Annotated[From, Query(alias="from", description="Start position.")] = "latest",
    partition: Partition = None,
    offset: Annotated[
        int, Query(ge=0, le=INT64_MAX, description="First offset, with `from=offset`.")
    ] = 0,
    time: Annotated[
        Moment | None, Query(description="Earliest append time, with `from=time`.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of messages.")] = 50,
) -> MessagePage:
    """Returns messages, oldest first, at most 1 MiB. If retention has removed the offset, the page
    starts at the oldest available one; ``partitions`` contains the available range."""
    reader = NodeReader(nodes, _place(object_id, request, database))
    return read_page(reader, View(start, partition, offset, time, limit))


@router.get(
    "/{object_id}/messages/tail",
    operation_id="listNewMessages",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events `messages`, `moved`, `refused`; their id is where to go on.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **READ_PROBLEMS,
    },
)
async def tail_messages(
    object_id: str,
    request: Request,
    caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    partition: Partition = None,
    last_event_id: Annotated[
        str | None, Header(max_length=2048, description="The id of the last event received.")
    ] = None,
) -> StreamingResponse:
    """Streams new messages, or the messages after Last-Event-ID. An event id beyond the end of the
    log is rejected.
    """
    place = await run_in_threadpool(_place, object_id, request, database)
    indexes = wanted_partitions(partition, place.partitions)
    begin = {
        index: offset for index, offset in positions(last_event_id).items() if index in indexes
    }
    tails: Tails = request.app.state.tails
    with tails.seat(caller.org_id) as seat:
        await refuse_beyond(nodes, place, begin)
        endless(request)
        events = follow(nodes, place, indexes, begin, request_id=request.state.request_id)
        return TailResponse(events, seat.pop_all())


@router.post(
    "/{object_id}/messages",
    operation_id="publishMessage",
    status_code=201,
    responses=WRITE_PROBLEMS,
)
def publish_message(
    object_id: str,
    body: MessagePublish,
    request: Request,
    _caller: Publisher,
    database: DatabaseOf,
    nodes: NodesOf,
) -> PublishedBody:
    """Stores one message. 201 means that it is durable. If the request is repeated after a lost
    response, the message may be stored twice; use the SDK for exactly-once writes.
    """
    return publish(NodeReader(nodes, _place(object_id, request, database)), body)
