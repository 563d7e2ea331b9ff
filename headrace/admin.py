"""The REST API as Python calls: topics, streams, projects, keys, usage, report runs. Thin: bodies
are REST's own.

One set of calls (`_Calls`, on the I/O loop) has two faces, `Admin` and `AsyncAdmin`. Every POST
carries an Idempotency-Key, so that a repetition after a lost answer creates nothing twice;
problem+json becomes a typed error. A creation answers at once with the stored wish; `wait_ready`
waits for what was wished.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Concatenate, ParamSpec, TypeVar

import httpx2

from headrace.errors import (
    Conflict,
    DeadlineExceeded,
    HeadraceError,
    Invalid,
    NotFound,
    Retryable,
    TopicNotFound,
    Unreachable,
    of_problem,
)
from headrace.retry import Backoff, Deadline, Duration, seconds
from headrace.runtime import IoThread, io_thread, patient
from headrace.settings import Settings
from headrace.version import VERSION

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Resource = dict[str, Json]

CALL_TIMEOUT = 30.0
WAIT_TIMEOUT = "60s"
PAGE_SIZE = 200
READY_POLL_SECONDS = 0.1
RUN_POLL_SECONDS = 0.2

P = ParamSpec("P")
T = TypeVar("T")


def is_ready(resource: Resource) -> bool:
    """The wish of this generation is reality: observed_generation = generation, and Ready is
    True."""
    status = resource.get("status")
    if not isinstance(status, dict) or status.get("observed_generation") != resource["generation"]:
        return False
    conditions = status.get("conditions")
    if not isinstance(conditions, list):
        return False
    return any(
        isinstance(c, dict)
        and c.get("type") == "Ready"
        and str(c.get("status")) in ("True", "TRUE")
        for c in conditions
    )


def _why_not_ready(resource: Resource) -> str:
    status = resource.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    said = [
        f"{c.get('type')}={c.get('status')}: {c.get('reason', '')} {c.get('message', '')}".strip()
        for c in (conditions if isinstance(conditions, list) else [])
        if isinstance(c, dict)
    ]
    return "; ".join(said) or "no reconciler has looked at it yet"


class _Calls:
    """Every call once. Runs on the I/O loop."""

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
        timeout: float = CALL_TIMEOUT,
    ) -> Resource:
        """One call, repeated until the timeout while nobody answers or the API asks for
        patience."""
        headers = {"idempotency-key": uuid.uuid4().hex} if method == "POST" else {}
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

    async def _project(self) -> str:
        """The id of the project that the settings name; empty for the key's own."""
        if not self._settings.project:
            return ""
        if self._project_id is None:
            found = await self.items("/projects", {"name": self._settings.project})
            if not found:
                raise NotFound(
                    f'Project "{self._settings.project}" does not exist', code="PROJECT_NOT_FOUND"
                )
            self._project_id = str(found[0]["id"])
        return self._project_id

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        spec: Mapping[str, object] | None = None,
        if_not_exists: bool = False,
        wait: bool = True,
        timeout: Duration = WAIT_TIMEOUT,
    ) -> Resource:
        """Create `topic` or `stream/topic`; returns when it is Ready, unless `wait=False`."""
        stream, topic = _split(name)
        wish = {**(spec or {}), **({"partitions": partitions} if partitions is not None else {})}
        body: dict[str, object] = {"name": topic, "spec": wish}
        if stream:
            body["stream"] = stream
        if project := await self._project():
            body["project_id"] = project
        try:
            made = await self.request("POST", "/topics", body=body)
        except Conflict as error:
            if not (if_not_exists and error.code == "NAME_TAKEN"):
                raise
            made = await self.topic(name)
        return await self.wait_ready(made, timeout=timeout) if wait else made

    async def topics(self, *, stream: str = "") -> list[Resource]:
        """The topics that the key may see."""
        return await self.items("/topics", {"stream": stream, "project_id": await self._project()})

    async def topic(self, name: str, *, live: bool = False) -> Resource:
        """One topic by `topic`, `stream/topic` or id. With `live` its partitions carry the figures
        of now; otherwise those of their `observed_at`."""
        query = {"live": "true"} if live else {}
        if name.startswith("tp_"):
            return await self.request("GET", f"/topics/{name}", params=query)
        stream, topic = _split(name)
        params = {"name": topic, "stream": stream or "default", "project_id": await self._project()}
        found = await self.items("/topics", params)
        if not found:
            raise await self.missing_topic(name)
        return await self.request("GET", f"/topics/{found[0]['id']}", params=query)

    async def missing_topic(self, name: str) -> TopicNotFound:
        """The error for a topic that does not exist, with the nearest name that does. Raises
        nothing: without an answer of the API there is no suggestion."""
        try:
            params = {"project_id": await self._project(), "page_size": str(PAGE_SIZE)}
            items = (await self.request("GET", "/topics", params=params, timeout=1)).get("items")
        except HeadraceError:
            items = []
        names = [
            str(topic["name"])
            if topic["stream"] == "default"
            else f"{topic['stream']}/{topic['name']}"
            for topic in (items if isinstance(items, list) else [])
            if isinstance(topic, dict)
        ]
        near = difflib.get_close_matches(name, names, n=1)
        create = f"Create it: headrace topic create {name}"
        return TopicNotFound(
            f'Topic "{name}" does not exist',
            hint=f'Did you mean "{near[0]}"? {create}' if near else create,
            context={"topic": name},
        )

    async def create_stream(self, name: str) -> Resource:
        """Create a stream, a namespace of topics."""
        body: dict[str, object] = {"name": name}
        if project := await self._project():
            body["project_id"] = project
        return await self.request("POST", "/streams", body=body)

    async def streams(self) -> list[Resource]:
        """The streams that the key may see."""
        return await self.items("/streams", {"project_id": await self._project()})

    async def create_project(self, name: str) -> Resource:
        """Create a project; a stream `default` comes with it."""
        return await self.request("POST", "/projects", body={"name": name})

    async def projects(self) -> list[Resource]:
        """The projects that the key may see."""
        return await self.items("/projects")

    async def create_key(self, name: str, *, role: str = "editor") -> Resource:
        """Create an API key; `secret` in the answer is the token, shown this once."""
        body: dict[str, object] = {"name": name, "spec": {"role": role}}
        if project := await self._project():
            body["project_id"] = project
        return await self.request("POST", "/api-keys", body=body)

    async def keys(self) -> list[Resource]:
        """The API keys, without secrets."""
        return await self.items("/api-keys", {"project_id": await self._project()})

    async def usage(
        self, *, by: str = "day", since: str = "", until: str = "", topic: str = "", meter: str = ""
    ) -> Resource:
        """Usage and cost of the current report run, grouped by hour, day, topic, principal or
        organization.

        `since` and `until` are RFC 3339 times with a zone; `topic` is a name or an id.
        """
        topic_id = str((await self.topic(topic))["id"]) if topic else ""
        params = {"group_by": by, "from": since, "to": until, "topic_id": topic_id, "meter": meter}
        return await self.request("GET", "/usage", params=params)

    async def run_report(
        self,
        kind: str = "usage",
        *,
        wait: bool = False,
        timeout: Duration = "10m",
        changed: Callable[[Resource], None] | None = None,
    ) -> Resource:
        """Start a report; with `wait=True` returns when it has succeeded. Raises what it failed
        with. `changed` is called with the run at first and whenever its state is another, on the
        I/O thread: it must be short."""
        run = await self.request("POST", "/report-runs", body={"kind": kind})
        tell = changed or (lambda run: None)
        tell(run)
        deadline = Deadline(seconds(timeout))
        while wait and run.get("state") not in ("SUCCEEDED", "FAILED"):
            if deadline.passed:
                raise DeadlineExceeded(
                    f"Report run {run['id']} is still {run.get('state')}",
                    hint="It goes on by itself: see `headrace report list`.",
                )
            await asyncio.sleep(RUN_POLL_SECONDS)
            before, run = run, await self.request("GET", f"/report-runs/{run['id']}")
            if run.get("state") != before.get("state"):
                tell(run)
        if run.get("state") == "FAILED":
            raise _of_run(run)
        return run

    async def reports(self) -> list[Resource]:
        """Report runs, newest first as the API lists them."""
        return await self.items("/report-runs")

    async def wait_ready(self, resource: Resource, *, timeout: Duration = WAIT_TIMEOUT) -> Resource:
        """Wait until the resource, as it was wished, is reality. Returns it as it is then."""
        path, deadline = _path_of(str(resource["id"])), Deadline(seconds(timeout))
        wanted = resource["generation"]
        while not is_ready(resource):
            if deadline.passed:
                raise DeadlineExceeded(
                    f"{resource.get('name')} is not Ready for generation {wanted}: "
                    f"{_why_not_ready(resource)}",
                    code="RESOURCE_NOT_READY",
                    hint="Reconciliation goes on by itself; ask again later.",
                )
            await asyncio.sleep(READY_POLL_SECONDS)
            resource = await self.request("GET", path)
        return resource


