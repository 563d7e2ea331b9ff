"""What every HTTP exchange gets, whatever the route: an id, limits, headers, and errors as
problem+json.

FastAPI's own answers (422 and plain details) are replaced here: a fault of the request is 400 with
a pointer, and our own faults say nothing but the id to look for in the log.
"""

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import IntegrityError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http import validation
from api.http.errors import (
    PROBLEM_MEDIA_TYPE,
    ConflictError,
    DomainError,
    InvalidRequestError,
    MethodNotAllowedError,
    NotFoundError,
    PayloadTooLargeError,
    RequestTimeoutError,
    UnavailableError,
    Violation,
    problem,
    status_of,
)
from api.http.json_body import BODY_BYTES_MAX, Held, Reception
from api.http.resource import LABEL_KEY_PATTERN, NAME_PATTERN, TOPIC_NAME_PATTERN

# The branch of a union that pydantic tried is no place in the request.
CHOICE_PATTERN: Final = re.compile(r"^(?:literal|function-[a-z]+)\[")
MUST_PATTERN: Final = re.compile(r"^(?:Input|String|Value) should ")
TYPE_WORDS: Final = {
    "extra_forbidden": "unknown member",
    "missing": "must be given",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 64 bits",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "datetime_parsing": "must be a time such as 2026-01-31T12:00:00Z",
    "datetime_from_date_parsing": "must be a time such as 2026-01-31T12:00:00Z",
    "timezone_aware": "must be a time with a zone such as 2026-01-31T12:00:00Z",
}
RETRY_DATABASE_SECONDS: Final = 2
REQUEST_ID_PATTERN: Final = re.compile(r"^[A-Za-z0-9_-]{8,64}$")
SECURITY_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# The console's pages load what stands beside them and ask this API: nothing inline, nothing remote.
CONSOLE_HEADERS: Final = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
}
# A page of a report holds its own style; nothing in it may run, fetch or send.
FILE_PATH_PATTERN: Final = re.compile(r"/v1/report-runs/[^/]+/files/[^/]+")
FILE_HEADERS: Final = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
}
# Named by what they hold, so that what a browser kept is never out of date.
ASSET_HEADERS: Final = {
    **CONSOLE_HEADERS,
    "Cache-Control": "public, max-age=31536000, immutable",
}

log = structlog.get_logger()


def _at_most(pattern: str) -> int:
    """How many characters a pattern takes whose tail is bounded by ``{0,n}``."""
    bound = re.search(r"\{0,(\d+)\}", pattern)
    return int(bound[1]) + 1 if bound else 0


PATTERN_WORDS: Final = {
    TOPIC_NAME_PATTERN: (
        "letters, digits, . _ and -, beginning with a letter or a digit, "
        f"{_at_most(TOPIC_NAME_PATTERN)} characters at most"
    ),
    NAME_PATTERN: (
        "lower-case letters, digits and -, beginning with a letter and not ending with -, "
        f"{_at_most(NAME_PATTERN) + 1} characters at most"
    ),
    LABEL_KEY_PATTERN: "letters, digits, . _ and -, with a prefix and / before it if you like",
}


class Edge:
    """Pure ASGI middleware around the application."""

    def __init__(self, app: ASGIApp, body_seconds: float) -> None:
        self.app = app
        self._body_seconds = body_seconds
        self._held = Held()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Gives the exchange its id and its headers, and refuses bodies that cannot be read."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = headers.get("x-request-id", "")
        if not REQUEST_ID_PATTERN.match(request_id):
            request_id = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)

        started = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                log.info(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=message["status"],
                    milliseconds=round((time.perf_counter() - started) * 1000, 1),
                )
                outgoing = MutableHeaders(scope=message)
                outgoing["X-Request-Id"] = request_id
                headers_out = _headers(scope["path"], message["status"])
                for name, value in (*headers_out.items(), *_rate(scope["state"])):
                    outgoing[name] = value
            await send(message)

        refusal = validation.refusal(scope, headers)
        if refusal is not None:
            await _response(refusal, request_id)(scope, receive, send_with_headers)
            return
        reception = Reception(receive, self._held, self._body_seconds)
        try:
            await self.app(scope, reception.receive, send_with_headers)
        finally:
            reception.release()


def _headers(path: str, status: int) -> Mapping[str, str]:
    """What guards the browser that reads an answer."""
    if path.startswith("/console/assets/") and status < 400:
        return ASSET_HEADERS
    if FILE_PATH_PATTERN.fullmatch(path) and status < 400:
        return FILE_HEADERS
    return CONSOLE_HEADERS if path.startswith("/console") else SECURITY_HEADERS


def _rate(state: Mapping[str, object]) -> list[tuple[str, str]]:
    """What the guard wrote down of the caller's rate."""
    fields = {"RateLimit-Policy": state.get("rate_policy"), "RateLimit": state.get("rate_left")}
    return [(name, value) for name, value in fields.items() if isinstance(value, str)]


