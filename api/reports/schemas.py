"""What of a report run crosses HTTP."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, JsonValue

from api.db.tables.reports import ReportRun
from api.http.pagination import Filter
from api.http.resource import Command, Timestamp
from api.http.routing import NewestFirst


class ReportRunCreate(Command):
    """A new report run: `usage` computes usage and invoices, `retention` shows past and upcoming
    deletions.
    """

    kind: Literal["usage", "retention"] = "usage"


class ReportRunBody(BaseModel):
    """A report run. ``state``: QUEUED, RUNNING, SUCCEEDED, FAILED. ``result`` is the manifest of
    the job.
    """

    id: str
    organization_id: str
    kind: str
    state: str
    created_at: Timestamp
    created_by: str
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    error: dict[str, JsonValue] | None = None
    result: dict[str, JsonValue] | None = None

    @classmethod
    def of(cls, row: ReportRun) -> "ReportRunBody":
        """The body of a row; its token stays in the database."""
        return cls(
            id=row.id,
            organization_id=row.org_id,
            kind=row.kind,
            state=row.state,
            created_at=row.created_at,
            created_by=row.created_by,
            started_at=row.started_at,
            finished_at=row.finished_at,
            error=row.error,
            result=row.result,
        )


@dataclass(frozen=True, slots=True)
class ReportRunFilter(Filter):
    """In which order a list holds the runs."""

    newest_first: NewestFirst = False
