"""HTTP for API keys. The secret crosses once, in the answer to its creation."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.api_keys.schemas import ApiKeyBody, ApiKeyCreate, ApiKeyCreatedBody
from api.api_keys.service import (
    SESSION_PREFIX,
    create_key,
    key_bodies,
    key_owner,
    revoke_key,
    revoke_permission,
)
from api.auth.audit_chain import Actor
from api.auth.change import change
from api.auth.guard import Guard, demand
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.api_keys import ApiKey
from api.http.idempotency import RequestFacts
from api.http.pagination import Page, PageRequest, page_of
from api.http.reply import Reply, created
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    IdFilter,
    IfMatch,
    NameFilter,
    PageSize,
    PageToken,
    Route,
)

router = APIRouter(prefix="/v1/api-keys", route_class=Route, tags=["access"])

Lister = Annotated[Caller, Depends(Guard("keys:read"))]
Reader = Annotated[Caller, Depends(Guard("keys:read", key_owner))]
Creator = Annotated[Caller, Depends(Guard("keys:create"))]
Revoker = Annotated[Caller, Depends(Guard("keys:revoke", key_owner))]


@router.get("", operation_id="listApiKeys", responses=READ_PROBLEMS)
def list_api_keys(
    caller: Lister,
    database: DatabaseOf,
    name: NameFilter = "",
    project_id: IdFilter = "",
    sessions: Annotated[bool, Query(description="Also the keys of console sessions.")] = False,
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[ApiKeyBody]:
    """The keys of the organization, revoked ones too, oldest first; never a secret."""
    with database.read() as session:
        query = visible_to(select(ApiKey), ApiKey, caller)
        if not sessions:
            query = query.where(~ApiKey.name.startswith(SESSION_PREFIX, autoescape=True))
        if name:
            query = query.where(ApiKey.name == name)
        if project_id:
            query = query.where(ApiKey.project_id == project_id)
        items, token = page_of(
            session,
            query,
            ApiKey.id,
            PageRequest(
                caller.org_id,
                (
                    ("list", "api-keys"),
                    ("name", name),
                    ("project_id", project_id),
                    ("sessions", str(sessions)),
                ),
                page_size,
                page_token,
                database.now(session),
            ),
            render=lambda rows: key_bodies(session, rows),
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


@router.get("/{object_id}", operation_id="getApiKey", responses=READ_PROBLEMS)
def get_api_key(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> ApiKeyBody:
    """One key. Its condition Active says whether the nodes know it."""
    with database.read() as session:
        body = key_bodies(session, [session.get_one(ApiKey, object_id)])[0]
    response.headers["ETag"] = f'"{body.etag}"'
    return body


@router.post(
    "",
    operation_id="createApiKey",
    status_code=202,
    response_model=ApiKeyCreatedBody,
    responses=WRITE_PROBLEMS,
)
def post_api_key(body: ApiKeyCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Creates a key. ``secret`` is the whole token and is never shown again. It works here at
    once, and on the data plane when Active is True."""

    def create(session: Session, actor: Actor) -> Reply:
        issued = create_key(session, actor, body)
        assert issued.token is not None
        reply = created(issued.body, "/v1/api-keys", status=202, operation_id=issued.operation_id)
        return Reply(
            reply.status,
            {**reply.body, "secret": issued.token.text},
            reply.headers,
            secret_of=issued.body.id,
        )

    return change(facts, caller, create)


@router.delete(
    "/{object_id}",
    operation_id="revokeApiKey",
    status_code=202,
    response_model=ApiKeyBody,
    responses=WRITE_PROBLEMS,
)
def delete_api_key(
    object_id: str,
    request: Request,
    caller: Revoker,
    facts: RequestFacts,
    if_match: IfMatch = None,
) -> JSONResponse:
    """Revokes a key: refused here at once, on the nodes when Active is False. The record stays.
    Revoking it again answers 200 and changes nothing. Only an operator revokes an operator's key:
    403 for an owner."""
    with facts.database.read() as session:
        permission = revoke_permission(session, object_id)
    demand(request, caller, permission, object_id)

    def revoke(session: Session, actor: Actor) -> Reply:
        issued = revoke_key(session, actor, key_id=object_id, if_match=if_match)
        return created(
            issued.body,
            "/v1/api-keys",
            status=202 if issued.operation_id else 200,
            operation_id=issued.operation_id,
        )

    return change(facts, caller, revoke)
