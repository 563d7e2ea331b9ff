"""What of an audit event crosses HTTP."""

from dataclasses import dataclass

from pydantic import BaseModel, JsonValue

from api.db.tables.audit import AuditEvent
from api.http.pagination import Filter
from api.http.resource import Int64, Timestamp
from api.http.routing import IdFilter


class AuditBody(BaseModel):
    """A change (DONE) or a denied request (DENIED), linked to the previous event by its hash."""

    id: str
    organization_id: str
    sequence: Int64
    occurred_at: Timestamp
    principal_id: str
    action: str
    outcome: str
    target_kind: str
    target_id: str
    request_id: str
    before: dict[str, JsonValue] | None = None
    after: dict[str, JsonValue] | None = None
    previous_hash: str
    hash: str

    @classmethod
    def of(cls, row: AuditEvent) -> "AuditBody":
        """The body of a row."""
        return cls(
            id=row.id,
            organization_id=row.org_id,
            sequence=row.sequence,
            occurred_at=row.occurred_at,
            principal_id=row.principal_id,
            action=row.action,
            outcome=row.outcome,
            target_kind=row.target_kind,
            target_id=row.target_id,
            request_id=row.request_id,
            before=row.before,
            after=row.after,
            previous_hash=row.previous_hash,
            hash=row.hash,
        )


@dataclass(frozen=True, slots=True)
class AuditFilter(Filter):
    """Which events a list holds."""

    target_id: IdFilter = ""
    principal_id: IdFilter = ""
