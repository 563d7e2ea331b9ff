"""HTTP for legal holds: owners make and release them, viewers see them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.holds.schemas import LegalHoldBody, LegalHoldCreate, LegalHoldFilter
from api.holds.service import (
    HoldChange,
    create_hold,
    hold_owner,
    hold_page,
    read_hold,
    release_hold,
)
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import Reply, tagged
from api.http.resource import body_json
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    IfMatch,
    PageOf,
    Route,
)

router = APIRouter(prefix="/v1/legal-holds", route_class=Route, tags=["legal-holds"])

Lister = Annotated[Caller, Depends(Guard("holds:read"))]
Reader = Annotated[Caller, Depends(Guard("holds:read", hold_owner))]
Creator = Annotated[Caller, Depends(Guard("holds:create"))]
Releaser = Annotated[Caller, Depends(Guard("holds:release", hold_owner))]
Which = Annotated[LegalHoldFilter, Depends()]


@router.get("", operation_id="listLegalHolds", responses=READ_PROBLEMS)
def list_holds(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[LegalHoldBody]:
    """The holds the key can see, the released ones too, oldest first."""
    with database.read() as session:
        return hold_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getLegalHold", responses=READ_PROBLEMS)
def get_hold(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> LegalHoldBody:
    """One hold. Until ``state`` is ACTIVE the status names the partitions that do not know it."""
    with database.read() as session:
        return tagged(response, read_hold(session, object_id))


@router.post(
    "",
    operation_id="createLegalHold",
    status_code=202,
    response_model=LegalHoldBody,
    responses=WRITE_PROBLEMS,
)
def post_hold(body: LegalHoldCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Holds a topic: no retention, no purge and no deletion takes what is held. PROPAGATING until
    every partition's own log knows it, which can be seen in the status; then ACTIVE."""
    return change(facts, caller, lambda session, actor: _reply(create_hold(session, actor, body)))


@router.delete(
    "/{object_id}",
    operation_id="deleteLegalHold",
    status_code=202,
    response_model=LegalHoldBody,
    responses=WRITE_PROBLEMS,
)
def delete_hold(
    object_id: str, caller: Releaser, facts: RequestFacts, if_match: IfMatch = None
) -> JSONResponse:
    """Releases a hold, for ever: RELEASING, and RELEASED once the cluster says so. The record
    stays. Demands If-Match. Releasing again changes nothing: 200 once it is RELEASED."""
    return change(
        facts,
        caller,
        lambda session, actor: _reply(
            release_hold(session, actor, hold_id=object_id, if_match=if_match)
        ),
    )


def _reply(result: HoldChange) -> Reply:
    body = result.body
    headers = {"Location": f"/v1/legal-holds/{body.id}", "ETag": f'"{body.etag}"'}
    if result.operation_id is not None:
        headers["Operation-Id"] = result.operation_id
    status = 202 if result.operation_id is not None else 200
    return Reply(status, body_json(body), headers, plan=result.plan)
