"""HTTP of the console: its session and its files. No part of the contract: the pages themselves
use the public API and nothing else.

    GET    /console/session      who is signed in, and the CSRF token of this session
    POST   /console/session      {"secret": password or key}
    DELETE /console/session      sign out
    POST   /console/password     {}: another password, told this once; the operator's owner key only
    GET    /console/assets/...   what Vite built
    GET    /console/...          the page; its script reads the rest of the path
"""

import mimetypes
import stat
from pathlib import Path
from typing import Annotated, Final

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, JSONResponse
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

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
from api.http.errors import ForbiddenError, NotFoundError, UnauthenticatedError
from api.http.resource import Command
from api.http.routing import DatabaseOf, Route
from api.sessions.service import replace_password, sign_in, sign_out

DIST: Final = Path(__file__).parents[1] / "console" / "dist"


class Assets(StaticFiles):
    """The built files; to whoever takes it the compressed one that stands beside the file."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, the compressed file, or 404."""
        if "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            place, found = await run_in_threadpool(self.lookup_path, f"{path}.gz")
            if found is not None and stat.S_ISREG(found.st_mode):
                kind = mimetypes.guess_type(path)[0]
                headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
                return FileResponse(place, headers=headers, media_type=kind, stat_result=found)
        response = await super().get_response(path, scope)
        response.headers["Vary"] = "Accept-Encoding"
        return response


class SignIn(Command):
    """What opens a session."""

    secret: Annotated[str, Field(min_length=1, max_length=200)]


def _attempt(request: Request) -> None:
    """Counts an attempt against the address it comes from, before anything is compared."""
    limits: Limits = request.app.state.sign_ins
    limits.take(request.client.host if request.client else "", 1)


def get_session(request: Request, database: DatabaseOf) -> JSONResponse:
    """Who is signed in; null if nobody is, or not any more."""
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


def get_page(path: str = "") -> FileResponse:
    """The one page of the console; what its path means is read in the browser."""
    page = DIST / "index.html"
    if not page.exists():
        raise NotFoundError(
            "The console was not built into this installation.",
            code="CONSOLE_NOT_BUILT",
            hint="In a checkout: npm ci && npm run build, in api/console.",
        )
    file = DIST / path
    if path in ("theme.js", "favicon.svg") and file.exists():
        return FileResponse(file)
    return FileResponse(page)


def routes() -> list[APIRoute]:
    """The routes of the session and the page, in the order in which they are tried."""
    session = "/console/session"
    return [
        Route(session, get_session, methods=["GET"], include_in_schema=False),
        Route(session, post_session, methods=["POST"], include_in_schema=False),
        Route(session, delete_session, methods=["DELETE"], include_in_schema=False),
        Route("/console/password", post_password, methods=["POST"], include_in_schema=False),
        APIRoute("/console", get_page, include_in_schema=False),
        APIRoute("/console/{path:path}", get_page, include_in_schema=False),
    ]


def assets() -> BaseRoute:
    """The built files, if there are any."""
    return Mount("/console/assets", Assets(directory=DIST / "assets", check_dir=False))


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
