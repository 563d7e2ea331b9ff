"""Pages of audit events. Links are written by `api.auth.audit_chain` alone."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.audit.schemas import AuditBody, AuditFilter
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.audit import AuditEvent
from api.http.pagination import Page, Paging, page_of


def event_page(
    session: Session, caller: Caller, which: AuditFilter, page: Paging
) -> Page[AuditBody]:
    """The events that a caller sees, oldest first."""
    query = visible_to(select(AuditEvent), AuditEvent, caller).filter_by(**which.given())
    request = page.of(session, caller.org_id, "audit-events", which.members())
    return page_of(session, query, AuditEvent.id, request, _bodies)


def _bodies(_session: Session, rows: Sequence[AuditEvent]) -> list[AuditBody]:
    return [AuditBody.of(row) for row in rows]
