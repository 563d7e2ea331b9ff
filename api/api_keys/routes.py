"""HTTP for API keys. The secret crosses once, in the answer to its creation."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from api.api_keys.schemas import ApiKeyBody, ApiKeyCreate, ApiKeyCreatedBody, ApiKeyFilter
from api.api_keys.service import (
    create_key,
    key_owner,
    key_page,
    read_key,
    revoke_key,
    revoke_permission,
)
from api.auth.audit_chain import Actor
from api.auth.change import change
from api.auth.guard import Guard, demand
from api.auth.permissions import Caller
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import Reply, created, tagged
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    IfMatch,
    PageOf,
    Route,
)

router = APIRouter(prefix="/v1/api-keys", route_class=Route, tags=["access"])

Lister = Annotated[Caller, Depends(Guard("keys:read"))]
Reader = Annotated[Caller, Depends(Guard("keys:read", key_owner))]
Creator = Annotated[Caller, Depends(Guard("keys:create"))]
Revoker = Annotated[Caller, Depends(Guard("keys:revoke", key_owner))]
Which = Annotated[ApiKeyFilter, Depends()]


@router.get("", operation_id="listApiKeys", responses=READ_PROBLEMS)
def list_api_keys(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[ApiKeyBody]:
    """Lists the API keys of the organization, including revoked ones, oldest first. Secrets are
    never returned.
    """
    with database.read() as session:
        return key_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getApiKey", responses=READ_PROBLEMS)
def get_api_key(
    object_id: str, caller: Reader, database: DatabaseOf, response: Response
) -> ApiKeyBody:
    """Returns an API key. Its condition Active shows whether the nodes accept it."""
    with database.read() as session:
        return tagged(response, read_key(session, object_id))


@router.post(
    "",
    operation_id="createApiKey",
    status_code=202,
    response_model=ApiKeyCreatedBody,
    responses=WRITE_PROBLEMS,
)
def post_api_key(body: ApiKeyCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Creates an API key. ``secret`` is the complete token and is returned only once. The key is
    valid for this API immediately, and for the data plane once its condition Active is True.
    """

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
    """Revokes an API key. This API refuses it immediately, and the nodes refuse it once its
    condition Active is False. The record of the key is kept. Revoking a revoked key returns 200 and
    has no effect. Only operators can revoke the key of an operator; owners get 403.
    """
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
