"""HTTP of the console's session. No part of the contract: the pages themselves use the public API
and nothing else.

    GET    /console/session      who is signed in, and the CSRF token of this session
    POST   /console/session      {"secret": password or key}
    DELETE /console/session      sign out
    POST   /console/password     {}: another password, shown once; the operator's owner key only
"""

from typing import Annotated

from fastapi import Depends, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import Field

from api.auth.cookies import (
    COOKIE,
    close_session,
    credential,
    csrf_token,
    open_session,
)
from api.auth.guard import authenticate
from api.auth.permissions import PERMISSIONS
from api.auth.rate import Limits
from api.http.errors import ForbiddenError, UnauthenticatedError
from api.http.resource import Command
from api.http.routing import DatabaseOf, Route
from api.sessions.service import replace_password, sign_in, sign_out


class SignIn(Command):
    """What opens a session."""

    secret: Annotated[str, Field(min_length=1, max_length=200)]


def _attempt(request: Request) -> None:
    """Counts an attempt against the address it comes from, before anything is compared."""
    limits: Limits = request.app.state.sign_ins
    limits.take(request.client.host if request.client else "", 1)


def get_session(request: Request, database: DatabaseOf) -> JSONResponse:
    """The session's user; null without a valid session."""
    token = request.cookies.get(COOKIE)
    try:
        return JSONResponse(_described(database, token) if token else None)
    except UnauthenticatedError:
        return JSONResponse(None)


def post_session(
    body: SignIn,
    request: Request,
    database: DatabaseOf,
    _counted: Annotated[None, Depends(_attempt)],
) -> JSONResponse:
    """Signs in."""
    token = sign_in(database, body.secret.strip(), request.state.request_id)
    response = JSONResponse(_described(database, token))
    open_session(response, token, secure=request.url.scheme == "https")
    return response


def delete_session(request: Request, database: DatabaseOf) -> Response:
    """Signs out. Without a session there is nothing to do."""
    token = request.cookies.get(COOKIE)
    if token and credential(request) is not None:
        sign_out(database, token, request.state.request_id)
    response = Response(status_code=204)
    close_session(response)
    return response


def post_password(
    request: Request, database: DatabaseOf, _counted: Annotated[None, Depends(_attempt)]
) -> JSONResponse:
    """Makes another password: what `headrace up --new-password` asks of a service that runs."""
    with database.read() as session:
        caller = authenticate(session, request.headers.get("authorization"), database)
    if not caller.operator or caller.role != "owner" or caller.project_id is not None:
        raise ForbiddenError(
            "Only the operator's owner key may replace the console's password.",
            hint="Run `headrace up --new-password` where the service runs.",
        )
    return JSONResponse({"password": replace_password(database, request.state.request_id)})


def routes() -> list[APIRoute]:
    """The routes of the session."""
    session = "/console/session"
    return [
        Route(session, get_session, methods=["GET"], include_in_schema=False),
        Route(session, post_session, methods=["POST"], include_in_schema=False),
        Route(session, delete_session, methods=["DELETE"], include_in_schema=False),
        Route("/console/password", post_password, methods=["POST"], include_in_schema=False),
    ]


def _described(database: DatabaseOf, token: str) -> dict[str, object]:
    with database.read() as session:
        caller = authenticate(session, f"Bearer {token}", database)
    return {
        "principal_id": caller.principal_id,
        "organization_id": caller.org_id,
        "project_id": caller.project_id,
        "role": caller.role,
        "operator": caller.operator,
        "permissions": sorted(each for each in PERMISSIONS if caller.may(each)),
        "csrf_token": csrf_token(token),
    }
