"""A topic's new messages as server-sent events, for as long as somebody looks.

    id: 0:41,1:17            where a reader that comes back goes on, per partition
    event: messages | moved | refused
    data: {...}

A task a partition waits at the node; what they find goes through one bounded queue, so that a slow
reader holds the tasks up and nothing grows. A tail ends by itself after some minutes; the browser
comes back with the last id and misses nothing.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from typing import Final

from fastapi.responses import StreamingResponse
from pydantic import JsonValue as Json
from starlette.types import Receive, Scope, Send

from api.http.errors import DomainError, InvalidRequestError, RateLimitedError, problem
from api.http.resource import body_json
from api.messages.service import message_body
from api.node.messages import NodeFollower, Place
from api.node.pool import NodePool
from headrace.wire import stream_pb2

TAILS_MAX: Final = 64
# What the keys of one organization may have of them: some are left for every other.
TAILS_OF_ORGANIZATION_MAX: Final = 48
TAIL_SECONDS: Final = 300.0
QUIET_SECONDS: Final = 10.0
WAIT_MS: Final = 2000
BATCH_MESSAGES: Final = 200
BATCH_BYTES: Final = 128 << 10
QUEUE_EVENTS: Final = 4


class Tails:
    """How many tails this process serves, and whom."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def seat(self, org_id: str) -> ExitStack:
        """One of them, until it is closed. Taken while an answer can still say that there is none
        left, and before anything is waited for: of many that come at once no more get one.

        :raises RateLimitedError: there are as many as there may be.
        """
        own = self._open[org_id] >= TAILS_OF_ORGANIZATION_MAX
        if own or self._open.total() >= TAILS_MAX:
            whose = "of the organization " if own else ""
            most = TAILS_OF_ORGANIZATION_MAX if own else TAILS_MAX
            raise RateLimitedError(
                f"{most} readers {whose}follow topics through this API already.",
                code="TOO_MANY_TAILS",
                hint="`headrace consume` follows a topic at the node itself.",
                retry_after_seconds=10,
            )
        self._open[org_id] += 1
        seat = ExitStack()
        seat.callback(self._leave, org_id)
        return seat

    def _leave(self, org_id: str) -> None:
        self._open[org_id] -= 1
        if not self._open[org_id]:
            del self._open[org_id]


class TailResponse(StreamingResponse):
    """Events as they come. Frees its seat when it ends, even if no event was read."""

    def __init__(self, events: AsyncIterator[str], seat: ExitStack) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends them."""
        with self._seat:
            await super().__call__(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a partition's task found; ``next_offset`` is where it goes on, None if
    unknown."""

    name: str
    partition: int
    next_offset: int | None
    data: dict[str, Json]


def positions(last_event_id: str | None) -> dict[int, int]:
    """Where a reader that comes back goes on; what cannot be read counts as nothing."""
    found: dict[int, int] = {}
    for part in (last_event_id or "").split(","):
        partition, colon, offset = part.partition(":")
        if colon and partition.isdecimal() and offset.isdecimal() and len(offset) <= 19:
            found[int(partition)] = int(offset)
    return found


async def refuse_beyond(nodes: NodePool, place: Place, begin: dict[int, int]) -> None:
    """Refuses to go on where no log has come to, while an answer can still say so: a browser would
    come back to a refused tail for ever, with the same id.

    :raises InvalidRequestError: OFFSET_OUT_OF_RANGE, as the node says.
    """
    follower = NodeFollower(nodes, place)
    try:
        for index, offset in sorted(begin.items()):
            await follower.fetch(index, offset, messages=1, size_bytes=1, wait_ms=0)
    except InvalidRequestError:
        raise
    except DomainError:
        # Whatever else keeps the node from answering, the tail meets it and says it.
        return


async def follow(
    nodes: NodePool, place: Place, indexes: list[int], begin: dict[int, int], *, request_id: str
) -> AsyncIterator[str]:
    """The events of some partitions, from ``begin`` or from now on, as they go over the wire."""
    follower = NodeFollower(nodes, place)
    async with aclosing(_events(follower, indexes, begin, request_id)) as events:
        at = dict(begin)
        yield "retry: 1000\n\n"
        async for event in events:
            if event is None:
                yield ": quiet\n\n"
                continue
            if event.next_offset is not None:
                at[event.partition] = event.next_offset
            yield _wire(event, at)
            if event.name == "refused":
                return


async def _events(
    follower: NodeFollower, indexes: list[int], begin: dict[int, int], request_id: str
) -> AsyncGenerator[Event | None, None]:
    queue: asyncio.Queue[Event] = asyncio.Queue(QUEUE_EVENTS)
    deadline = asyncio.get_running_loop().time() + TAIL_SECONDS
    tasks = [
        asyncio.ensure_future(_partition(follower, index, begin.get(index), queue, request_id))
        for index in indexes
    ]
    try:
        while asyncio.get_running_loop().time() < deadline:
            try:
                yield await asyncio.wait_for(queue.get(), QUIET_SECONDS)
            except TimeoutError:
                yield None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _partition(
    follower: NodeFollower,
    index: int,
    begin: int | None,
    queue: asyncio.Queue[Event],
    request_id: str,
) -> None:
    """Follows one partition until it is cancelled or the node says no."""
    offset = begin
    try:
        if offset is None:
            offset = await _end(follower, index)
        await queue.put(Event("moved", index, offset, {"partition": index, "offset": str(offset)}))
        while True:
            reply = await follower.fetch(
                index, offset, messages=BATCH_MESSAGES, size_bytes=BATCH_BYTES, wait_ms=WAIT_MS
            )
            if reply.status == stream_pb2.TRUNCATED:
                offset = reply.log_start
                data: dict[str, Json] = {"partition": index, "offset": str(offset)}
                await queue.put(Event("moved", index, offset, data))
                continue
            offset = max(reply.next_offset, offset)
            if reply.messages:
                bodies = [message_body(index, each) for each in reply.messages]
                found: list[Json] = [body_json(each) for each in bodies]
                await queue.put(Event("messages", index, offset, {"messages": found}))
    except DomainError as error:
        await queue.put(Event("refused", index, offset, problem(error, request_id)))


async def _end(follower: NodeFollower, index: int) -> int:
    reply = await follower.fetch(index, 0, messages=1, size_bytes=1, wait_ms=0)
    return reply.high_watermark


def _wire(event: Event, at: dict[int, int]) -> str:
    place = ",".join(f"{partition}:{offset}" for partition, offset in sorted(at.items()))
    return f"id: {place}\nevent: {event.name}\ndata: {json.dumps(event.data)}\n\n"
