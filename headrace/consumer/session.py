"""One member's session with its consumer group, on the I/O loop: no handler delays a heartbeat.

    Join --> Joined --> Assignment .. Assignment --> ended, or the stream breaks --> Join again
             Heartbeat every heartbeat_ms            with the same member name
             Released once what was revoked is committed

It owns the stream and its repetition; what an assignment means is the business of the caller that
passes `assigned`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import grpc.aio

from headrace.errors import HeadraceError, Kind, Unreachable
from headrace.transport.connection import GROUP_SESSION, Connection
from headrace.transport.grpc_errors import error_of, error_of_call
from headrace.transport.io_thread import watch
from headrace.transport.retry import Backoff
from headrace.wire import stream_pb2 as wire

logger = logging.getLogger("headrace")

JOIN_SECONDS = 10.0
HEARTBEAT_SECONDS = 2.0
LEAVE_TIMEOUT = 2.0


def member_name() -> str:
    """A name for this member that is stable over reconnects and unlike any other."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(4).hex()}"


class Membership:
    """Keeps the member in its group until `leave`."""

    def __init__(
        self,
        connection: Connection,
        *,
        group: str,
        topics: Sequence[str],
        member: str,
        timeout: float,
        assigned: Callable[[int, wire.Assignment], Awaitable[None]],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._connection = connection
        self._join = wire.Join(
            project=connection.settings.project,
            group=group,
            topics=topics,
            member=member,
            timeout_ms=int(timeout * 1000),
        )
        self._assigned = assigned
        self._failed = failed
        self._outgoing: asyncio.Queue[wire.SessionRequest | None] = asyncio.Queue()
        self._heartbeat = HEARTBEAT_SECONDS
        self._number = 0
        self._leaving = False
        self._task = asyncio.ensure_future(self._run())
        watch(self._task, failed)

    def release(self, partitions: Sequence[wire.Assigned]) -> None:
        """Say that these are no longer read and committed as far as they will be."""
        self._send(wire.SessionRequest(released=wire.Released(partitions=partitions)))

    async def leave(self) -> None:
        """Leave the group; gives up waiting for the node's goodbye after two seconds."""
        self._leaving = True
        if self._number:
            self._send(wire.SessionRequest(leave=wire.Leave()))
            self._outgoing.put_nowait(None)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._task), LEAVE_TIMEOUT)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def _send(self, request: wire.SessionRequest) -> None:
        self._outgoing.put_nowait(request)

    async def _run(self) -> None:
        backoff = Backoff()
        addresses: list[str] = []
        while not self._leaving:
            addresses = addresses or self._connection.metadata.addresses()
            address = addresses.pop(0)
            try:
                await self._session(address, backoff)
                error: HeadraceError = Unreachable(f"The node at {address} ended the session")
            except grpc.aio.AioRpcError as failure:
                error = error_of_call(failure, address)
            except HeadraceError as failure:
                error = failure
            if self._left():
                return
            if error.kind is Kind.TERMINAL:
                self._failed(error)
                return
            logger.debug("session of %s: %s; joining again", self._join.group, error.message)
            await asyncio.sleep(backoff.pause(error.retry_after))

    def _left(self) -> bool:
        return self._leaving

    async def _session(self, address: str, backoff: Backoff) -> None:
        # Requests of an earlier session mean nothing to this one.
        outgoing = self._outgoing = asyncio.Queue()
        self._send(wire.SessionRequest(join=self._join))
        method = self._connection.channel(address).stream_stream(
            GROUP_SESSION,
            request_serializer=wire.SessionRequest.SerializeToString,
            response_deserializer=wire.SessionEvent.FromString,
        )
        call = method(_requests(outgoing), metadata=self._connection.authorization)
        beating: asyncio.Task[None] | None = None
        try:
            # Without a timeout the first answer might never come, and no other node would be tried.
            async with asyncio.timeout(JOIN_SECONDS) as joining:
                async for event in call:
                    joining.reschedule(None)
                    which = event.WhichOneof("message")
                    if which == "joined":
                        self._number = event.joined.group
                        self._heartbeat = event.joined.heartbeat_ms / 1000 or HEARTBEAT_SECONDS
                        if beating is None:
                            beating = asyncio.ensure_future(self._beat())
                        backoff.reset()
                    elif which == "assignment":
                        await self._assigned(self._number, event.assignment)
                    elif which == "ended":
                        raise error_of(event.ended)
        except TimeoutError:
            late = f"The node at {address} did not answer within {JOIN_SECONDS} s"
            raise Unreachable(late) from None
        finally:
            self._number = 0
            if beating is not None:
                beating.cancel()
            call.cancel()
            # gRPC leaves the writer of a call that ended by itself waiting for the next request.
            outgoing.put_nowait(None)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat)
            self._send(wire.SessionRequest(heartbeat=wire.Heartbeat()))


async def _requests(
    outgoing: asyncio.Queue[wire.SessionRequest | None],
) -> AsyncIterator[wire.SessionRequest]:
    while (request := await outgoing.get()) is not None:
        yield request
