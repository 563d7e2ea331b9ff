"""The async client: same names, and the caller's event loop stays free."""

import asyncio
import statistics
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import grpc
import pytest

import headrace
from headrace.async_client import AsyncClient
from headrace.consumer.consumer import AsyncConsumer
from headrace.errors import BufferFull, Closed, DeadlineExceeded, TopicNotFound
from headrace.messages import Message, TopicPartition
from headrace.settings import Settings
from headrace.wire import stream_pb2 as wire
from tests.headrace.scripted_node import ScriptedNode
from tests.support.processes.platform import wait_until


def test_send_and_read_with_await(settings: Settings) -> None:
    async def main() -> list[bytes | None]:
        async with AsyncClient(settings) as client:
            orders = client.topic("orders")
            ack = await orders.send({"id": 7}, key="cust-42")
            assert ack.offset == 0
            delivery = await orders.send_nowait(b"second", partition=ack.partition)
            assert (await delivery).offset == 1
            found = orders.consume(group="billing", start="earliest", until="end")
            return [m.value async for m in found]

    assert asyncio.run(main()) == [b'{"id":7}', b"second"]


def test_many_sends_at_once_share_batches(settings: Settings, node: ScriptedNode) -> None:
    async def main() -> None:
        async with AsyncClient(settings) as client:
            topic = client.topic("single")
            await topic.send(b"warm")
            await asyncio.gather(*(topic.send(str(i)) for i in range(1000)))

    asyncio.run(main())
    assert len(node.values("single")) == 1001
    assert node.produce_requests < 200


def test_send_many_takes_async_iterables(settings: Settings, node: ScriptedNode) -> None:
    async def items() -> AsyncIterator[bytes]:
        for i in range(5000):
            yield str(i).encode()

    async def main() -> int:
        async with AsyncClient(settings) as client:
            acks = await client.topic("single").send_many(items())
            return sum(ack.count for ack in acks)

    assert asyncio.run(main()) == 5000
    assert len(node.values("single")) == 5000


def test_the_callers_loop_is_not_blocked_under_load(settings: Settings) -> None:
    async def longest_pause(until: asyncio.Event) -> float:
        longest, last = 0.0, time.monotonic()
        while not until.is_set():
            await asyncio.sleep(0)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        return longest

    async def main() -> list[float]:
        pauses = []
        async with AsyncClient(settings) as client:
            topic = client.topic("orders")
            for _ in range(20):
                done = asyncio.Event()
                watching = asyncio.ensure_future(longest_pause(done))
                await asyncio.gather(*(topic.send(bytes(100)) for _ in range(100)))
                done.set()
                pauses.append(await watching)
        return pauses

    # A gather of 100 coroutines is the caller's own work; transport must not add to it. CI machines
    # are slow and do other work: what blocks the loop does so in every round.
    assert statistics.median(asyncio.run(main())) < 0.25


def test_columns_lag_commit_and_poll_are_awaited(settings: Settings) -> None:
    async def main() -> None:
        async with AsyncClient(settings) as client:
            await client.topic("single").send_many([b"a", b"b", b"c"])
            async with client.topic("single").consume(group="g", start="earliest") as consumer:
                message = await consumer.poll("10s")
                assert message is not None
                assert await consumer.lag() == {TopicPartition("single", 0): 3}
                await consumer.poll("10s")
                await consumer.commit()
                assert consumer.positions == {TopicPartition("single", 0): 1}
            rest = client.topic("single").consume(group="g", until="end")
            assert [len(batch) async for batch in rest.batches()] == [1]

    asyncio.run(main())


def test_errors_and_timeouts_are_the_same(settings: Settings, node: ScriptedNode) -> None:
    async def main() -> None:
        async with AsyncClient(settings) as client:
            with pytest.raises(TopicNotFound):
                await client.topic("nope").send(b"x")
            producer = client.producer(on_full="raise", buffer_bytes=1000)
            await producer.send("single", b"warm")
            node.faults.hold_replies = True
            with pytest.raises(DeadlineExceeded):
                await producer.send("single", bytes(900), timeout="50ms")
            with pytest.raises(BufferFull):
                await producer.send_nowait("single", bytes(900))
            node.faults.hold_replies = False
            with node.changed:
                node.changed.notify_all()
            await producer.flush("10s")

    asyncio.run(main())


