"""A client of Consume, one open stream each, for the tests of engines and of nodes.

Owns the requests of its stream; takes replies only when it is told to.
"""

import queue

import grpc

from headrace import codec
from headrace.wire import stream_pb2 as wire
from tests.support.builders.seeds import place_seed
from tests.support.clients.grpc_client import TOPIC, VIEWER, WAIT_S, bearer

CONSUME = "/headrace.stream.v1.Stream/Consume"
PLENTY = 1 << 40


class Reader:
    """One open Consume and its replies."""

    def __init__(self, channel: grpc.Channel, key: str = VIEWER, /, **fields: int) -> None:
        """`key`: a public id of grpc_client.py, or a whole token."""
        self._requests: queue.SimpleQueue[wire.ConsumeRequest | None] = queue.SimpleQueue()
        begin = {"topic": TOPIC, "created_revision": 7, "credit": PLENTY, "partition": 0, **fields}
        self.seed = place_seed(begin["topic"], begin["created_revision"], begin["partition"])
        self.send(wire.ConsumeRequest(begin=wire.ConsumeBegin(**begin)))
        call = channel.stream_stream(
            CONSUME, wire.ConsumeRequest.SerializeToString, wire.ConsumeReply.FromString
        )
        sent = (("authorization", f"Bearer {key}"),) if key.startswith("hr_") else bearer(key)
        self.call = call(iter(self._requests.get, None), metadata=sent, timeout=WAIT_S)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.call.cancel()
        self.half_close()

    def send(self, message: wire.ConsumeRequest) -> None:
        self._requests.put(message)

    def credit(self, size: int) -> None:
        self.send(wire.ConsumeRequest(credit=size))

    def half_close(self) -> None:
        self._requests.put(None)

    def next(self) -> wire.FetchReply:
        reply = next(self.call)
        assert not reply.HasField("error"), reply.error.code
        return reply.fetch

    def values(self) -> list[bytes | None]:
        """Of the next reply, which has some."""
        found = self.next()
        assert found.status == wire.OK
        return self.values_of(found)

    def values_of(self, reply: wire.FetchReply) -> list[bytes | None]:
        found = codec.batches(reply.batches, self.seed)
        return [value for stored in found for value in codec.decode(stored).values]

    def read(self, count: int) -> list[bytes | None]:
        """So many values from here on; what says that the reader has caught up is passed over."""
        found: list[bytes | None] = []
        while len(found) < count:
            found += self.values_of(self.next())
        return found

    def error(self) -> str:
        """The code of the next error, which ends the stream with status OK."""
        replies = list(self.call)
        assert self.call.code() == grpc.StatusCode.OK
        assert [reply.HasField("error") for reply in replies][-1:] == [True]
        assert replies[-1].error.hint
        return replies[-1].error.code
