"""What an operation says of itself: its state and its error follow from generations, conditions
and the work on its object. Pure."""

from datetime import datetime

from pydantic import JsonValue as Json

from api.db.tables.operations import Operation
from api.db.tables.work import Work


def state_of(operation: Operation, work: Work | None, now: datetime) -> str:
    """PENDING, RUNNING, SUCCEEDED, FAILED or SUPERSEDED."""
    if operation.succeeded_at is not None:
        return "SUCCEEDED"
    if operation.superseded_at is not None:
        return "SUPERSEDED"
    if operation.failed_at is not None or operation.deadline_at <= now:
        return "FAILED"
    looked_at = work is not None and (work.attempts > 0 or work.lease_owner is not None)
    return "RUNNING" if looked_at else "PENDING"


def error_of(operation: Operation, work: Work | None, now: datetime) -> dict[str, Json] | None:
    """Why an operation failed, or what its last pass met."""
    if operation.error is not None:
        return operation.error
    if operation.succeeded_at is not None or operation.superseded_at is not None:
        return None
    last = work.last_error if work is not None else None
    if operation.deadline_at <= now:
        return {"code": "DEADLINE_EXCEEDED", "detail": last or "The deadline passed."}
    return {"code": "RETRYING", "detail": last} if last else None
