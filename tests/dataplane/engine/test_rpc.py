"""The bridge over a real engine: handlers of our own behind it, grpcio in front of it."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import grpc
import pytest

from dataplane.engine.frames import Caller
from dataplane.engine.ring import Ring
from dataplane.engine.rpc import (
    CALLS_MAX,
    SEND_WINDOW_BYTES,
    Access,
    Bridge,
    Call,
    Method,
    Stream,
    bidirectional,
    unary,
)
from dataplane.errors import Refused
from dataplane.metadata.replica import MetadataReplica
from headrace.wire import stream_pb2
from native.engine import Engine, EngineConfig
from tests.support.processes.node_process import refusal, token
from tests.support.processes.platform import wait_until

NODE_KEY, NODE_SHA256 = token("node", "nodekey001", "node")
AUTHORIZATION = (("authorization", f"Bearer {NODE_KEY}"),)
MESSAGE_BYTES = 64 * 1024
FEW_CALLS = 8

UnaryMethod: TypeAlias = "grpc.UnaryUnaryMultiCallable[bytes, bytes]"
StreamMethod: TypeAlias = "grpc.StreamStreamMultiCallable[bytes, bytes]"


class Handlers:
    """What the test methods do, and what was seen of them."""

    def __init__(self) -> None:
        self.callers: list[Caller] = []
        self.cancelled = threading.Event()
        self.started = threading.Event()
        self.sent = 0
        self.received = 0

    async def echo(self, call: Call, request: stream_pb2.Assigned) -> stream_pb2.Assigned:
        """The same message."""
        self.callers.append(call.caller)
        return request

    async def fail(self, call: Call, request: stream_pb2.Assigned) -> stream_pb2.Assigned:
        """A defect."""
        raise KeyError("a secret of the machine")

    async def refuse(self, call: Call, request: stream_pb2.Assigned) -> stream_pb2.Assigned:
        """A refusal."""
        raise Refused("GROUP_NOT_FOUND", "no such group", hint="look again")

    async def hang(self, call: Call, request: stream_pb2.Assigned) -> stream_pb2.Assigned:
        """Never answers."""
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return request

    async def own_timeout(self, call: Call, request: stream_pb2.Assigned) -> stream_pb2.Assigned:
        """A timeout of the handler's own is a defect, not the call's deadline."""
        raise TimeoutError

    async def double(self, stream: Stream[stream_pb2.Assigned]) -> None:
        """Each number doubled, until the client ends."""
        while (request := await stream.receive()) is not None:
            self.received += 1
            await stream.send(stream_pb2.Assigned(topic=request.topic * 2))

    async def flood(self, stream: Stream[stream_pb2.Assigned]) -> None:
        """More than the client reads."""
        for _ in range(1000):
            await stream.send(stream_pb2.Assigned(name="x" * MESSAGE_BYTES))
            self.sent += 1

    def methods(self) -> dict[str, Method]:
        """The registry under test."""
        message = stream_pb2.Assigned
        return {
            "/test/Echo": unary(message, self.echo, access=Access.ANY_KEY),
            "/test/Fail": unary(message, self.fail, access=Access.ANY_KEY),
            "/test/Refuse": unary(message, self.refuse, access=Access.ANY_KEY),
            "/test/Hang": unary(message, self.hang, access=Access.ANY_KEY),
            "/test/OwnTimeout": unary(message, self.own_timeout, access=Access.ANY_KEY),
            "/test/Double": bidirectional(message, self.double, access=Access.ANY_KEY),
            "/test/Flood": bidirectional(message, self.flood, access=Access.ANY_KEY),
        }


class Still:
    """Has a number stopped moving? True once it was the same for five looks."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read
        self._seen: list[int] = []

    def __call__(self) -> bool:
        self._seen = [*self._seen[-4:], self._read()]
        return len(self._seen) == 5 and len(set(self._seen)) == 1


