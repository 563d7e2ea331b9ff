"""The REST API as Python calls: organizations, projects, streams, topics, keys, holds, nodes,
usage, invoices, report runs. Thin: bodies are REST's own.

`Admin` and `AsyncAdmin` offer the same calls (`_Calls`, on the I/O loop). A creation returns as
soon as the spec is stored; `wait_ready` waits until it is applied. Names are looked up, never
guessed: one that fits several objects is refused.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Concatenate, ParamSpec, TypeVar

from headrace.admin import legal_holds
from headrace.admin.readiness import (
    is_observed,
    is_ready,
    is_unreconciled,
    refuse_unreconciled,
    why_not_ready,
)
from headrace.admin.resources import Kind, kind_of, path_of
from headrace.errors import (
    Conflict,
    DeadlineExceeded,
    HeadraceError,
    Invalid,
    NotFound,
    TopicNotFound,
)
from headrace.settings import Settings
from headrace.transport.io_thread import IoThread, io_thread
from headrace.transport.rest import PAGE_SIZE, Json, Resource, Rest
from headrace.transport.retry import Deadline, Duration, seconds

WAIT_TIMEOUT = "60s"
_INVOICE = "inv_"
_BY_PROJECT = "Use its id, or pass --project (project=)."
READY_POLL_SECONDS = 0.1
RUN_POLL_SECONDS = 0.2

P = ParamSpec("P")
T = TypeVar("T")


class _Calls(Rest):
    """Every call once. Runs on the I/O loop."""

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
        """Create `topic` or `stream/topic`; returns when it is Ready, unless `wait=False` or it is
        created paused or unmanaged."""
        stream, topic = _split(name)
        desired = {**(spec or {}), **({"partitions": partitions} if partitions is not None else {})}
        body: dict[str, object] = {"name": topic, "spec": desired}
        if stream:
            body["stream"] = stream
        if project := await self.project_id():
            body["project_id"] = project
        try:
            made = await self.request("POST", "/topics", body=body)
        except Conflict as error:
            if not (if_not_exists and error.code == "NAME_TAKEN"):
                raise
            made = await self.topic(name)
        if not wait or is_unreconciled(desired):
            return made
        return await self.wait_ready(made, timeout=timeout)

    async def topics(self, *, stream: str = "") -> list[Resource]:
        """The topics that the key may see."""
        return await self.items(
            "/topics", {"stream": stream, "project_id": await self.project_id()}
        )

    async def topic(self, name: str, *, live: bool = False) -> Resource:
        """One topic by `topic`, `stream/topic` or id. With `live` its partitions carry the figures
        of now; otherwise those of their `observed_at`."""
        query = {"live": "true"} if live else {}
        if name.startswith("tp_"):
            return await self.request("GET", f"/topics/{name}", params=query)
        stream, topic = _split(name)
        params = {
            "name": topic,
            "stream": stream or "default",
            "project_id": await self.project_id(),
        }
        found = await self.items("/topics", params)
        if not found:
            raise await self.missing_topic(name)
        one = _only(found, "topic", name)
        return await self.request("GET", f"/topics/{one['id']}", params=query)

    async def missing_topic(self, name: str) -> TopicNotFound:
        """The error for a topic that does not exist, with the nearest name that does. Raises
        nothing: without an answer of the API there is no suggestion."""
        try:
            params = {"project_id": await self.project_id(), "page_size": str(PAGE_SIZE)}
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

    async def alter_topic(
        self,
        name: str,
        spec: Mapping[str, object],
        *,
        dry_run: bool = False,
        wait: bool = True,
        timeout: Duration = WAIT_TIMEOUT,
    ) -> Resource:
        """Change members of a topic's spec; None takes a member back to its default. Returns when
        the change is reality, unless `wait=False`; of a change that pauses the topic or makes it
        unmanaged, when no worker is at it any more. `dry_run`: nothing changes; what the change
        lets go is in `plan`, if anything. Raises Conflict if the topic was changed by
        somebody else since it was read, or if no worker applies the change: TOPIC_PAUSED,
        TOPIC_UNMANAGED."""
        found = await self.topic(name)
        path, etag = path_of(str(found["id"])), str(found.get("etag") or "")
        params = {"dry_run": "true" if dry_run else ""}
        altered = await self.request(
            "PATCH", path, params=params, body={"spec": spec}, if_match=etag
        )
        if dry_run:
            return altered
        if wait and not is_unreconciled(spec):
            return await self.wait_ready(altered, timeout=timeout)
        # Nothing else is waited for than that no worker is at it any more.
        return await self._wait_until(altered, is_observed, timeout) if wait else altered

    async def objects(self, kind: Kind, *, name: str = "") -> list[Resource]:
        """Every object of a kind that the key may see; `name`: only those of this name."""
        row = kind_of(kind)
        if kind == "node":
            found: list[Resource] = []
            for cluster in await self.items("/clusters"):
                found += await self.items(f"/clusters/{cluster['id']}/nodes")
            return [node for node in found if not name or node.get("name") == name]
        params = {"name": name}
        if row.in_project:
            params["project_id"] = await self.project_id()
        return await self.items(f"/{row.collection}", params)

    async def object(self, kind: Kind, name: str) -> Resource:
        """One object by id or name. Raises NotFound; Invalid if the name fits several."""
        if kind == "topic":
            return await self.topic(name)
        row = kind_of(kind)
        if name.startswith(row.prefix) and kind != "node":
            return await self.request("GET", f"/{row.collection}/{name}")
        by_id = kind == "node" and name.startswith(row.prefix)
        found = await self.objects(kind, name="" if by_id else name)
        if by_id:
            found = [node for node in found if node["id"] == name]
        if not found:
            raise NotFound(
                f'The {row.word} "{name}" does not exist',
                hint=f"List them with: headrace {kind} list",
            )
        return _only(found, row.word, name)

    async def delete(
        self,
        kind: Kind,
        found: Resource,
        *,
        cascade: bool = False,
        force_reason: str = "",
        confirm_deletions: int = 0,
        wait: bool = True,
        timeout: Duration = WAIT_TIMEOUT,
    ) -> Resource:
        """Delete an object as it was read (`found`): Conflict if it was changed since. Returns
        when it is gone and its name is free, unless `wait=False`.

        `cascade`: with what is inside. `force_reason`: give up partitions that cannot answer.
        `confirm_deletions`: how many topics go, where DELETION_BREAKER asked for it.
        """
        path = path_of(str(found["id"]))
        params = {
            "cascade": "true" if cascade else "",
            "force": "true" if force_reason else "",
            "reason": force_reason,
            "confirm_deletions": str(confirm_deletions) if confirm_deletions else "",
        }
        etag = str(found.get("etag") or "")
        deleting = await self.request("DELETE", path, params=params, if_match=etag)
        if wait and kind != "key":
            await self._wait_gone(path, deleting, Deadline(seconds(timeout)))
        return deleting

    async def _wait_gone(self, path: str, resource: Resource, deadline: Deadline) -> None:
        while not deadline.passed:
            try:
                resource = await self.request("GET", path)
            except NotFound:
                return
            await asyncio.sleep(READY_POLL_SECONDS)
        raise DeadlineExceeded(
            f"{resource.get('name')} is still being deleted: {why_not_ready(resource)}",
            code="RESOURCE_NOT_READY",
            hint=f"Deletion continues in the background: headrace explain {resource.get('id')}",
        )

    async def explain(self, name: str) -> Resource:
        """Why an object (an id, or kind/name) is as it is: plans, conditions, operations."""
        return await self.request("GET", "/explain", params={"object": name})

    async def create_organization(self, name: str) -> Resource:
        """Create an organization; operators only."""
        return await self.request("POST", "/orgs", body={"name": name})

    async def create_stream(self, name: str) -> Resource:
        """Create a stream, a namespace of topics."""
        body: dict[str, object] = {"name": name}
        if project := await self.project_id():
            body["project_id"] = project
        return await self.request("POST", "/streams", body=body)

    async def streams(self) -> list[Resource]:
        """The streams that the key may see."""
        return await self.items("/streams", {"project_id": await self.project_id()})

    async def create_project(self, name: str) -> Resource:
        """Create a project; a stream `default` comes with it."""
        return await self.request("POST", "/projects", body={"name": name})

    async def projects(self) -> list[Resource]:
        """The projects that the key may see."""
        return await self.items("/projects")

    async def create_key(
        self, name: str, *, role: str = "editor", organization: str = ""
    ) -> Resource:
        """Create an API key; `secret` in the answer is the token, shown this once. `organization`
        is a name or an id: operators only; default: the key's own."""
        body: dict[str, object] = {"name": name, "spec": {"role": role}}
        if organization:
            body["organization_id"] = str((await self.object("org", organization))["id"])
        if project := await self.project_id():
            body["project_id"] = project
        return await self.request("POST", "/api-keys", body=body)

    async def keys(self) -> list[Resource]:
        """The API keys, without secrets."""
        return await self.items("/api-keys", {"project_id": await self.project_id()})

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

    async def invoices(self) -> list[Resource]:
        """The invoices of the organization, for an operator of all; without their lines."""
        return await self.items("/invoices")

    async def invoice(self, name: str) -> Resource:
        """One invoice with its lines, by id or by period, like 2026-11: of several organizations
        that of the key's own."""
        if not name.startswith(_INVOICE):
            found = [one for one in await self.invoices() if one.get("period") == name]
            if not found:
                raise NotFound(
                    f"Invoice {name} does not exist",
                    code="NOT_FOUND",
                    hint="List invoices with `headrace invoice list`. Usage reports create them.",
                )
            hint = "Use an id from `headrace invoice list`."
            own = [one for one in found if one.get("own") is True]
            name = str(_only(own or found, "invoice", name, hint)["id"])
        return await self.request("GET", f"/invoices/{name}")

    async def retention(self, *, topic: str = "", cause: str = "", violation: str = "") -> Resource:
        """What was deleted and will be, by the current retention run: every line in `items`, sums
        in `summary`; of a named topic also `topic`.

        `topic` is a name or an id; `cause` is time, size or purge.
        """
        topic_id = str((await self.topic(topic))["id"]) if topic else ""
        params = {"topic_id": topic_id, "cause": cause, "violation": violation}
        params = {name: value for name, value in params.items() if value}
        first = await self.request("GET", "/reports/retention", params=params)
        if first.pop("next_page_token", None):
            every: list[Json] = [*await self.items("/reports/retention", params)]
            first["items"] = every
        return first

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
                    hint="It continues in the background. Check it with `headrace report list`.",
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
        return await self._wait_until(resource, is_ready, timeout)

    async def _wait_until(
        self, resource: Resource, done: Callable[[Resource], bool], timeout: Duration
    ) -> Resource:
        path, deadline = path_of(str(resource["id"])), Deadline(seconds(timeout))
        wanted = resource["generation"]
        while not done(resource):
            refuse_unreconciled(resource)
            if deadline.passed:
                raise DeadlineExceeded(
                    f"{resource.get('name') or resource['id']} is not Ready for generation "
                    f"{wanted}: {why_not_ready(resource)}",
                    code="RESOURCE_NOT_READY",
                    hint="Reconciliation continues in the background. Check again later.",
                )
            await asyncio.sleep(READY_POLL_SECONDS)
            resource = await self.request("GET", path)
        return resource


