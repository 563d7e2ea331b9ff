"""The REST API over HTTP: one call with its repetitions, one list with its pages, typed errors.

Every call that changes something carries an Idempotency-Key, so that a repetition after a lost
answer does nothing twice. Knows no kind of object: admin.py does. Runs on the I/O loop.
"""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import Awaitable, Callable, Mapping

import httpx2

from headrace.errors import Conflict, DeadlineExceeded, NotFound, Retryable, Unreachable, of_problem
from headrace.settings import Settings
from headrace.transport.io_thread import patient
from headrace.transport.retry import Backoff, Deadline
from headrace.version import VERSION

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Resource = dict[str, Json]

CALL_TIMEOUT = 30.0
PAGE_SIZE = 200


class Rest:
    """One connection to the API, as one key."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http: httpx2.AsyncClient | None = None
        self._project_id: str | None = None

    def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            headers = {"user-agent": f"headrace-python/{VERSION}"}
            if self._settings.key:
                headers["authorization"] = f"Bearer {self._settings.key}"
            # Reading the certificates of the world takes longer than a local call; http needs none.
            secure = self._settings.api_url.startswith("https://")
            self._http = httpx2.AsyncClient(
                base_url=self._settings.api_url,
                headers=headers,
                timeout=CALL_TIMEOUT,
                verify=secure,
            )
        return self._http

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        if_match: str = "",
        timeout: float = CALL_TIMEOUT,
    ) -> Resource:
        """One call, repeated until the timeout while no server answers or the API
        asks for patience. `if_match`: the etag that the object must still have."""
        headers = {} if method == "GET" else {"idempotency-key": uuid.uuid4().hex}
        if if_match:
            headers["if-match"] = if_match
        once = functools.partial(self._once, method, path, params, body, headers)
        with patient(self._settings.api_url, timeout):
            return await self._repeated(once, timeout)

    async def _repeated(
        self, once: Callable[[Deadline], Awaitable[Resource]], timeout: float
    ) -> Resource:
        deadline, backoff = Deadline(timeout), Backoff()
        while True:
            try:
                return await once(deadline)
            except (Retryable, Conflict) as error:
                busy = error.code == "IDEMPOTENCY_KEY_IN_PROGRESS"
                pause = backoff.pause(error.retry_after)
                if (isinstance(error, Conflict) and not busy) or pause >= deadline.remaining():
                    raise
            await asyncio.sleep(pause)

    async def _once(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: Mapping[str, object] | None,
        headers: Mapping[str, str],
        deadline: Deadline,
    ) -> Resource:
        try:
            answer = await self._client().request(
                method,
                f"/v1{path}",
                params={k: v for k, v in (params or {}).items() if v},
                json=body,
                headers=dict(headers),
                timeout=max(0.1, deadline.remaining()),
            )
        except httpx2.TimeoutException:
            raise DeadlineExceeded(f"No answer from the API at {self._settings.api_url}") from None
        except httpx2.HTTPError as error:
            raise Unreachable(
                f"No answer from the API at {self._settings.api_url}: {error}",
                hint="Is it running (`headrace up`), and is HEADRACE_API_URL right?",
            ) from None
        return _body_of(answer)

    async def items(self, path: str, params: Mapping[str, str] | None = None) -> list[Resource]:
        """Every item of a list, over all its pages."""
        found: list[Resource] = []
        token = ""
        while True:
            page = await self.request(
                "GET",
                path,
                params={**(params or {}), "page_size": str(PAGE_SIZE), "page_token": token},
            )
            rows = page.get("items")
            found += (
                [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            )
            token = str(page.get("next_page_token") or "")
            if not token:
                return found

    async def project_id(self) -> str:
        """The id of the project that the settings name; empty for the key's own."""
        if not self._settings.project:
            return ""
        if self._project_id is None:
            found = await self.items("/projects", {"name": self._settings.project})
            if not found:
                raise NotFound(
                    f'Project "{self._settings.project}" does not exist',
                    code="PROJECT_NOT_FOUND",
                    hint="List the projects of this key: headrace project list, without --project.",
                )
            self._project_id = str(found[0]["id"])
        return self._project_id


def _body_of(answer: httpx2.Response) -> Resource:
    try:
        body = answer.json() if answer.content else {}
    except (RecursionError, ValueError):
        body = {"detail": f"The API answered {answer.status_code} without JSON"}
    if not isinstance(body, dict):
        body = {"items": body}
    if answer.is_success:
        return body
    error = of_problem(answer.status_code, body)
    retry_after = answer.headers.get("retry-after", "")
    if retry_after.isdigit():
        error.retry_after = float(retry_after)
    raise error
