"""HTTP for report runs: the operator starts them, the job of a run reads and publishes."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, JSONResponse
from pydantic import Field
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.auth.change import change
from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.http.idempotency import RequestFacts
from api.http.pagination import Page
from api.http.reply import Reply
from api.http.resource import body_json
from api.http.routing import (
    READ_PROBLEMS,
    WRITE_PROBLEMS,
    DatabaseOf,
    PageOf,
    Route,
)
from api.jobs.files import folder_of
from api.jobs.inputs import ReportInputs
from api.jobs.result import ReportResult
from api.reports.files import files_owner, handed_out, run_file
from api.reports.schemas import ReportRunBody, ReportRunCreate, ReportRunFilter
from api.reports.service import (
    check_result,
    publish_result,
    queue_run,
    read_run,
    report_inputs,
    run_owner,
    run_page,
)
from api.retention.schemas import RetentionInputs, RetentionResult
from api.settings import Settings

router = APIRouter(prefix="/v1/report-runs", route_class=Route, tags=["reports"])

Lister = Annotated[Caller, Depends(Guard("reports:read"))]
Reader = Annotated[Caller, Depends(Guard("reports:read", run_owner))]
InputReader = Annotated[Caller, Depends(Guard("reports:inputs", run_owner))]
Creator = Annotated[Caller, Depends(Guard("reports:create", cost=20))]
FileReader = Annotated[Caller, Depends(Guard("usage:read", files_owner))]
AnyResult = Annotated[ReportResult | RetentionResult, Field(discriminator="kind")]
Publisher = Annotated[Caller, Depends(Guard("reports:publish", run_owner))]
Which = Annotated[ReportRunFilter, Depends()]


def _root(request: Request) -> Path:
    settings: Settings = request.app.state.settings
    return folder_of(settings.reports.uri)


Root = Annotated[Path, Depends(_root)]


@router.get("", operation_id="listReportRuns", responses=READ_PROBLEMS)
def list_report_runs(
    caller: Lister, database: DatabaseOf, which: Which, page: PageOf
) -> Page[ReportRunBody]:
    """Lists the report runs, oldest first by default. Operators only."""
    with database.read() as session:
        return run_page(session, caller, which, page)


@router.get("/{object_id}", operation_id="getReportRun", responses=READ_PROBLEMS)
def get_report_run(object_id: str, caller: Reader, database: DatabaseOf) -> ReportRunBody:
    """Returns a report run."""
    with database.read() as session:
        return read_run(session, object_id)


@router.get("/{object_id}/inputs", operation_id="getReportInputs", responses=READ_PROBLEMS)
def get_report_inputs(
    object_id: str, caller: InputReader, database: DatabaseOf
) -> RetentionInputs | ReportInputs:
    """Returns the names and prices that the run needs; for retention, also policies and holds."""
    with database.read() as session:
        return report_inputs(session, object_id, database.now(session))


@router.get(
    "/{object_id}/files/{name}",
    operation_id="getReportFile",
    response_class=FileResponse,
    responses=READ_PROBLEMS,
)
def get_report_file(
    object_id: str, name: str, caller: FileReader, database: DatabaseOf, root: Root
) -> FileResponse:
    """Returns a file of a published run. Operators can read all files, organizations those of their
    own invoices. HTML pages open in a sandbox; other files are downloaded.
    """
    with database.read() as session:
        listed = run_file(session, caller, object_id, name, root)
    return handed_out(listed)


@router.post(
    "",
    operation_id="createReportRun",
    status_code=202,
    response_model=ReportRunBody,
    responses=WRITE_PROBLEMS,
)
def post_report_run(body: ReportRunCreate, caller: Creator, facts: RequestFacts) -> JSONResponse:
    """Queues a report run for all organizations. Operators only."""

    def create(session: Session, actor: Actor) -> Reply:
        row, operation_id = queue_run(session, actor, body)
        return Reply(
            202,
            body_json(ReportRunBody.of(row)),
            {"Location": f"/v1/report-runs/{row.id}", "Operation-Id": operation_id},
        )

    return change(facts, caller, create)


@router.put(
    "/{object_id}/result",
    operation_id="publishReportResult",
    response_model=ReportRunBody,
    responses=WRITE_PROBLEMS,
)
def put_report_result(
    object_id: str, body: AnyResult, caller: Publisher, facts: RequestFacts, root: Root
) -> JSONResponse:
    """Submits the manifest of a finished job. Its files are verified and its rows loaded,
    completely or not at all. Requires the token of the current attempt of the run. Submitting the
    same manifest again has no effect.
    """
    checked = check_result(facts.database, run_id=object_id, result=body, root=root)

    def publish(session: Session, actor: Actor) -> Reply:
        row = publish_result(session, actor, run_id=object_id, result=body, checked=checked)
        return Reply(200, body_json(ReportRunBody.of(row)))

    return change(facts, caller, publish)
