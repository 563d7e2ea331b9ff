"""The way to a partition, over the ring of a scripted engine."""

import asyncio
import ctypes
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.engine.frames import EngineResult, Kind, PartitionId, pack_partition
from dataplane.engine.partition_client import PartitionClient, owner_of
from dataplane.engine.ring import Reply, Ring
from native.engine import Frame
from tests.dataplane.scripted_engine import ScriptedEngine

NATIVE = Path(__file__).parents[3] / "native"
SHARDS = 3
TOPIC, REVISION = 16, 2


class Echo(ScriptedEngine):
    """Answers a request with its own body."""

    def __init__(self) -> None:
        super().__init__()
        self.crossings: list[list[Frame]] = []

    def send(self, frames: Iterable[Frame]) -> int:
        """Answers at once."""
        taken = list(frames)
        self.crossings.append(taken)
        for frame in taken:
            if frame.kind != Kind.METER_ACK:
                self.post(Frame(Kind.REPLY, arg0=frame.arg0, arg1=EngineResult.OK, body=frame.body))
        return len(taken)


@pytest.fixture
def engine() -> Iterator[Echo]:
    scripted = Echo()
    yield scripted
    scripted.close()


def _partition(index: int) -> PartitionId:
    return PartitionId(TOPIC, REVISION, index)


def _on(engine: Echo, story: Callable[[PartitionClient], Awaitable[None]]) -> None:
    async def run() -> None:
        ring = Ring(engine)
        ring.open(asyncio.get_running_loop())
        await story(PartitionClient(ring, shards=SHARDS))
        ring.close()

    asyncio.run(run())


def test_requests_of_one_turn_go_to_their_owners_in_one_crossing(engine: Echo) -> None:
    async def story(client: PartitionClient) -> None:
        replies = await asyncio.gather(
            *(
                client.request(Kind.PUBLISH, _partition(index), b"batch", timeout_s=10)
                for index in range(5)
            )
        )
        bodies = [pack_partition(_partition(index)) + b"batch" for index in range(5)]
        assert replies == [Reply(EngineResult.OK, body) for body in bodies]

    _on(engine, story)
    (frames,) = engine.crossings
    assert [frame.shard for frame in frames] == [
        owner_of(_partition(index), SHARDS) for index in range(5)
    ]
    assert {frame.shard for frame in frames} == set(range(SHARDS))


def test_a_message_has_its_argument_and_no_reply(engine: Echo) -> None:
    async def story(client: PartitionClient) -> None:
        client.post(Kind.METER_ACK, _partition(1), arg1=7)
        await client.request_shard(Kind.COUNTERS_FLUSH, client.shards()[-1], timeout_s=10)

    _on(engine, story)
    ((acknowledgement, flush),) = engine.crossings
    assert (acknowledgement.shard, acknowledgement.arg0, acknowledgement.arg1) == (
        owner_of(_partition(1), SHARDS),
        0,
        7,
    )
    assert acknowledgement.body == pack_partition(_partition(1))
    assert (flush.kind, flush.shard, flush.body) == (Kind.COUNTERS_FLUSH, SHARDS - 1, b"")


@pytest.fixture(scope="module")
def owner_in_c(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int, int], int]:
    """`owner_of` as the engine compiles it."""
    folder = tmp_path_factory.mktemp("owner")
    source, library = folder / "owner.c", folder / "owner.so"
    source.write_text(
        '#include "catalog/owner.h"\n'
        "uint16_t owner(uint64_t topic, uint32_t partition, uint16_t shards)\n"
        "{\n    return owner_of(topic, partition, shards);\n}\n"
    )
    flags = ("-std=gnu11", "-shared", "-fPIC", "-Wall", "-Werror", f"-I{NATIVE / 'src'}")
    subprocess.run(["gcc", *flags, "-o", library, source], check=True, timeout=120)
    owner = ctypes.CDLL(str(library)).owner
    owner.argtypes = (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint16)
    owner.restype = ctypes.c_uint16
    return lambda topic, partition, shards: int(owner(topic, partition, shards))


@given(topic=st.integers(1, 2**64 - 1), partition=st.integers(0, 1023), shards=st.integers(1, 64))
def test_the_engine_and_the_host_agree_on_the_owner_and_neighbours_spread(
    owner_in_c: Callable[[int, int, int], int], topic: int, partition: int, shards: int
) -> None:
    here = owner_of(PartitionId(topic, 1, partition), shards)
    there = owner_of(PartitionId(topic, 1, partition + 1), shards)
    assert here == owner_in_c(topic, partition, shards)
    assert there == (here + 1) % shards
