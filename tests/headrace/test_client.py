"""What a client keeps of the producers and consumers that were opened over it, with any number of
threads."""

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from headrace.async_client import AsyncClient
from headrace.client import Client
from headrace.errors import Closed
from headrace.settings import Settings

THREADS = 16
ROUNDS = 50

T = TypeVar("T")


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """The interpreter goes on to another thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[], T]) -> list[T]:
    """What `work` returns in each of the threads, which all start at the same moment."""
    barrier = threading.Barrier(THREADS)

    def begin() -> T:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(THREADS) as threads:
        return [f.result() for f in [threads.submit(begin) for _ in range(THREADS)]]


@pytest.mark.usefixtures("frequent_switches")
def test_first_sends_at_the_same_time_share_one_producer(settings: Settings) -> None:
    for _ in range(ROUNDS):
        with Client(settings) as client:
            assert len(set(together(lambda: client.shared_producer))) == 1


@pytest.mark.usefixtures("frequent_switches")
def test_threads_share_one_admin(settings: Settings) -> None:
    for _ in range(ROUNDS):
        with Client(settings) as client:
            assert len(set(together(lambda: client.admin))) == 1


@pytest.mark.usefixtures("frequent_switches")
def test_closing_the_client_closes_what_every_thread_opened(settings: Settings) -> None:
    with Client(settings) as client:
        topic = client.topic("single")
        opened = together(lambda: [(topic.consume(), client.producer()) for _ in range(ROUNDS)])
    pairs = [pair for some in opened for pair in some]
    assert len(pairs) == THREADS * ROUNDS
    assert all(c.subscription.closed and p.closed for c, p in pairs)


def test_closed_producers_are_not_kept(client: Client) -> None:
    made: weakref.WeakSet[object] = weakref.WeakSet()
    for _ in range(10_000):
        with client.producer() as producer:
            made.add(producer)
    gc.collect()
    assert len(made) <= 1


def test_a_flush_of_the_client_leaves_out_closed_producers(client: Client) -> None:
    with client.producer() as producer:
        producer.send("single", b"x")
    client.flush()


def test_a_flush_of_the_async_client_leaves_out_closed_producers(settings: Settings) -> None:
    async def main() -> None:
        async with AsyncClient(settings) as client:
            async with client.producer() as producer:
                await producer.send("single", b"x")
            await client.flush()

    asyncio.run(main())


def test_a_closed_client_opens_nothing(settings: Settings) -> None:
    client = Client(settings)
    client.close()
    topic = client.topic("single")
    for opening in (client.producer, topic.consume, lambda: client.admin, lambda: topic.send(b"x")):
        with pytest.raises(Closed):
            opening()
