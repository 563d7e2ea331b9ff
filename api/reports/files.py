"""The files of a published run: which one a caller may have, and how it is handed out.

The operator may have every file that the manifest names; an organization those of its own invoices.
A name counts only if the manifest has it, and a folder only below the reports' own. A page is shown
(the middleware puts it into a sandbox without scripts), everything else is saved.
"""

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastapi.responses import FileResponse
from pydantic import JsonValue
from sqlalchemy.orm import Session

from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.db.tables.reports import ReportRun
from api.http.errors import NotFoundError
from api.jobs.files import checked_file, folder_of

PAGE: Final = ".html"
TYPES: Final = {".parquet": "application/vnd.apache.parquet", ".csv": "text/csv; charset=utf-8"}


def files_owner(session: Session, object_id: str) -> Owner | None:
    """A run is there for everybody; which of its files are, `run_file` says."""
    row = session.get(ReportRun, object_id)
    return Owner(row.org_id, shared=True, run_id=row.id) if row else None


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as the manifest of its run has it."""

    path: Path
    size_bytes: int
    sha256: str


def run_file(session: Session, caller: Caller, run_id: str, name: str, root: Path) -> Listed:
    """A file of a run that has published.

    :raises NotFoundError: no such file, or not one of the caller's.
    """
    result = session.get_one(ReportRun, run_id).result or {}
    listed = result.get("files")
    entries = listed if isinstance(listed, list) else []
    found = {one.get("name"): one for one in entries if isinstance(one, dict)}
    folder = (root.absolute() / folder_of(str(result.get("path", "")))).resolve()
    path = folder / name
    mine = caller.operator or name in _own(caller, result)
    inside = folder.is_relative_to(root.resolve())
    if name not in found or not mine or not inside or not path.is_file():
        raise NotFoundError(
            f"The run {run_id} has no file {name}, or this key has no access to it.",
            hint="An invoice lists its files; usage files of a run are the operator's.",
        )
    entry = found[name]
    return Listed(path, int(str(entry["bytes"])), str(entry["sha256"]))


def _own(caller: Caller, result: Mapping[str, JsonValue]) -> set[str]:
    """The files of the invoices of a caller's organization."""
    entries = result.get("invoices")
    if not isinstance(entries, list) or caller.project_id is not None:
        return set()
    return {
        f"{entry.get('name')}{suffix}"
        for entry in entries
        if isinstance(entry, dict) and entry.get("organization_id") == caller.org_id
        for suffix in (".csv", ".html", ".json", ".parquet")
    }


def handed_out(listed: Listed) -> FileResponse:
    """The file, if it is still the one that was published.

    :raises ResultRejectedError: it was changed since.
    """
    path = listed.path
    checked_file(path, size=listed.size_bytes, sha256=listed.sha256, keep=False)
    media_type = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    page = path.suffix == PAGE
    return FileResponse(
        path,
        media_type=media_type or "application/octet-stream",
        filename=path.name,
        content_disposition_type="inline" if page else "attachment",
    )
