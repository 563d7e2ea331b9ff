"""HTTP for operations."""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.pagination import Page
from api.http.routing import READ_PROBLEMS, DatabaseOf, PageOf, Route
from api.operations.schemas import OperationBody, OperationFilter
from api.operations.service import operation_owner, operation_page, read_operation

router = APIRouter(
    prefix="/v1/operations", route_class=Route, tags=["operations"], responses=READ_PROBLEMS
)

Lister = Annotated[Caller, Depends(Guard("operations:read"))]
Reader = Annotated[Caller, Depends(Guard("operations:read", operation_owner))]
Which = Annotated[OperationFilter, Depends()]


@router.get("", operation_id="listOperations")
def list_operations(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[OperationBody]:
    """Lists the operations of the organization, oldest first by default. Operations on the keys of
    console sessions are included only with ``sessions``, or if requested by id.
    """
    with database.read() as session:
        return operation_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getOperation")
def get_operation(object_id: str, caller: Reader, database: DatabaseOf) -> OperationBody:
    """Returns an operation. To wait for a change, poll its operation or the conditions of the
    object; the conditions are authoritative.
    """
    with database.read() as session:
        return read_operation(session, object_id, database.now(session))
