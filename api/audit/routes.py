"""HTTP for audit events."""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.audit.schemas import AuditBody, AuditFilter
from api.audit.service import event_page
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.pagination import Page
from api.http.routing import READ_PROBLEMS, DatabaseOf, PageOf, Route

router = APIRouter(prefix="/v1/audit-events", route_class=Route, tags=["audit"])

Lister = Annotated[Caller, Depends(Guard("audit:read"))]
Which = Annotated[AuditFilter, Depends()]


@router.get("", operation_id="listAuditEvents", responses=READ_PROBLEMS)
def list_audit_events(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[AuditBody]:
    """Lists changes and denied requests in the organization, oldest first. A key restricted to a
    project reads only the events of its project. That list has gaps, so its hash chain cannot be
    verified.
    """
    with database.read() as session:
        return event_page(session, caller, which, page)
