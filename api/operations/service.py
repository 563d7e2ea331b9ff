"""Pages of operations, and whose they are."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from api.api_keys.service import SESSION_PREFIX
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.api_keys import ApiKey
from api.db.tables.operations import Operation
from api.db.tables.work import Work
from api.http.pagination import Page, Paging, page_of
from api.operations.schemas import OperationBody, OperationFilter


def operation_page(
    session: Session, caller: Caller, which: OperationFilter, page: Paging
) -> Page[OperationBody]:
    """The operations that a caller sees; without those of the keys of console sessions, unless they
    are asked for, or those of one object."""
    query = visible_to(select(Operation), Operation, caller)
    if which.target_id:
        query = query.where(Operation.target_id == which.target_id)
    elif not which.sessions:
        query = query.where(~_of_session_key(caller))
    request = page.of(
        session,
        caller.org_id,
        "operations",
        which.members(),
        newest_first=which.newest_first,
    )
    return page_of(
        session,
        query,
        Operation.id,
        request,
        lambda session, rows: operation_bodies(session, rows, request.now),
    )


def operation_bodies(
    session: Session, rows: Sequence[Operation], now: datetime
) -> list[OperationBody]:
    """The bodies of rows, in their order."""
    return [
        OperationBody.of(row, session.get(Work, (row.target_kind, row.target_id)), now)
        for row in rows
    ]


def read_operation(session: Session, operation_id: str, now: datetime) -> OperationBody:
    """One operation."""
    return operation_bodies(session, [session.get_one(Operation, operation_id)], now)[0]


def _of_session_key(caller: Caller) -> ColumnElement[bool]:
    """The object is the key of a console session: one is made and ended with every sign-in."""
    keys = visible_to(select(ApiKey.id), ApiKey, caller).where(
        ApiKey.id == Operation.target_id,
        ApiKey.name.startswith(SESSION_PREFIX, autoescape=True),
    )
    return keys.exists()


def operation_owner(session: Session, object_id: str) -> Owner | None:
    """Whose an operation is. One of the organization as a whole is out of sight of a key of one
    project."""
    row = session.get(Operation, object_id)
    return Owner(row.org_id, row.project_id or "") if row else None
