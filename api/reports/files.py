"""Files of a published run, as its job wrote them.

The operator reads every file of its runs. Anybody else reads what is their organization's alone:
files that carry its id in their name, as invoices do. A name is taken from the manifest and from
nowhere else, and a file whose bytes are not those of the manifest is refused. A page gets a content
policy of its own (api/edge.py): it stands in a sandbox, for its text came from many.
"""

import hashlib
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse
from pydantic import BaseModel
from sqlalchemy.orm import Session

from api.access.guard import Guard, Owner
from api.access.permissions import Caller
from api.errors import ConflictError, NotFoundError
from api.reports.loading import folder_of
from api.reports.models import ReportRun
from api.reports.schemas import PublishedFile
from api.routing import READ_PROBLEMS, DatabaseOf, Route
from api.settings import Settings

router = APIRouter(prefix="/v1/report-runs", route_class=Route, tags=["reports"])

PAGE: Final = "text/html; charset=utf-8"
MEDIA_TYPES: Final = {
    ".html": PAGE,
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
}
OTHER_MEDIA_TYPE: Final = "application/octet-stream"
READ_BYTES: Final = 1 << 20


class Published(BaseModel):
    """What every kind of run says of its files."""

    path: str
    files: list[PublishedFile]


def shared_run(session: Session, object_id: str) -> Owner | None:
    """A run is many organizations': which of its files a caller sees, is asked file by file."""
    row = session.get(ReportRun, object_id)
    return Owner(row.org_id, shared=True) if row else None


# What is read is hashed: a download counts for more than one ordinary request.
Reader = Annotated[Caller, Depends(Guard("usage:read", shared_run, cost=10))]


@router.get(
    "/{object_id}/files/{name}",
    operation_id="getReportFile",
    response_class=FileResponse,
    responses={
        **READ_PROBLEMS,
        200: {
            "description": "The file; a page to be shown, anything else to be kept.",
            "content": {OTHER_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        409: {**READ_PROBLEMS[404], "description": "REPORT_FILE_CHANGED."},
    },
)
def get_report_file(
    object_id: str, name: str, caller: Reader, database: DatabaseOf, request: Request
) -> FileResponse:
    """A file of a published run, by its name in the manifest."""
    settings: Settings = request.app.state.settings
    with database.read() as session:
        run = session.get_one(ReportRun, object_id)
        file, folder = _found(run, caller, name)
    path = folder_of(settings.reports.uri).absolute() / folder_of(folder) / file.name
    _check(path, file)
    media_type = MEDIA_TYPES.get(path.suffix, OTHER_MEDIA_TYPE)
    return FileResponse(
        path,
        media_type=media_type,
        filename=file.name,
        content_disposition_type="inline" if media_type == PAGE else "attachment",
        headers={"ETag": f'"{file.sha256}"'},
    )


def _found(run: ReportRun, caller: Caller, name: str) -> tuple[PublishedFile, str]:
    """The entry of the manifest and the folder of the run, if the caller may know of them."""
    operates = caller.operator and caller.org_id == run.org_id
    owns = caller.project_id is None and f"-{caller.org_id}-" in name
    result = Published.model_validate(run.result) if run.result is not None else None
    if result is not None and (operates or owns):
        for file in result.files:
            if file.name == name:
                return file, result.path
    raise NotFoundError(f"{run.id} has published no {name} that this key can see.")


def _check(path: Path, file: PublishedFile) -> None:
    """Bytes that are not those of the manifest are no evidence of anything."""
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as content:
            while part := content.read(READ_BYTES):
                digest.update(part)
                size += len(part)
    except OSError:
        size = -1
    if size != file.bytes or digest.hexdigest() != file.sha256:
        raise ConflictError(
            f"{file.name} is not the file that the run published: it is gone, or was edited.",
            code="REPORT_FILE_CHANGED",
            hint="Run the report again: the same inputs give the same file.",
        )