class Served:
    """An engine with a bridge, its loop on a thread, a channel in front."""

    def __init__(self, folder: Path, calls_max: int = CALLS_MAX) -> None:
        self.handlers = Handlers()
        self._calls_max = calls_max
        self.bridge: Bridge | None = None
        self._engine = Engine(
            EngineConfig(
                data_path=folder,
                cluster_id="cl_test",
                node_id="nd_test",
                admin_key_id="nodekey001",
                admin_sha256=NODE_SHA256,
                journal_bytes=64 * 1024 * 1024,
            )
        )
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._ready.wait(120)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self._engine.port}")

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        ring = Ring(self._engine)
        replica = MetadataReplica(ring, lambda error: None)
        async with asyncio.TaskGroup() as tasks:
            self.bridge = Bridge(ring, self.handlers.methods(), tasks, calls_max=self._calls_max)
            replica.start()
            self._engine.start()
            ring.open(self._loop)
            await replica.recovered.wait()
            self._ready.set()
            await self._end.wait()
            await self.bridge.drain(0.1)
            await asyncio.to_thread(self._engine.stop, 2000)
            ring.close()
            replica.stop()

    def close(self) -> None:
        """End everything."""
        self.channel.close()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._engine.close()

    def unary(self, name: str) -> Callable[..., bytes]:
        """A unary method by name, bytes in and out."""
        method: Callable[..., bytes] = self.channel.unary_unary(f"/test/{name}")
        return method

    def calls_count(self) -> int:
        """Calls the bridge knows of."""
        assert self.bridge is not None
        return self.bridge.calls_count()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One engine for all tests of this file."""
    running = Served(tmp_path_factory.mktemp("engine"))
    try:
        yield running
    finally:
        running.close()


REQUEST = stream_pb2.Assigned(topic=21, name="hello").SerializeToString()


def test_a_unary_call_is_answered_and_the_caller_is_known(served: Served) -> None:
    assert served.unary("Echo")(REQUEST, metadata=AUTHORIZATION, timeout=120) == REQUEST
    caller = served.handlers.callers[-1]
    assert (caller.principal, caller.key_id) == (1, "nodekey001")


def test_many_calls_at_once_get_their_own_answers(served: Served) -> None:
    method: UnaryMethod = served.channel.unary_unary("/test/Echo")
    requests = [stream_pb2.Assigned(topic=i).SerializeToString() for i in range(500)]
    futures = [method.future(r, metadata=AUTHORIZATION, timeout=120) for r in requests]
    assert [future.result() for future in futures] == requests
    wait_until(lambda: served.calls_count() == 0, "every call has ended")


def test_a_defect_is_internal_with_a_request_id_and_without_its_story(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        served.unary("Fail")(REQUEST, metadata=AUTHORIZATION, timeout=120)
    code, error = refusal(caught.value)
    assert (code, error.code) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "secret" not in error.message
    request_id = error.message.split("request ")[1].rstrip(")")
    told = [record for record in caplog.records if request_id in record.getMessage()]
    assert len(told) == 1
    assert "a secret of the machine" in str(told[0].exc_info)


def test_a_refusal_arrives_whole(served: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        served.unary("Refuse")(REQUEST, metadata=AUTHORIZATION, timeout=120)
    code, error = refusal(caught.value)
    assert (code, error.code, error.hint) == (
        grpc.StatusCode.NOT_FOUND,
        "GROUP_NOT_FOUND",
        "look again",
    )
    assert caught.value.details() == "no such group"


def test_a_handlers_own_timeout_is_a_defect(served: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        served.unary("OwnTimeout")(REQUEST, metadata=AUTHORIZATION, timeout=120)
    assert caught.value.code() == grpc.StatusCode.INTERNAL


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Served]:
    """A host with few places."""
    found = Served(tmp_path, FEW_CALLS)
    yield found
    found.close()


def test_one_key_takes_three_quarters_of_the_places_and_no_more(narrow: Served) -> None:
    method: UnaryMethod = narrow.channel.unary_unary("/test/Hang")
    share = FEW_CALLS * 3 // 4
    held = [method.future(REQUEST, metadata=AUTHORIZATION, timeout=120) for _ in range(share)]
    wait_until(lambda: narrow.calls_count() == share, "its share is taken")
    with pytest.raises(grpc.RpcError) as caught:
        narrow.unary("Echo")(REQUEST, metadata=AUTHORIZATION, timeout=120)
    status, error = refusal(caught.value)
    assert (status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
    assert f"{share} of them of this key" in error.message
    assert error.kind == stream_pb2.RETRY_SAME_NODE
    for each in held:
        each.cancel()
    wait_until(lambda: narrow.calls_count() == 0, "the calls have ended")
    assert narrow.unary("Echo")(REQUEST, metadata=AUTHORIZATION, timeout=120) == REQUEST


def test_a_deadline_ends_the_call_and_its_handler(served: Served) -> None:
    served.handlers.cancelled.clear()
    began = time.monotonic()
    with pytest.raises(grpc.RpcError) as caught:
        served.unary("Hang")(REQUEST, metadata=AUTHORIZATION, timeout=0.3)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - began < 5
    assert served.handlers.cancelled.wait(120)
    wait_until(lambda: served.calls_count() == 0, "the call has ended")


def test_a_cancelled_call_ends_its_handler(served: Served) -> None:
    served.handlers.cancelled.clear()
    served.handlers.started.clear()
    method: UnaryMethod = served.channel.unary_unary("/test/Hang")
    future = method.future(REQUEST, metadata=AUTHORIZATION, timeout=120)
    assert served.handlers.started.wait(120)
    future.cancel()
    assert served.handlers.cancelled.wait(120)
    wait_until(lambda: served.calls_count() == 0, "the call has ended")


def test_a_stream_goes_both_ways_and_ends_when_the_client_does(served: Served) -> None:
    method: StreamMethod = served.channel.stream_stream("/test/Double")
    requests = (stream_pb2.Assigned(topic=i).SerializeToString() for i in range(2000))
    answers = method(requests, metadata=AUTHORIZATION, timeout=120)
    found = [stream_pb2.Assigned.FromString(answer).topic for answer in answers]
    assert found == [2 * i for i in range(2000)]


def test_a_slow_reader_holds_the_handler_back(served: Served) -> None:
    served.handlers.sent = 0
    method: StreamMethod = served.channel.stream_stream("/test/Flood")
    answers = method(iter(()), metadata=AUTHORIZATION, timeout=120)
    next(answers)
    # It sends what the transport and the window take, then waits: not a thousand messages.
    wait_until(Still(lambda: served.handlers.sent), "it waits")
    assert SEND_WINDOW_BYTES <= served.handlers.sent * MESSAGE_BYTES < 500 * MESSAGE_BYTES
    assert sum(1 for _ in answers) == 999


def test_no_key_and_no_method_are_refused(served: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        served.unary("Echo")(REQUEST, timeout=120)
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
    with pytest.raises(grpc.RpcError) as caught:
        served.unary("Nothing")(REQUEST, metadata=AUTHORIZATION, timeout=120)
    assert refusal(caught.value)[1].code == "METHOD_UNKNOWN"
