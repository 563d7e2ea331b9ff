"""HTTP for the retention report.

    GET /v1/reports/retention             its lines, and sums over them
    GET /v1/reports/retention/topics      what the report says of each topic
    GET /v1/reports/retention/deletions   what went on each day (UTC), by cause

A key sees the topics of its organization or project; the operator sees all.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.pagination import PAGE_SIZE_MAX, Page
from api.http.routing import READ_PROBLEMS, DatabaseOf, IdFilter, PageOf, Route
from api.retention.details import deletions, topic_report_page
from api.retention.schemas import Cause, Deletions, RetentionBody, TopicReport, Violation
from api.retention.service import RetentionQuery, retention

router = APIRouter(prefix="/v1/reports", route_class=Route, tags=["reports"])

Reader = Annotated[Caller, Depends(Guard("retention:read"))]
CauseFilter = Annotated[Cause | None, Query(description="Only deletions with this cause.")]
ViolationFilter = Annotated[
    Violation | None, Query(description="Only rows that violate this rule.")
]


@router.get("/retention", operation_id="getRetention", responses=READ_PROBLEMS)
def get_retention(
    caller: Reader,
    database: DatabaseOf,
    page: PageOf,
    topic_id: IdFilter = "",
    cause: CauseFilter = None,
    violation: ViolationFilter = None,
) -> RetentionBody:
    """Returns the latest retention report: deleted data with the cause, stored data, upcoming
    deletions, and violations. A key sees its own organization or project; operators see all.
    """
    query = RetentionQuery(topic_id, cause or "", violation or "")
    with database.read() as session:
        return retention(session, caller, query, page)


@router.get("/retention/topics", operation_id="listRetentionTopics", responses=READ_PROBLEMS)
def list_retention_topics(
    caller: Reader,
    database: DatabaseOf,
    page: PageOf,
    broken: Annotated[bool, Query(description="Only topics that violate a rule.")] = False,
    largest: Annotated[
        int,
        Query(
            ge=0,
            le=PAGE_SIZE_MAX,
            description="Only this many topics: those with the most stored bytes.",
        ),
    ] = 0,
) -> Page[TopicReport]:
    """Lists the topics of the latest retention report, sorted by id; with ``largest``, one page of
    the topics with the most stored bytes, the largest first.
    """
    with database.read() as session:
        return topic_report_page(session, caller, page, broken=broken, largest=largest)


@router.get("/retention/deletions", operation_id="getRetentionDeletions", responses=READ_PROBLEMS)
def get_retention_deletions(
    caller: Reader, database: DatabaseOf, topic_id: IdFilter = ""
) -> Deletions:
    """Returns the deleted data by day and cause, from the latest retention report."""
    with database.read() as session:
        return deletions(session, caller, topic_id)
