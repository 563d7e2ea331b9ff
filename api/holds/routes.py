"""HTTP for legal holds: owners make and release them, viewers see them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse
from sqlalchemy import select

from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.holds import LegalHold
from api.holds.schemas import CASE_CHARACTERS_MAX, LegalHoldBody, LegalHoldCreate
from api.holds.service import HoldChange, create_hold, hold_bodies, hold_owner, release_hold
from api.http.idempotency import RequestFacts
from api.http.pagination import Page, PageRequest, page_of
from api.http.reply import Reply
from api.http.resource import body_json
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    IdFilter,
    IfMatch,
    PageSize,
    PageToken,
    Route,
)

router = APIRouter(prefix="/v1/legal-holds", route_class=Route, tags=["legal-holds"])

Lister = Annotated[Caller, Depends(Guard("holds:read"))]
Reader = Annotated[Caller, Depends(Guard("holds:read", hold_owner))]
Creator = Annotated[Caller, Depends(Guard("holds:create"))]
Releaser = Annotated[Caller, Depends(Guard("holds:release", hold_owner))]
CaseFilter = Annotated[
    str, Query(max_length=CASE_CHARACTERS_MAX, description="Only holds of this case.")
]
StateFilter = Annotated[str, Query(max_length=16, description="Only holds in this state.")]


@router.get("", operation_id="listLegalHolds", responses=READ_PROBLEMS)
def list_holds(
    caller: Lister,
    database: DatabaseOf,
    topic_id: IdFilter = "",
    case_id: CaseFilter = "",
    state: StateFilter = "",
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[LegalHoldBody]:
    """The holds the key can see, the released ones too, oldest first."""
    with database.read() as session:
        query = visible_to(select(LegalHold), LegalHold, caller)
        filters = {"topic_id": topic_id, "case_id": case_id, "state": state}
        query = query.filter_by(**{member: value for member, value in filters.items() if value})
        items, token = page_of(
            session,
            query,
            LegalHold.id,
            PageRequest(
                caller.org_id,
                (("list", "legal-holds"), *filters.items()),
                page_size,
                page_token,
                database.now(session),
            ),
            render=lambda rows: hold_bodies(session, rows),
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


@router.get("/{object_id}", operation_id="getLegalHold", responses=READ_PROBLEMS)
def get_hold(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> LegalHoldBody:
    """One hold. Until ``state`` is ACTIVE the status names the partitions that do not know it."""
    with database.read() as session:
        body = hold_bodies(session, [session.get_one(LegalHold, object_id)])[0]
    response.headers["ETag"] = f'"{body.etag}"'
    return body


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