def install(app: FastAPI, body_seconds: float) -> None:
    """Puts the middleware around an application and its errors into one shape."""
    app.add_middleware(Edge, body_seconds=body_seconds)
    app.add_exception_handler(DomainError, _domain_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(IntegrityError, _lost_race)
    for away in (OperationalError, InterfaceError, InternalError, PoolTimeoutError):
        app.add_exception_handler(away, _database_error)
    app.add_exception_handler(Exception, _unexpected)


def violations_of(errors: Sequence[dict[str, object]]) -> list[Violation]:
    """Pydantic's complaints as pointers into the request, in words for who wrote it. Choices that
    were tried in one place are one fault: this or that."""
    found: dict[str, Violation] = {}
    for error in errors:
        pointer, words = _pointer(error["loc"]), _words(error)
        before = found.get(pointer)
        if before is None:
            found[pointer] = Violation(pointer, str(error["type"]).upper(), words)
        else:
            either = f"{before.detail} or {words.removeprefix('must be ')}"
            found[pointer] = Violation(pointer, before.code, either)
    return list(found.values())


def _words(error: Mapping[str, object]) -> str:
    """What a member must be. A pattern is a rule for machines: people get its words."""
    if error["type"] == "string_pattern_mismatch":
        context = error.get("ctx")
        pattern = context.get("pattern") if isinstance(context, dict) else None
        if pattern in PATTERN_WORDS:
            return PATTERN_WORDS[str(pattern)]
    if error["type"] in TYPE_WORDS:
        return TYPE_WORDS[str(error["type"])]
    text = str(error["msg"]).removeprefix("Value error, ")
    return MUST_PATTERN.sub("must ", text)


def _pointer(location: object) -> str:
    parts = [str(part) for part in location] if isinstance(location, tuple | list) else []
    parts = [part for part in parts if not CHOICE_PATTERN.match(part)]
    if not parts:
        return "#"
    if parts[0] == "body":
        return "#" + "".join(f"/{part}" for part in parts[1:])
    if parts[0] == "query":
        return f"?{'.'.join(parts[1:])}"
    return ".".join(parts[1:])


def _place(pointer: str) -> str:
    """A pointer as a person would say it: ``#/spec/partitions`` is spec.partitions."""
    return pointer.lstrip("#/?").replace("/", ".") or "the body"


def _response(error: DomainError, request_id: str) -> JSONResponse:
    response = JSONResponse(
        problem(error, request_id), status_code=status_of(error), media_type=PROBLEM_MEDIA_TYPE
    )
    if error.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, RequestTimeoutError):
        # What still comes would be read as the next request.
        response.headers["Connection"] = "close"
    if status_of(error) == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="headrace"'
    return response


async def _domain_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DomainError)
    return _response(error, request.state.request_id)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = error.errors()
    violations = violations_of(faults)
    refusal = InvalidRequestError(
        "; ".join(f"{_place(each.pointer)}: {each.detail}" for each in violations) + ".",
        hint="Each entry of errors names a member and its fault; the schema is in /openapi.json.",
        violations=violations,
    )
    return _response(refusal, request.state.request_id)


async def _http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    method, path = request.method, request.scope["path"]
    kinds: dict[int, DomainError] = {
        404: NotFoundError(
            f"The path {path} does not exist.",
            code="PATH_NOT_FOUND",
            hint="/openapi.json lists all paths; they begin with /v1.",
        ),
        405: MethodNotAllowedError(
            f"{path} does not support {method}.", hint="The header Allow lists the methods."
        ),
        413: PayloadTooLargeError(f"The body is above {BODY_BYTES_MAX} bytes."),
    }
    refusal = kinds.get(
        error.status_code, InvalidRequestError("The request cannot be read as HTTP and JSON.")
    )
    response = _response(refusal, request.state.request_id)
    if error.status_code == 405:
        response.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return response


def _methods(request: Request) -> set[str]:
    """Every method of a path; the router itself names those of the first route that fits."""
    return {
        method
        for route in request.app.state.routes
        if route.path_regex.match(request.scope["path"])
        for method in route.methods
    }


async def _lost_race(request: Request, error: Exception) -> JSONResponse:
    """Another transaction took the name between our look and our write: the database said no."""
    assert isinstance(error, IntegrityError)
    # Without the statement's parameters, which hold what users wrote.
    log.warning("lost_race", error=str(error.orig), path=request.scope["path"])
    refusal = ConflictError(
        "Another request changed the same object at the same time; this one changed nothing.",
        code="CONCURRENT_CHANGE",
        hint="Send the request again.",
    )
    return _response(refusal, request.state.request_id)


async def _database_error(request: Request, error: Exception) -> JSONResponse:
    """The database is away, busy or read-only; PostgreSQL calls the last an internal error."""
    log.error("database_error", error=str(error), path=request.scope["path"])
    refusal = UnavailableError(
        "The database is unavailable, busy, or read-only.",
        hint="Retry with the same Idempotency-Key, or read the current state first: the connection "
        "may have failed after the change was made. If the error persists, the disk of the "
        "database may be full: see the log of the API.",
        retry_after_seconds=RETRY_DATABASE_SECONDS,
    )
    return _response(refusal, request.state.request_id)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected_error", path=request.scope["path"], exc_info=error)
    refusal = DomainError(
        "If the request was a change, read the object to find out whether it was made.",
        hint="Report the request_id: the log of the API records the cause under it.",
    )
    response = _response(refusal, request.state.request_id)
    # Starlette answers from outside the middleware here, so the headers are put on by hand.
    response.headers["X-Request-Id"] = request.state.request_id
    response.headers.update(SECURITY_HEADERS)
    return response
