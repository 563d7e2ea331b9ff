"""HTTP for usage."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.resource import Moment
from api.http.routing import READ_PROBLEMS, DatabaseOf, IdFilter, Route
from api.invoices.schemas import ReconciliationBody
from api.invoices.service import reconciliation
from api.usage.schemas import GroupBy, UsageBody
from api.usage.service import UsageQuery, usage

router = APIRouter(prefix="/v1/usage", route_class=Route, tags=["usage"])

Reader = Annotated[Caller, Depends(Guard("usage:read"))]
Biller = Annotated[Caller, Depends(Guard("invoices:read"))]
Since = Annotated[Moment | None, Query(alias="from", description="Window start, inclusive.")]
Until = Annotated[Moment | None, Query(alias="to", description="Window start, exclusive.")]
Meter = Annotated[str, Query(max_length=32, description="Only this meter.")]


@router.get("", operation_id="getUsage", responses=READ_PROBLEMS)
def get_usage(
    caller: Reader,
    database: DatabaseOf,
    group_by: GroupBy = "topic",
    since: Since = None,
    until: Until = None,
    topic_id: IdFilter = "",
    meter: Meter = "",
) -> UsageBody:
    """Returns usage and cost from the latest usage report, summed exactly. A key sees its own
    organization or project; operators see all.
    """
    with database.read() as session:
        return usage(session, caller, UsageQuery(group_by, since, until, topic_id, meter))


@router.get("/reconciliation", operation_id="getReconciliation", responses=READ_PROBLEMS)
def get_reconciliation(caller: Biller, database: DatabaseOf) -> ReconciliationBody:
    """Returns the reconciliation of each invoice that the caller can access, from the latest usage
    report: six checks with the figures that were compared. Operators also see the checks of the
    whole run.
    """
    with database.read() as session:
        return reconciliation(session, caller)
