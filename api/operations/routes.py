"""HTTP for operations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from sqlalchemy import ColumnElement, select

from api.api_keys.service import SESSION_PREFIX
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.api_keys import ApiKey
from api.db.tables.operations import Operation
from api.db.tables.work import Work
from api.http.pagination import Page, PageRequest, page_of
from api.http.routing import (
    READ_PROBLEMS,
    DatabaseOf,
    IdFilter,
    NewestFirst,
    PageSize,
    PageToken,
    Route,
)
from api.operations.schemas import OperationBody
from api.operations.service import operation_owner

router = APIRouter(
    prefix="/v1/operations", route_class=Route, tags=["operations"], responses=READ_PROBLEMS
)

Lister = Annotated[Caller, Depends(Guard("operations:read"))]
Reader = Annotated[Caller, Depends(Guard("operations:read", operation_owner))]


@router.get("", operation_id="listOperations")
def list_operations(
    caller: Lister,
    database: DatabaseOf,
    target_id: IdFilter = "",
    newest_first: NewestFirst = False,
    sessions: Annotated[
        bool, Query(description="Also those of the keys of console sessions.")
    ] = False,
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[OperationBody]:
    """The operations of the caller's organization, oldest first unless asked otherwise. Those of
    the keys of console sessions only if they are asked for, or for one by its id."""
    with database.read() as session:
        now = database.now(session)
        query = visible_to(select(Operation), Operation, caller)
        if target_id:
            query = query.where(Operation.target_id == target_id)
        elif not sessions:
            query = query.where(~_of_session_key(caller))
        request = PageRequest(
            caller.org_id,
            (
                ("list", "operations"),
                ("target_id", target_id),
                ("newest_first", str(newest_first)),
                ("sessions", str(sessions)),
            ),
            page_size,
            page_token,
            now,
            newest_first=newest_first,
        )
        items, token = page_of(
            session,
            query,
            Operation.id,
            request,
            render=lambda rows: [
                OperationBody.of(row, session.get(Work, (row.target_kind, row.target_id)), now)
                for row in rows
            ],
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)


def _of_session_key(caller: Caller) -> ColumnElement[bool]:
    """The object is the key of a console session: one is made and ended with every sign-in."""
    keys = visible_to(select(ApiKey.id), ApiKey, caller).where(
        ApiKey.id == Operation.target_id,
        ApiKey.name.startswith(SESSION_PREFIX, autoescape=True),
    )
    return keys.exists()


@router.get("/{object_id}", operation_id="getOperation")
def get_operation(object_id: str, caller: Reader, database: DatabaseOf) -> OperationBody:
    """One operation; poll it, or the object's conditions, which are the truth."""
    with database.read() as session:
        row = session.get_one(Operation, object_id)
        work = session.get(Work, (row.target_kind, row.target_id))
        return OperationBody.of(row, work, database.now(session))