def _only(found: list[Resource], word: str, name: str, hint: str = _BY_PROJECT) -> Resource:
    """The one object of a name."""
    if len(found) > 1:
        ids = ", ".join(str(each["id"]) for each in found[:5])
        raise Invalid(
            f'"{name}" is the name of {len(found)} {word}s: {ids}',
            code="AMBIGUOUS_NAME",
            hint=hint,
        )
    return found[0]


def _split(name: str) -> tuple[str, str]:
    stream, slash, topic = name.rpartition("/")
    return (stream, topic) if slash else ("", name)


def _of_run(run: Resource) -> HeadraceError:
    said = run.get("error")
    detail = said if isinstance(said, dict) else {}
    return HeadraceError(
        f"Report run {run['id']} failed: {detail.get('message') or detail.get('detail') or detail}",
        code=str(detail.get("code") or "REPORT_FAILED"),
        hint=str(detail.get("hint") or "See the log of the worker."),
    )


def _sync(
    call: Callable[Concatenate[_Calls, P], Coroutine[object, None, T]],
) -> Callable[Concatenate[Admin, P], T]:
    @functools.wraps(call)
    def method(self: Admin, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.io.run(call(self.calls, *args, **kwargs))

    return method


def _async(
    call: Callable[Concatenate[_Calls, P], Coroutine[object, None, T]],
) -> Callable[Concatenate[AsyncAdmin, P], Awaitable[T]]:
    @functools.wraps(call)
    async def method(self: AsyncAdmin, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.io.call(call(self.calls, *args, **kwargs))

    return method


class Admin:
    """The REST API, sync."""

    def __init__(self, settings: Settings, io: IoThread | None = None) -> None:
        self.io = io or io_thread()
        self.calls = _Calls(settings)

    request = _sync(_Calls.request)
    items = _sync(_Calls.items)
    create_topic = _sync(_Calls.create_topic)
    topics = _sync(_Calls.topics)
    topic = _sync(_Calls.topic)
    missing_topic = _sync(_Calls.missing_topic)
    alter_topic = _sync(_Calls.alter_topic)
    objects = _sync(_Calls.objects)
    object = _sync(_Calls.object)
    delete = _sync(_Calls.delete)
    explain = _sync(_Calls.explain)
    create_organization = _sync(_Calls.create_organization)
    create_stream = _sync(_Calls.create_stream)
    streams = _sync(_Calls.streams)
    create_project = _sync(_Calls.create_project)
    projects = _sync(_Calls.projects)
    create_key = _sync(_Calls.create_key)
    keys = _sync(_Calls.keys)
    create_hold = _sync(legal_holds.create_hold)
    holds = _sync(legal_holds.holds)
    hold = _sync(legal_holds.hold)
    release_hold = _sync(legal_holds.release_hold)
    purge_topic = _sync(legal_holds.purge_topic)
    usage = _sync(_Calls.usage)
    invoices = _sync(_Calls.invoices)
    invoice = _sync(_Calls.invoice)
    retention = _sync(_Calls.retention)
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
    items = _async(_Calls.items)
    create_topic = _async(_Calls.create_topic)
    topics = _async(_Calls.topics)
    topic = _async(_Calls.topic)
    missing_topic = _async(_Calls.missing_topic)
    alter_topic = _async(_Calls.alter_topic)
    objects = _async(_Calls.objects)
    object = _async(_Calls.object)
    delete = _async(_Calls.delete)
    explain = _async(_Calls.explain)
    create_organization = _async(_Calls.create_organization)
    create_stream = _async(_Calls.create_stream)
    streams = _async(_Calls.streams)
    create_project = _async(_Calls.create_project)
    projects = _async(_Calls.projects)
    create_key = _async(_Calls.create_key)
    keys = _async(_Calls.keys)
    create_hold = _async(legal_holds.create_hold)
    holds = _async(legal_holds.holds)
    hold = _async(legal_holds.hold)
    release_hold = _async(legal_holds.release_hold)
    purge_topic = _async(legal_holds.purge_topic)
    usage = _async(_Calls.usage)
    invoices = _async(_Calls.invoices)
    invoice = _async(_Calls.invoice)
    retention = _async(_Calls.retention)
    run_report = _async(_Calls.run_report)
    reports = _async(_Calls.reports)
    wait_ready = _async(_Calls.wait_ready)
    close = _async(_Calls.aclose)