_COLLECTIONS = {
    "tp": "topics", "st": "streams", "prj": "projects", "cl": "clusters", "key": "api-keys",
    "org": "orgs",
}  # fmt: skip


def _path_of(object_id: str) -> str:
    collection = _COLLECTIONS.get(object_id.partition("_")[0])
    if collection is None:
        raise Invalid(f"{object_id!r} is not the id of something that becomes Ready")
    return f"/{collection}/{object_id}"


def _split(name: str) -> tuple[str, str]:
    stream, slash, topic = name.rpartition("/")
    return (stream, topic) if slash else ("", name)


def _body_of(answer: httpx2.Response) -> Resource:
    try:
        body = answer.json() if answer.content else {}
    except ValueError:
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


def _of_run(run: Resource) -> HeadraceError:
    said = run.get("error")
    detail = said if isinstance(said, dict) else {}
    return HeadraceError(
        f"Report run {run['id']} failed: {detail.get('message') or detail.get('detail') or detail}",
        code=str(detail.get("code") or "REPORT_FAILED"),
        hint="The worker's log has the whole story.",
    )


def _sync(
    call: Callable[Concatenate[_Calls, P], Coroutine[object, None, T]],
) -> Callable[Concatenate[Admin, P], T]:
    @functools.wraps(call)
    def face(self: Admin, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.io.run(call(self.calls, *args, **kwargs))

    return face


def _async(
    call: Callable[Concatenate[_Calls, P], Coroutine[object, None, T]],
) -> Callable[Concatenate[AsyncAdmin, P], Awaitable[T]]:
    @functools.wraps(call)
    async def face(self: AsyncAdmin, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.io.call(call(self.calls, *args, **kwargs))

    return face


class Admin:
    """The REST API, sync."""

    def __init__(self, settings: Settings, io: IoThread | None = None) -> None:
        self.io = io or io_thread()
        self.calls = _Calls(settings)

    request = _sync(_Calls.request)
    create_topic = _sync(_Calls.create_topic)
    topics = _sync(_Calls.topics)
    topic = _sync(_Calls.topic)
    missing_topic = _sync(_Calls.missing_topic)
    create_stream = _sync(_Calls.create_stream)
    streams = _sync(_Calls.streams)
    create_project = _sync(_Calls.create_project)
    projects = _sync(_Calls.projects)
    create_key = _sync(_Calls.create_key)
    keys = _sync(_Calls.keys)
    usage = _sync(_Calls.usage)
    run_report = _sync(_Calls.run_report)
    reports = _sync(_Calls.reports)
    wait_ready = _sync(_Calls.wait_ready)
    close = _sync(_Calls.aclose)


class AsyncAdmin:
    """The REST API, async."""

    def __init__(self, settings: Settings, io: IoThread | None = None) -> None:
        self.io = io or io_thread()
        self.calls = _Calls(settings)

    request = _async(_Calls.request)
    create_topic = _async(_Calls.create_topic)
    topics = _async(_Calls.topics)
    topic = _async(_Calls.topic)
    missing_topic = _async(_Calls.missing_topic)
    create_stream = _async(_Calls.create_stream)
    streams = _async(_Calls.streams)
    create_project = _async(_Calls.create_project)
    projects = _async(_Calls.projects)
    create_key = _async(_Calls.create_key)
    keys = _async(_Calls.keys)
    usage = _async(_Calls.usage)
    run_report = _async(_Calls.run_report)
    reports = _async(_Calls.reports)
    wait_ready = _async(_Calls.wait_ready)
    close = _async(_Calls.aclose)
