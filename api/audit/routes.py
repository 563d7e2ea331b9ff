"""HTTP for audit events."""

from typing import Annotated

from fastapi import APIRouter, Depends
from sqlalchemy import select

from api.audit.schemas import AuditBody
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.audit import AuditEvent
from api.http.pagination import Page, PageRequest, page_of
from api.http.routing import READ_PROBLEMS, DatabaseOf, IdFilter, PageSize, PageToken, Route

router = APIRouter(prefix="/v1/audit-events", route_class=Route, tags=["audit"])

Lister = Annotated[Caller, Depends(Guard("audit:read"))]


@router.get("", operation_id="listAuditEvents", responses=READ_PROBLEMS)
def list_audit_events(
    caller: Lister,
    database: DatabaseOf,
    target_id: IdFilter = "",
    principal_id: IdFilter = "",
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[AuditBody]:
    """What was changed and what was refused in the organization, oldest first. A key of one project
    reads the events of its project only: its chain has gaps, and cannot be verified with it."""
    with database.read() as session:
        query = visible_to(select(AuditEvent), AuditEvent, caller)
        filters = {"target_id": target_id, "principal_id": principal_id}
        query = query.filter_by(**{member: value for member, value in filters.items() if value})
        items, token = page_of(
            session,
            query,
            AuditEvent.id,
            PageRequest(
                caller.org_id,
                (("list", "audit-events"), *filters.items()),
                page_size,
                page_token,
                database.now(session),
            ),
            render=lambda rows: [AuditBody.of(row) for row in rows],
            key_of=lambda row: row.id,
        )
    return Page(items=items, next_page_token=token)
