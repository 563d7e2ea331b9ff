"""What of an operation crosses HTTP."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, JsonValue

from api.db.tables.operations import Operation
from api.db.tables.work import Work
from api.http.pagination import Filter
from api.http.resource import Timestamp
from api.http.routing import IdFilter, NewestFirst
from api.operations.state import error_of, state_of

SessionsToo = Annotated[
    bool, Query(description="Include operations on the keys of console sessions.")
]


class OperationTarget(BaseModel):
    """The object of an operation, and the requested generation."""

    kind: str
    id: str
    generation: int


class OperationBody(BaseModel):
    """A long-running request and its outcome. ``state`` is an open set: PENDING, RUNNING,
    SUCCEEDED, FAILED, SUPERSEDED.
    """

    id: str
    organization_id: str
    kind: str
    target: OperationTarget
    state: str
    error: dict[str, JsonValue] | None = None
    created_at: Timestamp
    created_by: str
    deadline_at: Timestamp
    finished_at: Timestamp | None = None

    @classmethod
    def of(cls, row: Operation, work: Work | None, now: datetime) -> "OperationBody":
        """The body of a row."""
        return cls(
            id=row.id,
            organization_id=row.org_id,
            kind=row.kind,
            target=OperationTarget(
                kind=row.target_kind, id=row.target_id, generation=row.target_generation
            ),
            state=state_of(row, work, now),
            error=error_of(row, work, now),
            created_at=row.created_at,
            created_by=row.created_by,
            deadline_at=row.deadline_at,
            finished_at=row.succeeded_at or row.superseded_at or row.failed_at,
        )


@dataclass(frozen=True, slots=True)
class OperationFilter(Filter):
    """Which operations a list holds, and in which order."""

    target_id: IdFilter = ""
    newest_first: NewestFirst = False
    sessions: SessionsToo = False
