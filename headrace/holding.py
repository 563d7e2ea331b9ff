"""Legal holds as calls of the REST API: what `Admin` and `AsyncAdmin` do about them. Thin: bodies
are REST's own. Refuses to say that a hold is in force before the API does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.retry import Duration

if TYPE_CHECKING:
    from headrace.admin import _Calls
    from headrace.rest import Resource

WAIT_TIMEOUT = "60s"


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
