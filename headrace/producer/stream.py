"""One ProduceStream call to one node: requests out, answers in, and how it ended.

It decides nothing: its owner gets every answer, and at the end which batches have none and
whether they were written. Runs on the I/O loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from google.protobuf.message import Message

from headrace.errors import HeadraceError, Unreachable
from headrace.producer.accumulator import Batch
from headrace.transport.connection import PRODUCE_STREAM, Connection, Route
from headrace.transport.grpc_errors import error_of_call
from headrace.wire import stream_pb2 as wire

if TYPE_CHECKING:
    from headrace.producer.sender import Partition, Sender

logger = logging.getLogger("headrace")

CONNECT_TIMEOUT = 2.0


class ProduceStream:
    """One ProduceStream to one node, opened when there is something to send; it dies at the first
    failure."""

    def __init__(self, connection: Connection, address: str, owner: Sender) -> None:
        self.address = address
        self._connection = connection
        self._owner = owner
        self._outgoing: asyncio.Queue[tuple[Partition, Batch, wire.ProduceRequest]] = (
            asyncio.Queue()
        )
        self._unanswered: dict[int, tuple[Partition, Batch]] = {}
        self._written: set[int] = set()
        self._request = 0
        self.alive = True
        self.task = asyncio.ensure_future(self._run())

    def send(self, partition: Partition, batch: Batch, route: Route) -> None:
        """Queue one numbered batch; answers go to the owner."""
        self._request += 1
        assert batch.encoded is not None
        request = wire.ProduceRequest(
            topic=route.number,
            created_revision=route.created_revision,
            partition=partition.name.partition,
            batch=batch.encoded,
            request=self._request,
        )
        self._unanswered[self._request] = (partition, batch)
        self._outgoing.put_nowait((partition, batch, request))

    async def _run(self) -> None:
        error: HeadraceError
        try:
            await self._serve()
            error = Unreachable(f"The node at {self.address} ended the stream")
        except grpc.aio.AioRpcError as failure:
            error = error_of_call(failure, self.address)
        except HeadraceError as failure:
            error = failure
        except grpc.aio.UsageError:
            error = Unreachable(f"The channel to {self.address} is closed")
        except Exception as failure:
            # Whatever it was, the batches are not to hang until their deadline.
            logger.warning("the stream to %s failed", self.address, exc_info=failure)
            error = Unreachable(f"The stream to {self.address} failed: {failure!r}")
        self.alive = False
        unanswered = [(p, b, r in self._written) for r, (p, b) in self._unanswered.items()]
        self._owner.stream_lost(self.address, unanswered, error)

    async def _serve(self) -> None:
        channel = self._connection.channel(self.address)
        try:
            await asyncio.wait_for(channel.channel_ready(), CONNECT_TIMEOUT)
        except TimeoutError:
            raise Unreachable(f"No answer from the node at {self.address}") from None
        method = channel.stream_stream(
            PRODUCE_STREAM,
            request_serializer=wire.ProduceRequest.SerializeToString,
            response_deserializer=wire.ProduceReply.FromString,
        )
        call = method(metadata=self._connection.authorization)
        writer = asyncio.ensure_future(self._write(call))
        try:
            while True:
                reply = await call.read()
                if reply is grpc.aio.EOF:
                    await _raise_status(call)
                    return
                if not isinstance(reply, wire.ProduceReply):
                    # gRPC hands out None for bytes that are no such message.
                    raise Unreachable(f"An answer of the node at {self.address} cannot be read")
                found = self._unanswered.pop(reply.request, None)
                self._written.discard(reply.request)
                if found is not None:
                    self._owner.answered(*found, reply)
        finally:
            writer.cancel()
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer

    async def _write(self, call: grpc.aio.StreamStreamCall[Message, wire.ProduceReply]) -> None:
        # A failed write ends the call; the reader then gets the reason.
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            while True:
                _, _, request = await self._outgoing.get()
                self._written.add(request.request)
                await call.write(request)

    async def close(self) -> None:
        """End the stream; nothing may be unanswered that anybody waits for."""
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


async def _raise_status(call: grpc.aio.StreamStreamCall[Message, wire.ProduceReply]) -> None:
    """The status of an ended call, raised unless it is OK."""
    code, details = await call.code(), await call.details()
    if code is not grpc.StatusCode.OK:
        initial, trailing = await call.initial_metadata(), await call.trailing_metadata()
        raise grpc.aio.AioRpcError(code, initial, trailing, details=details)
