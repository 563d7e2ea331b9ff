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
    """Lists the legal holds that the key can access, including released ones, oldest first."""
    with database.read() as session:
        return hold_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getLegalHold", responses=READ_PROBLEMS)
def get_hold(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> LegalHoldBody:
    """Returns a legal hold. Until ``state`` is ACTIVE, the status lists the partitions that have
    not applied it.
    """
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
    """Places a legal hold on a topic: retention, purges and deletions keep the records under it.
    The hold is PROPAGATING until the log of every partition has applied it, as its status shows,
    and then ACTIVE.
    """
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
    """Releases a legal hold permanently: it is RELEASING, and RELEASED once the cluster has applied
    the release. The record of the hold is kept. Requires If-Match. Releasing it again has no effect
    and returns 200 once it is RELEASED.
    """
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
