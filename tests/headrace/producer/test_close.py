"""close() of a producer: every send settles with its result or an error, wherever close() meets it,
and by the time close() ends."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from headrace.async_client import AsyncClient
from headrace.client import Client
from headrace.errors import Closed, OutcomeUnknown
from headrace.messages import record_of, size_of
from headrace.producer.accumulator import Accumulator, Delivery
from headrace.producer.producer import Producer
from headrace.producer.sender import Sender, SendingOptions
from headrace.settings import Settings
from headrace.transport.connection import Connection, Route
from tests.headrace.scripted_node import ScriptedNode

WAIT_S = 60.0
THREADS = 4
ROUNDS = 20
ROUTE = Route("orders", 16, 1, 4096, "none", ("127.0.0.1:1",) * 4, "cl_test")
OPTIONS = SendingOptions(
    linger=0.005, batch_bytes=1024, buffer_bytes=8192, delivery_timeout=120, idempotent=True
)
RECORD = record_of(b"x")
APPENDS: dict[str, Callable[[Accumulator], object]] = {
    "record": lambda into: into.append(ROUTE, RECORD, None, size_of(RECORD), urgent=True),
    "batch": lambda into: into.append_batch(ROUTE, [RECORD], None, size_of(RECORD)),
}


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads that change places between almost any two steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", APPENDS)
def test_a_record_that_comes_after_the_close_is_refused_and_gives_its_memory_back(
    settings: Settings, name: str
) -> None:
    async def main() -> None:
        sender = Sender(Connection(settings), OPTIONS, lambda: None)
        sender.memory.take(size_of(RECORD), None)
        assert await sender.close() == 0
        with pytest.raises(Closed):
            APPENDS[name](sender.accumulator)
        assert sender.memory.used == 0

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@pytest.mark.usefixtures("quick_switches")
def test_sends_of_many_threads_have_settled_when_close_ends(client: Client) -> None:
    for _ in range(ROUNDS):
        producer = client.producer(linger="1ms", batch_bytes=2000)
        producer.send("orders", b"first")
        sent: list[Delivery] = []
        ready = threading.Barrier(THREADS + 1)
        threads = [
            threading.Thread(target=partial(send_until_closed, producer, sent, ready))
            for _ in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        ready.wait(WAIT_S)
        producer.close()
        for thread in threads:
            thread.join(WAIT_S)
        assert [each for each in sent if not each.done()] == []
        assert producer.pending_bytes == 0


def send_until_closed(producer: Producer, sent: list[Delivery], ready: threading.Barrier) -> None:
    ready.wait(WAIT_S)
    try:
        while True:
            sent.append(producer.send_nowait("orders", b"x"))
    except Closed:
        return


def test_a_close_that_is_cancelled_leaves_no_send_waiting(
    settings: Settings, node: ScriptedNode
) -> None:
    def stored_twice() -> bool:
        with node.changed:
            return node.changed.wait_for(lambda: len(node.values("single")) == 2, WAIT_S)

    async def main() -> None:
        async with AsyncClient(settings) as client:
            producer = client.producer()
            await producer.send("single", b"first")
            node.faults.hold_replies = True
            sending = asyncio.ensure_future(producer.send("single", b"x"))
            assert await asyncio.to_thread(stored_twice)
            closing = asyncio.ensure_future(producer.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            with pytest.raises(OutcomeUnknown):
                await sending

    asyncio.run(asyncio.wait_for(main(), WAIT_S / 2))


def test_a_closed_connection_opens_no_channel_again(settings: Settings) -> None:
    async def main() -> None:
        connection = Connection(settings)
        await connection.close()
        with pytest.raises(Closed):
            await connection.metadata.resolve("orders")

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_callback_that_raises_keeps_no_other_send_from_settling(
    client: Client, node: ScriptedNode
) -> None:
    producer = client.producer()
    producer.send("orders", b"first")
    node.faults.hold_replies = True
    sent = [producer.send_nowait("orders", b"x", partition=index) for index in range(4)]
    for each in sent:
        each.add_done_callback(lambda _: producer.send_nowait("orders", b"again"))
    producer.close("1ms")
    assert [each for each in sent if not each.done()] == []