def test_cancelling_a_wait_leaves_the_client_usable(settings: Settings) -> None:
    async def main() -> bytes | None:
        async with AsyncClient(settings) as client:
            consumer = client.topic("single").consume(start="earliest")
            waiting = asyncio.ensure_future(consumer.poll("60s"))
            await consumer.open()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await client.topic("single").send(b"x")
            message = await consumer.poll("10s")
            return None if message is None else message.value

    assert asyncio.run(main()) == b"x"


class HeldNode(ScriptedNode):
    """Says where partition 3 begins only when it may."""

    def __init__(self) -> None:
        super().__init__({"orders": 4})
        self.may_answer = threading.Event()
        self.fetched: set[int] = set()

    def fetch_offsets(
        self, request: wire.FetchOffsetsRequest, context: grpc.ServicerContext
    ) -> wire.FetchOffsetsReply:
        if request.partition == 3:
            self.may_answer.wait(120)
        return super().fetch_offsets(request, context)

    def fetch(self, request: wire.FetchRequest, context: grpc.ServicerContext) -> wire.FetchReply:
        self.fetched.add(request.partition)
        return super().fetch(request, context)


@pytest.fixture
def held() -> Iterator[HeldNode]:
    node = HeldNode()
    node.start()
    yield node
    node.may_answer.set()
    node.stop()


async def cancelled(polling: asyncio.Task[Message | None]) -> None:
    polling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await polling


async def rows_of(consumer: AsyncConsumer, count: int) -> list[bytes | None]:
    """So many different rows, and whatever else comes soon after."""
    found: list[bytes | None] = []
    while message := await consumer.poll("10s" if len(set(found)) < count else "300ms"):
        found.append(message.value)
    return sorted(found, key=str)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a consumer whose opening was cancelled reads some partitions twice",
)
def test_a_poll_that_is_cancelled_while_partitions_are_opened_doubles_no_row(
    settings: Settings, held: HeldNode
) -> None:
    values = [b"0", b"1", b"2", b"3"]
    for partition, value in enumerate(values):
        held.append("orders", partition, value)

    async def main() -> list[bytes | None]:
        async with AsyncClient(replace(settings, bootstrap=(held.address,))) as client:
            consumer = client.topic("orders").consume(start="earliest")
            polling = asyncio.ensure_future(consumer.poll("60s"))
            await asyncio.to_thread(
                wait_until, lambda: held.fetched == {0, 1, 2}, "three partitions are read", 10
            )
            await cancelled(polling)
            held.may_answer.set()
            return await rows_of(consumer, len(values))

    assert asyncio.run(main()) == values


def test_a_client_can_be_made_without_a_running_loop(settings: Settings) -> None:
    client = headrace.aconnect(bootstrap=settings.bootstrap[0])

    async def main() -> int:
        async with client:
            return (await client.topic("single").send(b"x")).offset

    assert asyncio.run(main()) == 0


def test_a_client_can_be_awaited_and_is_itself(settings: Settings) -> None:
    async def main() -> None:
        made = AsyncClient(settings)
        client = await made
        assert client is made
        assert (await client.topic("single").send(b"x")).offset == 0
        await client.close()

    asyncio.run(main())


def test_reading_on_after_the_client_was_closed_is_an_error(settings: Settings) -> None:
    async def main() -> None:
        async with AsyncClient(settings) as client:
            await client.topic("single").send_many([b"a", b"b"])
            consumer = client.topic("single").consume(until="end")
            assert (await anext(consumer)).offset == 0
        with pytest.raises(Closed):
            await anext(consumer)

    asyncio.run(main())
