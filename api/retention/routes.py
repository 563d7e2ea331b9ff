"""HTTP for the retention report."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.pagination import PageRequest
from api.http.routing import READ_PROBLEMS, DatabaseOf, IdFilter, PageSize, PageToken, Route
from api.retention.schemas import Cause, RetentionBody, Violation
from api.retention.service import RetentionQuery, retention, shown_run

router = APIRouter(prefix="/v1/reports", route_class=Route, tags=["reports"])

Reader = Annotated[Caller, Depends(Guard("retention:read"))]
CauseFilter = Annotated[Cause | None, Query(description="Only deletions for this cause.")]
ViolationFilter = Annotated[Violation | None, Query(description="Only lines that break this rule.")]


@router.get("/retention", operation_id="getRetention", responses=READ_PROBLEMS)
def get_retention(
    caller: Reader,
    database: DatabaseOf,
    topic_id: IdFilter = "",
    cause: CauseFilter = None,
    violation: ViolationFilter = None,
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> RetentionBody:
    """What was deleted and why, what lives, what will go, and what breaks its promise: as the last
    retention run found it. A key sees its own organization or project; the operator sees all."""
    query = RetentionQuery(topic_id, cause or "", violation or "")
    with database.read() as session:
        members = (("list", "retention"), ("run", shown_run(session)), *query.members())
        page = PageRequest(caller.org_id, members, page_size, page_token, database.now(session))
        return retention(session, caller, query, page)
