"""HTTP for the present: throughput, what is stored and the worst lag, as server-sent events.

event: history   {"points": [..]}    once, at the beginning
event: live      {"now": {..}, ..}   every two seconds or so
event: refused   {"code": ..}        once, at the end: the key is good no longer
"""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from api.auth.cookies import credential
from api.auth.guard import Guard, authenticate
from api.auth.permissions import Caller
from api.db.database import Database
from api.http.errors import DomainError, UnavailableError, problem
from api.http.listener import endless
from api.http.routing import READ_PROBLEMS, DatabaseOf, Route
from api.live.observation import live_body, point_body
from api.live.poller import Poller
from api.live.schemas import HistoryBody
from api.messages.tail import TailResponse, Tails
from api.node.dependency import NodesOf

# Some five minutes.
LOOKS_MAX: Final = 150

router = APIRouter(prefix="/v1/live", route_class=Route, tags=["live"])

Reader = Annotated[Caller, Depends(Guard("topics:read", cost=5))]


@router.get(
    "",
    operation_id="listLive",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events `history`, then `live`; `refused` once the key is ended.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **READ_PROBLEMS,
    },
)
async def follow_live(
    request: Request,
    caller: Reader,
    database: DatabaseOf,
    nodes: NodesOf,
    looks: Annotated[
        int, Query(ge=1, le=LOOKS_MAX, description="End the stream after this number of events.")
    ] = LOOKS_MAX,
) -> StreamingResponse:
    """Streams the current activity of the organization or project of the key. The stream ends after
    about five minutes; reconnect to continue.
    """
    poller: Poller = request.app.state.live
    tails: Tails = request.app.state.tails
    seat = tails.seat(caller.org_id)
    endless(request)
    followed = poller.follow(database, nodes)

    async def events() -> AsyncIterator[str]:
        async with aclosing(followed):
            yield "retry: 2000\n\n"
            shown = 0
            async for seen in followed:
                refused = await run_in_threadpool(_refused, request, database)
                if refused is not None:
                    yield _refusal(refused, request)
                    return
                if seen is None:
                    yield ": quiet\n\n"
                    continue
                if shown == 0:
                    points = [point_body(each, caller) for each in poller.history()]
                    yield _event("history", HistoryBody(points=points))
                yield _event("live", live_body(seen.observation, seen.point, caller))
                shown += 1
                if shown == looks:
                    return

    return TailResponse(events(), seat)


def _refused(request: Request, database: Database) -> DomainError | None:
    """Whether the key that began this would not be let in now. Who asks for each look sees nothing
    that was looked at after the key ended."""
    try:
        with database.read() as session:
            authenticate(session, credential(request), database)
    except DomainError as error:
        return error
    except SQLAlchemyError:
        return UnavailableError("The database does not answer.", retry_after_seconds=2)
    return None


def _refusal(error: DomainError, request: Request) -> str:
    return f"event: refused\ndata: {json.dumps(problem(error, request.state.request_id))}\n\n"


def _event(name: str, body: BaseModel) -> str:
    return f"event: {name}\ndata: {body.model_dump_json(exclude_none=True)}\n\n"
