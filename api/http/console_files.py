"""The console as Vite built it: its one page, and what the page loads."""

import mimetypes
import stat
from pathlib import Path
from typing import Final

from fastapi import Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from api.http.errors import NotFoundError

DIST: Final = Path(__file__).parents[1] / "console" / "dist"


class Assets(StaticFiles):
    """The built files; the compressed one beside the file for clients that accept it."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, the compressed file, or 404."""
        if "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            place, found = await run_in_threadpool(self.lookup_path, f"{path}.gz")
            if found is not None and stat.S_ISREG(found.st_mode):
                kind = mimetypes.guess_type(path)[0]
                headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
                return FileResponse(place, headers=headers, media_type=kind, stat_result=found)
        response = await super().get_response(path, scope)
        response.headers["Vary"] = "Accept-Encoding"
        return response


def assets() -> BaseRoute:
    """The built files, if there are any."""
    return Mount("/console/assets", Assets(directory=DIST / "assets", check_dir=False))


def pages() -> list[APIRoute]:
    """The page at every path of the console, which its script reads."""
    return [
        APIRoute("/console", get_page, include_in_schema=False),
        APIRoute("/console/{path:path}", get_page, include_in_schema=False),
    ]


def get_page(path: str = "") -> FileResponse:
    """The one page of the console; what its path means is read in the browser."""
    page = DIST / "index.html"
    if not page.exists():
        raise NotFoundError(
            "The console was not built into this installation.",
            code="CONSOLE_NOT_BUILT",
            hint="In a checkout: npm ci && npm run build, in api/console.",
        )
    file = DIST / path
    if path in ("theme.js", "favicon.svg") and file.exists():
        return FileResponse(file)
    return FileResponse(page)
