"""What is kept and what goes as calls of the REST API: legal holds and purges, for `Admin` and
`AsyncAdmin`. Thin: bodies are REST's own. Refuses to say that a hold is in force, or that records
are gone, before the API does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.errors import Conflict, DeadlineExceeded
from headrace.transport.retry import Deadline, Duration, seconds

if TYPE_CHECKING:
    from headrace.admin.admin import _Calls
    from headrace.transport.rest import Resource

WAIT_TIMEOUT = "60s"
POLL_SECONDS = 0.1


async def create_hold(
    calls: _Calls,
    topic: str,
    *,
    case: str,
    reason: str,
    partition: int | None = None,
    from_offset: int | None = None,
    wait: bool = True,
    timeout: Duration = WAIT_TIMEOUT,
) -> Resource:
    """Hold `topic`, or one `partition` of it, from `from_offset` or the log's start on. Returns
    when the hold is in force, unless `wait=False`."""
    body: dict[str, object] = {
        "topic_id": (await calls.topic(topic))["id"],
        "case_id": case,
        "reason": reason,
    }
    if partition is not None:
        body["partition"] = partition
    if from_offset is not None:
        body["from_offset"] = str(from_offset)
    made = await calls.request("POST", "/legal-holds", body=body)
    return await calls.wait_ready(made, timeout=timeout) if wait else made


async def holds(
    calls: _Calls, *, topic: str = "", case: str = "", state: str = ""
) -> list[Resource]:
    """The legal holds that the key may see, the released ones too; of a topic, a case, a state."""
    topic_id = str((await calls.topic(topic))["id"]) if topic else ""
    params = {"topic_id": topic_id, "case_id": case, "state": state}
    return await calls.items("/legal-holds", params)


async def hold(calls: _Calls, hold_id: str) -> Resource:
    """One legal hold."""
    return await calls.request("GET", f"/legal-holds/{hold_id}")


async def release_hold(
    calls: _Calls, found: Resource, *, wait: bool = True, timeout: Duration = WAIT_TIMEOUT
) -> Resource:
    """Release a hold as it was read (`found`), for ever: Conflict if it was changed since. Returns
    when no partition holds for it any more, unless `wait=False`."""
    etag = str(found.get("etag") or "")
    path = f"/legal-holds/{found['id']}"
    releasing = await calls.request("DELETE", path, if_match=etag)
    return await calls.wait_ready(releasing, timeout=timeout) if wait else releasing


async def purge_topic(
    calls: _Calls,
    found: Resource,
    before: Mapping[int, int],
    *,
    dry_run: bool = False,
    wait: bool = True,
    timeout: Duration = WAIT_TIMEOUT,
) -> Resource:
    """Delete the records of a topic, as it was read (`found`), before an offset of each partition
    in `before`. Conflict if it was changed since, or if a hold keeps some. Returns when they are
    gone, unless `wait=False`; raises what the cluster refused. `dry_run`: what would go is in
    `plan`, and nothing does."""
    partitions = [{"index": index, "before_offset": str(at)} for index, at in before.items()]
    path = f"/topics/{found['id']}"
    purged = await calls.request(
        "POST",
        f"{path}:purge",
        params={"dry_run": "true" if dry_run else ""},
        body={"partitions": partitions},
        if_match=str(found.get("etag") or ""),
    )
    if not wait or dry_run:
        return purged
    await _ended(calls, path, int(str(purged["generation"])), Deadline(seconds(timeout)))
    return await calls.wait_ready(await calls.request("GET", path), timeout=timeout)


async def _ended(calls: _Calls, path: str, generation: int, deadline: Deadline) -> None:
    """Wait for the operation of a generation of a topic. Raises what it failed with."""
    params = {"target_id": path.rpartition("/")[2]}
    while not deadline.passed:
        for operation in await calls.items("/operations", params):
            target = operation.get("target")
            if not isinstance(target, dict) or target.get("generation") != generation:
                continue
            if operation.get("state") == "FAILED":
                raise _of_operation(operation)
            if operation.get("state") in ("SUCCEEDED", "SUPERSEDED"):
                return
        await asyncio.sleep(POLL_SECONDS)
    raise DeadlineExceeded(
        "The records have not been deleted yet",
        code="RESOURCE_NOT_READY",
        hint=f"The purge continues in the background: headrace explain {params['target_id']}",
    )


def _of_operation(operation: Resource) -> Conflict:
    said = operation.get("error")
    detail = said if isinstance(said, dict) else {}
    return Conflict(
        str(detail.get("detail") or "The purge failed"), code=str(detail.get("code") or "FAILED")
    )
