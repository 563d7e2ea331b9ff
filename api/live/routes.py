"""HTTP for the present: throughput, what is stored and the worst lag, as server-sent events.

event: history   {"points": [..]}    once, at the beginning
event: live      {"now": {..}, ..}   every two seconds or so
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from api.access.guard import Guard
from api.access.permissions import Caller
from api.listener import endless
from api.live.look import picture, point_body
from api.live.poller import Poller
from api.live.schemas import HistoryBody
from api.messages.tail import Tails
from api.routing import READ_PROBLEMS, DatabaseOf, Route

# Some five minutes: a key that was revoked meanwhile sees nothing after that.
LOOKS_MAX: Final = 150

router = APIRouter(prefix="/v1/live", route_class=Route, tags=["live"])

Reader = Annotated[Caller, Depends(Guard("topics:read", cost=5))]


@router.get(
    "",
    operation_id="listLive",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events `history`, then `live`.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **READ_PROBLEMS,
    },
)
async def follow_live(
    request: Request,
    caller: Reader,
    database: DatabaseOf,
    looks: Annotated[int, Query(ge=1, le=LOOKS_MAX, description="End after so many.")] = LOOKS_MAX,
) -> StreamingResponse:
    """What the key's organization or project does now. Ends after some five minutes; come back."""
    poller: Poller = request.app.state.live
    tails: Tails = request.app.state.tails
    tails.check(caller.org_id)
    endless(request)
    followed = poller.follow(database, request.app.state.settings)

    async def events() -> AsyncIterator[str]:
        with tails.of(caller.org_id):
            async with aclosing(followed):
                yield "retry: 2000\n\n"
                shown = 0
                async for seen in followed:
                    if seen is None:
                        yield ": quiet\n\n"
                        continue
                    if shown == 0:
                        points = [point_body(each, caller) for each in poller.history()]
                        yield _event("history", HistoryBody(points=points))
                    yield _event("live", picture(seen.look, seen.point, caller))
                    shown += 1
                    if shown == looks:
                        return

    return StreamingResponse(events(), media_type="text/event-stream")


def _event(name: str, body: BaseModel) -> str:
    return f"event: {name}\ndata: {body.model_dump_json(exclude_none=True)}\n\n"
