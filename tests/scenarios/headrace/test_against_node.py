"""The client and a real node: `python -m dataplane`, kill -9 included."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from headrace.async_client import AsyncClient
from headrace.client import Client
from headrace.errors import (
    AccessDenied,
    Fatal,
    NotFound,
    OffsetBeyondEnd,
    OffsetExpired,
    StartRequired,
    TopicNotFound,
    Unauthenticated,
)
from headrace.messages import TopicPartition
from headrace.producer.accumulator import Delivery
from headrace.settings import Settings
from tests.support.builders import commands
from tests.support.processes.node_process import NodeProcess, token
from tests.support.processes.platform import wait_until

KILLS = 3


@pytest.fixture(scope="module", params=[1, 3], ids="shards={}".format)
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("node"), shards=request.param) as node:
        yield node


@pytest.fixture(scope="module")
def counter() -> Iterator[int]:
    return iter(range(1, 1000))


@pytest.fixture
def topic(real: NodeProcess, counter: Iterator[int]) -> str:
    """A topic of four partitions of its own."""
    name = f"topic{next(counter)}"
    put = commands.put_topic(f"tp_{name}", topic=name, partitions=4)
    real.admin().apply(put.control.request)
    return name


def key(real: NodeProcess, role: str) -> str:
    """A key of this role, known to the node."""
    public_id = f"{role[:6]:k<10}".replace("-", "k")
    bearer, digest = token("user", public_id, role)
    put = commands.put_key(f"key_{role}", public_id=public_id, role=role).control.request
    put.put_key.secret_sha256 = digest
    real.admin().apply(put)
    return bearer


@pytest.fixture(scope="module")
def real_settings(real: NodeProcess) -> Settings:
    address = f"127.0.0.1:{real.grpc_port}"
    return Settings(bootstrap=(address,), api_url="http://127.0.0.1:1", key=key(real, "editor"))


@pytest.fixture
def user(real_settings: Settings) -> Iterator[Client]:
    with Client(real_settings) as client:
        yield client


def numbered(count: int) -> list[bytes]:
    return [f"{i:06d}".encode() for i in range(count)]


def test_reading_begins_at_the_time_of_a_batch(user: Client, topic: str) -> None:
    handle = user.topic(topic)
    acks = [handle.send(b"%d" % index, partition=2) for index in range(5)]
    found = handle.consume(start=acks[3].timestamp, partition=2, until="end")
    assert [message.value for message in found] == [b"3", b"4"]
    assert handle.offsets_at(acks[1].timestamp) == {0: 0, 1: 0, 2: 1, 3: 0}
    assert handle.offsets_at(timedelta(hours=1)) == dict.fromkeys(range(4), 0)


def test_what_was_sent_is_read(user: Client, topic: str) -> None:
    handle = user.topic(topic)
    ack = handle.send({"id": 7}, key="cust-42", headers={"trace": "1"}, timestamp=1_000_001)
    assert (ack.offset, ack.persisted, ack.replicas) == (0, 1, 1)
    (message,) = handle.consume(until="end")
    assert (message.key, message.json(), message.headers) == (
        b"cust-42",
        {"id": 7},
        (("trace", b"1"),),
    )
    assert (message.partition, message.timestamp_us) == (ack.partition, 1_000_001)


def test_many_records_come_back_once_and_in_order_of_their_partition(
    user: Client, topic: str
) -> None:
    acks = user.topic(topic).send_many(numbered(50_000))
    assert sum(ack.count for ack in acks) == 50_000
    found: dict[int, list[bytes]] = {partition: [] for partition in range(4)}
    for batch in user.topic(topic).consume(until="end").batches():
        found[batch.partition] += [value or b"" for value in batch.values]
    assert sorted(value for values in found.values() for value in values) == numbered(50_000)
    assert all(values == sorted(values) for values in found.values())


def test_a_group_reads_everything_once_and_goes_on_where_it_was(user: Client, topic: str) -> None:
    user.topic(topic).send_many(numbered(1000))
    first = user.topic(topic).consume(group=f"g-{topic}", start="earliest", until="end")
    assert sorted(m.value or b"" for m in first) == numbered(1000)
    for partition in range(4):
        user.topic(topic).send(b"later", partition=partition)
    second = user.topic(topic).consume(group=f"g-{topic}", until="end")
    assert [m.value for m in second] == [b"later"] * 4


def test_two_members_share_the_work(user: Client, real_settings: Settings, topic: str) -> None:
    for partition in range(4):
        user.topic(topic).send_many([f"{partition}.{i}" for i in range(100)], partition=partition)
    handled: list[bytes | None] = []
    together = threading.Barrier(2)

    def work() -> None:
        with Client(real_settings) as mine:
            consumer = mine.topic(topic).consume(group=f"g-{topic}", start="earliest", until="end")
            consumer.open()
            together.wait(120)
            handled.extend(message.value for message in consumer)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work) for _ in range(2)]:
            done.result(120)
    assert Counter(handled) == {f"{p}.{i}".encode(): 1 for p in range(4) for i in range(100)}


def test_a_new_group_must_say_where_it_begins(user: Client, topic: str) -> None:
    user.topic(topic).send(b"x")
    with pytest.raises(StartRequired):
        next(user.topic(topic).consume(group=f"g-{topic}"))


def test_positions_lag_and_commits(user: Client, topic: str) -> None:
    user.topic(topic).send_many(numbered(10), partition=2)
    with user.topic(topic).consume(group=f"g-{topic}", start="earliest") as consumer:
        for _ in range(4):
            next(consumer)
        assert consumer.lag()[TopicPartition(f"default/{topic}", 2)] == 7
        consumer.commit()
    with user.topic(topic).consume(group=f"g-{topic}") as consumer:
        assert next(consumer).offset == 4


def test_a_group_whose_records_were_purged_is_told_and_goes_on_where_the_log_begins(
    user: Client, real: NodeProcess, topic: str
) -> None:
    handle = user.topic(topic)
    handle.send_many(numbered(10), partition=2)
    with handle.consume(group=f"g-{topic}", start="earliest") as consumer:
        for _ in range(4):
            next(consumer)
        consumer.commit()
    real.admin().purge(f"tp_{topic}", p2=7)
    with handle.consume(group=f"g-{topic}") as consumer, pytest.raises(OffsetExpired) as told:
        next(consumer)
    assert told.value.expected == 7
    assert "3 records from offset 4 were" in str(told.value)
    with handle.consume(group=f"g-{topic}", on_expired="skip", until="end") as consumer:
        assert [message.offset for message in consumer] == [7, 8, 9]
    fresh = handle.consume(group=f"new-{topic}", start="earliest", until="end")
    assert [message.offset for message in fresh] == [7, 8, 9]


def test_a_reader_waits_for_what_is_not_there_yet(user: Client, topic: str) -> None:
    with user.topic(topic).consume(start="latest") as consumer:
        assert consumer.poll("50ms") is None
        user.topic(topic).send(b"now")
        message = consumer.poll("10s")
    assert message is not None
    assert message.value == b"now"


def test_a_missing_topic_and_an_offset_beyond_the_log_are_typed(user: Client, topic: str) -> None:
    with pytest.raises(TopicNotFound, match="nope"):
        user.topic("nope").send(b"x")
    user.topic(topic).send(b"x", partition=0)
    with pytest.raises(OffsetBeyondEnd):
        next(user.topic(topic).consume(partition=0, start=1000))


def test_keys_and_roles_are_looked_at(
    real: NodeProcess, real_settings: Settings, topic: str
) -> None:
    address = real_settings.bootstrap
    nobody, _ = token("user", "nobodyknow", "nobody")
    with (
        Client(Settings(bootstrap=address, api_url="", key=nobody)) as client,
        pytest.raises(Unauthenticated),
    ):
        client.topic(topic).send(b"x")
    viewer = Settings(bootstrap=address, api_url="", key=key(real, "viewer"))
    with Client(viewer) as client, pytest.raises(AccessDenied):
        client.topic(topic).send(b"x")


def test_the_async_client_works_too(real_settings: Settings, topic: str) -> None:
    async def main() -> list[bytes | None]:
        async with AsyncClient(real_settings) as client:
            handle = client.topic(topic)
            await asyncio.gather(*(handle.send(str(i), key="k") for i in range(200)))
            found = handle.consume(group=f"g-{topic}", start="earliest", until="end")
            return [message.value async for message in found]

    assert asyncio.run(main()) == [str(i).encode() for i in range(200)]


@pytest.mark.xfail(
    strict=True,
    raises=Fatal,
    reason="a consumer whose opening was cancelled joins again and is replaced by itself",
)
def test_a_poll_that_is_cancelled_as_its_group_is_joined_leaves_one_session(
    real_settings: Settings, user: Client, topic: str
) -> None:
    user.topic(topic).send_many(numbered(10))
    group = f"g-{topic}"

    def joined() -> bool:
        with contextlib.suppress(NotFound):
            return bool(user.describe_group(group).members)
        return False

    async def main() -> list[bytes | None]:
        async with AsyncClient(real_settings) as client:
            consumer = client.topic(topic).consume(group=group, start="earliest")
            polling = asyncio.ensure_future(consumer.poll("60s"))
            await asyncio.sleep(0)
            # This loop stands still while the I/O thread opens the consumer: the cancellation
            # finds it open, and poll() knowing nothing of that.
            wait_until(joined, "the group is joined", 120)
            polling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await polling
            found: list[bytes | None] = []
            while message := await consumer.poll("10s" if len(found) < 10 else "300ms"):
                found.append(message.value)
            return found

    assert sorted(asyncio.run(main()), key=str) == numbered(10)


def test_kill_9_in_the_middle_of_producing_loses_nothing_acked_and_doubles_nothing(
    real: NodeProcess, user: Client, topic: str
) -> None:
    producer = user.producer(linger="1ms", batch_bytes=4096)
    deliveries: list[Delivery] = []
    values = numbered(6000 * KILLS)
    killed_at = {3000 + 6000 * i for i in range(KILLS)}
    for i, value in enumerate(values):
        deliveries.append(producer.send_nowait(topic, value))
        if i in killed_at:
            deliveries[i - 1500].result(120)
            real.kill()
            real.start()
    acks = [delivery.result(120) for delivery in deliveries]
    stored = {(m.partition, m.offset): m.value for m in user.topic(topic).consume(until="end")}
    assert Counter(stored.values()) == Counter(values)
    assert {(a.partition, a.offset): v for a, v in zip(acks, values, strict=True)} == stored


def test_a_group_survives_kill_9(real: NodeProcess, user: Client, topic: str) -> None:
    user.topic(topic).send_many(numbered(100), partition=0)
    with user.topic(topic).consume(group=f"g-{topic}", start="earliest") as consumer:
        for _ in range(60):
            next(consumer)
        consumer.commit()
        real.kill()
        real.start()
        user.topic(topic).send(b"after", partition=0)
        seen: set[bytes | None] = set()
        while b"after" not in seen:
            seen.add(next(consumer).value)
    assert set(numbered(100)[60:]) <= seen
