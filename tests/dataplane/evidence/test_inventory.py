"""Snapshots of every partition, against a scripted engine: a few at a time, and none older than it
says."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dataplane.engine.frames import EngineResult, Kind
from dataplane.engine.partition_client import PartitionClient
from dataplane.engine.ring import Ring
from dataplane.evidence.inventory import INVENTORY_RECORDS_MAX, Inventory
from dataplane.metadata.state import State
from headrace import codec
from headrace.wire import usage_pb2 as usage
from native.engine import Frame
from tests.dataplane.scripted_engine import ScriptedEngine
from tests.support.builders.commands import Log, put_topic

PARTITIONS = INVENTORY_RECORDS_MAX + 44
PLACE_BYTES, STATE_BYTES = 24, 104
HOUR_S = 3600.0


class Shard(ScriptedEngine):
    """Describes every partition as empty, and keeps the snapshots that it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: list[usage.Inventory] = []

    def send(self, frames: Iterable[Frame]) -> int:
        """Answers at once."""
        before = len(self.sent)
        for frame in frames:
            self.sent.append(frame)
            result, body = EngineResult.OK, b""
            if frame.kind == Kind.DESCRIBE:
                body = bytes(STATE_BYTES)
            elif self.refuse_publish is not None:
                result = self.refuse_publish
            else:
                values = codec.decode(codec.client_batch(frame.body[PLACE_BYTES:])).values
                records = [usage.RetentionRecord.FromString(each[1:]) for each in values if each]
                self.snapshots += [each.inventory for each in records]
            self.post(Frame(Kind.REPLY, arg0=frame.arg0, arg1=result, body=body))
        return len(self.sent) - before


def test_snapshots_are_taken_a_few_at_a_time_and_bear_the_time_of_their_own_try() -> None:
    log, shard, slept = Log(), Shard(), list[float]()
    log.do(put_topic(partitions=PARTITIONS))
    now = 10 * HOUR_S

    @contextmanager
    def reading() -> Iterator[State]:
        yield log.machine.state

    async def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        if shard.snapshots:
            await asyncio.Event().wait()
        now += 900.0
        shard.refuse_publish = None

    async def take() -> None:
        ring = Ring(shard)
        ring.open(asyncio.get_running_loop())
        partitions = PartitionClient(ring, shards=1)
        inventory = Inventory(partitions, reading=reading, sleep=sleep, clock=lambda: now)
        task = asyncio.ensure_future(inventory.run())
        await shard.until(lambda: inventory.taken == 1 and len(slept) == 2)
        assert inventory.failures == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        ring.close()

    shard.refuse_publish = EngineResult.BUSY
    asyncio.run(take())
    shard.close()
    kinds = [frame.kind for frame in shard.sent]
    some, rest = [Kind.DESCRIBE] * INVENTORY_RECORDS_MAX, [Kind.DESCRIBE] * 44
    assert kinds == [*some, Kind.PUBLISH, *some, Kind.PUBLISH, *rest, Kind.PUBLISH]
    assert len(shard.snapshots) == PARTITIONS
    assert {each.at_us for each in shard.snapshots} == {int((10 * HOUR_S + 900) * 1_000_000)}
    assert slept == [5.0, HOUR_S - 900]
