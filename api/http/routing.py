"""What every route file shares: how a body is read, the types of its dependencies, and the errors
it documents."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Final

from fastapi import Depends, Header, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, JsonValue
from starlette.exceptions import HTTPException

from api.db.database import Database
from api.http.errors import PROBLEM_MEDIA_TYPE, DomainError
from api.http.json_body import JsonRequest
from api.http.pagination import NewestFirst, PageSize, PageToken, Paging


class ProblemViolation(BaseModel):
    """An error in the request."""

    pointer: str
    code: str
    detail: str
    limit: str | None = None
    actual: str | None = None


class Problem(BaseModel):
    """An error (RFC 9457). ``code`` is stable; ``detail`` is for people and may change."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    retriable: bool
    hint: str | None = None
    errors: list[ProblemViolation] | None = None


def _described(description: str) -> dict[str, JsonValue]:
    return {
        "description": description,
        "content": {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


READ_PROBLEMS: Final[dict[int | str, dict[str, JsonValue]]] = {
    400: _described("The request is not valid."),
    401: _described("No valid key."),
    403: _described("The key's role does not allow this."),
    404: _described("Absent, or in another organization."),
    429: _described("The key asked too often; Retry-After says how long to wait."),
    503: _described("The database is away or busy."),
}
WRITE_PROBLEMS: Final[dict[int | str, dict[str, JsonValue]]] = {
    **READ_PROBLEMS,
    408: _described("The body did not come in time."),
    409: _described("The state forbids it; NAME_TAKEN carries `existing_id`."),
    412: _described("If-Match names another revision."),
    413: _described("The body is above 1 MiB."),
    415: _described("The body is not JSON."),
    422: _described("The Idempotency-Key was used for another request."),
    428: _described("This change requires If-Match."),
}


class Route(APIRoute):
    """A route whose bodies leave out what is null: null and absent are the same thing here."""

    def __init__(self, path: str, endpoint: Callable[..., object], **options: object) -> None:
        options["response_model_exclude_none"] = True
        super().__init__(path, endpoint, **options)  # type: ignore[arg-type]

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        """The handler, over a request that reads its body as we do."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(JsonRequest(request.scope, request.receive))
            except HTTPException as error:
                # FastAPI hides what reading the body raised behind a 400 of its own.
                if isinstance(error.__cause__, DomainError):
                    raise error.__cause__ from None
                raise

        return handle


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


DatabaseOf = Annotated[Database, Depends(_database)]


def _paging(database: DatabaseOf, page_size: PageSize = 0, page_token: PageToken = "") -> Paging:
    return Paging(page_size, page_token, database.now)


PageOf = Annotated[Paging, Depends(_paging)]
IfMatch = Annotated[
    str | None, Header(description='The etag of the object as read, in quotes: `"r3"`.')
]
NameFilter = Annotated[str, Query(max_length=255, description="Only the object with this name.")]
IdFilter = Annotated[str, Query(max_length=40, description="Only objects that refer to this id.")]

__all__ = [
    "READ_PROBLEMS",
    "WRITE_PROBLEMS",
    "DatabaseOf",
    "IdFilter",
    "IfMatch",
    "NameFilter",
    "NewestFirst",
    "PageOf",
    "Problem",
    "Route",
]
